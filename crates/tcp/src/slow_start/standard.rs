//! Slow start that counts acknowledgments.

use serde::{Deserialize, Serialize};

use super::SlowStart;
use crate::congestion_control::{AckSample, Window};

/// RFC 5681 section 3.1: at most one SMSS per acknowledgment of new data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Standard;

impl SlowStart for Standard {
    fn growth(&mut self, window: &mut Window, acknowledged: u64, _sample: &AckSample) -> u64 {
        // RFC 5681 equation 2: cwnd += min(N, SMSS)
        acknowledged.min(u64::from(window.segment))
    }

    /// The whole acknowledgment is used, even if it takes the window past the threshold.
    fn may_exceed_threshold(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Time;

    use super::*;

    #[test]
    fn an_acknowledgment_counts_for_at_most_one_segment() {
        let mut window = Window::new(1000, 2000, u64::MAX);
        for (acknowledged, counted) in [(2000, 1000), (400, 400)] {
            let sample = AckSample::at(Time::ZERO, acknowledged);
            assert_eq!(Standard.growth(&mut window, acknowledged, &sample), counted);
        }
    }
}
