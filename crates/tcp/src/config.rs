//! What a connection can be told to do differently.

mod words;

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use bentpipe_types::{BitRate, IpVersion, Span};

pub use words::{
    AvoidanceKind, EcnMode, IdleRestart, NewRenoKind, PathMtuDiscovery, RtoFrom, RtoRule,
};

use crate::congestion::{BandwidthFilter, HyblaSettings, WestwoodSettings};
use crate::{CongestionControlKind, Habits, PacingKind, RecoveryKind, SlowStartKind};

/// The settings of a connection. The default is today's Linux, as far as it is modelled.
#[derive(Clone, Debug)]
pub struct Config {
    /// Payload of a full segment, in bytes, when the peer agrees to everything asked for here.
    ///
    /// The MSS option announces this plus the 12 bytes that timestamps take in every segment, if
    /// they are on (RFC 6691: the option counts no options). A segment then carries at most the
    /// smaller of both ends' announced MSS less the options in it: `mss` when timestamps are in
    /// use, and 12 bytes more when the peer refuses them, so that full packets keep their length.
    pub mss: u16,
    /// Initial congestion window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow-start threshold, in bytes. `None`: arbitrarily high (RFC 5681 section 3.1).
    pub initial_slow_start_threshold: Option<u64>,
    /// Bytes written and not yet acknowledged that the connection holds.
    pub send_buffer: u64,
    /// Bytes of receive buffer: the advertised window of an idle connection.
    pub receive_buffer: u64,
    /// The most of it that is offered at first; see
    /// [`Connection::set_window_limit`](crate::Connection::set_window_limit). `None`: all.
    pub first_window: Option<u64>,
    /// Let the send buffer grow as Linux does, instead of `send_buffer`: `tcp_wmem`.
    pub send_sizes: Option<BufferSizes>,
    /// Where so many bytes are written and never sent, such a send buffer takes no more (Linux's `tcp_notsent_lowat`); `None`: any.
    pub unsent_low_water: Option<NonZeroU32>,
    /// Segments that leave as one buffer, where a send buffer counts them, at the least (Linux's `tcp_min_tso_segs`).
    pub shortest_burst: u16,
    /// Let the receive buffer grow as Linux does, instead of `receive_buffer`: `tcp_rmem`.
    pub receive_sizes: Option<BufferSizes>,
    /// Of a receive buffer that is `locked`: no wider window is offered before a full segment has come, and windows are
    /// scaled for it (Linux's `window_clamp`, as `ip route ... window` sets it). `None`: what is taken for payload at
    /// first, half of the buffer.
    pub window_clamp: Option<u64>,
    /// The window scale announced, at least: Linux announces what its buffer could grow to. Less
    /// where one unit of it is more than half the receive buffer.
    pub window_shift: u8,
    /// Offer the window scale option (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Offer the timestamps option (RFC 7323 section 3).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// The longest an acknowledgment waits for a second segment; at most 500 ms by RFC 9293
    /// section 3.8.6.3. `None`: every segment is acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// Which acknowledgments are not delayed.
    pub quick_acks: QuickAcks,
    /// Hold a small segment back while an earlier small one is unacknowledged (Nagle's algorithm
    /// with Minshall's modification, as Linux has it).
    pub nagle: bool,
    /// What an application writes in one call blocks it until all of that is taken; in Linux such a call does not ask
    /// again whether the application is what limits the sender.
    pub blocking_writes: bool,
    /// Use TCP Fast Open (RFC 7413): what a host is told, who keeps the cookies. A connection is given it with its
    /// [opening](crate::ActiveFastOpen).
    pub fast_open: bool,
    /// Retransmission timeout before the first round-trip sample (RFC 6298 section 2.1).
    pub initial_rto: Span,
    /// Floor of the retransmission timeout; what it is the floor of, `rto_rule` says.
    pub minimum_rto: Span,
    /// Ceiling of the retransmission timeout, backed off or not.
    pub maximum_rto: Span,
    /// How the retransmission timeout follows from the round-trip samples.
    pub rto_rule: RtoRule,
    /// What a retransmission timeout is counted from.
    pub rto_from: RtoFrom,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// Retransmissions of one segment by timeout before the connection is given up. Linux has 15.
    pub maximum_retransmissions: u32,
    /// How long data may stay unacknowledged before the connection is given up, however often it was
    /// sent again (RFC 5482). `None`: `maximum_retransmissions` says.
    pub user_timeout: Option<Span>,
    /// What an idle connection does to see whether its peer is still there (RFC 9293 section 3.8.4).
    /// `None`, which is to be the default: nothing.
    pub keep_alive: Option<KeepAlive>,
    /// How the connection learns how long packets may be.
    pub path_mtu_discovery: PathMtuDiscovery,
    /// Payload of a full segment where a search for the path's MTU begins, in bytes (Linux's
    /// tcp_base_mss; RFC 4821 section 7.2).
    pub base_mss: u16,
    /// The MSS that our SYN announces, where it isn't the one that goes with `mss`: no more than what the
    /// peer may send depends on it.
    pub announced_mss: Option<u16>,
    /// The longest IP packet that the path is known to take from the beginning, in bytes.
    pub path_mtu: Option<u32>,
    /// Retransmissions of the SYN, or of the SYN+ACK, before the connection is given up.
    pub maximum_syn_retransmissions: u32,
    /// Send a new segment for each of the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// The window rule.
    pub congestion_control: CongestionControlKind,
    /// How Hybla is set up, and the growth of Enhanced Hybla.
    pub hybla: HyblaSettings,
    /// How Westwood+ is set up.
    pub westwood: WestwoodSettings,
    /// What Enhanced Hybla takes for the capacity of the bottleneck, which has to be known. `None`: what
    /// the path is seen to deliver is all that it can.
    pub channel_capacity: Option<BitRate>,
    /// What Enhanced Hybla makes of its bandwidth samples.
    pub bandwidth_filter: BandwidthFilter,
    /// Pacing.
    pub pacing: PacingKind,
    /// Loss recovery.
    pub recovery: RecoveryKind,
    /// With SACK: each acknowledgment of fast recovery sends in proportion to what it says has
    /// arrived (RFC 9937). Off: the window falls at once, as in RFC 6675.
    pub proportional_rate_reduction: bool,
    /// With SACK: time tells what is lost (RFC 8985), retransmissions too. Off: the number of
    /// segments SACKed above tells, as in RFC 6675.
    pub rack: bool,
    /// With RACK: a probe when acknowledgments stop coming (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// With SACK or FACK: after a timeout, new data first, to see whether it was needless (RFC
    /// 5682).
    pub f_rto: bool,
    /// With SACK or FACK: take the window's reduction back when timestamps (RFC 3522) or D-SACK (RFC
    /// 3708) show that nothing was lost.
    pub undo: bool,
    /// Which partial acknowledgments restart the retransmission timer (RFC 6582 section 4).
    pub newreno: NewRenoKind,
    /// Slow start.
    pub slow_start: SlowStartKind,
    /// What counts as progress in congestion avoidance.
    pub avoidance: AvoidanceKind,
    /// Let the congestion window grow only when it is what limits the sender, as Linux does (and
    /// RFC 7661 recommends). Off: every acknowledgment of new data grows it, as in ns-2.
    pub window_validation: bool,
    /// What becomes of the congestion window after an idle time.
    pub idle_restart: IdleRestart,
    /// How long a closed connection stays in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Span,
    /// Version of the IP header in front of every segment.
    pub ip_version: IpVersion,
    /// Habits that no other setting is about.
    pub habits: Habits,
    /// What nearly every segment is, is recognised by its header and taken a shorter way, with the same
    /// outcome (Van Jacobson's header prediction); and what can have no outcome is left out. For tests,
    /// which compare: nothing else turns it off.
    pub header_prediction: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1448,
            initial_window: 10,
            initial_slow_start_threshold: None,
            send_buffer: 6 << 20,
            receive_buffer: 6 << 20,
            first_window: None,
            send_sizes: None,
            unsent_low_water: None,
            shortest_burst: 2,
            receive_sizes: None,
            window_clamp: None,
            window_shift: 0,
            window_scaling: true,
            timestamps: true,
            sack: true,
            delayed_ack: Some(Span::from_millis(40)),
            quick_acks: QuickAcks::First(0),
            nagle: true,
            blocking_writes: false,
            fast_open: false,
            initial_rto: Span::from_secs(1),
            minimum_rto: Span::from_millis(200),
            maximum_rto: Span::from_secs(120),
            rto_rule: RtoRule::Linux,
            rto_from: RtoFrom::Acknowledgment,
            ecn: EcnMode::Accept,
            maximum_retransmissions: 15,
            user_timeout: None,
            keep_alive: None,
            path_mtu_discovery: PathMtuDiscovery::Icmp,
            base_mss: 1024,
            announced_mss: None,
            path_mtu: None,
            maximum_syn_retransmissions: 6,
            limited_transmit: true,
            congestion_control: CongestionControlKind::default(),
            hybla: HyblaSettings::default(),
            westwood: WestwoodSettings::default(),
            channel_capacity: None,
            bandwidth_filter: BandwidthFilter::LastSample,
            pacing: PacingKind::AsRule,
            recovery: RecoveryKind::Sack,
            proportional_rate_reduction: true,
            rack: true,
            tail_loss_probe: true,
            f_rto: true,
            undo: true,
            newreno: NewRenoKind::Impatient,
            // Linux's CUBIC has HyStart, which HyStart++ grew out of.
            slow_start: SlowStartKind::HyStart {
                limit_segments: HYSTART_LIMIT,
            },
            avoidance: AvoidanceKind::ByteCounting,
            window_validation: true,
            idle_restart: IdleRestart::Decay,
            time_wait: Span::from_secs(60),
            ip_version: IpVersion::V4,
            habits: Habits::RFC,
            header_prediction: true,
        }
    }
}

