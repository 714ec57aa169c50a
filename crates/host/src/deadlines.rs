//! Lazy deadlines of many entries.

use bentpipe_types::{Agenda, Entry, Time, fetch};
use smallvec::SmallVec;

/// The earliest time at which each entry (connection or application) must be checked.
///
/// A connection's deadline mostly moves later, since every ACK restarts the retransmission timer.
/// That costs nothing: the old entry stays; when its time comes the connection reports that nothing
/// is due, and is armed again.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Deadlines {
    entries: Agenda<Deadline>,
    /// Earliest entry of each number, or `NEVER`. Further entries of the same number are stale.
    armed: SmallVec<[Time; 2]>,
    /// Number of entries.
    entered: usize,
}

/// Time and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Deadline(Time, u32);

impl Entry for Deadline {
    #[inline]
    fn at(self) -> Time {
        self.0
    }
}

/// A number that is not in use.
const NOBODY: u32 = u32::MAX;

/// Number of stale entries that are tolerated.
const SPARE: usize = 64;

impl Deadlines {
    /// Makes numbers up to this one available; new ones are not armed.
    pub fn reserve(&mut self, number: u32) {
        let length = number as usize + 1;
        if self.armed.len() < length {
            self.armed.resize(length, Time::NEVER);
        }
    }

    /// Requests a check of this number at `at` or earlier.
    #[inline(always)]
    pub fn arm(&mut self, number: u32, at: Time) {
        if at < self.armed[number as usize] {
            self.enter(number, at);
        }
    }

    /// Requests a call at `at` for none of the numbers.
    pub(crate) fn look_at(&mut self, at: Time) {
        self.entries.push(Deadline(at, NOBODY));
        self.entered += 1;
    }

    #[inline(never)]
    fn enter(&mut self, number: u32, at: Time) {
        self.armed[number as usize] = at;
        self.entries.push(Deadline(at, number));
        self.entered += 1;
        // Bounds stale entries if a peer's packets move deadlines earlier again and again.
        if self.entered > SPARE + 4 * self.armed.len() {
            self.compact();
        }
    }

    /// Removes the deadline of a number.
    pub fn disarm(&mut self, number: u32) {
        self.armed[number as usize] = Time::NEVER;
    }

    /// Removes and returns a number whose time has come.
    pub fn due(&mut self, now: Time) -> Option<u32> {
        while let Some(Deadline(at, number)) = self.entries.first().filter(|first| first.0 <= now) {
            self.entries.pop();
            self.entered -= 1;
            if let Some(armed) = self.armed.get_mut(number as usize)
                && *armed == at
            {
                *armed = Time::NEVER;
                return Some(number);
            }
        }
        None
    }

    /// Returns the number of the earliest entry, possibly a stale one.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        Some(self.entries.first()?.1)
    }

    /// Returns the number of the entry that follows `others` others, if known.
    #[inline]
    pub(crate) fn upcoming(&self, others: usize) -> Option<u32> {
        Some(self.entries.upcoming(others)?.1)
    }

    /// Prefetches the deadline of a number.
    #[inline]
    pub(crate) fn fetch_armed(&self, number: u32) {
        if let Some(armed) = self.armed.get(number as usize) {
            fetch(armed, 1);
        }
    }

    /// Prefetches the earliest entry.
    #[inline]
    pub(crate) fn fetch(&self) {
        self.entries.fetch();
    }

    /// Returns the time of the earliest entry, possibly a stale one.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        Some(self.entries.first()?.0)
    }

    fn compact(&mut self) {
        let armed = &self.armed;
        self.entries.retain(|Deadline(at, number)| {
            armed.get(number as usize).is_none_or(|armed| *armed == at)
        });
        self.entered = self.entries.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanoseconds: u64) -> Time {
        Time::from_nanos(nanoseconds)
    }

    #[test]
    fn rearming_to_a_later_time_adds_no_entry() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(0);
        for time in [10, 20, 30, 10] {
            deadlines.arm(0, at(time));
        }
        assert_eq!(deadlines.entries.len(), 1);
        assert_eq!(deadlines.next(), Some(at(10)));
        assert_eq!(deadlines.due(at(9)), None);
        assert_eq!(deadlines.due(at(10)), Some(0));
        assert_eq!(deadlines.due(at(100)), None);
    }

    #[test]
    fn thousands_of_deadlines_expire_in_order() {
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
        // Each number that comes up is armed a second later, a few times.
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
    fn an_unowned_deadline_expires_in_order_and_survives_removal_of_stale_entries() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(0);
        deadlines.look_at(at(20));
        for time in (0..1_000).rev() {
            deadlines.arm(0, at(100 + time));
        }
        assert_eq!(deadlines.next(), Some(at(20)));
        assert_eq!(deadlines.due(at(20)), None, "it is nobody's");
        assert_eq!(deadlines.next(), Some(at(100)));
        assert_eq!(deadlines.due(at(100)), Some(0));
    }

    #[test]
    fn entries_superseded_by_an_earlier_deadline_are_stale() {
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
    fn disarmed_deadlines_are_never_due_and_stale_entries_are_bounded() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(1);
        deadlines.arm(1, at(5_000_000));
        for time in (0..1_000_000).rev() {
            deadlines.arm(0, at(1_000_000 + time));
        }
        assert!(deadlines.entries.len() <= SPARE + 8 + 1);
        deadlines.disarm(0);
        assert_eq!(deadlines.due(at(9_000_000)), Some(1));
        assert_eq!(deadlines.due(at(9_000_000)), None);
    }
}
