//! A terminal's time in a frame.

use bentpipe_types::{BitRate, Span, Time};

use super::capacity::Capacity;

/// When a terminal sends in a frame, and how much of that is over.
///
/// Bursts stand one behind the other, each as long as it takes at the terminal's rate; one that does not end with
/// the frame goes on at its beginning, on the next of several carriers (McNaughton's wrap-around rule: no terminal
/// sends twice at a time, and nothing of a carrier is left between two). So a burst has two parts at most. What
/// nobody has use for when its time comes is gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    rate: Option<BitRate>,
    /// In order of time: when each begins, and what it carries.
    parts: [(Time, Capacity); 2],
    /// Used or gone.
    over: Capacity,
    /// When what was sent last ended.
    sent_at: Time,
}

impl Burst {
    /// One of `granted` in the frame from `start` on, at `rate`, `begins` after the frame's beginning. Without a rate there
    /// is none.
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

    /// What of it comes before `at`.
    fn before(&self, at: Time, rate: BitRate) -> Capacity {
        let passed =
            |(begins, length): (Time, Capacity)| Capacity::of(rate, at.since(begins)).min(length);
        passed(self.parts[0]) + passed(self.parts[1])
    }

    /// What is past at `now` can no longer be used.
    fn pass(&mut self, now: Time) {
        if let Some(rate) = self.rate {
            self.over = self.over.max(self.before(now, rate));
        }
    }

    /// When something may be sent, from `now` on; `None`: no more in this frame.
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

    /// Sends up to `to_go` from `now` on: what of it goes in this frame and before `until`, and when the last of that has
    /// gone, to the nanosecond.
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

    /// What passes between the last bit that was sent and [`sent_at`](Self::sent_at), where that is rounded up: it is for
    /// what follows at once, even where the frame is over then.
    pub(super) fn rest(&mut self) -> Capacity {
        let before = self.over;
        self.pass(self.sent_at);
        self.over.less(before)
    }

    /// When what was sent last ends, or ended.
    pub(super) fn sent_at(&self) -> Time {
        self.sent_at
    }
}
