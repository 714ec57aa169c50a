//! `[hosts.NAME.tcp]`.

use bentpipe_types::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::{
    BandwidthFilter, CongestionControl, CongestionControlName, HyblaFile, WestwoodFile,
};
use super::words::words;
use crate::quantity::{
    Buffer, DelayedAck, Length, Pacing, QuickAcks, Rate, Segments, Size, Window,
};

/// How a host's TCP behaves. The defaults are today's Linux as far as it is modelled; where they
/// differ, the key says so. A paper's settings are spelled out.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpFile {
    /// What the keys beside it, where they are absent, and what no key is about, go by.
    pub profile: Profile,
    /// The window rule: how the congestion window grows and shrinks. Linux: CUBIC.
    pub congestion_control: CongestionControlName,
    /// How "hybla" is set up, and the growth of "enhanced-hybla".
    pub hybla: HyblaFile,
    /// How "westwood" is set up.
    pub westwood: WestwoodFile,
    /// What "enhanced-hybla" takes for the capacity of the bottleneck (vanzara2014: CC). It is
    /// compared with payload: a 100 Mbit/s link carries 96.5 Mbit/s of it. Required there.
    pub channel_capacity: Option<Rate>,
    /// What "enhanced-hybla" makes of its bandwidth samples, one a round trip. The paper does not
    /// say.
    pub bandwidth_filter: BandwidthFilter,
    /// Whether segments are spaced out: "auto", where the window rule asks for it (BBR does); "off";
    /// "on", for other rules at twice the window per round-trip time in slow start and 1.2 times in
    /// congestion avoidance; or a rate that is never exceeded. Payload counts, headers don't.
    pub pacing: Pacing,
    /// How lost segments are found and sent again. Default: "sack", as in Linux; "newreno" where
    /// `sack` is off, and with a peer that has it off.
    pub recovery: Option<Recovery>,
    /// Let each acknowledgment of fast recovery send in proportion to what it says has arrived (RFC
    /// 9937). false: the window falls at once. Default: true with "sack".
    pub proportional_rate_reduction: Option<bool>,
    /// Take for lost what has not arrived although something sent later has (RFC 8985), be it a
    /// retransmission. false: what has three segments' worth of SACKed data above it (RFC 6675); a
    /// retransmission that is lost then takes a timeout. Default: true with "sack".
    pub rack: Option<bool>,
    /// Send a probe when acknowledgments stop coming, so that a lost tail takes no timeout (RFC 8985
    /// section 7). Default: true with `rack`.
    pub tail_loss_probe: Option<bool>,
    /// After a timeout, send new data first, to see whether it was needless (RFC 5682). Default:
    /// true with "sack" and "fack".
    pub f_rto: Option<bool>,
    /// Take the window's reduction back when timestamps (RFC 3522) or duplicate SACKs (RFC 3708)
    /// show that nothing was lost. Default: true with "sack" and "fack".
    pub undo: Option<bool>,
    /// Which segments restart the retransmission timer in NewReno's recovery (RFC 6582 section 4).
    pub newreno: NewReno,
    /// How the congestion window grows in slow start. Default: "hystart++" with "cubic" (RFC 9438
    /// section 4.10; Linux has its predecessor), else "byte-counting".
    pub slow_start: Option<SlowStart>,
    /// Most segments by which one acknowledgment grows the window in slow start, where `slow_start`
    /// is "byte-counting" or "hystart++". RFC 3465 calls it L and asks for at most 2; RFC 9406 for 8,
    /// without pacing. Default: 8 with "hystart++" and no pacing, else no limit, as in Linux.
    pub slow_start_limit: Option<Segments>,
    /// How the congestion window grows in congestion avoidance.
    pub congestion_avoidance: CongestionAvoidance,
    /// Grow the congestion window only while it is what limits the sender, as Linux does and RFC
    /// 7661 recommends. false: every acknowledgment of new data grows it, as in ns-2.
    pub window_validation: bool,
    /// What becomes of the congestion window when nothing was sent for longer than a retransmission
    /// timeout.
    pub idle_restart: IdleRestart,
    /// Congestion window of a new connection (RFC 6928).
    pub initial_window: Segments,
    /// Where slow start first ends. Default: nowhere before the first loss (RFC 5681 section 3.1).
    pub initial_slow_start_threshold: Option<Window>,
    /// Payload of a full segment. The MSS option announces this plus the 12 bytes of the timestamps
    /// that every segment then carries: a full IPv4 packet is 1500 B. Default: "1448 B" with
    /// timestamps, "1460 B" without. From 64 B to 65000 B.
    pub mss: Option<Size>,
    /// Bytes written and not yet acknowledged that a connection holds: together with the receive
    /// buffer, the most that can be in flight. "auto": Linux's, which grows with the congestion window
    /// from `send_memory` initial to maximum, and counts what a segment takes of the machine's memory.
    /// A size: exactly this. Up to 1 GiB. Default: "auto"; in a gateway, what its link needs.
    pub send_buffer: Option<Buffer>,
    /// The window that is advertised. "auto": Linux's, which grows with what the application reads, in
    /// a buffer from `receive_memory` initial to maximum. A size: exactly this, from the start; up to
    /// 1073725440 B, and without `window_scaling` to 65535 B. Default: "auto"; in a gateway, what its
    /// link needs.
    pub receive_buffer: Option<Buffer>,
    /// The memory of an "auto" `send_buffer`: Linux's tcp_wmem. Default: "4 KiB", "16 KiB", "4 MiB".
    pub send_memory: MemoryFile,
    /// The memory of an "auto" `receive_buffer`: Linux's tcp_rmem. Default: "4 KiB", "128 KiB",
    /// "32 MiB".
    pub receive_memory: MemoryFile,
    /// Offer window scaling (RFC 7323 section 2). Without it no window exceeds 65535 B.
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 section 3): 12 bytes of options in every segment when the other
    /// side agrees.
    pub timestamps: bool,
    /// Offer selective acknowledgments (RFC 2018). The receiver then reports what arrived out of
    /// order; whether the sender makes use of it is for `recovery` to say.
    pub sack: bool,
    /// Longest that an acknowledgment waits for a second segment to acknowledge with it, or "off":
    /// every segment is acknowledged at once. Linux adapts it between 40 and 200 ms. At most 500 ms
    /// (RFC 9293 section 3.8.6.3); 200 ms in BSD and in many papers.
    pub delayed_ack: DelayedAck,
    /// Acknowledgments that are not delayed: the first so many of a connection, or "auto": those that
    /// Linux does not delay, at the start, while the window opens, after a silence, after duplicates. It
    /// also holds some back, of those that SACK the same. Default: 0; "auto" with `profile` "linux".
    pub quick_acks: Option<QuickAcks>,
    /// Hold back a small segment while an earlier small one is unacknowledged (RFC 9293 section
    /// 3.7.4, with Minshall's modification as in Linux). Default: true; in a gateway, false.
    pub nagle: Option<bool>,
    /// Send a new segment on each of the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// Retransmission timeout before the round-trip time was ever measured (RFC 6298 section 2.1).
    pub initial_rto: Length,
    /// Floor of the retransmission timeout. RFC 6298 asks for 1 s; Linux has 200 ms.
    pub minimum_rto: Length,
    /// Ceiling of the retransmission timeout, backed off or not.
    pub maximum_rto: Length,
    /// How the retransmission timeout follows from the measured round-trip times.
    pub rto_rule: RtoRule,
    /// What a retransmission timeout is counted from.
    pub rto_from: RtoFrom,
    /// Explicit congestion notification: queues that mark (RED with `ecn = true`) need not drop.
    pub ecn: Ecn,
    /// What an idle connection does to see whether the other end is still there (RFC 9293 section
    /// 3.8.4). Default: nothing.
    pub keep_alive: Option<KeepAliveFile>,
    /// How the connection learns how long packets may be, where a link has an `mtu`.
    pub path_mtu_discovery: PathMtuDiscovery,
    /// Payload of a full segment where a search begins ("black-hole", "search"; Linux: tcp_base_mss).
    /// From 64 B to 65000 B.
    pub base_mss: Size,
    /// Timeouts in a row before a connection is given up (Linux: tcp_retries2).
    pub maximum_retransmissions: u32,
    /// The same while it is being opened (Linux: tcp_syn_retries).
    pub maximum_syn_retransmissions: u32,
    /// How long the side that closes first remembers a connection: twice the maximum segment
    /// lifetime, 4 min in RFC 9293, 60 s in Linux.
    pub time_wait: Length,
}

