//! The deadlines of many connections, lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::Time;

use super::FlowEndIndex;

/// For each flow end, the earliest time at which somebody must look at it.
///
/// A connection's deadline mostly moves to later: every ACK restarts the retransmission timer. That
/// costs nothing here: the old entry stays, and when its time comes the connection says that there
/// is nothing to do yet, and is armed anew.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, FlowEndIndex)>>,
    /// The earliest entry of each flow end; later ones of the same are stale.
    armed: Vec<Option<Time>>,
}

impl Deadlines {
    /// One more flow end, not armed.
    pub(super) fn add(&mut self) {
        self.armed.push(None);
    }

    /// Somebody must look at this flow end at `at` or before.
    #[inline]
    pub(super) fn arm(&mut self, index: FlowEndIndex, at: Time) {
        let armed = &mut self.armed[index as usize];
        if armed.is_some_and(|earlier| earlier <= at) {
            return;
        }
        *armed = Some(at);
        self.heap.push(Reverse((at, index)));
    }

    /// Takes a flow end whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<FlowEndIndex> {
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

    /// The earliest entry.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
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
        deadlines.add();
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
        deadlines.add();
        deadlines.add();
        deadlines.arm(0, at(30));
        deadlines.arm(1, at(20));
        deadlines.arm(0, at(10));
        assert_eq!(deadlines.due(at(40)), Some(0));
        assert_eq!(deadlines.due(at(40)), Some(1));
        assert_eq!(deadlines.due(at(40)), None);
    }
}
