//! Held packets in lanes, each in order, and the deadlines of the lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{PacketRef, Time};

use crate::flows::Slot;

const NONE: u32 = u32::MAX;

/// A held packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) packet: PacketRef,
    /// Storage or release time, depending on the lane.
    pub(crate) at: Time,
    /// Slot of its flow's counters.
    pub(crate) flow: Option<Slot>,
    next: u32,
}

/// The packets of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    first: u32,
    last: u32,
    length: u32,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
            length: 0,
        }
    }
}

impl Lane {
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The packets of all lanes in one slab.
#[derive(Debug, Default)]
pub(crate) struct Store {
    held: Vec<Held>,
    free: Vec<u32>,
    length: usize,
}

impl Store {
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn push(
        &mut self,
        lane: &mut Lane,
        packet: PacketRef,
        at: Time,
        flow: Option<Slot>,
    ) {
        let held = Held {
            packet,
            at,
            flow,
            next: NONE,
        };
        let index = if let Some(index) = self.free.pop() {
            self.held[index as usize] = held;
            index
        } else {
            self.held.push(held);
            (self.held.len() - 1) as u32
        };
        match lane.last {
            NONE => lane.first = index,
            last => self.held[last as usize].next = index,
        }
        lane.last = index;
        lane.length += 1;
        self.length += 1;
    }

    pub(crate) fn first(&self, lane: &Lane) -> Option<&Held> {
        (lane.first != NONE).then(|| &self.held[lane.first as usize])
    }

    pub(crate) fn pop(&mut self, lane: &mut Lane) -> Option<Held> {
        let held = *self.first(lane)?;
        self.free.push(lane.first);
        lane.first = held.next;
        if lane.first == NONE {
            lane.last = NONE;
        }
        lane.length -= 1;
        self.length -= 1;
        Some(held)
    }
}

/// Deadlines of lanes. A lane may come up too early or in vain, never too late.
///
/// An entry is made only if a lane's deadline moves before its current entry: moving a deadline
/// later costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BinaryHeap<Reverse<(Time, u32)>>);

impl Deadlines {
    /// Requests that `lane` comes up by `at`. `entered` is the lane's earliest entry, stored by the
    /// caller.
    pub(crate) fn enter(&mut self, lane: u32, at: Time, entered: &mut Option<Time>) {
        if entered.is_none_or(|earliest| at < earliest) {
            self.0.push(Reverse((at, lane)));
            *entered = Some(at);
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.0.peek().map(|&Reverse((at, _))| at)
    }

    /// Removes a lane whose time has come. Returns its entry's time and the lane.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        let &Reverse((at, lane)) = self.0.peek()?;
        if at > now {
            return None;
        }
        self.0.pop();
        Some((at, lane))
    }
}
