//! An ACK-clocked sender, for tests of window rules.

use bentpipe_types::{Span, Time};

use super::{Congestion, CongestionControl, CongestionSample, Window};

/// Bytes of a segment.
pub(super) const SEGMENT: u64 = 1000;

/// A sender that acknowledgments drive.
pub(super) struct AckClock<R> {
    pub(super) rule: R,
    pub(super) window: Window,
    pub(super) now: Time,
    pub(super) rtt: Span,
}

impl<R: CongestionControl> AckClock<R> {
    /// Creates a sender with a window of so many segments.
    pub(super) fn of(rule: R, segments: u64, now: Time, rtt: Span) -> Self {
        Self {
            rule,
            window: Window::new(SEGMENT as u32, segments * SEGMENT, 0),
            now,
            rtt,
        }
    }

    /// Simulates a round trip. `acknowledge` is called for each segment of the window, evenly
    /// spaced.
    pub(super) fn round_trip(&mut self, mut acknowledge: impl FnMut(&mut Self)) {
        let count = self.window.congestion_window / SEGMENT;
        let end = self.now + self.rtt;
        for _ in 0..count {
            self.now += self.rtt / count;
            acknowledge(self);
        }
        self.now = end;
    }

    /// Notifies the rule of a congestion event with a full window in flight.
    pub(super) fn congestion(&mut self, event: Congestion) {
        let flight_size = self.window.congestion_window;
        self.rule.on_congestion(
            &mut self.window,
            &CongestionSample::new(event, flight_size, self.now),
        );
    }
}
