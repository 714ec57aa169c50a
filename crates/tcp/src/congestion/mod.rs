//! How much may be in flight: the window rules.
//!
//! A rule sees acknowledgments and congestion, and moves a [`Window`]. It knows nothing of what was
//! lost, nor of how lost data is sent again: that is [`recovery`](crate::recovery).
//!
//! RFC 9293 section 3.8.2 requires slow start, congestion avoidance and exponential backoff.

mod ack_spacing;
mod bandwidth;
mod bbr;
mod built_in;
mod controller;
mod cubic;
mod cubic_linux;
mod custom;
mod enhanced_hybla;
mod hybla;
mod reno;
mod rules;
mod westwood;

use bentpipe_types::{BitRate, Span, Time};
use serde::{Deserialize, Serialize};

use crate::rate_sample::{LossSample, RateSample};

pub use bbr::{Bbr1, Bbr3};
use built_in::BuiltIn;
pub(crate) use controller::Controller;
pub use cubic::Cubic;
pub use cubic_linux::LinuxCubic;
pub use custom::CustomFactory;
pub use enhanced_hybla::{BandwidthFilter, EnhancedHybla};
pub use hybla::{AfterLoss, AfterTimeout, Hybla, HyblaSettings, InitialThreshold};
pub use reno::Reno;
pub use rules::{CongestionControlKind, WindowRule};
pub use westwood::{Westwood, WestwoodAfterLoss, WestwoodSettings};

/// The two variables that every rule moves (RFC 5681 section 3.1), in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// `cwnd`: what may be in flight. Never below one segment.
    pub congestion_window: u64,
    /// `ssthresh`: slow start below, congestion avoidance from here on.
    pub slow_start_threshold: u64,
    /// Payload of a full segment: SMSS.
    pub segment: u32,
}

impl Window {
    /// A window.
    #[must_use]
    pub const fn new(segment: u32, congestion_window: u64, slow_start_threshold: u64) -> Self {
        Self {
            congestion_window,
            slow_start_threshold,
            segment,
        }
    }

    /// Is it below the threshold?
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        self.congestion_window < self.slow_start_threshold
    }
}

/// An acknowledgment, as a window rule sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckSample {
    /// The time.
    pub now: Time,
    /// Bytes newly acknowledged; 0 for a duplicate.
    pub acknowledged: u64,
    /// Bytes known to have reached the peer since the start, in order or not: a total, which only
    /// grows.
    pub delivered: u64,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: u64,
    /// Everything below this position of the stream is acknowledged.
    pub unacknowledged: u64,
    /// The next position to send. An acknowledgment beyond it ends the round trip that begins now.
    pub next: u64,
    /// The round-trip time that this acknowledgment measured, of the segment sent last.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// The shortest round-trip time so far.
    pub minimum_rtt: Option<Span>,
}

/// What tells of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A segment was lost, as duplicate acknowledgments or SACK blocks tell.
    Loss,
    /// A router marked a packet (RFC 3168).
    Ecn,
    /// The retransmission timer expired.
    Timeout,
}

/// What a window rule is told of congestion.
#[derive(Clone, Copy, Debug)]
pub struct CongestionSample {
    /// What shows it.
    pub event: Congestion,
    /// Bytes outstanding: RFC 5681's FlightSize.
    pub flight_size: u64,
    /// The time.
    pub now: Time,
}

impl CongestionSample {
    /// Of these.
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
    /// The connection is established. `window` is the initial one; the handshake measured `rtt`.
    fn on_established(&mut self, _window: &mut Window, _rtt: Option<Span>, _now: Time) {}

