//! The deadlines of many, lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::Time;
use smallvec::SmallVec;

/// For each entry (a connection, an application), the earliest time at which somebody must look at
/// it.
///
/// A connection's deadline mostly moves to later: every ACK restarts the retransmission timer. That
/// costs nothing here: the old entry stays, and when its time comes the connection says that there
/// is nothing to do yet, and is armed anew.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The earliest of each one's entries; others of the same are stale.
    armed: SmallVec<[Option<Time>; 2]>,
}

/// Stale entries that are left alone.
const SPARE: usize = 64;

impl Deadlines {
    /// There are numbers up to this one, not armed if they are new.
    pub fn reserve(&mut self, number: u32) {
        let length = number as usize + 1;
        if self.armed.len() < length {
            self.armed.resize(length, None);
        }
    }

    /// Somebody must look at this one at `at` or before.
    #[inline(always)]
    pub fn arm(&mut self, number: u32, at: Time) {
        if self.armed[number as usize].is_none_or(|armed| at < armed) {
            self.enter(number, at);
        }
    }

    #[inline(never)]
    fn enter(&mut self, number: u32, at: Time) {
        self.armed[number as usize] = Some(at);
        self.heap.push(Reverse((at, number)));
        // Whoever sends packets may bring deadlines forward again and again.
        if self.heap.len() > SPARE + 4 * self.armed.len() {
            self.compact();
        }
    }

    /// It is gone.
    pub fn disarm(&mut self, number: u32) {
        self.armed[number as usize] = None;
    }

    /// Takes one whose time has come.
    pub fn due(&mut self, now: Time) -> Option<u32> {
        while let Some(&Reverse((at, number))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[number as usize];
            if *armed == Some(at) {
                *armed = None;
                return Some(number);
            }
        }
        None
    }

    /// The earliest entry: a stale one, maybe.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    fn compact(&mut self) {
        let armed = &self.armed;
        self.heap
            .retain(|&Reverse((at, number))| armed[number as usize] == Some(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanoseconds: u64) -> Time {
        Time::from_nanos(nanoseconds)
    }

    #[test]
    fn arming_to_a_later_time_costs_no_entry() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(0);
        for time in [10, 20, 30, 10] {
            deadlines.arm(0, at(time));
        }
        assert_eq!(deadlines.heap.len(), 1);
        assert_eq!(deadlines.next(), Some(at(10)));
        assert_eq!(deadlines.due(at(9)), None);
        assert_eq!(deadlines.due(at(10)), Some(0));
        assert_eq!(deadlines.due(at(100)), None);
    }

    #[test]
    fn an_entry_overtaken_by_an_earlier_one_is_stale() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(1);
        deadlines.arm(0, at(30));
        deadlines.arm(1, at(20));
        deadlines.arm(0, at(10));
        assert_eq!(deadlines.due(at(40)), Some(0));
        assert_eq!(deadlines.due(at(40)), Some(1));
        assert_eq!(deadlines.due(at(40)), None);
    }

    #[test]
    fn what_is_gone_is_never_due_and_stale_entries_are_few() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(1);
        deadlines.arm(1, at(5_000_000));
        for time in (0..1_000_000).rev() {
            deadlines.arm(0, at(1_000_000 + time));
        }
        assert!(deadlines.heap.len() <= SPARE + 8 + 1);
        deadlines.disarm(0);
        assert_eq!(deadlines.due(at(9_000_000)), Some(1));
        assert_eq!(deadlines.due(at(9_000_000)), None);
    }
}
