//! Hybla: a long path's window grows so that its sending rate grows like a short path's.
//!
//! C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J.
//! Satellite Communications and Networking 22(5) 2004, below "Hybla"; and Linux's tcp_hybla.c.

use bentpipe_types::{Span, Time, words};
use serde::{Deserialize, Serialize};

use super::ack_spacing::AckSpacing;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use crate::{AvoidanceKind, Config};

/// How Hybla is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyblaSettings {
    /// RTT0: the round-trip time of the connection whose rate it follows. 25 ms in the paper and in
    /// Linux.
    pub reference_rtt: Span,
    /// Where slow start first ends.
    pub initial_threshold: InitialThreshold,
    /// What a lost segment does to the window.
    pub after_loss: AfterLoss,
    /// What a timeout does to the window.
    pub after_timeout: AfterTimeout,
}

impl Default for HyblaSettings {
    fn default() -> Self {
        Self {
            reference_rtt: Span::from_millis(25),
            initial_threshold: InitialThreshold::Configured,
            after_loss: AfterLoss::Half,
            after_timeout: AfterTimeout::OneSegment,
        }
    }
}

words! {
    /// Where Hybla's slow start first ends.
    InitialThreshold {
        /// Where `initial_slow_start_threshold` says.
        Configured = "configured",
        /// At the shortest round-trip time times the bandwidth, which is estimated from how far
        /// apart the first acknowledgments arrive (Hoe 1996); or at `initial_slow_start_threshold`,
        /// if that is lower.
        BandwidthEstimate = "bandwidth-estimate",
    }
}

words! {
    /// What a lost segment does to Hybla's window.
    AfterLoss {
        /// It is halved, as in NewReno (the Hybla paper, and Linux).
        Half = "half",
        /// The threshold is half of it, and the window a quarter (vanzara2014, section III.B).
        Quarter = "quarter",
    }
}

words! {
    /// What a timeout does to Hybla's window.
    AfterTimeout {
        /// It is one segment (RFC 5681, and Linux).
        OneSegment = "one-segment",
        /// It is rho segments (vanzara2014, section III.B).
        Rho = "rho",
    }
}

/// Hybla.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hybla {
    settings: HyblaSettings,
    growth: HyblaGrowth,
}

impl Hybla {
    /// With what counts as progress in congestion avoidance.
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

    fn of(config: &Config) -> Self {
        Self::new(config.hybla, config.avoidance)
    }
}

impl CongestionControl for Hybla {
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, _now: Time) {
        self.growth.on_established(window, rtt);
    }

    fn slow_start_growth(&mut self, window: &mut Window, counted: u64, sample: &AckSample) -> u64 {
        self.growth.in_slow_start(window, counted, sample)
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        self.growth.in_avoidance(window, acknowledged, sample);
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        self.growth.on_congestion();
        let least = 2 * u64::from(window.segment);
        let window_before = window.congestion_window;
        // RFC 5681 equation 4, or vanzara2014's "half of the current cwnd"
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

/// How the window grows: Hybla's, and Enhanced Hybla's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HyblaGrowth {
    // Nanoseconds.
    reference_rtt: f64,
    avoidance: AvoidanceKind,
    // The lowest smoothed round-trip time, which rho is of.
    lowest_rtt: Option<Span>,
    rho: f64,
    // 2^rho - 1
    slow_start_gain: f64,
    // Growth that makes no whole byte yet, in bytes.
    credit: f64,
    // As long as the initial threshold waits for its estimate, which few want.
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

    /// Hybla: W(0) = rho, where the reference connection starts with one segment. Linux
    /// has it so; here, a larger initial window stays.
    pub(super) fn on_established(&mut self, window: &mut Window, rtt: Option<Span>) {
        self.measure(rtt);
        let initial = self.rho_segments(window);
        window.congestion_window = window.congestion_window.max(initial);
    }

    /// Hybla, and vanzara2014 equation 1: rho = RTT / RTT0, at least 1. As in Linux, of the lowest smoothed
    /// round-trip time: otherwise a queue that the connection builds would make it the greedier.
    #[inline]
    fn measure(&mut self, rtt: Option<Span>) {
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

    /// rho, as bytes of whole segments.
    pub(super) fn rho_segments(&self, window: &Window) -> u64 {
        (self.rho as u64).saturating_mul(u64::from(window.segment))
    }

    /// vanzara2014 equation 2, SS: 2^rho - 1 for each acknowledged segment, as in Hybla.
    pub(super) fn in_slow_start(
        &mut self,
        window: &mut Window,
        counted: u64,
        sample: &AckSample,
    ) -> u64 {
        self.measure(sample.smoothed_rtt);
        if let Some(estimate) = &mut self.estimate {
            // vanzara2014, section IV.B: "it starts as the standard TCP". Without a threshold, one
            // acknowledgment at rho = 24 opens the window by 2^24 segments.
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
        self.whole_bytes(exactly(counted) * self.slow_start_gain)
    }

    /// vanzara2014 equation 2, CA: rho^2 / W for each acknowledged segment, as in Hybla.
    #[inline(always)]
    pub(super) fn in_avoidance(
        &mut self,
        window: &mut Window,
        acknowledged: u64,
        sample: &AckSample,
    ) {
        self.measure(sample.smoothed_rtt);
        let segment = f64::from(window.segment);
        let counted = match self.avoidance {
            AvoidanceKind::PerAcknowledgment => segment,
            AvoidanceKind::ByteCounting => exactly(acknowledged),
        };
        let growth = self.rho * self.rho * segment * counted / exactly(window.congestion_window);
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

    /// The first congestion tells more than any estimate.
    pub(super) fn on_congestion(&mut self) {
        self.estimate = None;
        self.credit = 0.0;
    }
}

/// Bytes as a float. There are far fewer than 2^63, and of signed numbers a processor makes it in one step.
#[inline]
fn exactly(bytes: u64) -> f64 {
    debug_assert!(bytes <= i64::MAX as u64);
    bytes as i64 as f64
}

#[cfg(test)]
mod tests;