impl Default for TcpFile {
    fn default() -> Self {
        Self {
            profile: Profile::Rfc,
            congestion_control: CongestionControlName::BuiltIn(CongestionControl::Cubic),
            hybla: HyblaFile::default(),
            westwood: WestwoodFile::default(),
            channel_capacity: None,
            bandwidth_filter: BandwidthFilter::LastSample,
            pacing: Pacing::Auto,
            recovery: None,
            proportional_rate_reduction: None,
            rack: None,
            tail_loss_probe: None,
            f_rto: None,
            undo: None,
            newreno: NewReno::Impatient,
            slow_start: None,
            slow_start_limit: None,
            congestion_avoidance: CongestionAvoidance::ByteCounting,
            window_validation: true,
            idle_restart: IdleRestart::Decay,
            initial_window: Segments(10),
            initial_slow_start_threshold: None,
            mss: None,
            send_buffer: None,
            receive_buffer: None,
            send_memory: MemoryFile::default(),
            receive_memory: MemoryFile::default(),
            window_scaling: true,
            timestamps: true,
            sack: true,
            delayed_ack: DelayedAck::After(Span::from_millis(40)),
            quick_acks: None,
            nagle: None,
            limited_transmit: true,
            initial_rto: Length(Span::from_secs(1)),
            minimum_rto: Length(Span::from_millis(200)),
            maximum_rto: Length(Span::from_secs(120)),
            rto_rule: RtoRule::Linux,
            rto_from: RtoFrom::Acknowledgment,
            ecn: Ecn::Accept,
            keep_alive: None,
            path_mtu_discovery: PathMtuDiscovery::Icmp,
            base_mss: Size(Bytes::new(1024)),
            maximum_retransmissions: 15,
            maximum_syn_retransmissions: 6,
            time_wait: Length(Span::from_secs(60)),
        }
    }
}

