//! Westwood+: a loss sets the window to the measured bandwidth-delay product.
//!
//! Sources: L. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno
//! and Vegas TCP congestion control", ACM CCR 34(2) 2004, cited as "Westwood+". The constants are
//! those of Linux's tcp_westwood.c.

use bentpipe_types::{Span, Time, words};
use serde::{Deserialize, Serialize};

use super::bandwidth::{BandwidthFilter, BandwidthSamples};
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Reno, Window};
use crate::{AvoidanceKind, Config};

words! {
    /// Westwood+'s window after a loss.
    #[derive(Default)]
    WestwoodAfterLoss {
        /// The measured bandwidth times the minimum round-trip time, however small (Grieco and
        /// Mascolo 2004, and Linux).
        #[default]
        Pipe = "pipe",
        /// The same, but at least half of the bytes in flight, which is also the threshold (ns-2's
        /// TCP-Linux, with Linux 2.6.22's module).
        AtLeastHalf = "at-least-half",
    }
}

/// Settings of Westwood+.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WestwoodSettings {
    /// Window after a loss.
    pub after_loss: WestwoodAfterLoss,
}

/// Westwood+'s window rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Westwood {
    settings: WestwoodSettings,
    reno: Reno,
    samples: BandwidthSamples,
    filter: BandwidthFilter,
    minimum_rtt: Option<Span>,
}

impl Westwood {
    /// Creates a rule; `avoidance` is how growth in congestion avoidance is counted.
    #[must_use]
    pub fn new(settings: WestwoodSettings, avoidance: AvoidanceKind) -> Self {
        Self {
            settings,
            reno: Reno::new(avoidance),
            samples: BandwidthSamples::default(),
            filter: BandwidthFilter::default(),
            minimum_rtt: None,
        }
    }

    /// Returns BWE * RTTmin in bytes, if there is an estimate.
    fn pipe(&self) -> Option<u64> {
        let bandwidth = self.filter.estimate();
        let rtt = self.minimum_rtt?.as_secs_f64();
        (bandwidth > 0.0).then_some((bandwidth * rtt) as u64)
    }
}

impl BuiltIn for Westwood {
    const HAS_OWN_SLOW_START: bool = false;

    fn from_config(config: &Config) -> Self {
        Self::new(config.westwood, config.avoidance)
    }
}

impl CongestionControl for Westwood {
    fn on_established(&mut self, _window: &mut Window, rtt: Option<Span>, now: Time) {
        self.samples.start(now);
        self.minimum_rtt = rtt;
    }

    #[inline(always)]
    fn on_delivery(&mut self, _window: &mut Window, sample: &AckSample) {
        // Linux restarts the minimum after a timeout, in case the route has changed. The paper's
        // RTTmin is the minimum of the whole connection.
        self.minimum_rtt = sample.minimum_rtt.or(self.minimum_rtt);
        if let Some(bandwidth) = self.samples.on_delivery(sample) {
            self.filter.add(bandwidth);
        }
    }

    /// Grows as in New Reno.
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        self.reno.on_ack(window, acknowledged, sample);
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        let before = window.congestion_window;
        self.reno.on_congestion(window, sample);
        // Deviation: the paper and Linux use an estimate of 0 in the first round trip, which
        // reduces the threshold to two segments. Here a loss without an estimate halves the window,
        // as in Reno.
        let Some(pipe) = self.pipe() else { return };
        if self.settings.after_loss == WestwoodAfterLoss::AtLeastHalf {
            if sample.event != Congestion::Timeout {
                let most = before.min(pipe);
                window.congestion_window = window.congestion_window.max(most);
            }
            return;
        }
        // Westwood+: ssthresh = max(2, (BWE * RTTmin) / seg_size), for losses and timeouts.
        window.slow_start_threshold = pipe.max(2 * u64::from(window.segment));
        window.congestion_window = match sample.event {
            // Westwood+: if cwnd > ssthresh then cwnd = ssthresh, at the start of recovery. Linux
            // halves the window for recovery and sets it to the pipe at the end.
            Congestion::Loss | Congestion::Ecn => before.min(window.slow_start_threshold),
            // Westwood+: cwnd = 1.
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

    /// Returns a connection that delivers 1 MB/s at 100 ms; RTTmin is 80 ms.
    fn steady() -> Westwood {
        let mut westwood = Westwood::new(WestwoodSettings::default(), AvoidanceKind::ByteCounting);
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
            westwood.settings.after_loss = WestwoodAfterLoss::AtLeastHalf;
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
        let mut westwood = Westwood::new(WestwoodSettings::default(), AvoidanceKind::ByteCounting);
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
}
