//! What is in a direction: waiting, being transmitted, and on its way.

use bentpipe_types::{PacketRef, Time, fetch};

/// A packet between its enqueueing and its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTransit {
    /// The end of its transmission.
    pub(crate) departure: Time,
    pub(crate) packet: PacketRef,
    pub(crate) length: u32,
}

/// Slots of a ring that anything was ever in: a cache line, for in a large network there are many directions that few
/// packets are in.
const FEWEST: usize = 4;

/// A queue of packets in order of departure, with a mark between those that have departed and those
/// that have not, and one between those that have arrived and those that have not.
///
/// Either may be ahead of the other: who knows that nothing can come before them takes arrivals before their time,
/// and they are still to depart for the queue, which is as long as it is when a packet is offered. Until then,
/// nobody asks what has departed.
///
/// A power of two of slots, and positions that only ever grow, from 0: a position's slot is its low bits.
/// It doubles when it is full, and never shrinks: nothing is allocated per packet.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    slots: Box<[InTransit]>,
    /// The position of the next to be pushed.
    end: u64,
    /// How many, the last, have not arrived.
    not_arrived: u32,
    /// How many, the last, have not departed.
    not_departed: u32,
}

impl Ring {
    /// Packets that have not arrived.
    #[inline]
    pub(crate) fn not_arrived(&self) -> usize {
        self.not_arrived as usize
    }

    /// Packets ever pushed.
    #[inline]
    pub(crate) fn pushed(&self) -> u64 {
        self.end
    }

    /// Packets that have arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        self.end - u64::from(self.not_arrived)
    }

    /// Packets of which either is still to come.
    #[inline]
    fn kept(&self) -> u32 {
        self.not_arrived.max(self.not_departed)
    }

    /// Has it to grow for one more?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.kept() as usize == self.slots.len()
    }

    /// Those in it, the last pushed first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &InTransit> {
        (self.end - u64::from(self.kept())..self.end)
            .rev()
            .map(|position| self.at(position))
    }

    /// Packets that have not departed.
    #[inline]
    pub(crate) fn not_departed(&self) -> usize {
        self.not_departed as usize
    }

    /// The next to arrive.
    #[inline]
    pub(crate) fn first(&self) -> Option<&InTransit> {
        (self.not_arrived > 0).then(|| self.at(self.arrived()))
    }

    /// The one that is this far behind the next to arrive.
    #[inline]
    pub(crate) fn behind_first(&self, number: u64) -> Option<&InTransit> {
        (number < u64::from(self.not_arrived)).then(|| self.at(self.arrived() + number))
    }

    /// Asks for the next to arrive, and for as many behind it as may lie in the next cache line.
    #[inline]
    pub(crate) fn fetch_first(&self) {
        if let Some(further) = u64::from(self.not_arrived).checked_sub(1) {
            fetch(self.at(self.arrived()), 1);
            fetch(self.at(self.arrived() + further.min(FEWEST as u64 - 1)), 1);
        }
    }

    /// Asks for the place of the next to be pushed.
    #[inline]
    pub(crate) fn fetch_end(&self) {
        if !self.slots.is_empty() {
            fetch(self.at(self.end), 1);
        }
    }

    /// The next to depart.
    #[inline]
    pub(crate) fn next_departure(&self) -> Option<&InTransit> {
        (self.not_departed > 0).then(|| self.at(self.end - u64::from(self.not_departed)))
    }

    /// The next to depart has departed.
    #[inline]
    pub(crate) fn depart(&mut self) {
        debug_assert!(self.not_departed > 0, "nothing is left to depart");
        self.not_departed -= 1;
    }

    /// All have departed.
    #[inline]
    pub(crate) fn depart_all(&mut self) {
        self.not_departed = 0;
    }

    /// The next to arrive has arrived.
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
        // (Not beside one another: compiled as one step, both counts would be read at once just after one of them was
        // written alone, and that is what a processor waits for.)
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

    /// Doubles the slots, those that hold nothing filled with `filler`.
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
