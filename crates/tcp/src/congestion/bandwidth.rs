//! The bandwidth that a connection uses: delivered bytes over time, once a round trip.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::AckSample;

/// Linux's TCP_WESTWOOD_RTT_MIN: over a shorter time, a sample says little.
const SHORTEST_PERIOD: Span = Span::from_millis(50);

/// Westwood+'s samples: b_k = d_k / delta_k, the bytes delivered in one round trip over how long it
/// took (L. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and
/// Vegas TCP congestion control", ACM CCR 34(2) 2004).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct BandwidthSamples {
    started: Time,
    delivered_at_start: u64,
    // By the acknowledgments before this one.
    delivered: u64,
}

impl BandwidthSamples {
    /// The connection is established: the first period begins.
    pub(super) fn start(&mut self, now: Time) {
        self.started = now;
    }

    /// Something was delivered. Returns a sample, in bytes per second, when a period is over.
    #[inline(always)]
    pub(super) fn on_delivery(&mut self, sample: &AckSample) -> Option<f64> {
        // As Linux's westwood_update_window: the acknowledgment that ends a period counts in the
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

/// Linux's filter of those samples: two low-pass filters in a row, each of which keeps 7/8. (The
/// authors' own, of 2004, is one that keeps 0.9.)
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BandwidthFilter {
    once: f64,
    twice: f64,
}

impl BandwidthFilter {
    /// Takes a sample in.
    pub(super) fn add(&mut self, sample: f64) {
        if self.twice > 0.0 {
            self.once = (7.0 * self.once + sample) / 8.0;
            self.twice = (7.0 * self.twice + self.once) / 8.0;
        } else {
            // Linux's westwood_filter: the first that is not zero is taken as it is.
            self.once = sample;
            self.twice = sample;
        }
    }

    /// The estimate: bytes per second, or 0 as long as there is none.
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
    fn one_sample_a_round_trip_and_none_shorter_than_50_ms() {
        let mut samples = BandwidthSamples::default();
        samples.start(Time::ZERO);
        assert_eq!(samples.on_delivery(&sample(100, 1_000, 100)), None);
        // 101 ms, in which 1000 bytes were delivered; this acknowledgment counts in the next.
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
    fn the_filter_by_hand() {
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
