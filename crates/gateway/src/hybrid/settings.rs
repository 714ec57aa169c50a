//! Settings of a hybrid gateway.

use bentpipe_tcp::congestion::{
    AckSample, CongestionControl, CongestionSample, CustomFactory, Window,
};
use bentpipe_tcp::{Config, CongestionControlKind, IdleRestart, PacingKind, RecoveryKind, RtoRule};
use bentpipe_types::{IpVersion, Port, Processing, Span, Time};

/// Settings of a hybrid gateway. The default is the standard set of gaid1998 (its table 3), with
/// the limits that protect its users.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Ports that lead to the hybrid hosts.
    pub facing: Vec<Port>,
    /// Longest packet that reaches the hosts whole, in bytes; `None` for no limit. Servers are told
    /// of it in the SYN (RFC 9293 section 3.7.1), since stored segments are already acknowledged
    /// and too late for an ICMP error.
    pub facing_mtu: Option<u32>,
    /// Window offered to a server, in bytes. Without `store`, also the limit of the data stored of
    /// a connection.
    pub receive_buffer: u64,
    /// Limit of the data stored of one connection, in bytes: sent to the host and not acknowledged,
    /// or waiting. `None` for `receive_buffer`; the window then shrinks as the buffer fills.
    pub store: Option<u64>,
    /// Limit of the data stored of all connections, in bytes.
    pub memory: u64,
    /// Limit of tracked connections. Further ones are forwarded unchanged.
    pub connections: usize,
    /// Longest delay of an ACK to a server, while no other packet is sent there
    /// (gaid1998 section 6.3.5).
    pub ack_timeout: Span,
    /// Number of full segments that are acknowledged at once; `None` for the timeout alone, as in
    /// the paper.
    pub ack_every: Option<u32>,
    /// How far beyond the host's window data is sent.
    pub anticipation: Anticipation,
    /// How unacknowledged data is retransmitted.
    pub recovery: Recovery,
    /// Retransmission timeout. `None` for an adaptive one (RFC 6298), of at least 200 ms with
    /// [`Recovery::Timer`] and as the TCP settings say otherwise.
    ///
    /// With a congestion window it is only the minimum of the adaptive timeout. A congestion
    /// control takes each expiry as a sign of congestion; with a timeout shorter than the round
    /// trip, the window would never open.
    pub retransmission_timeout: Option<Span>,
    /// Time without progress after which a host is given up, and the server is sent a RST.
    pub give_up: Span,
    /// Time without packets after which a connection is removed (RFC 5382 section 5, REQ-5: at
    /// least 2 hours and 4 minutes).
    pub idle: Span,
    /// Time for which a closed connection is kept, for late packets.
    pub linger: Span,
    /// Processing time per packet; `None` for no time.
    pub processing: Option<Processing>,
}

/// How far beyond the host's advertised window the gateway sends. A zero window is always obeyed
/// (gaid1998 section 4.2).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Anticipation {
    /// Without limit: by the time the data arrives, the window will have moved on
    /// (gaid1998 section 3).
    #[default]
    Unlimited,
    /// Not at all, with one exception: a segment larger than the whole window is sent if nothing is
    /// in flight.
    Strict,
    /// Up to this multiple of the window.
    Factor(f64),
}

/// How unacknowledged data is retransmitted.
#[derive(Clone, Debug, Default)]
pub enum Recovery {
    /// As in the paper: the first unacknowledged segment, when the timer expires. There is no
    /// congestion window.
    #[default]
    Timer,
    /// As a TCP does: with loss recovery, congestion control and pacing.
    Tcp {
        /// TCP settings. Only those of a sender have an effect.
        config: Box<Config>,
        /// Whether there is a congestion window. Otherwise only the host's window limits the flight
        /// size.
        congestion_window: bool,
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
            // RFC 9293 section 3.8.3: R2 is at least 100 seconds.
            give_up: Span::from_secs(120),
            idle: Span::from_secs(7440),
            linger: Span::from_secs(60),
            processing: None,
        }
    }
}

/// RFC 7323 section 2.3: largest window, with 16 bits and a shift of 14.
const MAXIMUM_WINDOW: u64 = (u16::MAX as u64) << 14;

impl Settings {
    /// Returns the MSS to announce for a host: at most what reaches it whole, and at least 1.
    /// RFC 9293 section 3.7.1 allows no MSS of 0.
    pub(super) fn mss(&self, announced: u16, version: IpVersion) -> u16 {
        let most = self.facing_mtu.map(|mtu| version.mss_within(mtu).max(1));
        most.map_or(announced, |most| announced.min(most))
    }

    /// Largest window, in bytes.
    pub(super) fn window(&self) -> u64 {
        self.receive_buffer.clamp(1, MAXIMUM_WINDOW)
    }

    /// Limit of the data stored of one connection, in bytes.
    pub(super) fn store(&self) -> u64 {
        self.store.unwrap_or(self.receive_buffer).max(1)
    }

    /// Limit of the segments stored of one connection. Many short ones cost memory as well.
    pub(super) fn segments(&self) -> usize {
        usize::try_from(self.store() / 64)
            .unwrap_or(usize::MAX)
            .clamp(64, 1 << 20)
    }

    /// Returns the window scale to announce to a server, for a host that offers `shift`. It is the
    /// host's own shift, if that is large enough for the window and its unit is small compared with
    /// the buffers; otherwise the smallest one that is large enough.
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

    /// Returns true if losses are detected by the timer alone.
    pub(super) fn is_timer_only(&self) -> bool {
        matches!(self.recovery, Recovery::Timer)
    }

    /// Returns the TCP settings of the sender towards a host.
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
                congestion_window: true,
            } => config.as_ref().clone(),
            Recovery::Tcp {
                config,
                congestion_window: false,
            } => Config {
                congestion_control: unlimited(),
                // Both need a congestion window to work on.
                proportional_rate_reduction: false,
                idle_restart: IdleRestart::Off,
                ..config.as_ref().clone()
            },
        };
        let base = Config {
            // A tail loss probe is a new segment or the last one again. Here the timers decide what
            // is sent.
            tail_loss_probe: false,
            ..base
        };
        let windowed = matches!(
            self.recovery,
            Recovery::Tcp {
                congestion_window: true,
                ..
            }
        );
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

/// A congestion control without limit.
#[derive(Clone, Copy, Debug)]
struct Unlimited;

/// Larger than any window, and far from an overflow.
const UNLIMITED_WINDOW: u64 = 1 << 38;

impl CongestionControl for Unlimited {
    fn on_established(&mut self, window: &mut Window, _rtt: Option<Span>, _now: Time) {
        window.congestion_window = UNLIMITED_WINDOW;
    }

    fn on_ack(&mut self, window: &mut Window, _acknowledged: u64, _sample: &AckSample) {
        window.congestion_window = UNLIMITED_WINDOW;
    }

    fn on_congestion(&mut self, window: &mut Window, _: &CongestionSample) {
        window.congestion_window = UNLIMITED_WINDOW;
    }

    fn loss_window(&self, _window: &Window) -> u64 {
        UNLIMITED_WINDOW
    }

    fn owns_slow_start(&self) -> bool {
        true
    }
}