impl Config {
    /// The default, which all share.
    pub(crate) fn usual() -> Arc<Self> {
        static USUAL: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);
        Arc::clone(&USUAL)
    }

    /// The most bytes that wait to be read, or are out of order, at once.
    #[must_use]
    pub fn most_received(&self) -> u64 {
        // No window is wider than what 16 bits and a shift of 14 can say (RFC 7323 section 2.3).
        let widest = u64::from(u16::MAX) << 14;
        (self.receive_sizes)
            .map_or(self.receive_buffer, |sizes| sizes.limit())
            .min(widest)
    }

    /// The most bytes for which there has to be room: a segment that ends beyond the window may be taken whole.
    #[must_use]
    pub fn most_kept(&self) -> u64 {
        let beyond = if self.habits.takes_whole_segments {
            u64::from(u16::MAX)
        } else {
            0
        };
        self.most_received() + beyond
    }

    /// Linux's choices, also where the default is an RFC's, or simpler.
    #[must_use]
    pub fn linux() -> Self {
        Self {
            send_sizes: Some(BufferSizes::SEND),
            receive_sizes: Some(BufferSizes::RECEIVE),
            quick_acks: QuickAcks::Linux,
            slow_start: SlowStartKind::LinuxHyStart,
            newreno: NewRenoKind::SlowButSteady,
            habits: Habits::LINUX,
            ..Self::default()
        }
    }
}

