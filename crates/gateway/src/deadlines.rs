//! A lazy timer queue for many items.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::Time;

/// For each index, the earliest time at which it has to be checked.
///
/// Most timers are moved to a later time: every ACK restarts a retransmission timer. That costs
/// nothing here. The old entry stays in the heap; when it expires, nothing is due yet, and the
/// caller arms it again.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// Earliest entry of each index in the heap. Other entries of the same index are stale.
    armed: Vec<Option<Time>>,
}

impl Deadlines {
    /// Arms a timer: `index` has to be checked at `at` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, index: u32, at: Time) {
        let place = index as usize;
        if place >= self.armed.len() {
            self.armed.resize(place + 1, None);
        }
        let armed = &mut self.armed[place];
        if armed.is_some_and(|earlier| earlier <= at) {
            return;
        }
        *armed = Some(at);
        self.heap.push(Reverse((at, index)));
    }

    /// Disarms the timer of an index.
    pub(crate) fn disarm(&mut self, index: u32) {
        if let Some(armed) = self.armed.get_mut(index as usize) {
            *armed = None;
        }
        // Stale entries expire by themselves, but must not outnumber the others.
        if self.heap.len() > 64 && self.heap.len() > 4 * self.armed.len() {
            let armed = &self.armed;
            self.heap
                .retain(|Reverse((at, index))| armed[*index as usize] == Some(*at));
        }
    }

    /// Takes an index whose timer has expired.
    pub(crate) fn due(&mut self, now: Time) -> Option<u32> {
        while let Some(&Reverse((at, index))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[index as usize];
            if *armed == Some(at) {
                *armed = None;
                return Some(index);
            }
        }
        None
    }

    /// Time of the earliest entry.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
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
        for time in [10, 20, 30, 10] {
            deadlines.arm(0, at(time));
        }
        assert_eq!(deadlines.heap.len(), 1);
        assert_eq!(deadlines.due(at(9)), None);
        assert_eq!(deadlines.due(at(10)), Some(0));
        assert_eq!(deadlines.due(at(100)), None);
    }

    #[test]
    fn disarmed_timers_do_not_expire_or_accumulate() {
        let mut deadlines = Deadlines::default();
        deadlines.arm(1, at(5));
        deadlines.disarm(1);
        deadlines.arm(0, at(7));
        assert_eq!(deadlines.due(at(10)), Some(0));
        assert_eq!(deadlines.due(at(10)), None);
        for n in 0..10_000 {
            deadlines.arm(0, at(100_000 + n));
            deadlines.disarm(0);
        }
        assert!(deadlines.heap.len() <= 64);
    }
}
