//! The ring of packets in a direction: queued, in transmission, and in flight.

use bentpipe_types::{PacketRef, Time, fetch};

/// A packet between enqueueing and arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTransit {
    /// End of its transmission.
    pub(crate) departure: Time,
    pub(crate) packet: PacketRef,
    pub(crate) length: u32,
}

/// Initial number of slots: one cache line, since in a large network most directions contain few
/// packets.
const FEWEST: usize = 4;

/// Packets in the order of departure, with two marks: between departed and queued packets, and
/// between arrived packets and others.
///
/// Either mark may be ahead of the other. For a host that runs ahead, arrivals are taken before
/// their time, while for the queue they have not departed; departures are determined when a packet
/// is offered.
///
/// The number of slots is a power of two. Positions grow from 0, and a position's slot is given by
/// its low bits. The ring doubles when it is full and never shrinks, so nothing is allocated per
/// packet.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    slots: Box<[InTransit]>,
    /// Position of the next packet.
    end: u64,
    /// Number of packets that have not arrived: the last ones.
    not_arrived: u32,
    /// Number of packets that have not departed: the last ones.
    not_departed: u32,
}

impl Ring {
    /// Returns the number of packets that have not arrived.
    #[inline]
    pub(crate) fn not_arrived(&self) -> usize {
        self.not_arrived as usize
    }

    /// Returns the number of packets ever added.
    #[inline]
    pub(crate) fn pushed(&self) -> u64 {
        self.end
    }

    /// Returns the number of packets that have arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        self.end - u64::from(self.not_arrived)
    }

    /// Returns the number of packets for which arrival or departure is outstanding.
    #[inline]
    fn kept(&self) -> u32 {
        self.not_arrived.max(self.not_departed)
    }

    /// Whether another packet would make it grow.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.kept() as usize == self.slots.len()
    }

    /// Iterates over the packets, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &InTransit> {
        (self.end - u64::from(self.kept())..self.end)
            .rev()
            .map(|position| self.at(position))
    }

    /// Returns the number of packets that have not departed.
    #[inline]
    pub(crate) fn not_departed(&self) -> usize {
        self.not_departed as usize
    }

    /// Returns the next packet to arrive.
    #[inline]
    pub(crate) fn first(&self) -> Option<&InTransit> {
        (self.not_arrived > 0).then(|| self.at(self.arrived()))
    }

    /// Returns the packet `number` positions behind the next to arrive.
    #[inline]
    pub(crate) fn behind_first(&self, number: u64) -> Option<&InTransit> {
        (number < u64::from(self.not_arrived)).then(|| self.at(self.arrived() + number))
    }

    /// Prefetches the next packets to arrive: two cache lines.
    #[inline]
    pub(crate) fn fetch_first(&self) {
        if let Some(further) = u64::from(self.not_arrived).checked_sub(1) {
            fetch(self.at(self.arrived()), 1);
            fetch(self.at(self.arrived() + further.min(FEWEST as u64 - 1)), 1);
        }
    }

    /// Prefetches the slot of the next packet.
    #[inline]
    pub(crate) fn fetch_end(&self) {
        if !self.slots.is_empty() {
            fetch(self.at(self.end), 1);
        }
    }

    /// Returns the next packet to depart.
    #[inline]
    pub(crate) fn next_departure(&self) -> Option<&InTransit> {
        (self.not_departed > 0).then(|| self.at(self.end - u64::from(self.not_departed)))
    }

    /// Marks the next packet as departed.
    #[inline]
    pub(crate) fn depart(&mut self) {
        debug_assert!(self.not_departed > 0, "nothing is left to depart");
        self.not_departed -= 1;
    }

    /// Marks all packets as departed.
    #[inline]
    pub(crate) fn depart_all(&mut self) {
        self.not_departed = 0;
    }

    /// Marks the next packet as arrived.
    #[inline]
    pub(crate) fn arrive(&mut self) {
        debug_assert!(self.not_arrived > 0, "nothing is left to arrive");
        self.not_arrived -= 1;
    }

    #[inline]
    pub(crate) fn push(&mut self, packet: InTransit) {
        if self.is_full() {
            self.grow(packet);
        }
        let slot = self.slot(self.end);
        // Kept apart from the other count: combined into one read, both would be loaded just after
        // one was stored, which stalls the processor.
        self.not_arrived += 1;
        self.slots[slot] = packet;
        self.not_departed += 1;
        self.end += 1;
    }

    #[inline]
    fn at(&self, position: u64) -> &InTransit {
        &self.slots[self.slot(position)]
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    /// Doubles the slots; unused ones are filled with `filler`.
    #[cold]
    fn grow(&mut self, filler: InTransit) {
        let size = (2 * self.slots.len()).max(FEWEST);
        let mut slots = vec![filler; size].into_boxed_slice();
        for position in self.end - u64::from(self.kept())..self.end {
            slots[position as usize & (size - 1)] = *self.at(position);
        }
        self.slots = slots;
    }
}
