//! Packets that have left a direction's queue and have not arrived.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use bentpipe_types::{PacketRef, Time};

use crate::changes::Fate;

/// A packet in transmission or in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Airborne {
    pub(crate) arrival: Time,
    pub(crate) packet: PacketRef,
    pub(crate) length: u32,
    pub(crate) fate: Fate,
}

/// Packets in the order of arrival; simultaneous ones in the order of transmission.
///
/// Packets that arrive after all earlier ones are in a queue: all of them, unless the link
/// reorders. Packets that overtake are in a heap. Neither allocates once it has its maximum length.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    in_order: VecDeque<Numbered>,
    overtaking: BinaryHeap<Numbered>,
    sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered {
    number: u64,
    what: Airborne,
}

impl Ord for Numbered {
    /// The greatest is the first to arrive.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (of.what.arrival, of.number);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Flight {
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.overtaking.len()
    }

    pub(crate) fn push(&mut self, what: Airborne) {
        let numbered = Numbered {
            number: self.sent,
            what,
        };
        self.sent += 1;
        let overtakes = |last: &Numbered| what.arrival < last.what.arrival;
        if self.in_order.back().is_some_and(overtakes) {
            self.overtaking.push(numbered);
        } else {
            self.in_order.push_back(numbered);
        }
    }

    /// Whether the next to arrive is one that overtakes.
    #[inline]
    fn overtakes(&self) -> bool {
        // Few links reorder.
        !self.overtaking.is_empty() && self.overtaking.peek() > self.in_order.front()
    }

    /// Returns the next packet to arrive.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Airborne> {
        let first = if self.overtakes() {
            self.overtaking.peek()
        } else {
            self.in_order.front()
        };
        first.map(|first| &first.what)
    }

    /// Removes the next packet, if it has arrived by now.
    pub(crate) fn arrived(&mut self, now: Time) -> Option<Airborne> {
        self.first().filter(|first| first.arrival <= now)?;
        let next = if self.overtakes() {
            self.overtaking.pop()
        } else {
            self.in_order.pop_front()
        };
        next.map(|next| next.what)
    }
}
