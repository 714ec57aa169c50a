//! Measured bandwidth of a connection: delivered bytes per time, sampled once per round trip.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::AckSample;

/// Minimum length of a sample period: Linux's TCP_WESTWOOD_RTT_MIN.
const SHORTEST_PERIOD: Span = Span::from_millis(50);

/// Westwood+'s bandwidth samples b_k = d_k / delta_k: bytes delivered in one round trip, divided by
/// its duration. L. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New
/// Reno and Vegas TCP congestion control", ACM CCR 34(2) 2004.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct BandwidthSamples {
    started: Time,
    delivered_at_start: u64,
    // Bytes delivered by previous acknowledgments.
    delivered: u64,
}

impl BandwidthSamples {
    /// Begins the first period when the connection is established.
    pub(super) fn start(&mut self, now: Time) {
        self.started = now;
    }

    /// Processes an acknowledgment. Returns a sample in bytes per second at the end of a period.
    #[inline(always)]
    pub(super) fn on_delivery(&mut self, sample: &AckSample) -> Option<f64> {
        // As in Linux's westwood_update_window, the acknowledgment that ends a period counts in the
        // next one.
        let delivered = std::mem::replace(&mut self.delivered, sample.delivered);
        let period = sample.now.since(self.started);
        let round_trip = sample.smoothed_rtt?.max(SHORTEST_PERIOD);
        (period > round_trip).then(|| self.end_period(sample.now, period, delivered))
    }

    #[inline(never)]
    fn end_period(&mut self, now: Time, period: Span, delivered: u64) -> f64 {
        let bytes = delivered.saturating_sub(self.delivered_at_start);
        self.started = now;
        self.delivered_at_start = delivered;
        bytes as f64 / period.as_secs_f64()
    }
}

/// Linux's filter of the samples: two low-pass filters in series, each with weight 7/8 for the old
/// value. The paper of 2004 has one filter with weight 0.9.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BandwidthFilter {
    once: f64,
    twice: f64,
}

impl BandwidthFilter {
    /// Adds a sample.
    pub(super) fn add(&mut self, sample: f64) {
        if self.twice > 0.0 {
            self.once = (7.0 * self.once + sample) / 8.0;
            self.twice = (7.0 * self.twice + self.once) / 8.0;
        } else {
            // Linux's westwood_filter: the first nonzero sample initializes the filter.
            self.once = sample;
            self.twice = sample;
        }
    }

    /// Returns the estimate in bytes per second; 0 before the first sample.
    pub(super) const fn estimate(&self) -> f64 {
        self.twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(milliseconds: u64, delivered: u64, rtt: u64) -> AckSample {
        let mut sample = AckSample::at(Time::ZERO + Span::from_millis(milliseconds), 0);
        sample.delivered = delivered;
        sample.smoothed_rtt = Some(Span::from_millis(rtt));
        sample
    }

    #[test]
    fn one_sample_per_round_trip_of_at_least_50_ms() {
        let mut samples = BandwidthSamples::default();
        samples.start(Time::ZERO);
        assert_eq!(samples.on_delivery(&sample(100, 1_000, 100)), None);
        // 101 ms with 1000 bytes delivered; this acknowledgment counts in the next period.
        assert_eq!(
            samples.on_delivery(&sample(101, 3_000, 100)),
            Some(1_000.0 / 0.101)
        );
        assert_eq!(samples.on_delivery(&sample(150, 7_000, 10)), None);
        assert_eq!(
            samples.on_delivery(&sample(201, 9_000, 10)),
            Some(6_000.0 / 0.1)
        );
    }

    #[test]
    fn filter_equals_a_calculation_by_hand() {
        let mut filter = BandwidthFilter::default();
        filter.add(0.0);
        assert_eq!(filter.estimate(), 0.0);
        filter.add(800.0);
        assert_eq!(filter.estimate(), 800.0);
        // once: (7 * 800 + 1600) / 8 = 900; twice: (7 * 800 + 900) / 8 = 812.5
        filter.add(1600.0);
        assert_eq!(filter.estimate(), 812.5);
        // once: (7 * 900 + 0) / 8 = 787.5; twice: (7 * 812.5 + 787.5) / 8 = 809.375
        filter.add(0.0);
        assert_eq!(filter.estimate(), 809.375);
    }
}
