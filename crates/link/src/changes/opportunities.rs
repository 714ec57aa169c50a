//! A transmitter that sends a number of bytes at given instants: Mahimahi's model of a cellular
//! link (R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015,
//! section 4).
//!
//! At each instant [`OPPORTUNITY`] bytes can be sent: of the packet in transmission, then of queued
//! packets. A packet departs with its last byte. Unused opportunities are lost; a packet that
//! arrives at the same instant is too late. After the last instant the list repeats.
//!
//! Mahimahi counts 1504 bytes per opportunity, and 4 bytes more per packet than IP does (the header
//! of its TUN device). For packets of 1500 bytes this is equal; of short ones a few percent more
//! are sent here.

use std::sync::Arc;

use bentpipe_types::{Bytes, Span, Time};

/// Bytes per opportunity.
pub(crate) const OPPORTUNITY: u64 = 1500;

/// The instants in whole milliseconds from the start; they repeat after the last.
#[derive(Clone, PartialEq, Debug)]
pub struct Opportunities {
    at_ms: Arc<[u64]>,
}

impl Opportunities {
    /// Creates the list. Returns `None` if it is empty, not sorted, or ends at zero.
    #[must_use]
    pub fn new(at_ms: impl Into<Arc<[u64]>>) -> Option<Self> {
        let at_ms = at_ms.into();
        let sound = *at_ms.last()? > 0 && at_ms.windows(2).all(|pair| pair[0] <= pair[1]);
        sound.then_some(Self { at_ms })
    }

    /// Returns the period of repetition.
    #[must_use]
    pub fn period(&self) -> Span {
        Span::from_millis(self.at_ms.last().copied().unwrap_or(1))
    }

    /// Returns the number of opportunities per period.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.at_ms.len() as u64
    }

    /// Returns the average rate in bit/s.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        let bytes = Bytes::new(OPPORTUNITY * self.count());
        bytes.bits() as f64 / self.period().as_secs_f64()
    }

    /// Returns the time of the opportunity with this number, counted over all periods.
    fn at(&self, number: u64) -> Time {
        let (round, index) = (number / self.count(), number % self.count());
        Time::ZERO + self.period() * round + Span::from_millis(self.at_ms[index as usize])
    }

    /// Returns the number of the first opportunity that is not before `now`.
    fn first_from(&self, now: Time) -> u64 {
        let round = now.as_nanos() / self.period().as_nanos();
        // The last one of a period coincides with the start of the next.
        let mut number = 0;
        for round in [round.saturating_sub(1), round] {
            let into = now.since(Time::ZERO + self.period() * round);
            let before =
                self.at_ms
                    .partition_point(|at| Span::from_millis(*at) < into) as u64;
            number = self.count() * round + before;
            if before < self.count() {
                break;
            }
        }
        number
    }
}

/// The use of opportunities.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    of: Opportunities,
    /// Number of the next one.
    next: u64,
    /// Time of the current one, and its remaining bytes.
    open: Time,
    left: u64,
}

impl Turns {
    pub(super) fn new(of: Opportunities) -> Self {
        Self {
            of,
            next: 0,
            open: Time::ZERO,
            left: 0,
        }
    }

    pub(super) fn of(&self) -> &Opportunities {
        &self.of
    }

    /// Discards the unused opportunities up to now.
    pub(super) fn burn(&mut self, now: Time) {
        if self.open <= now {
            self.left = 0;
        }
        self.skip_to(now + Span::from_nanos(1));
    }

    fn skip_to(&mut self, now: Time) {
        if self.of.at(self.next) < now {
            self.next = self.next.max(self.of.first_from(now));
        }
    }

    /// Whether data can be sent at `now`; otherwise returns when. `held` returns until when an
    /// outage lasts.
    pub(super) fn ready(
        &mut self,
        now: Time,
        held: impl Fn(Time) -> Option<Time>,
    ) -> Result<(), Time> {
        if self.left > 0 && self.open == now {
            return Ok(());
        }
        self.skip_to(now);
        let at = self.upcoming(held);
        if at > now {
            return Err(at);
        }
        self.take();
        Ok(())
    }

    /// Returns the time of the next opportunity outside outages.
    fn upcoming(&mut self, held: impl Fn(Time) -> Option<Time>) -> Time {
        loop {
            let at = self.of.at(self.next);
            match held(at) {
                Some(until) if at <= Time::LAST => self.skip_to(until),
                _ => return at,
            }
        }
    }

    fn take(&mut self) {
        self.open = self.of.at(self.next);
        self.left = OPPORTUNITY;
        self.next += 1;
    }

    /// Returns when the last of `length` bytes is sent, the first of which is sent now.
    pub(super) fn send(&mut self, length: u64, held: impl Fn(Time) -> Option<Time>) -> Time {
        let mut to_go = length;
        loop {
            let now = to_go.min(self.left);
            to_go -= now;
            self.left -= now;
            if to_go == 0 {
                return self.open;
            }
            self.upcoming(&held);
            self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_opportunities_repeats() {
        let of = Opportunities::new([0, 3, 3, 10]).expect("sound");
        let ms = |number| of.at(number).as_nanos() / 1_000_000;
        let times: Vec<u64> = (0..9).map(ms).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        for nanoseconds in (0..60_000_000).step_by(500_000) {
            let now = Time::from_nanos(nanoseconds);
            let expected = (0..).find(|number| of.at(*number) >= now);
            assert_eq!(Some(of.first_from(now)), expected, "{now:?}");
        }
        assert_eq!(of.mean_rate(), 4.0 * 12_000.0 / 0.01);
        assert!(Opportunities::new([]).is_none());
        assert!(Opportunities::new([0, 0]).is_none());
        assert!(Opportunities::new([5, 4]).is_none());
    }
}
