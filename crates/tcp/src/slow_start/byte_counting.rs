//! Slow start by acknowledged bytes.

use super::SlowStart;
use crate::congestion::Window;

/// RFC 3465 section 2.2: as much as was acknowledged, at most L segments per acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct AppropriateByteCounting {
    limit_segments: u32,
}

impl AppropriateByteCounting {
    /// With at most `limit_segments` per acknowledgment.
    #[must_use]
    pub const fn new(limit_segments: u32) -> Self {
        Self { limit_segments }
    }
}

impl SlowStart for AppropriateByteCounting {
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64) -> u64 {
        let limit = u64::from(self.limit_segments) * u64::from(window.segment);
        let increase = acknowledged.min(limit);
        // As Linux's tcp_slow_start: up to the threshold, and the rest counts in congestion
        // avoidance.
        let room = window
            .slow_start_threshold
            .saturating_sub(window.congestion_window);
        let grown = increase.min(room);
        window.congestion_window += grown;
        increase - grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_by_what_was_acknowledged_up_to_the_limit() {
        let mut window = Window::new(1000, 2000, u64::MAX);
        AppropriateByteCounting::new(2).on_ack(&mut window, 1500);
        assert_eq!(window.congestion_window, 3500);
        AppropriateByteCounting::new(2).on_ack(&mut window, 9000);
        assert_eq!(window.congestion_window, 5500);
    }

    #[test]
    fn stops_at_the_threshold_and_leaves_the_rest() {
        let mut window = Window::new(1000, 2000, 2500);
        let rest = AppropriateByteCounting::new(u32::MAX).on_ack(&mut window, 1500);
        assert_eq!((window.congestion_window, rest), (2500, 1000));
    }
}
