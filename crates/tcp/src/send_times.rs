//! When what was sent: round-trip samples finer than timestamps give.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

/// Segments remembered at most. Beyond that (a flood of tiny segments), some are not timed.
const CAPACITY: usize = 1 << 17;

/// The send times of segments sent once, oldest first.
///
/// One push per segment and one pop: the cost of an acknowledgment doesn't depend on the window.
#[derive(Debug, Default)]
pub(crate) struct SendTimes {
    // (position after the segment's last, when)
    segments: VecDeque<(u64, Time)>,
}

/// The round trips that one acknowledgment measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Of the earliest segment it acknowledged: what the retransmission timer has to wait for.
    pub(crate) earliest: Span,
    /// Of the latest: without the wait of a delayed acknowledgment.
    pub(crate) latest: Span,
}

impl SendTimes {
    /// A segment up to `end` was sent for the first time.
    #[inline]
    pub(crate) fn push(&mut self, end: u64, now: Time) {
        if self.segments.len() < CAPACITY {
            self.segments.push_back((end, now));
        }
    }

    /// Everything up to `position` was acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, position: u64, now: Time) -> Option<Measured> {
        let mut measured: Option<Measured> = None;
        while let Some(&(end, sent)) = self.segments.front() {
            if end > position {
                break;
            }
            self.segments.pop_front();
            let rtt = now.since(sent);
            match &mut measured {
                Some(measured) => measured.latest = rtt,
                None => {
                    measured = Some(Measured {
                        earliest: rtt,
                        latest: rtt,
                    });
                }
            }
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_and_latest_of_what_is_acknowledged() {
        let mut times = SendTimes::default();
        for n in 1..=3 {
            times.push(100 * n, Time::from_nanos(n));
        }
        let now = Time::from_nanos(10);
        assert_eq!(times.acknowledge(99, now), None);
        let measured = times.acknowledge(299, now).unwrap();
        assert_eq!(measured.earliest, Span::from_nanos(9));
        assert_eq!(measured.latest, Span::from_nanos(8));
        assert!(times.acknowledge(300, now).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let mut times = SendTimes::default();
        for n in 0..2 * CAPACITY as u64 {
            times.push(n, Time::ZERO);
        }
        assert_eq!(times.segments.len(), CAPACITY);
    }
}