/// The memory of a buffer that grows: what a segment takes of it is more than its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryFile {
    /// What a connection keeps where the machine is short of memory. Here it never is: for the sake of
    /// the sysctls' three numbers.
    pub minimum: Option<Size>,
    /// What a connection begins with.
    pub initial: Option<Size>,
    /// What it grows to. Up to 1 GiB.
    pub maximum: Option<Size>,
}

words! {
    /// Whose habits a TCP has.
    Profile {
        /// The RFCs', with Linux's settings as they are listed here.
        Rfc = "rfc",
        /// Linux's also where it does what no RFC asks for: acknowledgments are not delayed at the start
        /// and while the window opens, slow start ends by "hystart" with "cubic", a loss reduces the congestion window
        /// rather than what is in flight, CUBIC grows by 5% a round trip at least before the first
        /// loss, a probe of a closed window carries no data. What Linux's packetdrill scripts make of
        /// it: docs/packetdrill.md.
        Linux = "linux",
    }
}

words! {
    /// A way of finding lost segments and sending them again.
    Recovery {
        /// Fast retransmit and fast recovery, one loss at a time (RFC 5681 section 3.2).
        Reno = "reno",
        /// Stays in recovery until all that was sent before it is acknowledged, one lost segment a
        /// round trip (RFC 6582).
        NewReno = "newreno",
        /// Knows every lost segment by the receiver's SACK blocks (RFC 6675), and with `rack` by time
        /// (RFC 8985).
        Sack = "sack",
        /// FACK: takes for lost all that lies below the highest SACKed segment (Mathis and Mahdavi
        /// 1996).
        Fack = "fack",
    }
}

