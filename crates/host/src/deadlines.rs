//! The deadlines of many, lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{Span, Time, fetch};
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
    heap: BinaryHeap<Reverse<Entry>>,
    /// The earliest of each one's entries, `NEVER` if there is none; others of the same are stale.
    armed: SmallVec<[Time; 2]>,
    /// Of very many, those that are not before `far_from`, in no order. Most deadlines that come up have moved to later:
    /// they are written behind the others here, and the heap stays so small that it is in the cache.
    far: Vec<Entry>,
    far_from: Option<Time>,
}

/// When, and whose.
type Entry = (Time, u32);

/// Stale entries that are left alone.
const SPARE: usize = 64;
/// With so many entries, those are far that are not within `NEAR` of the first.
const MANY: usize = 1_024;
const NEAR: Span = Span::from_millis(100);

impl Deadlines {
    /// There are numbers up to this one, not armed if they are new.
    pub fn reserve(&mut self, number: u32) {
        let length = number as usize + 1;
        if self.armed.len() < length {
            self.armed.resize(length, Time::NEVER);
        }
    }

    /// Somebody must look at this one at `at` or before.
    #[inline(always)]
    pub fn arm(&mut self, number: u32, at: Time) {
        if at < self.armed[number as usize] {
            self.enter(number, at);
        }
    }

    #[inline(never)]
    fn enter(&mut self, number: u32, at: Time) {
        self.armed[number as usize] = at;
        if self.far_from.is_some_and(|from| at >= from) {
            self.far.push((at, number));
        } else {
            self.heap.push(Reverse((at, number)));
            if self.heap.len() == MANY && self.far_from.is_none() {
                self.far = self.heap.drain().map(|Reverse(entry)| entry).collect();
                self.take_near();
            }
        }
        // Whoever sends packets may bring deadlines forward again and again.
        if self.heap.len() + self.far.len() > SPARE + 4 * self.armed.len() {
            self.compact();
        }
    }

    /// Nothing is near any more: what is first of what is far is from now on, and what is not long after that.
    #[cold]
    fn take_near(&mut self) {
        let first = self.far.iter().min().map(|(at, _)| *at);
        let from = first.map(|first| first + NEAR);
        let near = (self.far).extract_if(.., |(at, _)| from.is_some_and(|from| *at < from));
        self.heap.extend(near.map(Reverse));
        self.far_from = from;
    }

    /// It is gone.
    pub fn disarm(&mut self, number: u32) {
        self.armed[number as usize] = Time::NEVER;
    }

    /// Takes one whose time has come.
    pub fn due(&mut self, now: Time) -> Option<u32> {
        loop {
            let Some(&Reverse((at, number))) = self.heap.peek() else {
                if self.far_from.is_none_or(|from| from > now) || self.far.is_empty() {
                    return None;
                }
                self.take_near();
                continue;
            };
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[number as usize];
            if *armed == at {
                *armed = Time::NEVER;
                return Some(number);
            }
        }
    }

    /// Whose the earliest entry is: a stale one, maybe.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.heap.peek().map(|Reverse((_, number))| *number)
    }

    /// Asks for the earliest entry.
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Some(first) = self.heap.peek() {
            fetch(first, 1);
        }
    }

    /// When the earliest entry is: a stale one, maybe, or none before which there is one.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        match self.heap.peek() {
            Some(Reverse((at, _))) => Some(*at),
            None => self.far_from.filter(|_| !self.far.is_empty()),
        }
    }

    fn compact(&mut self) {
        let armed = &self.armed;
        self.heap
            .retain(|&Reverse((at, number))| armed[number as usize] == at);
        self.far
            .retain(|&(at, number)| armed[number as usize] == at);
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
    fn very_many_come_up_in_order_though_most_wait_in_none() {
        let mut deadlines = Deadlines::default();
        let count = 3_000;
        deadlines.reserve(count);
        let mut witness = std::collections::BTreeSet::new();
        let second = 1_000_000_000;
        for number in 0..count {
            let time = u64::from(number) * 7_919 % 1_009 * second / 1_009;
            deadlines.arm(number, at(time));
            witness.insert((time, number));
        }
        assert!(deadlines.far.len() > 1_500 && deadlines.heap.len() < 1_500);
        // Whoever comes up is armed a second later again, a few times.
        let mut ups = 0;
        while let Some(time) = deadlines.next() {
            while let Some(number) = deadlines.due(time) {
                assert_eq!(witness.pop_first(), Some((time.as_nanos(), number)));
                ups += 1;
                if ups < 4 * count {
                    let later = time.as_nanos() + second + u64::from(number);
                    deadlines.arm(number, at(later));
                    witness.insert((later, number));
                }
            }
        }
        assert!(witness.is_empty());
        assert_eq!(ups, 5 * count - 1);
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
