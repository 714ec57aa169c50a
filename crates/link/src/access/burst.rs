//! A terminal's burst in a frame.

use bentpipe_types::{BitRate, Span, Time};

use super::capacity::Capacity;

/// A terminal's transmission time in a frame, and how much of it has passed.
///
/// Bursts follow each other, each as long as its grant takes at the terminal's rate. One that does
/// not end with the frame continues at the frame's beginning on the next of several carriers
/// (McNaughton's wrap-around rule: no terminal sends twice at a time, and no carrier is idle
/// between bursts). A burst therefore has at most two parts. Capacity without data to send when its
/// time comes is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    rate: Option<BitRate>,
    /// The parts in order of time: start and capacity.
    parts: [(Time, Capacity); 2],
    /// Capacity that was used or has passed.
    over: Capacity,
    /// End of the last transmission.
    sent_at: Time,
}

impl Burst {
    /// Creates the burst for `granted` in the frame from `start` on, at `rate`, `begins` after the
    /// frame's beginning. Without a rate it is empty.
    pub(super) fn new(
        start: Time,
        frame: Span,
        begins: Span,
        granted: Capacity,
        rate: Option<BitRate>,
    ) -> Self {
        let Some(rate) = rate else {
            return Self::default();
        };
        let until_end = Capacity::of(rate, frame.saturating_sub(begins));
        let tail = (start + begins, granted.min(until_end));
        let head = (start, granted.less(until_end));
        let parts = if head.1.is_zero() {
            [tail, (tail.0, Capacity::ZERO)]
        } else {
            [head, tail]
        };
        Self {
            rate: Some(rate),
            parts,
            over: Capacity::ZERO,
            sent_at: Time::ZERO,
        }
    }

    fn granted(&self) -> Capacity {
        self.parts[0].1 + self.parts[1].1
    }

    /// Returns the capacity before `at`.
    fn before(&self, at: Time, rate: BitRate) -> Capacity {
        let passed =
            |(begins, length): (Time, Capacity)| Capacity::of(rate, at.since(begins)).min(length);
        passed(self.parts[0]) + passed(self.parts[1])
    }

    /// Discards capacity that has passed by `now`.
    fn pass(&mut self, now: Time) {
        if let Some(rate) = self.rate {
            self.over = self.over.max(self.before(now, rate));
        }
    }

    /// Returns when data can be sent next, from `now` on, or `None` if not in this frame.
    pub(super) fn next(&mut self, now: Time) -> Option<Time> {
        self.pass(now);
        let [(first, length), (second, _)] = self.parts;
        if self.over >= self.granted() {
            return None;
        }
        let rate = self.rate?;
        Some(if self.over < length {
            now.max(first + self.over.time_at(rate))
        } else {
            now.max(second + (self.over - length).time_at(rate))
        })
    }

    /// Uses up to `to_go` from `now` on. Returns the capacity used in this frame and before
    /// `until`, and when its last bit has been sent, to the nanosecond.
    pub(super) fn send(
        &mut self,
        now: Time,
        until: Option<Time>,
        to_go: Capacity,
    ) -> (Capacity, Time) {
        self.pass(now);
        let Some(rate) = self.rate else {
            return (Capacity::ZERO, now);
        };
        let most = until.map_or(self.granted(), |until| self.before(until, rate));
        let goes = to_go.min(most.less(self.over));
        if goes.is_zero() {
            return (Capacity::ZERO, now);
        }
        self.over += goes;
        let [(first, length), (second, _)] = self.parts;
        let ends = if self.over <= length {
            first + self.over.time_at(rate)
        } else {
            second + (self.over - length).time_at(rate)
        };
        self.sent_at = ends.max(now);
        (goes, self.sent_at)
    }

    /// Returns the capacity between the last bit sent and the rounded-up
    /// [`sent_at`](Self::sent_at). It belongs to data that follow at once, even if the frame is
    /// over then.
    pub(super) fn rest(&mut self) -> Capacity {
        let before = self.over;
        self.pass(self.sent_at);
        self.over.less(before)
    }

    /// Returns the end of the last transmission.
    pub(super) fn sent_at(&self) -> Time {
        self.sent_at
    }
}
