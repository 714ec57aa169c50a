//! Settings of a connection.

mod choices;

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use bentpipe_types::{BitRate, IpVersion, Span, Time};

pub use choices::{
    EcnMode, IdleRestart, NewRenoKind, PathMtuDiscovery, RecoveryKind, RtoFrom, RtoRule,
};

use crate::congestion::{
    AvoidanceKind, BandwidthFilter, CongestionControlKind, CongestionSettings, ExternalWindow,
    HyblaSettings, SavedPath, WestwoodSettings, careful_resume,
};
use crate::{HostClock, LinuxQuirks, PacingKind, SlowStartKind};

/// The settings of a connection. The default is a simplified Linux.
#[derive(Clone, Debug)]
pub struct Config {
    /// Payload of a full segment, in bytes, if the peer agrees to all options requested here.
    ///
    /// The announced MSS is this plus the 12 bytes that timestamps take in every segment, if they
    /// are on (RFC 6691: the MSS does not count options). A segment carries at most the smaller of
    /// both ends' announced MSS less its options. With timestamps this is `mss`, and 12 bytes more
    /// if the peer refuses them, so that full packets keep their length.
    pub mss: u16,
    /// Initial congestion window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow-start threshold, in bytes. `None`: arbitrarily high (RFC 5681 section 3.1).
    pub initial_slow_start_threshold: Option<u64>,
    /// Size of the send buffer: bytes written and not yet acknowledged.
    pub send_buffer: u64,
    /// Size of the receive buffer, in bytes: the advertised window of an idle connection.
    pub receive_buffer: u64,
    /// Limit of the window advertised at first; see
    /// [`Connection::set_window_limit`](crate::Connection::set_window_limit). `None`: no limit.
    pub first_window: Option<u64>,
    /// Autotuning of the send buffer as in Linux (`tcp_wmem`), in place of `send_buffer`.
    pub send_sizes: Option<BufferSizes>,
    /// Number of unsent bytes above which such a send buffer accepts no writes (Linux's
    /// `tcp_notsent_lowat`). `None`: no limit.
    pub unsent_low_water: Option<NonZeroU32>,
    /// Minimum number of segments per burst (Linux's `tcp_min_tso_segs`), with `send_sizes`.
    pub shortest_burst: u16,
    /// Autotuning of the receive buffer as in Linux (`tcp_rmem`), in place of `receive_buffer`.
    pub receive_sizes: Option<BufferSizes>,
    /// For a `locked` receive buffer: the maximum window before a full segment has arrived, and the
    /// basis of the window scale. As Linux's `window_clamp`, set by `ip route ... window`. `None`:
    /// half of the buffer, the part initially assumed to hold payload.
    pub window_clamp: Option<u64>,
    /// Minimum window scale to announce: Linux announces one for the maximum of its buffer. Reduced
    /// if one unit would exceed half of the receive buffer.
    pub window_shift: u8,
    /// Offers the window scale option (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Window scale to announce, at most 14. `None`: the smallest that covers the receive buffer.
    pub window_scale: Option<u8>,
    /// Offers the timestamps option (RFC 7323 section 3).
    pub timestamps: bool,
    /// Offers SACK (RFC 2018).
    pub sack: bool,
    /// Maximum delay of an acknowledgment while waiting for a second segment; at most 500 ms by
    /// RFC 9293 section 3.8.6.3. `None`: every segment is acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// Number of full segments that are acknowledged together, at least 2 (RFC 5681 section 4.2
    /// allows at most 2).
    pub ack_every: u32,
    /// Acknowledgments that are not delayed.
    pub quick_acks: QuickAcks,
    /// Nagle's algorithm (RFC 9293 section 3.7.4) with Minshall's modification, as in Linux: holds
    /// a small segment back while an earlier small one is unacknowledged.
    pub nagle: bool,
    /// The application writes with blocking calls. In Linux, such a call does not check again for
    /// an application limit.
    pub blocking_writes: bool,
    /// Uses TCP Fast Open (RFC 7413). For the host, which keeps the cookies; a connection receives
    /// them in [`ActiveFastOpen`](crate::ActiveFastOpen).
    pub fast_open: bool,
    /// Retransmission timeout before the first round-trip sample (RFC 6298 section 2.1).
    pub initial_rto: Span,
    /// Minimum of the retransmission timeout, or of its variance term, depending on `rto_rule`.
    pub minimum_rto: Span,
    /// Maximum of the retransmission timeout, with or without backoff.
    pub maximum_rto: Span,
    /// Computation of the retransmission timeout from round-trip samples.
    pub rto_rule: RtoRule,
    /// Start of the retransmission timer.
    pub rto_from: RtoFrom,
    /// Granularity of the clock that measures round trips and runs the retransmission timer (RFC
    /// 6298 section 4), with `RtoRule::Rfc6298`, in multiples of [`GRANULE`](crate::GRANULE), 255
    /// at most. `None`: exact times, and G of 1 ms.
    pub timer_granularity: Option<Span>,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnMode,
    /// Maximum number of timeouts of one segment before the connection is closed
    /// (RFC 9293 section 3.8.3: R2). Linux has 15.
    pub maximum_retransmissions: u32,
    /// Maximum time that data may stay unacknowledged before the connection is closed, regardless
    /// of the number of retransmissions (RFC 5482). `None`: `maximum_retransmissions` applies.
    pub user_timeout: Option<Span>,
    /// Keep-alive probes (RFC 9293 section 3.8.4). `None`, the default that the RFC requires: no
    /// probes.
    pub keep_alive: Option<KeepAlive>,
    /// Path MTU discovery (RFC 9293 section 3.7.2).
    pub path_mtu_discovery: PathMtuDiscovery,
    /// Payload of a full segment at the start of a path MTU search, in bytes (Linux's tcp_base_mss;
    /// RFC 4821 section 7.2).
    pub base_mss: u16,
    /// The MSS announced in our SYN, if different from the one for `mss`. It only affects the
    /// peer's segments.
    pub announced_mss: Option<u16>,
    /// The initial path MTU: the longest IP packet that passes, in bytes.
    pub path_mtu: Option<u32>,
    /// Maximum number of retransmissions of the SYN or SYN+ACK (RFC 9293 section 3.8.3: R2 for a
    /// SYN).
    pub maximum_syn_retransmissions: u32,
    /// Limited transmit: a new segment for each of the first two duplicate acknowledgments
    /// (RFC 3042).
    pub limited_transmit: bool,
    /// The window rule.
    pub congestion_control: CongestionControlKind,
    /// Settings of Hybla and Enhanced Hybla.
    pub hybla: HyblaSettings,
    /// Settings of Westwood+ and of Westwood of 2001.
    pub westwood: WestwoodSettings,
    /// The bottleneck capacity that Enhanced Hybla assumes. `None`: it is estimated from the
    /// delivery rate.
    pub channel_capacity: Option<BitRate>,
    /// Filter for the bandwidth samples of Westwood+ and Enhanced Hybla. `None`: the rule's own.
    pub bandwidth_filter: Option<BandwidthFilter>,
    /// Pacing.
    pub pacing: PacingKind,
    /// Loss recovery.
    pub recovery: RecoveryKind,
    /// With SACK: proportional rate reduction in fast recovery (RFC 9937; RFC 8985 section 9.3
    /// recommends it with RACK). Off: the window falls at once, as in RFC 6675.
    pub proportional_rate_reduction: bool,
    /// With SACK: loss detection by time (RFC 8985), also of retransmissions. Off: by the number of
    /// segments SACKed above, as in RFC 6675.
    pub rack: bool,
    /// With RACK: tail loss probes (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// With SACK or FACK: F-RTO, which sends new data after a timeout to detect whether it was
    /// spurious (RFC 5682).
    pub f_rto: bool,
    /// With SACK or FACK: undoes a window reduction when timestamps (RFC 3522) or D-SACKs
    /// (RFC 3708) show that no data was lost.
    pub undo: bool,
    /// The partial acknowledgments that restart the retransmission timer (RFC 6582 section 4).
    pub newreno: NewRenoKind,
    /// Slow start. RFC 9438 section 4.10: HyStart++ is the usual one for CUBIC.
    pub slow_start: SlowStartKind,
    /// Unit of progress in congestion avoidance.
    pub avoidance: AvoidanceKind,
    /// Window validation: the congestion window only grows while it limits the sender, as in Linux
    /// (recommended by RFC 7661). Off: every acknowledgment of new data grows it, as in ns-2.
    pub window_validation: bool,
    /// Congestion window after an idle period.
    pub idle_restart: IdleRestart,
    /// Duration of TIME-WAIT: twice the maximum segment lifetime (RFC 9293 section 3.6.1).
    pub time_wait: Span,
    /// Version of the IP header of every segment.
    pub ip_version: IpVersion,
    /// Linux behaviours without settings of their own.
    pub linux_quirks: LinuxQuirks,
    /// Behaviour of ns-2's TCP-Linux (Wei and Cao 2006) without settings of its own: every
    /// duplicate acknowledgment gives a round-trip sample by its echo and restarts the
    /// retransmission timer, the end of recovery clears the scoreboard, and the window grows by a
    /// segment when it equals the slow-start threshold.
    pub tcp_linux: bool,
    /// The host's clock.
    pub clock: HostClock,
    /// Uses the fast paths for common segments (Van Jacobson's header prediction) and omits work
    /// without effect. The outcome is the same. Turned off only by tests, which compare both.
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
            window_scale: None,
            timestamps: true,
            sack: true,
            delayed_ack: Some(Span::from_millis(40)),
            ack_every: 2,
            quick_acks: QuickAcks::First(0),
            nagle: true,
            blocking_writes: false,
            fast_open: false,
            initial_rto: Span::from_secs(1),
            minimum_rto: Span::from_millis(200),
            maximum_rto: Span::from_secs(120),
            rto_rule: RtoRule::Linux,
            rto_from: RtoFrom::Acknowledgment,
            timer_granularity: None,
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
            bandwidth_filter: None,
            pacing: PacingKind::AsRule,
            recovery: RecoveryKind::Sack,
            proportional_rate_reduction: true,
            rack: true,
            tail_loss_probe: true,
            f_rto: true,
            undo: true,
            newreno: NewRenoKind::Impatient,
            // Linux's CUBIC has HyStart, the predecessor of HyStart++.
            slow_start: SlowStartKind::HyStart {
                limit_segments: HYSTART_LIMIT,
            },
            avoidance: AvoidanceKind::ByteCounting,
            window_validation: true,
            idle_restart: IdleRestart::Decay,
            time_wait: Span::from_secs(60),
            ip_version: IpVersion::V4,
            linux_quirks: LinuxQuirks::NONE,
            tcp_linux: false,
            clock: HostClock::default(),
            header_prediction: true,
        }
    }
}