    /// New data was acknowledged in congestion avoidance, outside loss recovery, and the window was
    /// what limited the sender: `acknowledged` bytes of it are left to count (slow start may have
    /// used a part).
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample);

    /// Every acknowledgment of something delivered, before `on_ack` or `on_congestion`: also during
    /// loss recovery, also duplicates. Only called if `sees_every_ack`.
    fn on_delivery(&mut self, _window: &mut Window, _sample: &AckSample) {}

    /// In slow start: the bytes to grow by, where slow start would grow by `counted`. May lower the
    /// threshold.
    fn slow_start_growth(
        &mut self,
        _window: &mut Window,
        counted: u64,
        _sample: &AckSample,
    ) -> u64 {
        counted
    }

    /// New data was acknowledged and the window was not what limited the sender, or nothing was
    /// outstanding for a while: the time until the next `on_ack` doesn't count.
    fn on_application_limited(&mut self) {}

    /// Congestion. Sets the threshold, and the window for the recovery that follows.
    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample);

    /// Loss recovery is over.
    fn on_recovery_exit(&mut self, _window: &mut Window, _now: Time) {}

    /// The last congestion event was no congestion: `before` is the window before it.
    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        window.congestion_window = window.congestion_window.max(before.congestion_window);
        window.slow_start_threshold = window.slow_start_threshold.max(before.slow_start_threshold);
    }

    /// Nothing was outstanding since `last_sent` at the latest, and now a segment leaves.
    fn on_idle_end(&mut self, _last_sent: Time, _now: Time) {}

    /// A timeout that is no new congestion: it follows another, or ends a loss recovery. After it the
    /// window is [`loss_window`](Self::loss_window). `flight_size` bytes were outstanding, where that bounds the
    /// threshold: at the first timeout for its segment.
    fn on_repeated_timeout(&mut self, _window: &mut Window, _flight_size: Option<u64>) {}

    /// The window after a timeout that follows another, or that ends a loss recovery: such a
    /// timeout is no new congestion (RFC 5681 section 3.1: LW).
    fn loss_window(&self, window: &Window) -> u64 {
        u64::from(window.segment)
    }

    /// Does the rule do its own slow start (BBR)? Then `on_ack` sees every acknowledgment.
    fn owns_slow_start(&self) -> bool {
        false
    }

    /// How many of its windows a send buffer that grows has room for, to fill the window while losses are
    /// mended: Linux's `sndbuf_expand`.
    fn send_buffer_windows(&self) -> u64 {
        2
    }

    /// Does the rule want `on_delivery`?
    fn sees_every_ack(&self) -> bool {
        false
    }

    /// Does the rule model the path? Then [`on_path_sample`](Self::on_path_sample) sees every
    /// acknowledgment, in recovery or not, and the rule alone sets the window: neither the end of
    /// recovery nor an idle time does. The connection keeps what samples need.
    fn models_path(&self) -> bool {
        false
    }

    /// For the rule's own randomness: this connection's, and the same on every run. Before
    /// [`on_established`](Self::on_established).
    fn seed(&mut self, _seed: u64) {}

    /// An acknowledgment, and what it tells of the path. After
    /// [`on_congestion`](Self::on_congestion), where it is that, too. Only called if `models_path`.
    fn on_path_sample(&mut self, _window: &mut Window, _sample: &RateSample) {}

    /// A segment is taken for lost. Before the sample of the acknowledgment that tells of it. Only
    /// called if `models_path`.
    fn on_path_loss(&mut self, _window: &mut Window, _loss: &LossSample) {}

    /// Nothing was outstanding, and now a segment leaves. `app_limited`: for want of data. Only
    /// called if `models_path`.
    fn on_transmit_start(&mut self, _window: &mut Window, _app_limited: bool, _now: Time) {}

    /// Does the rule itself keep the rate below what the path carries (BBR's ProbeRTT)? Then its
    /// samples are marked as if the application did.
    fn limits_samples(&self) -> bool {
        false
    }

    /// Does the rule name rates to pace at? Then a connection paces unless it is told not to.
    fn paces(&self) -> bool {
        false
    }

    /// The rate to pace at now, if the rule names one. Asked for each burst.
    fn pacing_rate(&self, _window: &Window) -> Option<BitRate> {
        None
    }
}

#[cfg(test)]
impl AckSample {
    /// A sample of an acknowledgment of `acknowledged` bytes, for tests of rules.
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
