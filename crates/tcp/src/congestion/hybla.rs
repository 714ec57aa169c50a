//! Hybla: on a long path, the window grows so that the sending rate grows as on a short path.
//!
//! Sources: C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! Int. J. Satellite Communications and Networking 22(5) 2004, cited as "Hybla"; Linux's
//! tcp_hybla.c.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::ack_spacing::AckSpacing;
use super::built_in::RuleFamily;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use super::{AfterLoss, AfterTimeout, HyblaSettings, InitialThreshold};
use super::{AvoidanceKind, CongestionSettings};

/// Hybla's window rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hybla {
    settings: HyblaSettings,
    growth: HyblaGrowth,
}

impl Hybla {
    /// Creates a rule; `avoidance` is how growth in congestion avoidance is counted.
    #[must_use]
    pub fn new(settings: HyblaSettings, avoidance: AvoidanceKind) -> Self {
        Self {
            settings,
            growth: HyblaGrowth::new(&settings, avoidance),
        }
    }
}

impl BuiltIn for Hybla {
    const HAS_OWN_SLOW_START: bool = true;
    const LOSS_LAW: Option<&'static str> = Some("hybla");
    const FAMILY: RuleFamily = RuleFamily::Hybla;
    const FOR_SATELLITES: bool = true;

    fn from_settings(settings: &CongestionSettings) -> Self {
        Self::new(settings.hybla, settings.avoidance)
    }
}

impl CongestionControl for Hybla {
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, _now: Time) {
        self.growth.on_established(window, rtt);
    }

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
        let window_before = window.congestion_window;
        // RFC 5681 equation 4, or vanzara2014's "half of the current cwnd".
        let half = match self.settings.after_loss {
            AfterLoss::Half => sample.flight_size / 2,
            AfterLoss::Quarter => window_before / 2,
        };
        window.slow_start_threshold = half.max(least);
        window.congestion_window = match (sample.event, self.settings.after_loss) {
            (Congestion::Timeout, _) => self.loss_window(window),
            (_, AfterLoss::Half) => window.slow_start_threshold,
            (_, AfterLoss::Quarter) => (window_before / 4).max(u64::from(window.segment)),
        };
    }

    fn loss_window(&self, window: &Window) -> u64 {
        match self.settings.after_timeout {
            AfterTimeout::OneSegment => u64::from(window.segment),
            AfterTimeout::Rho => self.growth.rho_segments(window),
        }
    }
}

/// Window growth of Hybla and Enhanced Hybla.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HyblaGrowth {
    // RTT0 in nanoseconds.
    reference_rtt: f64,
    avoidance: AvoidanceKind,
    // Minimum of the smoothed round-trip time, from which rho is computed.
    lowest_rtt: Option<Span>,
    rho: f64,
    // 2^rho - 1.
    slow_start_gain: f64,
    // Fractional growth carried over, in bytes.
    credit: f64,
    // Present until the bandwidth estimate for the initial threshold is complete. Boxed, because it
    // is rarely used.
    estimate: Option<Box<AckSpacing>>,
}

impl HyblaGrowth {
    pub(super) fn new(settings: &HyblaSettings, avoidance: AvoidanceKind) -> Self {
        Self {
            reference_rtt: settings.reference_rtt.as_nanos() as f64,
            avoidance,
            lowest_rtt: None,
            rho: 1.0,
            slow_start_gain: 1.0,
            credit: 0.0,
            estimate: (settings.initial_threshold == InitialThreshold::BandwidthEstimate)
                .then(Box::default),
        }
    }

    /// Hybla: W(0) = rho, where the reference connection starts with one segment. Linux sets this
    /// window; here a larger initial window is kept.
    pub(super) fn on_established(&mut self, window: &mut Window, rtt: Option<Span>) {
        self.update_rho(rtt);
        let initial = self.rho_segments(window);
        window.congestion_window = window.congestion_window.max(initial);
    }

    /// Updates rho = RTT / RTT0, at least 1 (Hybla; vanzara2014 equation 1). As in Linux, RTT is
    /// the minimum of the smoothed round-trip time, so that the connection's own queue does not
    /// increase rho.
    #[inline]
    fn update_rho(&mut self, rtt: Option<Span>) {
        if let Some(rtt) = rtt
            && self.lowest_rtt.is_none_or(|lowest| rtt < lowest)
        {
            self.set_rho(rtt);
        }
    }

    #[inline(never)]
    fn set_rho(&mut self, rtt: Span) {
        self.lowest_rtt = Some(rtt);
        self.rho = (rtt.as_nanos() as f64 / self.reference_rtt).max(1.0);
        self.slow_start_gain = libm::pow(2.0, self.rho) - 1.0;
    }

    /// Returns rho, rounded down to whole segments, in bytes.
    pub(super) fn rho_segments(&self, window: &Window) -> u64 {
        (self.rho as u64).saturating_mul(u64::from(window.segment))
    }

    /// Returns the growth in slow start: 2^rho - 1 per acknowledged segment (Hybla; vanzara2014
    /// equation 2, SS).
    pub(super) fn slow_start_growth(
        &mut self,
        window: &mut Window,
        counted: u64,
        sample: &AckSample,
    ) -> u64 {
        self.update_rho(sample.smoothed_rtt);
        if let Some(estimate) = &mut self.estimate {
            // vanzara2014, section IV.B: "it starts as the standard TCP". Without a threshold, one
            // acknowledgment at rho = 24 would open the window by 2^24 segments.
            let Some(bandwidth) = estimate.on_ack(sample) else {
                return counted;
            };
            self.estimate = None;
            if let Some(rtt) = sample.minimum_rtt {
                let pipe = (bandwidth * rtt.as_secs_f64()) as u64;
                let least = 2 * u64::from(window.segment);
                window.slow_start_threshold = window.slow_start_threshold.min(pipe.max(least));
            }
        }
        self.whole_bytes(as_float(counted) * self.slow_start_gain)
    }

    /// Grows the window in congestion avoidance by rho^2 / W per acknowledged segment (Hybla;
    /// vanzara2014 equation 2, CA).
    #[inline(always)]
    pub(super) fn grow_in_avoidance(
        &mut self,
        window: &mut Window,
        acknowledged: u64,
        sample: &AckSample,
    ) {
        self.update_rho(sample.smoothed_rtt);
        let segment = f64::from(window.segment);
        let counted = match self.avoidance {
            AvoidanceKind::PerAcknowledgment => segment,
            AvoidanceKind::ByteCounting => as_float(acknowledged),
        };
        let growth = self.rho * self.rho * segment * counted / as_float(window.congestion_window);
        window.congestion_window = window
            .congestion_window
            .saturating_add(self.whole_bytes(growth));
    }

    #[inline]
    fn whole_bytes(&mut self, growth: f64) -> u64 {
        let bytes = self.credit + growth;
        if bytes < 1e15 {
            let whole = bytes as i64;
            self.credit = bytes - whole as f64;
            whole as u64
        } else {
            self.credit = 0.0;
            bytes as u64
        }
    }

    /// The first congestion event replaces the bandwidth estimate.
    pub(super) fn on_congestion(&mut self) {
        self.estimate = None;
        self.credit = 0.0;
    }
}

/// Converts bytes to a float by way of a signed integer, which takes one instruction. Precondition:
/// less than 2^63.
#[inline]
fn as_float(bytes: u64) -> f64 {
    debug_assert!(bytes <= i64::MAX as u64);
    bytes as i64 as f64
}

#[cfg(test)]
mod tests;
