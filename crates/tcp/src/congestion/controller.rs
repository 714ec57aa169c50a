//! Congestion controller of a connection: its window and the rules that change it.

use bentpipe_types::{BitRate, Span, Time};
use serde::{Deserialize, Serialize};

use super::rules::{CongestionControlKind, Rule, dispatch};
use super::{
    AckSample, Congestion, CongestionControl, CongestionSample, CongestionSettings, Window,
};
use crate::rate_sample::{LossSample, RateSample};
use crate::slow_start::{SlowStart, SlowStartRule};

/// A connection's window and the rules that change it.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Controller {
    window: Window,
    // Cached properties of the rules.
    owns_slow_start: bool,
    sees_every_ack: bool,
    rule_sees_every_ack: bool,
    slow_start_sees_every_ack: bool,
    models_path: bool,
    // Slow start includes the threshold itself: `Config::tcp_linux`.
    includes_threshold: bool,
    rule: Rule,
    slow_start: SlowStartRule,
    // Window before the last congestion event.
    window_before_congestion: Window,
}

impl Controller {
    /// Creates a controller with this rule, for full segments of `segment` bytes.
    pub(crate) fn new(
        kind: &CongestionControlKind,
        settings: &CongestionSettings,
        segment: u32,
        initial_window: u64,
    ) -> Self {
        let window = Window::new(
            segment,
            initial_window.max(u64::from(segment)),
            settings.initial_slow_start_threshold.unwrap_or(u64::MAX),
        );
        let rule = Rule::new(kind, settings);
        let slow_start = SlowStartRule::new(settings.slow_start);
        let owns_slow_start = dispatch!(&rule, r => r.owns_slow_start());
        let rule_sees_every_ack = dispatch!(&rule, r => r.sees_every_ack());
        let slow_start_sees_every_ack = slow_start.sees_every_ack() && !owns_slow_start;
        Self {
            window,
            window_before_congestion: window,
            owns_slow_start,
            sees_every_ack: rule_sees_every_ack || slow_start_sees_every_ack,
            rule_sees_every_ack,
            slow_start_sees_every_ack,
            models_path: dispatch!(&rule, r => r.models_path()),
            // Hybla's modules compare strictly.
            includes_threshold: settings.tcp_linux
                && !matches!(
                    kind,
                    CongestionControlKind::Hybla | CongestionControlKind::EnhancedHybla
                ),
            rule,
            slow_start,
        }
    }

    /// Returns the window.
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Whether [`on_delivery`](Self::on_delivery) is to be called.
    #[inline]
    pub(crate) fn sees_every_ack(&self) -> bool {
        self.sees_every_ack
    }

