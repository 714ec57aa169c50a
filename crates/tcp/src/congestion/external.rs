//! Window rules for a transport protocol other than the TCP of this crate.

use bentpipe_types::{BitRate, Span, Time};

use super::{AckSample, Congestion, CongestionControlKind, CongestionSettings, Controller, Window};
use crate::rate_sample::{LossSample, RateSample};

/// A window rule with its slow start, driven by another transport protocol.
///
/// The caller detects losses and congestion events; each call passes one of them on, as TCP's
/// sender does.
#[derive(Debug)]
pub struct ExternalWindow(Controller);

impl ExternalWindow {
    /// Creates a rule of this kind, for packets of `segment` bytes.
    pub(crate) fn new(
        kind: &CongestionControlKind,
        settings: &CongestionSettings,
        segment: u32,
        initial_window: u64,
        seed: u64,
    ) -> Self {
        let mut controller = Controller::new(kind, settings, segment, initial_window);
        controller.seed(seed);
        Self(controller)
    }

    /// Returns the window.
    #[must_use]
    pub fn window(&self) -> &Window {
        self.0.window()
    }

    /// Returns the pacing rate that the rule sets, if any.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.0.pacing_rate()
    }

    /// Whether [`on_path_sample`](Self::on_path_sample) is to be called.
    #[must_use]
    pub fn models_path(&self) -> bool {
        self.0.models_path()
    }

    /// The connection is established; the handshake measured `rtt`.
    pub fn on_established(&mut self, rtt: Option<Span>, now: Time) {
        self.0.on_established(rtt, now);
    }

    /// Processes an acknowledgment. `grows`: it acknowledges new data outside recovery, while the
    /// window limited the sender.
    pub fn on_ack(&mut self, sample: &AckSample, grows: bool) {
        if self.0.sees_every_ack() {
            self.0.on_delivery(sample);
        }
        if grows {
            self.0.on_ack(sample);
        }
    }

    /// New data was acknowledged but the window did not limit the sender.
    pub fn on_application_limited(&mut self) {
        self.0.on_application_limited();
    }

    /// Passes on a rate sample. Returns whether the rule keeps the rate below that of the path.
    pub fn on_path_sample(&mut self, sample: &RateSample) -> bool {
        self.0.on_path_sample(sample)
    }

    /// Passes on a loss.
    pub fn on_path_loss(&mut self, loss: &LossSample) {
        self.0.on_path_loss(loss);
    }

    /// Sending starts with nothing outstanding.
    pub fn on_transmit_start(&mut self, app_limited: bool, now: Time) {
        self.0.on_transmit_start(app_limited, now);
    }

    /// Processes a congestion event.
    pub fn on_congestion(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.0.on_congestion(event, flight_size, now);
    }

    /// Loss recovery has ended.
    pub fn on_recovery_exit(&mut self, now: Time) {
        self.0.on_recovery_exit(None, now);
    }

    /// Changes the length of full packets.
    pub fn set_segment(&mut self, segment: u32) {
        self.0.set_segment(segment);
    }
}
