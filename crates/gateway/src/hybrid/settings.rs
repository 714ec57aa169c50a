//! What a hybrid gateway can be told to do differently.

use bentpipe_tcp::congestion::{
    AckSample, CongestionControl, CongestionSample, CustomFactory, Window,
};
use bentpipe_tcp::{Config, CongestionControlKind, IdleRestart, PacingKind, RecoveryKind, RtoRule};
use bentpipe_types::{IpVersion, Port, Processing, Span, Time};

/// The settings of a hybrid gateway. The default is gaid1998's standard set (its table 3), with what
/// an honest gateway owes its users.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The ports behind which the hybrid hosts are.
    pub facing: Vec<Port>,
    /// The longest packet that goes to the hosts whole, in bytes; `None`: any. What is held can no more be told its
    /// sender that it is too long, who has had it acknowledged: so servers hear of it before (RFC 9293 section 3.7.1).
    pub facing_mtu: Option<u32>,
    /// The window that a server is offered, and, unless `store` says otherwise, what is held of a
    /// connection at most, in bytes.
    pub receive_buffer: u64,
    /// Bytes held of one connection at most, sent to the host and not acknowledged by it, or waiting
    /// to be sent. `None`: `receive_buffer`, so that the window shrinks as it fills.
    pub store: Option<u64>,
    /// Bytes held of all connections at most.
    pub memory: u64,
    /// Connections tracked at most; further ones pass through untouched.
    pub connections: usize,
    /// The longest an acknowledgment to a server waits for something that goes there (section 6.3.5).
    pub ack_timeout: Span,
    /// Acknowledge every so many full segments at once. `None`: only time tells, as in the paper.
    pub ack_every: Option<u32>,
    /// How far beyond the window of the host may be sent.
    pub anticipation: Anticipation,
    /// How what the host doesn't acknowledge is sent again.
    pub recovery: Recovery,
    /// The retransmission timeout. `None`: adaptive (RFC 6298), 200 ms at least with the timer alone,
    /// what the TCP says with that. With a congestion window it is the shortest, and adaptive above:
    /// a window rule takes each expiry for a sign of congestion, and one that comes before the
    /// acknowledgment can would never let the window open.
    pub retransmission_timeout: Option<Span>,
    /// Without progress for so long, a host is given up and the server told by RST.
    pub give_up: Span,
    /// A connection of which nothing was heard for so long is forgotten (RFC 5382 section 5, REQ-5:
    /// no less than 2 hours and 4 minutes).
    pub idle: Span,
    /// How long a connection that is over is remembered, for what still comes.
    pub linger: Span,
    /// What a packet takes; `None`: no time.
    pub processing: Option<Processing>,
}

/// How far beyond the window that the host advertises the gateway sends. A window of zero is obeyed
/// in any case (section 4.2).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Anticipation {
    /// As far as there is something to send: by the time it arrives, the window will have moved on
    /// (section 3).
    #[default]
    Unlimited,
    /// Not at all; but a segment larger than the whole window goes, where nothing else is under way.
    Strict,
    /// So many times the window.
    Factor(f64),
}

/// How what the host doesn't acknowledge is sent again.
#[derive(Clone, Debug, Default)]
pub enum Recovery {
    /// The paper's: when the timer expires, the first unacknowledged segment. No congestion window.
    #[default]
    Timer,
    /// As a TCP does it: its loss recovery, window rule and pacing.
    Tcp {
        /// The TCP. What of it isn't the sender's half has no effect.
        config: Box<Config>,
        /// It has a congestion window; else only the host's window bounds what is under way.
        window: bool,
    },
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            facing: Vec::new(),
            facing_mtu: None,
            receive_buffer: 64_000,
            store: None,
            memory: 64 << 20,
            connections: 65_536,
            ack_timeout: Span::from_millis(200),
            ack_every: None,
            anticipation: Anticipation::Unlimited,
            recovery: Recovery::Timer,
            retransmission_timeout: Some(Span::from_millis(200)),
            // RFC 9293 section 3.8.3: R2 is 100 seconds at least.
            give_up: Span::from_secs(120),
            idle: Span::from_secs(7440),
            linger: Span::from_secs(60),
            processing: None,
        }
    }
}