words! {
    /// What restarts NewReno's retransmission timer (RFC 6582 section 4).
    NewReno {
        /// The first partial acknowledgment only: many losses end in a timeout and slow start.
        Impatient = "impatient",
        /// Each partial acknowledgment: many losses are repaired one a round trip.
        SlowButSteady = "slow-but-steady",
    }
}

words! {
    /// What counts as progress in slow start.
    SlowStart {
        /// Each acknowledgment counts for one segment (RFC 5681 equation 2): with delayed
        /// acknowledgments, half as much again every round trip.
        Standard = "standard",
        /// Acknowledged bytes count (RFC 3465): twice as much every round trip. Linux.
        ByteCounting = "byte-counting",
        /// The same, until round trips get longer; then a quarter of it for five round trips, and
        /// congestion avoidance (HyStart++, RFC 9406). Only the first slow start of a connection
        /// ends so. Linux's CUBIC has HyStart++'s predecessor.
        HyStart = "hystart++",
        /// Bytes count, until round trips get longer by an eighth or a round's acknowledgments take
        /// more than half of one; then congestion avoidance at once (HyStart, Ha and Rhee 2008).
        /// Linux, with "cubic".
        LinuxHyStart = "hystart",
    }
}

words! {
    /// What counts as progress in congestion avoidance.
    CongestionAvoidance {
        /// Each acknowledgment counts for one segment (RFC 5681 equation 3): with delayed
        /// acknowledgments, one segment more every two round trips.
        PerAcknowledgment = "per-acknowledgment",
        /// Acknowledged bytes count (RFC 3465): one segment more every round trip. Linux.
        ByteCounting = "byte-counting",
    }
}

words! {
    /// What becomes of the congestion window after an idle time.
    IdleRestart {
        /// Nothing.
        Off = "off",
        /// It falls to the initial window, if it was larger (RFC 5681 section 4.1).
        RestartWindow = "restart-window",
        /// It is halved for every timeout that passed, down to the initial window (RFC 2861). Linux.
        Decay = "decay",
    }
}

words! {
    /// Explicit congestion notification (RFC 3168).
    Ecn {
        /// Never.
        Off = "off",
        /// Where the other end asks for it: Linux's default.
        Accept = "accept",
        /// The opening end asks for it, too.
        Request = "request",
    }
}

/// Keep-alive: `keep_alive = {}` has Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepAliveFile {
    /// A probe goes out when the other end has said nothing for so long. At least 1 ms.
    pub idle: Length,
    /// Time from one probe to the next. At least 1 ms.
    pub interval: Length,
    /// After so many without an answer the connection is given up. From 1 to 1000.
    pub probes: u32,
}

impl Default for KeepAliveFile {
    fn default() -> Self {
        Self {
            idle: Length(Span::from_secs(7200)),
            interval: Length(Span::from_secs(75)),
            probes: 9,
        }
    }
}

words! {
    /// How a connection learns how long packets may be.
    PathMtuDiscovery {
        /// Not at all. (What is too long for a link is lost, unless it has `fragment`.)
        Off = "off",
        /// Routers say so (RFC 1191): Linux's default.
        Icmp = "icmp",
        /// And where segments go unanswered for long, shorter ones find out (RFC 4821 section 7.7).
        BlackHole = "black-hole",
        /// And a search finds out in any case, from `base_mss` on (RFC 4821).
        Search = "search",
    }
}

words! {
    /// What a retransmission timeout is counted from.
    RtoFrom {
        /// The last acknowledgment of new data (RFC 6298 section 5.3).
        Acknowledgment = "acknowledgment",
        /// When the oldest segment outstanding left, as if each had its own timer (RFC 793).
        OldestSegment = "oldest-segment",
    }
}

words! {
    /// How the retransmission timeout follows from the measured round-trip times.
    RtoRule {
        /// One sample a round trip; the larger of `minimum_rto` and SRTT + 4 RTTVAR (RFC 6298).
        Rfc6298 = "rfc6298",
        /// A sample for every acknowledgment; SRTT plus the larger of `minimum_rto` and the largest
        /// deviation of the last round trips.
        Linux = "linux",
    }
}
