//! CUBIC (RFC 9438): the window is a cubic function of the time since the last congestion event.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::built_in::AfterOneLoss;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use super::{AvoidanceKind, CongestionSettings};

/// RFC 9438 section 4.1.1 and RFC 9438 section 5.1: C, in segments per cubic second.
const C: f64 = 0.4;

/// RFC 9438 section 4.6: beta_cubic.
const BETA: f64 = 0.7;

/// RFC 9438 section 4.3: alpha_cubic. With it, a window reduced to beta_cubic is on average as
/// large as Reno's.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// RFC 9438's window rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cubic {
    avoidance: AvoidanceKind,
    state: State,
    // RFC 9438 section 4.9: state before the last congestion event, if there was one.
    undo: Option<Box<Variables>>,
    // Current stage of congestion avoidance, if it has begun.
    stage: Option<Stage>,
    // Fractional growth carried over, in segments.
    credit: f64,
    // Whether the sender was application-limited since the last update.
    application_limited: bool,
}

/// State that persists across stages of congestion avoidance. Windows are in segments.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    // W_max: window before the last reduction, or less with fast convergence. `None` before the
    // first reduction and after a timeout.
    window_maximum: Option<f64>,
    // cwnd_prior: window before the last reduction.
    window_prior: f64,
}

/// Saved state for undo.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Variables {
    state: State,
    stage: Option<Stage>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stage {
    // t_epoch.
    epoch: Time,
    updated: Time,
    // K, in seconds.
    inflection: f64,
    // W_max of this stage.
    origin: f64,
    // W_est: Reno's window.
    window_estimate: f64,
}

impl Stage {
    /// Begins a stage: RFC 9438 section 4.2, figure 2 (K).
    fn begin(state: &mut State, window: f64, now: Time) -> Self {
        let (inflection, origin) = match state.window_maximum {
            Some(maximum) if maximum > window => (libm::cbrt((maximum - window) / C), maximum),
            // The window is above W_max already: the convex region begins here, as in Linux.
            Some(_) => (0.0, window),
            None => {
                // RFC 9438 section 4.8 (after a timeout) and section 4.10 (slow start ended without
                // a loss): K = 0 and W_max = cwnd.
                state.window_prior = state.window_prior.max(window);
                (0.0, window)
            }
        };
        Self {
            epoch: now,
            updated: now,
            inflection,
            origin,
            window_estimate: window,
        }
    }

    /// RFC 9438 figure 1: W_cubic(t) = C (t - K)^3 + W_max.
    #[inline]
    fn window_at(&self, seconds: f64) -> f64 {
        let distance = seconds - self.inflection;
        C * distance * distance * distance + self.origin
    }
}

impl Cubic {
    /// Creates a rule; `avoidance` is how growth in congestion avoidance is counted.
    #[must_use]
    pub const fn new(avoidance: AvoidanceKind) -> Self {
        Self {
            avoidance,
            state: State {
                window_maximum: None,
                window_prior: 0.0,
            },
            undo: None,
            stage: None,
            credit: 0.0,
            application_limited: false,
        }
    }

    /// Returns the segments to grow the window by, for `acknowledged` segments.
    #[inline]
    fn growth(&mut self, window: f64, acknowledged: f64, rtt: Span, now: Time) -> f64 {
        let state = &mut self.state;
        let stage = self
            .stage
            .get_or_insert_with(|| Stage::begin(state, window, now));
        if std::mem::take(&mut self.application_limited) {
            // RFC 9438 section 4.2: "t [...] MUST NOT include periods during which cwnd has not
            // been updated due to application-limited behavior".
            stage.epoch += now.since(stage.updated);
        }
        stage.updated = now;
        let elapsed = now.since(stage.epoch).as_secs_f64();

        // RFC 9438 section 4.3: alpha is 1 once W_est has reached cwnd_prior.
        let above_prior = stage.window_estimate >= self.state.window_prior;
        let alpha = if above_prior { 1.0 } else { ALPHA };
        // RFC 9438 figure 4.
        stage.window_estimate += alpha * acknowledged / window;
        if stage.window_at(elapsed) < stage.window_estimate {
            // RFC 9438 section 4.3: the Reno-friendly region.
            return (stage.window_estimate - window).max(0.0);
        }
        // RFC 9438 section 4.4 and RFC 9438 section 4.5: growth towards the target one round trip
        // ahead.
        let target = stage.window_at(elapsed + rtt.as_secs_f64());
        (target.clamp(window, 1.5 * window) - window) / window * acknowledged
    }
}

impl BuiltIn for Cubic {
    const HAS_OWN_SLOW_START: bool = false;
    const AFTER_LOSS: AfterOneLoss = AfterOneLoss::Share(BETA);
    const LOSS_LAW: Option<&'static str> = Some("cubic");

    fn from_settings(settings: &CongestionSettings) -> Self {
        Self::new(settings.avoidance)
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        let segment = f64::from(window.segment);
        let acknowledged = match self.avoidance {
            AvoidanceKind::PerAcknowledgment => 1.0,
            AvoidanceKind::ByteCounting => acknowledged as f64 / segment,
        };
        let size = window.congestion_window as f64 / segment + self.credit;
        let rtt = sample.smoothed_rtt.unwrap_or_default();
        let growth = self.growth(size, acknowledged, rtt, sample.now);
        let grown = (self.credit + growth) * segment;
        let whole = grown as u64;
        self.credit = (grown - whole as f64) / segment;
        window.congestion_window = window.congestion_window.saturating_add(whole);
    }

    fn on_application_limited(&mut self) {
        self.application_limited = true;
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        **self.undo.get_or_insert_default() = Variables {
            state: self.state,
            stage: self.stage.take(),
        };
        self.credit = 0.0;
        let segment = u64::from(window.segment);
        let size = window.congestion_window as f64 / segment as f64;
        // RFC 9438 section 4.7, fast convergence: a window that has not returned to its previous
        // maximum releases bandwidth to other flows.
        let converging = self.state.window_maximum.is_some_and(|w| size < w);
        self.state.window_maximum = match sample.event {
            // RFC 9438 section 4.8: after a timeout, W_max is the window at which congestion
            // avoidance begins.
            Congestion::Timeout => None,
            _ if converging => Some(size * (1.0 + BETA) / 2.0),
            _ => Some(size),
        };
        // RFC 9438 figure 5 and section 4.6, which uses FlightSize; Linux uses cwnd.
        self.state.window_prior = size;
        let reduced = (sample.flight_size as f64 * BETA) as u64;
        window.slow_start_threshold = reduced.max(2 * segment);
        window.congestion_window = match sample.event {
            Congestion::Loss => reduced.max(2 * segment),
            Congestion::Ecn => reduced.max(segment),
            // RFC 9438 section 4.8: as in Reno, except for the threshold.
            Congestion::Timeout => segment,
        };
    }

    /// RFC 9438 section 4.9: restores the state before the event.
    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        window.congestion_window = window.congestion_window.max(before.congestion_window);
        window.slow_start_threshold = window.slow_start_threshold.max(before.slow_start_threshold);
        let before = self.undo.as_deref().copied().unwrap_or_default();
        self.state = before.state;
        self.stage = before.stage;
    }
}

#[cfg(test)]
mod tests;
