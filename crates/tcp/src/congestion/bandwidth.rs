//! Measured bandwidth of a connection: delivered bytes per time, sampled once per round trip
//! ([`RoundTripBandwidth`]) or with each acknowledgment ([`AckBandwidth`]).

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{AckSample, BandwidthFilter};

/// Measurement of a connection's bandwidth.
pub trait BandwidthEstimator {
    /// Begins the measurement when the connection is established.
    fn start(&mut self, now: Time);

    /// Processes an acknowledgment.
    fn on_delivery(&mut self, sample: &AckSample);

    /// Returns the estimate in bytes per second; 0 before the first sample.
    fn bandwidth(&mut self, now: Time) -> f64;
}

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

/// Bandwidth estimate from one sample per round trip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundTripBandwidth {
    kind: BandwidthFilter,
    samples: BandwidthSamples,
    filter: LinuxFilter,
    last_sample: f64,
}

impl RoundTripBandwidth {
    pub(super) fn new(kind: BandwidthFilter) -> Self {
        Self {
            kind,
            samples: BandwidthSamples::default(),
            filter: LinuxFilter::default(),
            last_sample: 0.0,
        }
    }
}

impl BandwidthEstimator for RoundTripBandwidth {
    fn start(&mut self, now: Time) {
        self.samples.start(now);
    }

    #[inline(always)]
    fn on_delivery(&mut self, sample: &AckSample) {
        if let Some(bandwidth) = self.samples.on_delivery(sample) {
            self.last_sample = bandwidth;
            self.filter.add(bandwidth);
        }
    }

    fn bandwidth(&mut self, _now: Time) -> f64 {
        match self.kind {
            BandwidthFilter::LastSample => self.last_sample,
            BandwidthFilter::Westwood => self.filter.estimate(),
        }
    }
}

/// Linux's filter of the samples: two low-pass filters in series, each with weight 7/8 for the old
/// value. The paper of 2004 has one filter with weight 0.9.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LinuxFilter {
    once: f64,
    twice: f64,
}

impl LinuxFilter {
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

/// Virtual samples per time constant: m of the 2001 paper, which requires m >= 2 (the Nyquist
/// limit of the filter).
const SAMPLES_PER_TIME_CONSTANT: u64 = 2;

/// Bandwidth estimate from a sample with each acknowledgment: Westwood of 2001.
///
/// Source: C. Casetti, M. Gerla, S. Mascolo, M. Y. Sanadidi, R. Wang, "TCP Westwood: Bandwidth
/// Estimation for Enhanced Transport over Wireless Links", MobiCom 2001, section 2.2. The samples
/// b_k = d_k / (t_k - t_{k-1}) pass a first-order low-pass filter with time constant tau,
/// discretised by Tustin's method. After tau / m without an acknowledgment, a virtual sample of 0
/// is added.
///
/// Deviation: acknowledgments that arrive at the same instant are one sample, since the paper's
/// sample would be infinite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AckBandwidth {
    time_constant: Span,
    // Time of the last sample, virtual ones included.
    sampled: Time,
    delivered: u64,
    last_sample: f64,
    estimate: f64,
}

impl AckBandwidth {
    pub(super) fn new(time_constant: Span) -> Self {
        Self {
            time_constant,
            sampled: Time::ZERO,
            delivered: 0,
            last_sample: 0.0,
            estimate: 0.0,
        }
    }

    /// Adds a sample that stands for `interval` seconds.
    #[inline]
    fn add(&mut self, sample: f64, interval: f64) {
        let twice = 2.0 * self.time_constant.as_secs_f64();
        let kept = (twice - interval) / (twice + interval);
        self.estimate =
            kept * self.estimate + (1.0 - kept) * f64::midpoint(sample, self.last_sample);
        self.last_sample = sample;
    }

    /// Adds the virtual samples that are due before `now`.
    #[inline]
    fn add_virtual_samples(&mut self, now: Time) {
        let spacing = (self.time_constant.as_nanos() / SAMPLES_PER_TIME_CONSTANT).max(1);
        let elapsed = now.since(self.sampled).as_nanos();
        if elapsed > spacing {
            self.add_zeros((elapsed - 1) / spacing, spacing);
        }
    }

    #[inline(never)]
    fn add_zeros(&mut self, count: u64, spacing: u64) {
        let interval = Span::from_nanos(spacing);
        // The first one still has the last sample in its mean; the others only decay.
        self.add(0.0, interval.as_secs_f64());
        let twice = 2.0 * self.time_constant.as_secs_f64();
        let kept = (twice - interval.as_secs_f64()) / (twice + interval.as_secs_f64());
        self.estimate *= libm::pow(kept, (count - 1) as f64);
        self.sampled += Span::from_nanos(count * spacing);
    }
}

impl BandwidthEstimator for AckBandwidth {
    fn start(&mut self, now: Time) {
        self.sampled = now;
    }

    #[inline]
    fn on_delivery(&mut self, sample: &AckSample) {
        if sample.now <= self.sampled {
            return;
        }
        self.add_virtual_samples(sample.now);
        let interval = sample.now.since(self.sampled).as_secs_f64();
        let bytes = sample.delivered.saturating_sub(self.delivered);
        self.delivered = sample.delivered;
        self.sampled = sample.now;
        self.add(bytes as f64 / interval, interval);
    }

