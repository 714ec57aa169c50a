//! Enhanced Hybla: on a loss, the window is larger the less of a known channel capacity is used.
//!
//! Source: R. Vanzara and H. Bhatt, "Enhanced TCP Hybla and performance comparison for satellite
//! link", IJARET 5(4) 2014, cited as `vanzara2014`.

use bentpipe_types::{BitRate, Span, Time};
use serde::{Deserialize, Serialize};

use super::CongestionSettings;
use super::ack_spacing::PacketPairs;
use super::bandwidth::{BandwidthEstimator, RoundTripBandwidth};
use super::built_in::RuleFamily;
use super::hybla::HyblaGrowth;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use super::{BandwidthFilter, ChannelCapacity};

/// Enhanced Hybla's window rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnhancedHybla {
    /// CC: capacity of the channel in bytes per second.
    channel_capacity: f64,
    // Present until the estimate of the capacity is complete.
    pairs: Option<PacketPairs>,
    growth: HyblaGrowth,
    bandwidth: RoundTripBandwidth,
    minimum_rtt: Option<Span>,
}

impl EnhancedHybla {
    /// Estimates the capacity from the spacing of the first acknowledgments. Not in the paper,
    /// whose section V leaves the start at a high error rate to future work.
    #[inline(never)]
    fn estimate_capacity(&mut self, sample: &AckSample) {
        let Some(pairs) = &mut self.pairs else { return };
        if let Some(capacity) = pairs.on_delivery(sample) {
            self.channel_capacity = capacity;
        }
        if pairs.is_complete() {
            self.pairs = None;
        }
    }

    /// Returns the threshold after a loss, in bytes: the algorithm of vanzara2014, section III.B.
    /// "packets_in_flight" is FlightSize.
    fn after_loss(&mut self, flight_size: u64, now: Time) -> u64 {
        // BWE, in bytes per second.
        let bandwidth = self.bandwidth.bandwidth(now);
        let rtt = self.minimum_rtt.map_or(0.0, Span::as_secs_f64);
        let pipe = if bandwidth < self.channel_capacity / 2.0 {
            // Residual pipe capacity = (CC - BWE) * RTTmin / seg_size.
            (self.channel_capacity - bandwidth) * rtt
        } else {
            // Minimum pipe capacity = (BWE * RTTmin) / seg_size.
            bandwidth * rtt
        };
        // MAX(... pipe capacity, 0.75 * packets_in_flight).
        (pipe as u64).max(flight_size / 4 * 3)
    }
}

impl BuiltIn for EnhancedHybla {
    const HAS_OWN_SLOW_START: bool = true;
    const NEEDS_CAPACITY: bool = true;
    const FAMILY: RuleFamily = RuleFamily::Hybla;

    fn from_settings(settings: &CongestionSettings) -> Self {
        let estimated = settings.hybla.channel_capacity == ChannelCapacity::PacketPairs;
        let capacity = settings
            .channel_capacity
            .filter(|_| !estimated)
            .map_or(0, BitRate::bits_per_second);
        let filter = settings.bandwidth_filter;
        Self {
            channel_capacity: capacity as f64 / 8.0,
            pairs: estimated.then(PacketPairs::default),
            growth: HyblaGrowth::new(&settings.hybla, settings.avoidance),
            bandwidth: RoundTripBandwidth::new(filter.unwrap_or(BandwidthFilter::LastSample)),
            minimum_rtt: None,
        }
    }
}

