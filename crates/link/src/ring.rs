//! What is in a direction: waiting, being transmitted, and on its way.

use bentpipe_types::{PacketRef, Time};

/// A packet between its enqueueing and its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTransit {
    /// The end of its transmission.
    pub(crate) departure: Time,
    pub(crate) packet: PacketRef,
    pub(crate) length: u32,
}

/// A queue of packets in order of departure, with a mark between those that have departed and those
/// that have not.
///
/// A power of two of slots, and positions that only ever grow, from 0: a position's slot is its low bits.
/// It doubles when it is full, and never shrinks: nothing is allocated per packet.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    slots: Vec<InTransit>,
    first: usize,
    departed: usize,
    end: usize,
}

impl Ring {
    /// Packets in all.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.first
    }

    /// Packets ever pushed.
    #[inline]
    pub(crate) fn pushed(&self) -> u64 {
        self.end as u64
    }

    /// Packets that have arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        self.first as u64
    }

    /// Has it to grow for one more?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }

    /// Those in it, the last pushed first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &InTransit> {
        (self.first..self.end)
            .rev()
            .map(|position| self.at(position))
    }

    /// Packets that have not departed.
    #[inline]
    pub(crate) fn not_departed(&self) -> usize {
        self.end - self.departed
    }

    /// The next to arrive.
    #[inline]
    pub(crate) fn first(&self) -> Option<&InTransit> {
        (self.first != self.end).then(|| self.at(self.first))
    }

    /// The next to depart.
    #[inline]
    pub(crate) fn next_departure(&self) -> Option<&InTransit> {
        (self.departed != self.end).then(|| self.at(self.departed))
    }

    /// The next to depart has departed.
    #[inline]
    pub(crate) fn depart(&mut self) {
        debug_assert!(self.departed != self.end, "nothing is left to depart");
        self.departed += 1;
    }

    /// All have departed.
    #[inline]
    pub(crate) fn depart_all(&mut self) {
        self.departed = self.end;
    }

    /// The next to arrive has arrived; it departed before.
    #[inline]
    pub(crate) fn arrive(&mut self) {
        debug_assert!(
            self.first < self.departed,
            "nothing arrives that has not departed"
        );
        self.first += 1;
    }

    #[inline]
    pub(crate) fn push(&mut self, packet: InTransit) {
        if self.is_full() {
            self.grow(packet);
        }
        let mask = self.slots.len() - 1;
        self.slots[self.end & mask] = packet;
        self.end += 1;
    }

    #[inline]
    fn at(&self, position: usize) -> &InTransit {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Doubles the slots, those that hold nothing filled with `filler`.
    #[cold]
    fn grow(&mut self, filler: InTransit) {
        let size = (2 * self.slots.len()).max(16);
        let mut slots = vec![filler; size];
        for position in self.first..self.end {
            slots[position & (size - 1)] = *self.at(position);
        }
        self.slots = slots;
    }
}
