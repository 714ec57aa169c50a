//! `[hosts.NAME.tcp]`.

use bentpipe_tcp::congestion::{BandwidthFilter, WindowRule};
use bentpipe_tcp::{
    AvoidanceKind, BufferSizes, Config, EcnMode, IdleRestart, KeepAlive, NewRenoKind,
    PathMtuDiscovery, RecoveryKind, RtoFrom, RtoRule,
};
use bentpipe_types::{Bytes, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::congestion::{CongestionControlName, HyblaFile, WestwoodFile};
use super::settings::settings;
use crate::quantity::{
    Buffer, DelayedAck, Length, Measured, Pacing, QuickAcks, Rate, Segments, Size, Window,
};

settings! {
    /// How a host's TCP behaves. The defaults are today's Linux as far as it is modelled; where they
    /// differ, the key says so. A paper's settings are spelled out.
    TcpFile of Config {
        /// What the keys beside it, where they are absent, and what no key is about, go by.
        profile: Profile = Profile::Rfc,
        /// The window rule: how the congestion window grows and shrinks. Linux: CUBIC.
        congestion_control: CongestionControlName = CongestionControlName::BuiltIn(WindowRule::Cubic),
        /// How "hybla" is set up, and the growth of "enhanced-hybla".
        hybla: HyblaFile as {} => hybla,
        /// How "westwood" is set up.
        westwood: WestwoodFile as {} => westwood,
        /// What "enhanced-hybla" takes for the capacity of the bottleneck (vanzara2014: CC). It is
        /// compared with payload: a 100 Mbit/s link carries 96.5 Mbit/s of it. Required there.
        channel_capacity: Option<Rate> as "bps" = None,
        /// What "enhanced-hybla" makes of its bandwidth samples, one a round trip. The paper does not
        /// say.
        bandwidth_filter: BandwidthFilter => bandwidth_filter,
        /// Whether segments are spaced out: "auto", where the window rule asks for it (BBR does); "off";
        /// "on", for other rules at twice the window per round-trip time in slow start and 1.2 times in
        /// congestion avoidance; or a rate that is never exceeded. Payload counts, headers don't.
        pacing: Pacing => pacing,
        /// How lost segments are found and sent again. Default: "sack", as in Linux; "newreno" where
        /// `sack` is off, and with a peer that has it off.
        recovery: Option<RecoveryKind> = None,
        /// Let each acknowledgment of fast recovery send in proportion to what it says has arrived (RFC
        /// 9937). false: the window falls at once. Default: true with "sack".
        proportional_rate_reduction: Option<bool> = None,
        /// Take for lost what has not arrived although something sent later has (RFC 8985), be it a
        /// retransmission. false: what has three segments' worth of SACKed data above it (RFC 6675); a
        /// retransmission that is lost then takes a timeout. Default: true with "sack".
        rack: Option<bool> = None,
        /// Send a probe when acknowledgments stop coming, so that a lost tail takes no timeout (RFC 8985
        /// section 7). Default: true with `rack`.
        tail_loss_probe: Option<bool> = None,
        /// After a timeout, send new data first, to see whether it was needless (RFC 5682). Default:
        /// true with "sack" and "fack".
        f_rto: Option<bool> = None,
        /// Take the window's reduction back when timestamps (RFC 3522) or duplicate SACKs (RFC 3708)
        /// show that nothing was lost. Default: true with "sack" and "fack".
        undo: Option<bool> = None,
        /// Which segments restart the retransmission timer in NewReno's recovery (RFC 6582 section 4).
        /// Default: "impatient"; "slow-but-steady" with `profile` "linux".
        newreno: Option<NewRenoKind> = None,
        /// How the congestion window grows in slow start. Default: "hystart++" with "cubic" (RFC 9438
        /// section 4.10; Linux has its predecessor), else "byte-counting".
        slow_start: Option<SlowStart> = None,
        /// Most segments by which one acknowledgment grows the window in slow start, where `slow_start`
        /// is "byte-counting" or "hystart++". RFC 3465 calls it L and asks for at most 2; RFC 9406 for 8,
        /// without pacing. Default: 8 with "hystart++" and no pacing, else no limit, as in Linux.
        slow_start_limit: Option<Segments> as "segments" = None,
        /// How the congestion window grows in congestion avoidance.
        congestion_avoidance: AvoidanceKind => avoidance,
        /// Grow the congestion window only while it is what limits the sender, as Linux does and RFC
        /// 7661 recommends. false: every acknowledgment of new data grows it, as in ns-2.
        window_validation: bool => window_validation,
        /// What becomes of the congestion window when nothing was sent for longer than a retransmission
        /// timeout.
        idle_restart: IdleRestart => idle_restart,
        /// Congestion window of a new connection (RFC 6928).
        initial_window: Segments as "segments" => initial_window,
        /// Where slow start first ends. Default: nowhere before the first loss (RFC 5681 section 3.1).
        initial_slow_start_threshold: Option<Window> as "bytes" = None,
        /// Payload of a full segment. The MSS option announces this plus the 12 bytes of the timestamps
        /// that every segment then carries: a full IPv4 packet is 1500 B. Default: "1448 B" with
        /// timestamps, "1460 B" without. From 64 B to 65000 B.
        mss: Option<Size> as "bytes" = None,
        /// Bytes written and not yet acknowledged that a connection holds: together with the receive
        /// buffer, the most that can be in flight. "auto": Linux's, which grows with the congestion window
        /// from `send_memory` initial to maximum, and counts what a segment takes of the machine's memory.
        /// A size: exactly this. Up to 1 GiB. Default: "auto"; in a gateway, what its link needs.
        send_buffer: Option<Buffer> as "bytes" = None,
        /// The window that is advertised. "auto": Linux's, which grows with what the application reads, in
        /// a buffer from `receive_memory` initial to maximum. A size: exactly this, from the start; up to
        /// 1073725440 B, and without `window_scaling` to 65535 B. With `profile` "linux", in a host: what Linux
        /// advertises of the memory that holds so much in full segments (SO_RCVBUF): four fifths of it at first,
        /// less what waits to be read, and whole segments where the window is not scaled. Default: "auto"; in a
        /// gateway, what its link needs.
        receive_buffer: Option<Buffer> as "bytes" = None,
        /// The memory of an "auto" `send_buffer`: Linux's tcp_wmem. Default: "4 KiB", "16 KiB", "4 MiB".
        send_memory: MemoryFile as "bytes" = MemoryFile::default(),
        /// The memory of an "auto" `receive_buffer`: Linux's tcp_rmem. Default: "4 KiB", "128 KiB",
        /// "32 MiB".
        receive_memory: MemoryFile as "bytes" = MemoryFile::default(),
        /// Offer window scaling (RFC 7323 section 2). Without it no window exceeds 65535 B.
        window_scaling: bool => window_scaling,
        /// Offer timestamps (RFC 7323 section 3): 12 bytes of options in every segment when the other
        /// side agrees.
        timestamps: bool => timestamps,
        /// Offer selective acknowledgments (RFC 2018). The receiver then reports what arrived out of
        /// order; whether the sender makes use of it is for `recovery` to say.
        sack: bool => sack,
        /// Longest that an acknowledgment waits for a second segment to acknowledge with it, or "off":
        /// every segment is acknowledged at once. Linux adapts it between 40 and 200 ms. At most 500 ms
        /// (RFC 9293 section 3.8.6.3); 200 ms in BSD and in many papers.
        delayed_ack: DelayedAck as "s" => delayed_ack,
        /// Acknowledgments that are not delayed: the first so many of a connection, or "auto": those that
        /// Linux does not delay, at the start, while the window opens, after a silence, after duplicates. It
        /// also holds some back, of those that SACK the same. Default: 0; "auto" with `profile` "linux".
        quick_acks: Option<QuickAcks> = None,
        /// Hold back a small segment while an earlier small one is unacknowledged (RFC 9293 section
        /// 3.7.4, with Minshall's modification as in Linux). Default: true; in a gateway, false.
        nagle: Option<bool> = None,
        /// With `profile` "linux", whether applications write as those do that wait in the call until everything is
        /// taken (scp, iperf 2), 256 KiB at a time, or as those that wait for any of many connections (web servers,
        /// iperf3). BBR tells them apart: where the send buffer limits, these are limited by their application, and
        /// it stays in Startup.
        blocking_writes: bool => blocking_writes,
        /// Let the first text go with the SYN (TCP Fast Open, RFC 7413): a host gives who asks a cookie, and takes text with
        /// the SYN of who has it. So a connection takes a round trip less, but for the first to each host. It is for who
        /// speaks first (uploads, requests, pages, videos), both ends need it, and gateways let it pass. Linux can, where
        /// applications ask for it.
        fast_open: bool => fast_open,
        /// Send a new segment on each of the first two duplicate acknowledgments (RFC 3042).
        limited_transmit: bool => limited_transmit,
        /// Retransmission timeout before the round-trip time was ever measured (RFC 6298 section 2.1).
        initial_rto: Length as "s" => initial_rto,
        /// Floor of the retransmission timeout. RFC 6298 asks for 1 s; Linux has 200 ms.
        minimum_rto: Length as "s" => minimum_rto,
        /// Ceiling of the retransmission timeout, backed off or not.
        maximum_rto: Length as "s" => maximum_rto,
        /// How the retransmission timeout follows from the measured round-trip times.
        rto_rule: RtoRule => rto_rule,
        /// What a retransmission timeout is counted from.
        rto_from: RtoFrom => rto_from,
        /// Explicit congestion notification: queues that mark (RED with `ecn = true`) need not drop.
        ecn: EcnMode => ecn,
        /// What an idle connection does to see whether the other end is still there (RFC 9293 section
        /// 3.8.4). Default: nothing.
        keep_alive: Option<KeepAliveFile> as {} = None,
        /// How the connection learns how long packets may be, where a link has an `mtu`.
        path_mtu_discovery: PathMtuDiscovery => path_mtu_discovery,
        /// Payload of a full segment where a search begins ("black-hole", "search"; Linux: tcp_base_mss).
        /// From 64 B to 65000 B.
        base_mss: Size as "bytes" => base_mss,
        /// Timeouts in a row before a connection is given up (Linux: tcp_retries2).
        maximum_retransmissions: u32 => maximum_retransmissions,
        /// The same while it is being opened (Linux: tcp_syn_retries).
        maximum_syn_retransmissions: u32 => maximum_syn_retransmissions,
        /// How long the side that closes first remembers a connection: twice the maximum segment
        /// lifetime, 4 min in RFC 9293, 60 s in Linux.
        time_wait: Length as "s" => time_wait,
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

impl From<BufferSizes> for MemoryFile {
    fn from(sizes: BufferSizes) -> Self {
        let size = |bytes| Some(Size(Bytes::new(bytes)));
        Self {
            minimum: size(sizes.least),
            initial: size(sizes.initial),
            maximum: size(sizes.most),
        }
    }
}

impl Measured for MemoryFile {
    /// In bytes; null where nothing is set, since the buffer does not grow.
    fn measured(&self) -> Value {
        if *self == Self::default() {
            return Value::Null;
        }
        json!({
            "minimum": self.minimum.measured(),
            "initial": self.initial.measured(),
            "maximum": self.maximum.measured(),
        })
    }
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
        /// it: docs/validation/packetdrill.md.
        Linux = "linux",
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

settings! {
    /// Keep-alive: `keep_alive = {}` has Linux's numbers.
    KeepAliveFile of KeepAlive {
        /// A probe goes out when the other end has said nothing for so long. At least 1 ms.
        idle: Length as "s" => idle,
        /// Time from one probe to the next. At least 1 ms.
        interval: Length as "s" => interval,
        /// After so many without an answer the connection is given up. From 1 to 1000.
        probes: u32 => probes,
    }
}