impl CongestionControl for EnhancedHybla {
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, now: Time) {
        self.growth.on_established(window, rtt);
        self.bandwidth.start(now);
        self.minimum_rtt = rtt;
    }

    /// Measures the bandwidth. vanzara2014, section III.B: "dividing received bytes by the time
    /// period for which acknowledgments were counted". The paper does not define the period; here
    /// it is a round trip, as in Westwood+.
    #[inline(always)]
    fn on_delivery(&mut self, _window: &mut Window, sample: &AckSample) {
        self.minimum_rtt = sample.minimum_rtt.or(self.minimum_rtt);
        self.bandwidth.on_delivery(sample);
        if self.pairs.is_some() {
            self.estimate_capacity(sample);
        }
    }

    /// Grows as in Hybla (vanzara2014, section III.A).
    fn slow_start_growth(&mut self, window: &mut Window, counted: u64, sample: &AckSample) -> u64 {
        self.growth.slow_start_growth(window, counted, sample)
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        self.growth.grow_in_avoidance(window, acknowledged, sample);
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        self.growth.on_congestion();
        let least = 2 * u64::from(window.segment);
        let threshold = self.after_loss(sample.flight_size, sample.now);
        window.slow_start_threshold = threshold.max(least);
        window.congestion_window = match sample.event {
            // The paper does not cover ECN; a mark is handled like a loss.
            Congestion::Loss | Congestion::Ecn => window.slow_start_threshold,
            // "when timeout occurs, [...] the same algorithm [...] except cwnd is set to rho"
            Congestion::Timeout => self.loss_window(window),
        };
    }

    fn loss_window(&self, window: &Window) -> u64 {
        self.growth.rho_segments(window)
    }

    fn sees_every_ack(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::HyblaSettings;
    use super::*;
    use crate::Config;

    const SEGMENT: u64 = 1448;
    const RTT: Span = Span::from_millis(600);

    /// Returns a connection that uses `bytes_per_second` of 100 Mbit/s, at 600 ms.
    fn connection_using(bytes_per_second: u64) -> EnhancedHybla {
        let mut rule = EnhancedHybla::from_settings(
            &Config {
                channel_capacity: BitRate::new(100_000_000),
                ..Config::default()
            }
            .congestion_settings(),
        );
        let mut window = Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX);
        rule.on_established(&mut window, Some(RTT), Time::ZERO);
        for n in 0..200 {
            let mut sample = AckSample::at(Time::ZERO + Span::from_millis(10 * n), 0);
            sample.delivered = n * bytes_per_second / 100;
            sample.smoothed_rtt = Some(RTT);
            sample.minimum_rtt = Some(RTT);
            rule.on_delivery(&mut window, &sample);
        }
        rule
    }

    #[test]
    fn thresholds_equal_those_of_the_papers_algorithm() {
        // CC = 12.5 MB/s, CC/2 = 6.25 MB/s; RTTmin = 0.6 s.
        for (bandwidth, flight_size, expected) in [
            // (12.5 - 2.5) * 0.6 = 6 MB
            (2_500_000, 1_500_000, 6_000_000),
            // The residual pipe capacity is less than three quarters of the flight.
            (6_000_000, 6_000_000, 4_500_000),
            // 10 * 0.6 = 6 MB
            (10_000_000, 6_000_000, 6_000_000),
            // With a queue: 0.75 * 12 = 9 MB.
            (10_000_000, 12_000_000, 9_000_000),
        ] {
            for (event, window_after) in [
                (Congestion::Loss, expected),
                (Congestion::Timeout, 24 * SEGMENT),
            ] {
                let mut window = Window::new(SEGMENT as u32, flight_size, 0);
                connection_using(bandwidth).on_congestion(
                    &mut window,
                    &CongestionSample::new(event, flight_size, Time::ZERO),
                );
                let close = |a: u64, b: u64| a.abs_diff(b) <= b / 50;
                assert!(close(window.slow_start_threshold, expected), "{window:?}");
                assert!(close(window.congestion_window, window_after), "{window:?}");
            }
        }
    }

    #[test]
    fn a_loss_may_enlarge_the_window() {
        let mut window = Window::new(SEGMENT as u32, 100 * SEGMENT, 0);
        connection_using(200_000).on_congestion(
            &mut window,
            &CongestionSample::new(Congestion::Loss, 100 * SEGMENT, Time::ZERO),
        );
        assert!(window.congestion_window > 5_000 * SEGMENT, "{window:?}");
    }

    #[test]
    fn packet_pairs_replace_the_configured_capacity() {
        let mut rule = EnhancedHybla::from_settings(
            &Config {
                channel_capacity: BitRate::new(1_000_000),
                hybla: HyblaSettings {
                    channel_capacity: ChannelCapacity::PacketPairs,
                    ..HyblaSettings::default()
                },
                ..Config::default()
            }
            .congestion_settings(),
        );
        let mut window = Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX);
        rule.on_established(&mut window, Some(RTT), Time::ZERO);
        // A flight of 40 segments, spaced by 120 us: 12.07 MB/s. Later ones do not count.
        for (n, gap) in (1..=40).map(|n| (n, 120)).chain((41..=90).map(|n| (n, 50))) {
            let mut sample = AckSample::at(Time::ZERO + RTT + Span::from_micros(gap * n), SEGMENT);
            sample.delivered = n * SEGMENT;
            sample.smoothed_rtt = Some(RTT);
            sample.minimum_rtt = Some(RTT);
            rule.on_delivery(&mut window, &sample);
        }
        assert_eq!(rule.channel_capacity, SEGMENT as f64 / 120e-6);
        // Little was delivered in the first round trip: the residual capacity is nearly all.
        rule.on_congestion(
            &mut window,
            &CongestionSample::new(Congestion::Loss, 90 * SEGMENT, Time::ZERO + RTT),
        );
        assert!(window.congestion_window > 4_900 * SEGMENT, "{window:?}");
    }
}