/// Largest receive buffer: what 16 bits and a shift of 14 can say (RFC 7323 section 2.3).
const MAXIMUM_WINDOW: u64 = (u16::MAX as u64) << 14;

impl Settings {
    /// The MSS that a host may announce: no more than goes to it whole. No MSS is 0 (RFC 9293 section 3.7.1).
    pub(super) fn mss(&self, announced: u16, version: IpVersion) -> u16 {
        let most = self.facing_mtu.map(|mtu| version.mss_within(mtu).max(1));
        most.map_or(announced, |most| announced.min(most))
    }

    /// Bytes of window at most.
    pub(super) fn window(&self) -> u64 {
        self.receive_buffer.clamp(1, MAXIMUM_WINDOW)
    }

    /// Bytes held of one connection at most.
    pub(super) fn store(&self) -> u64 {
        self.store.unwrap_or(self.receive_buffer).max(1)
    }

    /// Segments held of one connection at most: what costs little in bytes costs memory all the same.
    pub(super) fn segments(&self) -> usize {
        usize::try_from(self.store() / 64)
            .unwrap_or(usize::MAX)
            .clamp(64, 1 << 20)
    }

    /// The window scale that a server is told, of a host that offers `shift`: that one, if it says the
    /// whole window and its unit is small beside what there may be room for; else the smallest that
    /// says the window.
    pub(super) fn shift(&self, shift: u8) -> u8 {
        let smallest = (0..14)
            .find(|shift| self.window() >> shift <= u64::from(u16::MAX))
            .unwrap_or(14);
        let room = self.window().min(self.store()).min(self.memory);
        if shift >= smallest && 1 << shift <= room / 16 {
            shift
        } else {
            smallest
        }
    }

    /// Is a lost segment found by the timer alone?
    pub(super) fn by_timer(&self) -> bool {
        matches!(self.recovery, Recovery::Timer)
    }

    /// What the sender's half towards a host is made of.
    pub(super) fn sender(&self) -> Config {
        let unlimited =
            || CongestionControlKind::Custom(CustomFactory::new("none", || Box::new(Unlimited)));
        let base = match &self.recovery {
            Recovery::Timer => Config {
                recovery: RecoveryKind::Reno,
                sack: false,
                congestion_control: unlimited(),
                pacing: PacingKind::Off,
                idle_restart: IdleRestart::Off,
                rto_rule: RtoRule::Rfc6298,
                ..Config::default()
            },
            Recovery::Tcp {
                config,
                window: true,
            } => config.as_ref().clone(),
            Recovery::Tcp {
                config,
                window: false,
            } => Config {
                congestion_control: unlimited(),
                // Both have a window to work on.
                proportional_rate_reduction: false,
                idle_restart: IdleRestart::Off,
                ..config.as_ref().clone()
            },
        };
        let base = Config {
            // A probe would be a new segment, or the last again: here the timers say which.
            tail_loss_probe: false,
            ..base
        };
        let windowed = matches!(self.recovery, Recovery::Tcp { window: true, .. });
        match self.retransmission_timeout {
            Some(shortest) if windowed => Config {
                initial_rto: base.initial_rto.max(shortest),
                minimum_rto: shortest,
                maximum_rto: base.maximum_rto.max(shortest),
                ..base
            },
            Some(fixed) => Config {
                initial_rto: fixed,
                minimum_rto: fixed,
                maximum_rto: fixed,
                ..base
            },
            None => base,
        }
    }
}

/// No congestion window.
#[derive(Clone, Copy, Debug)]
struct Unlimited;

/// More than any window, and far from overflow.
const ENOUGH: u64 = 1 << 38;

impl CongestionControl for Unlimited {
    fn on_established(&mut self, window: &mut Window, _rtt: Option<Span>, _now: Time) {
        window.congestion_window = ENOUGH;
    }

    fn on_ack(&mut self, window: &mut Window, _acknowledged: u64, _sample: &AckSample) {
        window.congestion_window = ENOUGH;
    }

    fn on_congestion(&mut self, window: &mut Window, _: &CongestionSample) {
        window.congestion_window = ENOUGH;
    }

    fn loss_window(&self, _window: &Window) -> u64 {
        ENOUGH
    }

    fn owns_slow_start(&self) -> bool {
        true
    }
}
