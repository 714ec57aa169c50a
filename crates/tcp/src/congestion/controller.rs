//! A connection's window, and the rules that move it.

use bentpipe_types::{BitRate, Span, Time};
use serde::{Deserialize, Serialize};

use super::rules::{Rule, dispatch};
use super::{AckSample, Congestion, CongestionControl, CongestionSample, Window};
use crate::config::Config;
use crate::rate_sample::{LossSample, RateSample};
use crate::slow_start::{SlowStart, SlowStartRule};

/// A connection's window, and the rules that move it.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Controller {
    window: Window,
    // What the rule says of itself, asked once.
    owns_slow_start: bool,
    sees_every_ack: bool,
    rule_sees_every_ack: bool,
    slow_start_sees_every_ack: bool,
    models_path: bool,
    rule: Rule,
    slow_start: SlowStartRule,
    // Before the last congestion event.
    before: Window,
}

impl Controller {
    /// The controller that `config` asks for, for full segments of `segment` bytes.
    pub(crate) fn new(config: &Config, segment: u32, initial_window: u64) -> Self {
        let window = Window::new(
            segment,
            initial_window.max(u64::from(segment)),
            config.initial_slow_start_threshold.unwrap_or(u64::MAX),
        );
        let rule = Rule::new(config);
        let slow_start = SlowStartRule::new(config.slow_start);
        let owns_slow_start = dispatch!(&rule, r => r.owns_slow_start());
        let rule_sees_every_ack = dispatch!(&rule, r => r.sees_every_ack());
        let slow_start_sees_every_ack = slow_start.sees_every_ack() && !owns_slow_start;
        Self {
            window,
            before: window,
            owns_slow_start,
            sees_every_ack: rule_sees_every_ack || slow_start_sees_every_ack,
            rule_sees_every_ack,
            slow_start_sees_every_ack,
            models_path: dispatch!(&rule, r => r.models_path()),
            rule,
            slow_start,
        }
    }

    /// The window.
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Is [`on_delivery`](Self::on_delivery) to be called?
    #[inline]
    pub(crate) fn sees_every_ack(&self) -> bool {
        self.sees_every_ack
    }

