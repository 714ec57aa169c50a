//! Interface of window rules: what they change ([`Window`]) and what they are notified of.

use bentpipe_types::{BitRate, Span, Time};
use serde::{Deserialize, Serialize};

use crate::rate_sample::{LossSample, RateSample};

/// The two variables that every rule changes (RFC 5681 section 3.1), in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// `cwnd`: maximum bytes in flight, at least one segment.
    pub congestion_window: u64,
    /// `ssthresh`: slow start below it, congestion avoidance from it on.
    pub slow_start_threshold: u64,
    /// SMSS: payload of a full-sized segment.
    pub segment: u32,
}

impl Window {
    /// Creates a window.
    #[must_use]
    pub const fn new(segment: u32, congestion_window: u64, slow_start_threshold: u64) -> Self {
        Self {
            congestion_window,
            slow_start_threshold,
            segment,
        }
    }

    /// Whether the congestion window is below the threshold.
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        self.congestion_window < self.slow_start_threshold
    }
}

/// An acknowledgment, as passed to window rules.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckSample {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged; 0 for a duplicate acknowledgment.
    pub acknowledged: u64,
    /// Total bytes known to have reached the peer, in order or not. Never decreases.
    pub delivered: u64,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: u64,
    /// Stream position up to which everything is acknowledged.
    pub unacknowledged: u64,
    /// Next stream position to send. An acknowledgment above it ends the round trip that begins
    /// now.
    pub next: u64,
    /// Round-trip time measured with this acknowledgment, from the segment sent last.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// Minimum round-trip time so far.
    pub minimum_rtt: Option<Span>,
}

/// Kind of congestion event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Loss of a segment, detected by duplicate acknowledgments or SACK blocks.
    Loss,
    /// Congestion Experienced mark of a router (RFC 3168).
    Ecn,
    /// Expiry of the retransmission timer.
    Timeout,
}

/// Congestion event, as passed to window rules.
#[derive(Clone, Copy, Debug)]
pub struct CongestionSample {
    /// Kind of the event.
    pub event: Congestion,
    /// FlightSize of RFC 5681: bytes outstanding.
    pub flight_size: u64,
    /// Time of the event.
    pub now: Time,
}

impl CongestionSample {
    /// Creates a sample.
    #[must_use]
    pub const fn new(event: Congestion, flight_size: u64, now: Time) -> Self {
        Self {
            event,
            flight_size,
            now,
        }
    }
}

/// A window rule.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// The connection is established with the initial `window`; the handshake measured `rtt`.
    fn on_established(&mut self, _window: &mut Window, _rtt: Option<Span>, _now: Time) {}

    /// New data was acknowledged in congestion avoidance, outside loss recovery, while the window
    /// limited the sender. `acknowledged` excludes bytes that slow start has counted.
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample);

    /// Something was delivered. Called before `on_ack` and `on_congestion`, also in loss recovery
    /// and for duplicate acknowledgments, but only if `sees_every_ack`.
    fn on_delivery(&mut self, _window: &mut Window, _sample: &AckSample) {}

    /// Returns the bytes to grow by in slow start, where the slow-start rule would grow by
    /// `counted`. May lower the threshold.
    fn slow_start_growth(
        &mut self,
        _window: &mut Window,
        counted: u64,
        _sample: &AckSample,
    ) -> u64 {
        counted
    }

    /// New data was acknowledged but the window did not limit the sender, or nothing was
    /// outstanding for a while. The time until the next `on_ack` does not count.
    fn on_application_limited(&mut self) {}

    /// A congestion event. Sets the threshold, and the window for the following recovery.
    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample);

    /// Loss recovery has ended.
    fn on_recovery_exit(&mut self, _window: &mut Window, _now: Time) {}

    /// The last congestion event was spurious; `before` is the window before it.
    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        window.congestion_window = window.congestion_window.max(before.congestion_window);
        window.slow_start_threshold = window.slow_start_threshold.max(before.slow_start_threshold);
    }

    /// The first segment is sent after an idle period; the last one was sent at the first
    /// time or earlier.
    fn on_idle_end(&mut self, _last_sent: Time, _now: Time) {}

    /// A timeout that is not a new congestion event: it follows another timeout or ends a loss
    /// recovery. Afterwards the window is [`loss_window`](Self::loss_window). `flight_size` is
    /// present if the outstanding bytes limit the threshold: at the first timeout of a segment.
    fn on_repeated_timeout(&mut self, _window: &mut Window, _flight_size: Option<u64>) {}

    /// Returns the window after a timeout that is not a new congestion event: LW in RFC 5681
    /// section 3.1.
    fn loss_window(&self, window: &Window) -> u64 {
        u64::from(window.segment)
    }

    /// Whether the rule has its own slow start, as BBR does. If so, `on_ack` is called for every
    /// acknowledgment.
    fn owns_slow_start(&self) -> bool {
        false
    }

    /// Returns the size of an automatically sized send buffer in windows, enough to fill the window
    /// while losses are repaired: Linux's `sndbuf_expand`.
    fn send_buffer_windows(&self) -> u64 {
        2
    }

    /// Whether `on_delivery` is to be called.
    fn sees_every_ack(&self) -> bool {
        false
    }

    /// Whether the rule models the path. If so, [`on_path_sample`](Self::on_path_sample) is called
    /// for every acknowledgment, in recovery or not, and only the rule sets the window, also at the
    /// end of recovery and after an idle period. The connection then maintains the state for rate
    /// samples.
    fn models_path(&self) -> bool {
        false
    }

    /// Seeds the rule's random numbers, with a different but reproducible seed for each connection.
    /// Called before [`on_established`](Self::on_established).
    fn seed(&mut self, _seed: u64) {}

    /// An acknowledgment and its rate sample. Called after [`on_congestion`](Self::on_congestion)
    /// for the same acknowledgment, and only if `models_path`.
    fn on_path_sample(&mut self, _window: &mut Window, _sample: &RateSample) {}

    /// A segment was marked lost. Called before the sample of the acknowledgment that caused it,
    /// and only if `models_path`.
    fn on_path_loss(&mut self, _window: &mut Window, _loss: &LossSample) {}

    /// Sending starts with nothing outstanding. `app_limited`: the application had supplied too
    /// little data. Called only if `models_path`.
    fn on_transmit_start(&mut self, _window: &mut Window, _app_limited: bool, _now: Time) {}

    /// Whether the rule currently keeps the rate below that of the path, as in BBR's ProbeRTT. If
    /// so, samples are marked as application-limited.
    fn limits_samples(&self) -> bool {
        false
    }

    /// Whether the rule sets pacing rates. If so, the connection paces unless pacing is disabled.
    fn paces(&self) -> bool {
        false
    }

    /// Returns the current pacing rate, if the rule sets one. Called for each burst.
    fn pacing_rate(&self, _window: &Window) -> Option<BitRate> {
        None
    }
}

#[cfg(test)]
impl AckSample {
    /// Creates a sample of an acknowledgment of `acknowledged` bytes, for tests of rules.
    pub(crate) const fn at(now: Time, acknowledged: u64) -> Self {
        Self {
            now,
            acknowledged,
            delivered: 0,
            in_flight: 0,
            unacknowledged: 0,
            next: 0,
            rtt: None,
            smoothed_rtt: None,
            minimum_rtt: None,
        }
    }
}