    /// The connection is established; the handshake measured `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Option<Span>, now: Time) {
        dispatch!(&mut self.rule, r => r.on_established(&mut self.window, rtt, now));
        self.clamp_window();
    }

    /// Whether the rule models the path.
    pub(crate) fn models_path(&self) -> bool {
        self.models_path
    }

    /// Seeds the rule's random numbers.
    pub(crate) fn seed(&mut self, seed: u64) {
        dispatch!(&mut self.rule, r => r.seed(seed));
    }

    /// Passes a rate sample to the rule. Returns whether the rule keeps the rate below that of the
    /// path.
    pub(crate) fn on_path_sample(&mut self, sample: &RateSample) -> bool {
        dispatch!(&mut self.rule, r => r.on_path_sample(&mut self.window, sample));
        self.clamp_window();
        dispatch!(&self.rule, r => r.limits_samples())
    }

    /// Passes a segment marked lost to the rule.
    pub(crate) fn on_path_loss(&mut self, loss: &LossSample) {
        dispatch!(&mut self.rule, r => r.on_path_loss(&mut self.window, loss));
        self.clamp_window();
    }

    /// Sending starts with nothing outstanding.
    pub(crate) fn on_transmit_start(&mut self, app_limited: bool, now: Time) {
        dispatch!(&mut self.rule, r => r.on_transmit_start(&mut self.window, app_limited, now));
        self.clamp_window();
    }

    /// Whether the rule sets pacing rates.
    pub(crate) fn wants_pacing(&self) -> bool {
        dispatch!(&self.rule, r => r.paces())
    }

    /// Returns the pacing rate set by the rule.
    pub(crate) fn pacing_rate(&self) -> Option<BitRate> {
        dispatch!(&self.rule, r => r.pacing_rate(&self.window))
    }

    /// Changes the length of full segments. As in Linux, which counts segments, the window keeps
    /// its number of segments if they become shorter, and its number of bytes if they become
    /// longer.
    pub(crate) fn set_segment(&mut self, segment: u32) {
        // RFC 5681 section 3.1: reduced by the ratio of the old to the new segment size.
        for window in [&mut self.window, &mut self.window_before_congestion] {
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
        self.clamp_window();
    }

    /// Processes an acknowledgment that delivers something.
    #[inline(always)]
    pub(crate) fn on_delivery(&mut self, sample: &AckSample) {
        if self.rule_sees_every_ack {
            // The sample is copied only where a rule uses it, so that others need not keep it in
            // memory.
            dispatch!(&mut self.rule, r => r.on_delivery(&mut self.window, &{ *sample }));
        }
        if self.slow_start_sees_every_ack {
            (self.slow_start).on_delivery(&mut self.window, &{ *sample });
        }
        self.clamp_window();
    }

    /// Processes an acknowledgment of new data outside recovery, while the window limited the
    /// sender.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, sample: &AckSample) {
        let mut acknowledged = sample.acknowledged;
        if self.includes_threshold
            && self.window.congestion_window == self.window.slow_start_threshold
        {
            // Linux 2.6.22: slow start while snd_cwnd <= snd_ssthresh (tcp_reno_cong_avoid).
            self.window.congestion_window += u64::from(self.window.segment);
            return;
        }
        // RFC 9438 section 4.10: a slow start below the threshold, whatever the rule.
        if self.window.in_slow_start() && !self.owns_slow_start {
            acknowledged = self.grow_in_slow_start(acknowledged, &{ *sample });
            if acknowledged == 0 {
                return;
            }
        }
        // The sample is copied as in `on_delivery`.
        dispatch!(&mut self.rule, r => r.on_ack(&mut self.window, acknowledged, &{ *sample }));
        self.clamp_window();
    }

    /// Grows the window in slow start. Returns the bytes that are left for congestion avoidance.
    #[inline(never)]
    fn grow_in_slow_start(&mut self, acknowledged: u64, sample: &AckSample) -> u64 {
        let counted = self
            .slow_start
            .growth(&mut self.window, acknowledged, sample);
        let growth = dispatch!(
            &mut self.rule,
            r => r.slow_start_growth(&mut self.window, counted, sample)
        );
        let window = &mut self.window;
        let room = window
            .slow_start_threshold
            .saturating_sub(window.congestion_window);
        if room == 0 {
            // The rule has just ended slow start.
            return acknowledged;
        }
        let (grown, left) = if self.slow_start.may_exceed_threshold() {
            // May exceed the threshold, but by less than `counted`; a rule that multiplies the
            // growth stops at the threshold.
            (growth.min(room.max(counted)), 0)
        } else {
            // Linux's tcp_slow_start: grows up to the threshold, and the rest counts in congestion
            // avoidance.
            (growth.min(room), growth.min(counted).saturating_sub(room))
        };
        window.congestion_window = window
            .congestion_window
            .saturating_add(grown)
            .min(MAXIMUM_WINDOW);
        left
    }

    /// New data was acknowledged but the window did not limit the sender, or nothing was
    /// outstanding for a while.
    #[inline]
    pub(crate) fn on_application_limited(&mut self) {
        dispatch!(&mut self.rule, r => r.on_application_limited());
    }

    /// The first segment is sent after an idle period; the last one was sent at `last_sent` or
    /// earlier.
    pub(crate) fn on_idle_end(&mut self, last_sent: Time, now: Time) {
        dispatch!(&mut self.rule, r => r.on_idle_end(last_sent, now));
    }

    /// Returns the window before the last congestion event.
    pub(crate) fn window_before(&self) -> &Window {
        &self.window_before_congestion
    }

    /// Processes a congestion event.
    pub(crate) fn on_congestion(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.window_before_congestion = self.window;
        self.slow_start.on_congestion(event);
        let sample = CongestionSample::new(event, flight_size, now);
        dispatch!(&mut self.rule, r => r.on_congestion(&mut self.window, &sample));
        // RFC 5681 equation 4: the threshold is at least two segments with any rule.
        let least = 2 * u64::from(self.window.segment);
        self.window.slow_start_threshold = self.window.slow_start_threshold.max(least);
        self.clamp_window();
    }

    /// Rounds the window and the threshold down to whole segments.
    pub(crate) fn round_down_to_segments(&mut self) {
        let segment = u64::from(self.window.segment.max(1));
        for bytes in [
            &mut self.window.congestion_window,
            &mut self.window.slow_start_threshold,
        ] {
            if *bytes < u64::MAX {
                *bytes -= *bytes % segment;
            }
        }
        self.clamp_window();
    }

    /// Returns the size of an automatically sized send buffer in windows.
    pub(crate) fn send_buffer_windows(&self) -> u64 {
        dispatch!(&self.rule, r => r.send_buffer_windows())
    }

    /// The retransmission timer expired again for the same segment, or in recovery. `flight_size`
    /// limits the threshold, if present.
    pub(crate) fn on_repeated_timeout(&mut self, flight_size: Option<u64>) {
        // RFC 5681 section 3.1: ssthresh stays constant, and cwnd is the loss window.
        self.slow_start.on_congestion(Congestion::Timeout);
        dispatch!(&mut self.rule, r => r.on_repeated_timeout(&mut self.window, flight_size));
        self.window.congestion_window = dispatch!(&self.rule, r => r.loss_window(&self.window));
        self.clamp_window();
    }

    /// Loss recovery has ended; `limit` is the largest window that the recovery algorithm allows.
    pub(crate) fn on_recovery_exit(&mut self, limit: Option<u64>, now: Time) {
        dispatch!(&mut self.rule, r => r.on_recovery_exit(&mut self.window, now));
        // RFC 5681 section 4.3: at most ssthresh, which the window was set to.
        if let Some(limit) = limit
            && !self.models_path
        {
            self.window.congestion_window = self.window.congestion_window.min(limit);
        }
        self.clamp_window();
    }

    /// The last congestion event was spurious.
    pub(crate) fn on_spurious(&mut self) {
        dispatch!(&mut self.rule, r => r.on_spurious(&mut self.window, self.window_before_congestion));
        self.clamp_window();
    }

    /// Sets the window computed by the recovery algorithm.
    pub(crate) fn set_window(&mut self, congestion_window: u64) {
        self.window.congestion_window = congestion_window;
        self.clamp_window();
    }

    /// Reduces the window after an idle period.
    pub(crate) fn restart(&mut self, congestion_window: u64, slow_start_threshold: u64) {
        self.window.congestion_window = congestion_window;
        self.window.slow_start_threshold = slow_start_threshold;
        self.clamp_window();
    }

    // The window is at least one segment, whatever the rule does (it may be user-defined).
    fn clamp_window(&mut self) {
        self.window.congestion_window = self
            .window
            .congestion_window
            .clamp(u64::from(self.window.segment), MAXIMUM_WINDOW);
    }
}

/// Upper limit of every window: far above what 30 bits of advertised window allow, and far below
/// overflow.
pub(super) const MAXIMUM_WINDOW: u64 = 1 << 40;

#[cfg(test)]
mod tests;