impl Config {
    /// Returns the value of the timestamp clock (RFC 7323 section 4.1).
    #[must_use]
    pub fn timestamp(&self, now: Time) -> u32 {
        self.clock.timestamp(now)
    }

    /// The default, in one shared instance.
    pub(crate) fn shared_default() -> Arc<Self> {
        static USUAL: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);
        Arc::clone(&USUAL)
    }

    /// Returns the window rule for another transport protocol, with packets of `segment` bytes.
    #[must_use]
    pub fn external_window(&self, segment: u32, initial_window: u64, seed: u64) -> ExternalWindow {
        let settings = self.congestion_settings();
        let kind = &self.congestion_control;
        ExternalWindow::new(kind, &settings, segment, initial_window, seed)
    }

    /// Returns the window rule as one that starts from a saved path (RFC 9959). BBR, which has its
    /// own start, and user-defined rules are returned unchanged.
    #[must_use]
    pub fn resuming(&self, saved: SavedPath) -> CongestionControlKind {
        let kind = self.congestion_control.clone();
        careful_resume(kind, self.congestion_settings(), saved)
    }

    /// Returns the settings of the window rule.
    pub(crate) fn congestion_settings(&self) -> CongestionSettings {
        CongestionSettings {
            avoidance: self.avoidance,
            slow_start: self.slow_start,
            initial_slow_start_threshold: self.initial_slow_start_threshold,
            tcp_linux: self.tcp_linux,
            integer_cubic: self.linux_quirks.window.integer_cubic,
            clock: self.clock,
            hybla: self.hybla,
            westwood: self.westwood,
            channel_capacity: self.channel_capacity,
            bandwidth_filter: self.bandwidth_filter,
        }
    }

    /// Maximum number of bytes that are out of order or wait to be read.
    #[must_use]
    pub fn maximum_received(&self) -> u64 {
        // RFC 7323 section 2.3: the largest window has 16 bits and a shift of 14.
        let widest = u64::from(u16::MAX) << 14;
        (self.receive_sizes)
            .map_or(self.receive_buffer, |sizes| sizes.limit())
            .min(widest)
    }

    /// Maximum number of bytes to store: a segment that ends beyond the window may be accepted as a
    /// whole.
    #[must_use]
    pub fn maximum_stored(&self) -> u64 {
        let beyond = if self.linux_quirks.acceptance.accepts_beyond_window {
            u64::from(u16::MAX)
        } else {
            0
        };
        self.maximum_received() + beyond
    }

    /// Linux's behaviour, also where the default follows an RFC or is simpler.
    #[must_use]
    pub fn linux() -> Self {
        Self {
            send_sizes: Some(BufferSizes::SEND),
            receive_sizes: Some(BufferSizes::RECEIVE),
            quick_acks: QuickAcks::Linux,
            slow_start: SlowStartKind::LinuxHyStart,
            newreno: NewRenoKind::SlowButSteady,
            linux_quirks: LinuxQuirks::ALL,
            ..Self::default()
        }
    }
}