/// The sizes of a buffer that grows, in bytes of memory: Linux's tcp_rmem and tcp_wmem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferSizes {
    /// What is left of it when the machine has little memory. Here it always has enough.
    pub least: u64,
    /// What a connection begins with.
    pub initial: u64,
    /// What it grows to.
    pub most: u64,
    /// The application has set it (SO_RCVBUF): it does not grow, and no wider window is offered than it has.
    pub locked: bool,
}

impl BufferSizes {
    /// A buffer that the application has set.
    #[must_use]
    pub const fn locked(bytes: u64) -> Self {
        Self {
            least: bytes,
            initial: bytes,
            most: bytes,
            locked: true,
        }
    }

    /// The same, where others grow as these do: how the window opens goes by that all the same (__tcp_grow_window).
    #[must_use]
    pub const fn locked_at(self, bytes: u64) -> Self {
        Self {
            initial: bytes,
            locked: true,
            ..self
        }
    }

    /// What it can grow to.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        if self.locked || self.most < self.initial {
            self.initial
        } else {
            self.most
        }
    }

    /// tcp_rmem of Linux 6.18, on a machine with 4 GiB or more.
    pub const RECEIVE: Self = Self {
        least: 4096,
        initial: 131_072,
        most: 32 << 20,
        locked: false,
    };
    /// tcp_wmem of the same.
    pub const SEND: Self = Self {
        least: 4096,
        initial: 16_384,
        most: 4 << 20,
        locked: false,
    };
}

/// Which acknowledgments are not delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickAcks {
    /// The first so many of a connection.
    First(u32),
    /// As in Linux: while the window opens, and 16 at the start, after a silence of the sender's, and
    /// after what has come twice; others are held back, too, where many would say the same (with SACK,
    /// after the third duplicate).
    Linux,
}

/// RFC 9406 section 4.3: L, for a sender that does not pace.
pub const HYSTART_LIMIT: u32 = 8;

/// Keep-alive (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// The peer is probed when it has said nothing for so long: two hours or more, unless somebody says
    /// otherwise.
    pub idle: Span,
    /// Between one probe and the next.
    pub interval: Span,
    /// After so many without an answer the connection is given up.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Linux's.
    fn default() -> Self {
        Self {
            idle: Span::from_secs(7200),
            interval: Span::from_secs(75),
            probes: 9,
        }
    }
}