    /// The connection is established; the handshake measured `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Option<Span>, now: Time) {
        dispatch!(&mut self.rule, r => r.on_established(&mut self.window, rtt, now));
        self.keep_sane();
    }

    /// Does the rule model the path?
    pub(crate) fn models_path(&self) -> bool {
        self.models_path
    }

    /// What the rule's randomness depends on.
    pub(crate) fn seed(&mut self, seed: u64) {
        dispatch!(&mut self.rule, r => r.seed(seed));
    }

    /// What an acknowledgment tells of the path. True: the rule itself keeps the rate down.
    pub(crate) fn on_path_sample(&mut self, sample: &RateSample) -> bool {
        dispatch!(&mut self.rule, r => r.on_path_sample(&mut self.window, sample));
        self.keep_sane();
        dispatch!(&self.rule, r => r.limits_samples())
    }

    /// A segment is taken for lost.
    pub(crate) fn on_path_loss(&mut self, loss: &LossSample) {
        dispatch!(&mut self.rule, r => r.on_path_loss(&mut self.window, loss));
        self.keep_sane();
    }

    /// Sending begins again.
    pub(crate) fn on_transmit_start(&mut self, app_limited: bool, now: Time) {
        dispatch!(&mut self.rule, r => r.on_transmit_start(&mut self.window, app_limited, now));
        self.keep_sane();
    }

    /// Does the rule ask for pacing?
    pub(crate) fn wants_pacing(&self) -> bool {
        dispatch!(&self.rule, r => r.paces())
    }

    /// The rate that the rule asks for.
    pub(crate) fn pacing_rate(&self) -> Option<BitRate> {
        dispatch!(&self.rule, r => r.pacing_rate(&self.window))
    }

    /// Full segments have another length from now on. As in Linux, which counts segments, as many of a
    /// smaller one may be in flight as before; of a larger one, as many bytes.
    pub(crate) fn set_segment(&mut self, segment: u32) {
        // RFC 5681 section 3.1: reduced by the ratio of the old to the new segment size.
        for window in [&mut self.window, &mut self.before] {
            let (old, new) = (u64::from(window.segment), u64::from(segment));
            if new < old {
                let scaled = |bytes: u64| match bytes {
                    u64::MAX => bytes,
                    bytes => (u128::from(bytes) * u128::from(new) / u128::from(old)) as u64,
                };
                window.congestion_window = scaled(window.congestion_window);
                window.slow_start_threshold = scaled(window.slow_start_threshold);
            }
            window.segment = segment;
        }
        self.keep_sane();
    }

    /// Any acknowledgment that tells of something delivered.
    #[inline(always)]
    pub(crate) fn on_delivery(&mut self, sample: &AckSample) {
        if self.rule_sees_every_ack {
            // (A copy, so that nobody needs one in memory but who is called.)
            dispatch!(&mut self.rule, r => r.on_delivery(&mut self.window, &{ *sample }));
        }
        if self.slow_start_sees_every_ack {
            (self.slow_start).on_delivery(&mut self.window, &{ *sample });
        }
        self.keep_sane();
    }

    /// New data was acknowledged, outside recovery, and the window was the limit.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, sample: &AckSample) {
        let mut acknowledged = sample.acknowledged;
        // RFC 9438 section 4.10: a slow start below the threshold, whatever the rule.
        if self.window.in_slow_start() && !self.owns_slow_start {
            acknowledged = self.grow_in_slow_start(acknowledged, &{ *sample });
            if acknowledged == 0 {
                return;
            }
        }
        // (As in `on_delivery`.)
        dispatch!(&mut self.rule, r => r.on_ack(&mut self.window, acknowledged, &{ *sample }));
        self.keep_sane();
    }

    /// Slow start. Returns the bytes that are left for congestion avoidance.
    #[inline(never)]
    fn grow_in_slow_start(&mut self, acknowledged: u64, sample: &AckSample) -> u64 {
        let counted = self
            .slow_start
            .counts(&mut self.window, acknowledged, sample);
        let growth = dispatch!(
            &mut self.rule,
            r => r.slow_start_growth(&mut self.window, counted, sample)
        );
        let window = &mut self.window;
        let room = window
            .slow_start_threshold
            .saturating_sub(window.congestion_window);
        if room == 0 {
            // Slow start has just been ended.
            return acknowledged;
        }
        let (grown, left) = if self.slow_start.passes_the_threshold() {
            // By less than it counts for; a rule that multiplies it stops there.
            (growth.min(room.max(counted)), 0)
        } else {
            // As Linux's tcp_slow_start: up to the threshold, and the rest counts in congestion
            // avoidance.
            (growth.min(room), growth.min(counted).saturating_sub(room))
        };
        window.congestion_window = window
            .congestion_window
            .saturating_add(grown)
            .min(MAXIMUM_WINDOW);
        left
    }

    /// New data was acknowledged and the window was not what limited the sender, or nothing at all
    /// was outstanding for a while.
    #[inline]
    pub(crate) fn on_application_limited(&mut self) {
        dispatch!(&mut self.rule, r => r.on_application_limited());
    }

    /// Nothing was outstanding since `last_sent` at the latest, and now a segment leaves.
    pub(crate) fn on_idle_end(&mut self, last_sent: Time, now: Time) {
        dispatch!(&mut self.rule, r => r.on_idle_end(last_sent, now));
    }

    /// The window before the last congestion.
    pub(crate) fn window_before(&self) -> &Window {
        &self.before
    }

    /// Congestion.
    pub(crate) fn on_congestion(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.before = self.window;
        self.slow_start.on_congestion(event);
        let sample = CongestionSample::new(event, flight_size, now);
        dispatch!(&mut self.rule, r => r.on_congestion(&mut self.window, &sample));
        // RFC 5681 equation 4: no rule's threshold is below two segments.
        let least = 2 * u64::from(self.window.segment);
        self.window.slow_start_threshold = self.window.slow_start_threshold.max(least);
        self.keep_sane();
    }

    /// What of the window and the threshold is no whole segment is none.
    pub(crate) fn drop_parts_of_segments(&mut self) {
        let segment = u64::from(self.window.segment.max(1));
        for bytes in [
            &mut self.window.congestion_window,
            &mut self.window.slow_start_threshold,
        ] {
            if *bytes < u64::MAX {
                *bytes -= *bytes % segment;
            }
        }
        self.keep_sane();
    }

    /// How many of its windows a send buffer that grows has room for.
    pub(crate) fn send_buffer_windows(&self) -> u64 {
        dispatch!(&self.rule, r => r.send_buffer_windows())
    }

    /// The timer expired again for a segment that it had retransmitted already, or in recovery; `flight_size` is what
    /// bounds the threshold then.
    pub(crate) fn on_repeated_timeout(&mut self, flight_size: Option<u64>) {
        // RFC 5681 section 3.1: ssthresh is held constant, and cwnd is the loss window.
        self.slow_start.on_congestion(Congestion::Timeout);
        dispatch!(&mut self.rule, r => r.on_repeated_timeout(&mut self.window, flight_size));
        self.window.congestion_window = dispatch!(&self.rule, r => r.loss_window(&self.window));
        self.keep_sane();
    }

    /// Recovery is over; `limit` is what the recovery algorithm allows the window to be.
    pub(crate) fn on_recovery_exit(&mut self, limit: Option<u64>, now: Time) {
        dispatch!(&mut self.rule, r => r.on_recovery_exit(&mut self.window, now));
        // RFC 5681 section 4.3: at most ssthresh, which the window was set to.
        if let Some(limit) = limit
            && !self.models_path
        {
            self.window.congestion_window = self.window.congestion_window.min(limit);
        }
        self.keep_sane();
    }

    /// The last congestion event was none.
    pub(crate) fn on_spurious(&mut self) {
        dispatch!(&mut self.rule, r => r.on_spurious(&mut self.window, self.before));
        self.keep_sane();
    }

    /// The window is what the recovery algorithm has made of it.
    pub(crate) fn set_window(&mut self, congestion_window: u64) {
        self.window.congestion_window = congestion_window;
        self.keep_sane();
    }

    /// Shrinks the window after an idle time.
    pub(crate) fn restart(&mut self, congestion_window: u64, slow_start_threshold: u64) {
        self.window.congestion_window = congestion_window;
        self.window.slow_start_threshold = slow_start_threshold;
        self.keep_sane();
    }

    // Whatever a rule does (it may be a user's own), at least one segment may be in flight.
    fn keep_sane(&mut self) {
        self.window.congestion_window = self
            .window
            .congestion_window
            .clamp(u64::from(self.window.segment), MAXIMUM_WINDOW);
    }
}

/// No window exceeds this: far above what 30 bits of advertised window allow, and far below
/// overflow.
pub(super) const MAXIMUM_WINDOW: u64 = 1 << 40;

#[cfg(test)]
mod tests;
