//! Westwood: a loss sets the window to the measured bandwidth-delay product.
//!
//! The rules differ in the estimate of the bandwidth:
//!
//! - Westwood of 2001, with a sample per acknowledgment: C. Casetti and others, "TCP Westwood:
//!   Bandwidth Estimation for Enhanced Transport over Wireless Links", MobiCom 2001.
//! - Westwood+, with a sample per round trip, which bursts of acknowledgments do not distort: L.
//!   Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas
//!   TCP congestion control", ACM CCR 34(2) 2004. The constants are those of Linux's
//!   tcp_westwood.c.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::bandwidth::{AckBandwidth, BandwidthEstimator, RoundTripBandwidth};
use super::built_in::AfterOneLoss;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Reno, Window};
use super::{AvoidanceKind, CongestionSettings};
use super::{BandwidthFilter, WestwoodAfterLoss};

/// Westwood+'s window rule.
pub type Westwood = WestwoodRule<RoundTripBandwidth>;

/// The window rule of Westwood as published in 2001.
pub type Westwood2001 = WestwoodRule<AckBandwidth>;

/// Westwood's window rule, with an estimator of the bandwidth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WestwoodRule<B> {
    after_loss: WestwoodAfterLoss,
    reno: Reno,
    bandwidth: B,
    minimum_rtt: Option<Span>,
}

impl<B: BandwidthEstimator> WestwoodRule<B> {
    /// Creates a rule; `avoidance` is how growth in congestion avoidance is counted.
    fn new(after_loss: WestwoodAfterLoss, avoidance: AvoidanceKind, bandwidth: B) -> Self {
        Self {
            after_loss,
            reno: Reno::new(avoidance),
            bandwidth,
            minimum_rtt: None,
        }
    }

    /// Returns BWE * RTTmin in bytes, if there is an estimate.
    fn pipe(&mut self, now: Time) -> Option<u64> {
        let bandwidth = self.bandwidth.bandwidth(now);
        let rtt = self.minimum_rtt?.as_secs_f64();
        (bandwidth > 0.0).then_some((bandwidth * rtt) as u64)
    }
}

impl BuiltIn for Westwood {
    const HAS_OWN_SLOW_START: bool = false;
    const AFTER_LOSS: AfterOneLoss = AfterOneLoss::Product;

    fn from_settings(settings: &CongestionSettings) -> Self {
        let filter = settings
            .bandwidth_filter
            .unwrap_or(BandwidthFilter::Westwood);
        let bandwidth = RoundTripBandwidth::new(filter);
        Self::new(settings.westwood.after_loss, settings.avoidance, bandwidth)
    }
}

impl BuiltIn for Westwood2001 {
    const HAS_OWN_SLOW_START: bool = false;
    const AFTER_LOSS: AfterOneLoss = AfterOneLoss::Product;

    fn from_settings(settings: &CongestionSettings) -> Self {
        let bandwidth = AckBandwidth::new(settings.westwood.time_constant);
        Self::new(settings.westwood.after_loss, settings.avoidance, bandwidth)
    }
}

