//! Slow start by acknowledgments.

use super::SlowStart;
use crate::congestion::Window;

/// RFC 5681 section 3.1: at most one SMSS per acknowledgment of new data.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl SlowStart for Standard {
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64) -> u64 {
        // RFC 5681 equation 2: cwnd += min(N, SMSS)
        window.congestion_window += acknowledged.min(u64::from(window.segment));
        // The acknowledgment is used up, even where it took the window past the threshold.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_per_acknowledgment_however_much_it_acknowledges() {
        let mut window = Window::new(1000, 2000, u64::MAX);
        assert_eq!(Standard.on_ack(&mut window, 2000), 0);
        assert_eq!(window.congestion_window, 3000);
        Standard.on_ack(&mut window, 400);
        assert_eq!(window.congestion_window, 3400);
    }
}
