//! Slow start that counts acknowledged bytes.

use serde::{Deserialize, Serialize};

use super::SlowStart;
use crate::congestion_control::{AckSample, Window};

/// RFC 3465 section 2.2: grows by the acknowledged bytes, at most L segments per acknowledgment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AppropriateByteCounting {
    limit_segments: u32,
}

impl AppropriateByteCounting {
    /// Creates a rule with L = `limit_segments`.
    #[must_use]
    pub const fn new(limit_segments: u32) -> Self {
        Self { limit_segments }
    }
}

impl SlowStart for AppropriateByteCounting {
    fn growth(&mut self, window: &mut Window, acknowledged: u64, _sample: &AckSample) -> u64 {
        let limit = u64::from(self.limit_segments) * u64::from(window.segment);
        acknowledged.min(limit)
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Time;

    use super::*;

    #[test]
    fn acknowledged_bytes_count_up_to_the_limit() {
        let mut window = Window::new(1000, 2000, u64::MAX);
        let mut rule = AppropriateByteCounting::new(2);
        for (acknowledged, counted) in [(1500, 1500), (9000, 2000)] {
            let sample = AckSample::at(Time::ZERO, acknowledged);
            assert_eq!(rule.growth(&mut window, acknowledged, &sample), counted);
        }
    }
}