impl<B> CongestionControl for WestwoodRule<B>
where
    B: BandwidthEstimator + std::fmt::Debug + Send,
{
    fn on_established(&mut self, _window: &mut Window, rtt: Option<Span>, now: Time) {
        self.bandwidth.start(now);
        self.minimum_rtt = rtt;
    }

    #[inline(always)]
    fn on_delivery(&mut self, _window: &mut Window, sample: &AckSample) {
        // Linux restarts the minimum after a timeout, in case the route has changed. The papers'
        // RTTmin is the minimum of the whole connection.
        self.minimum_rtt = sample.minimum_rtt.or(self.minimum_rtt);
        self.bandwidth.on_delivery(sample);
    }

    /// Grows as in New Reno.
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        self.reno.on_ack(window, acknowledged, sample);
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        let before = window.congestion_window;
        self.reno.on_congestion(window, sample);
        // Deviation: the papers and Linux use an estimate of 0 in the first round trip, which
        // reduces the threshold to two segments. Here a loss without an estimate halves the window,
        // as in Reno.
        let Some(pipe) = self.pipe(sample.now) else {
            return;
        };
        if self.after_loss == WestwoodAfterLoss::AtLeastHalf {
            if sample.event != Congestion::Timeout {
                let most = before.min(pipe);
                window.congestion_window = window.congestion_window.max(most);
            }
            return;
        }
        // Westwood and Westwood+: ssthresh = max(2, (BWE * RTTmin) / seg_size), for losses and
        // timeouts.
        window.slow_start_threshold = pipe.max(2 * u64::from(window.segment));
        window.congestion_window = match sample.event {
            // If cwnd > ssthresh then cwnd = ssthresh, at the start of recovery. Linux halves the
            // window for recovery and sets it to the pipe at the end.
            Congestion::Loss | Congestion::Ecn => before.min(window.slow_start_threshold),
            // cwnd = 1.
            Congestion::Timeout => u64::from(window.segment),
        };
    }

    fn sees_every_ack(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Returns a connection that delivers 1 MB/s at 100 ms; RTTmin is 80 ms.
    fn steady() -> Westwood {
        delivering(Westwood::from_settings(
            &Config::default().congestion_settings(),
        ))
    }

    fn delivering<B>(mut westwood: WestwoodRule<B>) -> WestwoodRule<B>
    where
        WestwoodRule<B>: CongestionControl,
    {
        let mut window = Window::new(1000, 100_000, 0);
        westwood.on_established(&mut window, Some(Span::from_millis(80)), Time::ZERO);
        for n in 1..=2_000 {
            let mut sample = AckSample::at(Time::ZERO + Span::from_millis(n), 1000);
            sample.delivered = n * 1000;
            sample.smoothed_rtt = Some(Span::from_millis(100));
            sample.minimum_rtt = Some(Span::from_millis(80));
            westwood.on_delivery(&mut window, &sample);
        }
        westwood
    }

    #[test]
    fn a_loss_sets_the_window_to_the_pipe() {
        // The first period has a millisecond without a delivery: 0.99 of the rate, with decreasing
        // weight.
        for (event, before, expected) in [
            (Congestion::Loss, 100_000, (80_000, 80_000)),
            (Congestion::Ecn, 100_000, (80_000, 80_000)),
            (Congestion::Loss, 50_000, (50_000, 80_000)),
            (Congestion::Timeout, 100_000, (1_000, 80_000)),
        ] {
            let mut window = Window::new(1000, before, 0);
            steady().on_congestion(
                &mut window,
                &CongestionSample::new(event, before, Time::ZERO),
            );
            let close = |a: u64, b: u64| a.abs_diff(b) <= b / 100;
            assert!(close(window.congestion_window, expected.0), "{window:?}");
            assert!(close(window.slow_start_threshold, expected.1), "{window:?}");
        }
    }

    #[test]
    fn at_least_half_keeps_half_of_the_flight_as_in_tcp_linux() {
        // The pipe has 80,000 bytes.
        for (event, before, flight, expected) in [
            (Congestion::Loss, 200_000, 200_000, (100_000, 100_000)),
            (Congestion::Ecn, 200_000, 180_000, (90_000, 90_000)),
            (Congestion::Loss, 100_000, 100_000, (80_000, 50_000)),
            (Congestion::Loss, 60_000, 60_000, (60_000, 30_000)),
            (Congestion::Timeout, 100_000, 100_000, (1_000, 50_000)),
        ] {
            let mut westwood = steady();
            westwood.after_loss = WestwoodAfterLoss::AtLeastHalf;
            let mut window = Window::new(1000, before, 0);
            westwood.on_congestion(
                &mut window,
                &CongestionSample::new(event, flight, Time::ZERO),
            );
            let close = |a: u64, b: u64| a.abs_diff(b) <= b / 100;
            assert!(close(window.congestion_window, expected.0), "{window:?}");
            assert_eq!(window.slow_start_threshold, expected.1, "{window:?}");
        }
    }

    #[test]
    fn without_an_estimate_a_loss_halves_the_window() {
        let mut window = Window::new(1000, 20_000, 0);
        let mut westwood = Westwood::from_settings(&Config::default().congestion_settings());
        westwood.on_congestion(
            &mut window,
            &CongestionSample::new(Congestion::Loss, 20_000, Time::ZERO),
        );
        assert_eq!(window.congestion_window, 10_000);
    }

    #[test]
    fn threshold_is_at_least_two_segments() {
        let mut westwood = steady();
        let mut window = Window::new(60_000, 600_000, 0);
        westwood.on_congestion(
            &mut window,
            &CongestionSample::new(Congestion::Loss, 600_000, Time::ZERO),
        );
        assert_eq!(window.slow_start_threshold, 120_000);
    }

    #[test]
    fn the_rule_of_2001_sets_the_window_to_its_own_estimate() {
        let now = Time::ZERO + Span::from_millis(2_000);
        // After two seconds, exp(-4) of the step is missing: 98.2% of 80,000 B.
        for (event, before, expected) in [
            (Congestion::Loss, 100_000, (78_550, 78_550)),
            (Congestion::Loss, 50_000, (50_000, 78_550)),
            (Congestion::Timeout, 100_000, (1_000, 78_550)),
        ] {
            let mut westwood = delivering(Westwood2001::from_settings(
                &Config::default().congestion_settings(),
            ));
            let mut window = Window::new(1000, before, 0);
            westwood.on_congestion(&mut window, &CongestionSample::new(event, before, now));
            let close = |a: u64, b: u64| a.abs_diff(b) <= b / 500;
            assert!(close(window.congestion_window, expected.0), "{window:?}");
            assert!(close(window.slow_start_threshold, expected.1), "{window:?}");
        }
    }

    #[test]
    fn an_unfiltered_estimate_is_the_last_sample() {
        let mut westwood = delivering(Westwood::from_settings(
            &Config {
                bandwidth_filter: Some(BandwidthFilter::LastSample),
                ..Config::default()
            }
            .congestion_settings(),
        ));
        // A slow round trip: 100 bytes in 200 ms.
        for milliseconds in [2_101, 2_301, 2_302] {
            let mut sample = AckSample::at(Time::ZERO + Span::from_millis(milliseconds), 100);
            sample.delivered = 2_000_000 + 100 * (milliseconds / 300);
            sample.smoothed_rtt = Some(Span::from_millis(100));
            westwood.on_delivery(&mut Window::new(1000, 1000, 0), &sample);
        }
        let now = Time::ZERO + Span::from_millis(2_302);
        assert!(westwood.pipe(now).expect("an estimate") < 1000);
        assert!(steady().pipe(now).expect("an estimate") > 70_000);
    }
}