/// Sizes of an autotuned buffer, in bytes of memory: Linux's tcp_rmem and tcp_wmem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferSizes {
    /// Size under memory pressure, which does not occur here.
    pub least: u64,
    /// Initial size.
    pub initial: u64,
    /// Maximum size.
    pub most: u64,
    /// Set by the application (SO_RCVBUF): no autotuning, and the window is limited by the size.
    pub locked: bool,
}

impl BufferSizes {
    /// Sizes of a buffer that the application has set.
    #[must_use]
    pub const fn locked(bytes: u64) -> Self {
        Self {
            least: bytes,
            initial: bytes,
            most: bytes,
            locked: true,
        }
    }

    /// Sizes of a buffer that the application has set, where these are the system's sizes: the
    /// growth of the window still depends on them (__tcp_grow_window).
    #[must_use]
    pub const fn locked_at(self, bytes: u64) -> Self {
        Self {
            initial: bytes,
            locked: true,
            ..self
        }
    }

    /// Maximum size that the buffer can reach.
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
    /// tcp_wmem of Linux 6.18, on a machine with 4 GiB or more.
    pub const SEND: Self = Self {
        least: 4096,
        initial: 16_384,
        most: 4 << 20,
        locked: false,
    };
}

/// Acknowledgments that are not delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickAcks {
    /// The first acknowledgments of a connection, this many.
    First(u32),
    /// As in Linux: up to 16 at the start, while the window opens, after an idle period of the
    /// sender, and after duplicate data. With SACK, acknowledgments after the third duplicate are
    /// compressed.
    Linux,
}

/// RFC 9406 section 4.3: L, for a sender that does not pace.
pub const HYSTART_LIMIT: u32 = 8;

/// Keep-alive settings (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time after which the peer is probed: two hours or more by default.
    pub idle: Span,
    /// Interval between probes.
    pub interval: Span,
    /// Number of unanswered probes after which the connection is closed.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Linux's defaults.
    fn default() -> Self {
        Self {
            idle: Span::from_secs(7200),
            interval: Span::from_secs(75),
            probes: 9,
        }
    }
}
