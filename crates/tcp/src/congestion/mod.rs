//! How much may be in flight: the window rules.
//!
//! A rule sees acknowledgments and congestion, and moves a [`Window`]. It knows nothing of what was
//! lost, nor of how lost data is sent again: that is [`recovery`](crate::recovery).

mod reno;

use std::fmt;
use std::sync::Arc;

use bentpipe_types::{BitRate, Span, Time};

use crate::config::Config;
use crate::slow_start::{SlowStart, SlowStartRule};

pub use reno::Reno;

/// Which window rule.
#[derive(Clone, Debug, Default)]
pub enum CongestionControlKind {
    /// RFC 5681.
    #[default]
    Reno,
    /// One that is not part of this crate.
    Custom(CustomFactory),
}

/// Makes one [`CongestionControl`] per connection.
#[derive(Clone)]
pub struct CustomFactory {
    name: String,
    make: Arc<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>,
}

impl CustomFactory {
    /// A factory with a name for messages.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(make),
        }
    }
}

impl fmt::Debug for CustomFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The two variables that every rule moves (RFC 5681 section 3.1), in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// An acknowledgment of new data, as a window rule sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckSample {
    /// The time.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acknowledged: u64,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: u64,
    /// The round-trip time that this acknowledgment measured, of the segment sent last.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
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

/// A window rule.
pub trait CongestionControl: fmt::Debug + Send {
    /// New data was acknowledged in congestion avoidance, outside loss recovery: `acknowledged`
    /// bytes of it are left to count (slow start may have used a part).
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample);

    /// Congestion, with `flight_size` bytes outstanding (RFC 5681's FlightSize). Sets the
    /// threshold, and the window for the recovery that follows.
    fn on_congestion(
        &mut self,
        window: &mut Window,
        event: Congestion,
        flight_size: u64,
        now: Time,
    );

    /// Loss recovery is over.
    fn on_recovery_exit(&mut self, _window: &mut Window, _now: Time) {}

    /// The last congestion event was no congestion: `before` is the window before it.
    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        window.congestion_window = window.congestion_window.max(before.congestion_window);
        window.slow_start_threshold = window.slow_start_threshold.max(before.slow_start_threshold);
    }

    /// Does the rule do its own slow start (Hybla, BBR)? Then `on_ack` sees every acknowledgment.
    fn owns_slow_start(&self) -> bool {
        false
    }

    /// The rate to pace at, if the rule wants pacing.
    fn pacing_rate(&self, _window: &Window) -> Option<BitRate> {
        None
    }
}

/// The window rule of one connection.
#[derive(Debug)]
enum Rule {
    Reno(Reno),
    Custom(Box<dyn CongestionControl>),
}

/// Calls the rule, whichever it is.
macro_rules! dispatch {
    ($rule:expr, $inner:ident => $call:expr) => {
        match $rule {
            Rule::Reno($inner) => $call,
            Rule::Custom($inner) => $call,
        }
    };
}

/// A connection's window, and the rules that move it.
#[derive(Debug)]
pub(crate) struct Controller {
    window: Window,
    // Before the last congestion event.
    before: Window,
    rule: Rule,
    slow_start: SlowStartRule,
}

impl Controller {
    /// The controller that `config` asks for, for full segments of `segment` bytes.
    pub(crate) fn new(config: &Config, segment: u32, initial_window: u64) -> Self {
        let window = Window::new(
            segment,
            initial_window.max(u64::from(segment)),
            config.initial_slow_start_threshold.unwrap_or(u64::MAX),
        );
        let rule = match &config.congestion_control {
            CongestionControlKind::Reno => Rule::Reno(Reno::new(config.avoidance)),
            CongestionControlKind::Custom(factory) => Rule::Custom((factory.make)()),
        };
        Self {
            window,
            before: window,
            rule,
            slow_start: SlowStartRule::new(config.slow_start),
        }
    }

    /// The window.
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// New data was acknowledged, outside recovery, and the window was the limit.
    #[inline]
    pub(crate) fn on_ack(&mut self, sample: &AckSample) {
        let mut acknowledged = sample.acknowledged;
        if self.window.in_slow_start() && !dispatch!(&self.rule, r => r.owns_slow_start()) {
            acknowledged = self.slow_start.on_ack(&mut self.window, acknowledged);
            if acknowledged == 0 {
                return;
            }
        }
        dispatch!(&mut self.rule, r => r.on_ack(&mut self.window, acknowledged, sample));
        self.keep_sane();
    }

    /// Congestion.
    pub(crate) fn on_congestion(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.before = self.window;
        dispatch!(&mut self.rule, r => r.on_congestion(&mut self.window, event, flight_size, now));
        self.keep_sane();
    }

    /// The timer expired again for a segment that it had retransmitted already.
    pub(crate) fn on_repeated_timeout(&mut self) {
        // RFC 5681 section 3.1: ssthresh is held constant, and cwnd is the loss window.
        self.window.congestion_window = u64::from(self.window.segment);
    }

    /// Recovery is over; `limit` is what the recovery algorithm allows the window to be.
    pub(crate) fn on_recovery_exit(&mut self, limit: Option<u64>, now: Time) {
        dispatch!(&mut self.rule, r => r.on_recovery_exit(&mut self.window, now));
        if let Some(limit) = limit {
            self.window.congestion_window = self.window.congestion_window.min(limit);
        }
        self.keep_sane();
    }

    /// The last congestion event was none.
    #[allow(
        dead_code,
        reason = "for spurious-retransmission detection, which is to come"
    )]
    pub(crate) fn on_spurious(&mut self) {
        dispatch!(&mut self.rule, r => r.on_spurious(&mut self.window, self.before));
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
const MAXIMUM_WINDOW: u64 = 1 << 40;