    fn bandwidth(&mut self, now: Time) -> f64 {
        self.add_virtual_samples(now);
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds acknowledgments of `bytes` at intervals of `microseconds` for `count` times.
    fn feed(estimator: &mut AckBandwidth, count: u64, microseconds: u64, bytes: u64) -> Time {
        let mut now = Time::ZERO;
        estimator.start(now);
        for n in 1..=count {
            now += Span::from_micros(microseconds);
            let mut sample = AckSample::at(now, bytes);
            sample.delivered = n * bytes;
            estimator.on_delivery(&sample);
        }
        now
    }

    #[test]
    fn a_step_of_the_rate_gives_the_response_of_a_first_order_filter() {
        // The closed form of the continuous filter: B (1 - exp(-t / tau)).
        for (count, interval) in [(1000, 1000), (500, 2000), (8, 125_000), (3000, 1000)] {
            let mut estimator = AckBandwidth::new(Span::from_millis(500));
            let now = feed(&mut estimator, count, interval, 1448);
            let rate = 1448e6 / interval as f64;
            let seconds = now.since(Time::ZERO).as_secs_f64();
            let closed = rate * (1.0 - libm::exp(-seconds / 0.5));
            // Tustin's method uses the mean of two samples, and there is none before the first.
            let first = 0.5 * interval as f64 / 1e6 / 0.5;
            let found = estimator.bandwidth(now);
            assert!(
                (found / closed - 1.0).abs() < first + 0.005,
                "{count} {interval}: {found} {closed}"
            );
        }
    }

    #[test]
    fn coefficients_equal_a_calculation_by_hand() {
        // tau = 500 ms, interval 100 ms: kept = (1 - 0.1) / (1 + 0.1).
        let mut estimator = AckBandwidth::new(Span::from_millis(500));
        let now = feed(&mut estimator, 1, 100_000, 1000);
        let kept = 0.9 / 1.1;
        let first = (1.0 - kept) * 5000.0;
        assert!((estimator.bandwidth(now) - first).abs() < 1e-9);
        // A silence of 600 ms: virtual samples after 250 and 500 ms.
        let later = now + Span::from_millis(600);
        let silent = 0.75 / 1.25;
        let expected = (silent * first + (1.0 - silent) * 5000.0) * silent;
        assert!((estimator.bandwidth(later) - expected).abs() < 1e-9);
        // A second call at the same time changes nothing.
        assert!((estimator.bandwidth(later) - expected).abs() < 1e-9);
    }

    #[test]
    fn simultaneous_acknowledgments_are_one_sample() {
        let mut together = AckBandwidth::new(Span::from_millis(500));
        let mut apart = together.clone();
        let at = |milliseconds, delivered| {
            let mut sample = AckSample::at(Time::ZERO + Span::from_millis(milliseconds), 1000);
            sample.delivered = delivered;
            sample
        };
        together.on_delivery(&at(100, 1000));
        together.on_delivery(&at(100, 2000));
        together.on_delivery(&at(200, 3000));
        apart.on_delivery(&at(100, 1000));
        apart.on_delivery(&at(200, 3000));
        let now = Time::ZERO + Span::from_millis(200);
        assert_eq!(together.bandwidth(now), apart.bandwidth(now));
    }

    proptest! {
        #[test]
        fn estimates_stay_between_zero_and_the_highest_sample(
            gaps in prop::collection::vec((1_u64..2_000_000, 0_u64..100_000), 1..100),
            tau in 1_u64..5_000,
        ) {
            let mut estimator = AckBandwidth::new(Span::from_millis(tau));
            let (mut now, mut delivered, mut highest) = (Time::ZERO, 0, 0.0_f64);
            for (gap, bytes) in gaps {
                now += Span::from_micros(gap);
                delivered += bytes;
                let mut sample = AckSample::at(now, bytes);
                sample.delivered = delivered;
                // A sample after virtual ones covers less than half of the time constant.
                let spacing = tau * 1_000_000 / 2;
                let covered = (gap * 1000 - 1) % spacing + 1;
                highest = highest.max(bytes as f64 / (covered as f64 / 1e9));
                estimator.on_delivery(&sample);
                let estimate = estimator.bandwidth(now);
                prop_assert!(
                    (0.0..=highest * (1.0 + 1e-9)).contains(&estimate),
                    "{estimate} {highest}"
                );
            }
        }

        #[test]
        fn virtual_samples_together_equal_those_added_one_by_one(
            gap in 1_u64..10_000,
            tau in 2_u64..2_000,
        ) {
            let mut at_once = AckBandwidth::new(Span::from_millis(tau));
            let now = feed(&mut at_once, 50, 700, 1448);
            let mut stepwise = at_once.clone();
            for n in 1..=gap {
                stepwise.bandwidth(now + Span::from_millis(n));
            }
            let found = at_once.bandwidth(now + Span::from_millis(gap));
            let expected = stepwise.bandwidth(now + Span::from_millis(gap));
            // After long gaps the estimate is below the smallest normal number and loses precision.
            let error = 1e-9 * expected.abs() + f64::MIN_POSITIVE;
            prop_assert!((found - expected).abs() <= error, "{found} {expected}");
        }
    }

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
        let mut filter = LinuxFilter::default();
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
