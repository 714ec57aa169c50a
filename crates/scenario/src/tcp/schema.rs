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

use crate::quantity::buffer::{Buffer, QuickAcks};
use crate::quantity::count::{Segments, Window};
use crate::quantity::measured::Measured;
use crate::quantity::pacing::Pacing;
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::{DelayedAck, Length};
use crate::settings_table::settings;
use crate::tcp::congestion::{CongestionControlName, HyblaFile, WestwoodFile};

settings! {
    /// TCP settings of a host. The defaults are those of current Linux as far as it is modelled;
    /// each key describes where they differ. The settings of a paper must be given key by key.
    TcpFile of Config {
        /// Sets the defaults of the other keys, and behaviour for which there is no key.
        profile: Profile = Profile::Rfc,
        /// Congestion control: how the congestion window grows and shrinks. Linux: CUBIC.
        congestion_control: CongestionControlName = CongestionControlName::BuiltIn(WindowRule::Cubic),
        /// Settings of "hybla", and of the growth of "enhanced-hybla".
        hybla: HyblaFile as {} => hybla,
        /// Settings of "westwood" and "westwood-2001".
        westwood: WestwoodFile as {} => westwood,
        /// Capacity of the bottleneck for "enhanced-hybla" (CC in vanzara2014), which requires it
        /// unless `hybla.channel_capacity` is "packet-pairs". It is compared with payload: a
        /// 100 Mbit/s link carries 96.5 Mbit/s of payload.
        channel_capacity: Option<Rate> as "bps" = None,
        /// How "westwood" and "enhanced-hybla" filter their bandwidth samples, one per round trip.
        /// Default: "westwood" for "westwood", and "last-sample" for "enhanced-hybla", whose paper
        /// does not specify it.
        bandwidth_filter: Option<BandwidthFilter> => bandwidth_filter,
        /// Pacing of segments. "auto": if the congestion control asks for it (BBR does). "off":
        /// never. "on": always; algorithms other than BBR pace at twice the window per round-trip
        /// time in slow start, and at 1.2 times in congestion avoidance. A rate: always, and never
        /// faster. The rate is of payload, without headers.
        pacing: Pacing => pacing,
        /// Loss detection and recovery. Default: "sack", as in Linux; "newreno" if `sack` is off
        /// here or at the peer.
        recovery: Option<RecoveryKind> = None,
        /// Reduce the congestion window gradually in fast recovery, in proportion to the data that
        /// each acknowledgment reports as delivered (PRR, RFC 9937). false: reduce it at once.
        /// Default: true with "sack".
        proportional_rate_reduction: Option<bool> = None,
        /// Mark a segment as lost if one sent sufficiently later was delivered (RACK, RFC 8985);
        /// this also detects lost retransmissions. false: mark it as lost if three segments' worth
        /// of data above it are SACKed (RFC 6675); a lost retransmission then needs a timeout.
        /// Default: true with "sack".
        rack: Option<bool> = None,
        /// Send a probe when acknowledgments stop arriving, so that the loss of the last segments
        /// needs no timeout (TLP, RFC 8985 section 7). Default: true with `rack`.
        tail_loss_probe: Option<bool> = None,
        /// After a timeout, send new data first, to detect whether the timeout was spurious (F-RTO,
        /// RFC 5682). Default: true with "sack" and "fack".
        f_rto: Option<bool> = None,
        /// Undo the reduction of the congestion window when timestamps (RFC 3522) or duplicate
        /// SACKs (RFC 3708) show that no segment was lost. Default: true with "sack" and "fack".
        undo: Option<bool> = None,
        /// Which partial acknowledgments restart the retransmission timer in NewReno's recovery
        /// (RFC 6582 section 4). Default: "impatient"; "slow-but-steady" with `profile` "linux".
        newreno: Option<NewRenoKind> = None,
        /// Growth of the congestion window in slow start. Default: "hystart++" with "cubic" (RFC
        /// 9438 section 4.10; Linux has its predecessor), else "byte-counting".
        slow_start: Option<SlowStart> = None,
        /// Most segments by which one acknowledgment increases the window in slow start, if
        /// `slow_start` is "byte-counting" or "hystart++". RFC 3465 calls it L and allows at most
        /// 2; RFC 9406 recommends 8 without pacing. Default: 8 with "hystart++" and no pacing; else
        /// no limit, as in Linux.
        slow_start_limit: Option<Segments> as "segments" = None,
        /// Growth of the congestion window in congestion avoidance.
        congestion_avoidance: AvoidanceKind => avoidance,
        /// Increase the congestion window only while it limits the sender, as Linux does and RFC
        /// 7661 recommends. false: every acknowledgment of new data increases it, as in ns-2.
        window_validation: bool => window_validation,
        /// Change of the congestion window after nothing was sent for longer than a retransmission
        /// timeout.
        idle_restart: IdleRestart => idle_restart,
        /// Congestion window of a new connection (RFC 6928).
        initial_window: Segments as "segments" => initial_window,
        /// Initial slow-start threshold. Default: unlimited until the first loss (RFC 5681 section
        /// 3.1).
        initial_slow_start_threshold: Option<Window> as "bytes" = None,
        /// Payload of a full segment. The MSS option announces this plus the 12 bytes of the
        /// timestamps that every segment then carries: a full IPv4 packet is 1500 B. Default: "1448
        /// B" with timestamps, "1460 B" without. From 64 B to 65000 B.
        mss: Option<Size> as "bytes" = None,
        /// Size of the send buffer: the most bytes that are written and not yet acknowledged.
        /// Together with the receive buffer, it limits the bytes in flight. "auto": as in Linux,
        /// growing with the congestion window from the initial to the maximum `send_memory`, and
        /// counting the machine's memory that a segment takes. A size: exactly this. Up to 1 GiB.
        /// Default: "auto"; in a gateway, what its link needs.
        send_buffer: Option<Buffer> as "bytes" = None,
        /// Receive window that is advertised. "auto": as in Linux, growing with the data that the
        /// application reads, in a buffer from the initial to the maximum `receive_memory`. A size:
        /// exactly this, from the start; up to 1073725440 B, and without `window_scaling` to 65535
        /// B. With `profile` "linux", in a host: the window that Linux advertises for a buffer
        /// (SO_RCVBUF) that holds this much in full segments. It is four fifths of the size at
        /// first, less the unread data, and whole segments if the window is not scaled. Default:
        /// "auto"; in a gateway, what its link needs.
        receive_buffer: Option<Buffer> as "bytes" = None,
        /// Memory of an "auto" `send_buffer`: Linux's tcp_wmem. Default: "4 KiB", "16 KiB", "4
        /// MiB".
        send_memory: MemoryFile as "bytes" = MemoryFile::default(),
        /// Memory of an "auto" `receive_buffer`: Linux's tcp_rmem. Default: "4 KiB", "128 KiB", "32
        /// MiB".
        receive_memory: MemoryFile as "bytes" = MemoryFile::default(),
        /// Offer window scaling (RFC 7323 section 2). Without it no window exceeds 65535 B.
        window_scaling: bool => window_scaling,
        /// Window scale to announce (RFC 7323 section 2): windows count in units of 2^scale bytes,
        /// 0 to 14. Default: the smallest that covers `receive_buffer`.
        window_scale: Option<u8> => window_scale,
        /// Offer timestamps (RFC 7323 section 3): 12 bytes of options in every segment if the peer
        /// agrees.
        timestamps: bool => timestamps,
        /// Offer selective acknowledgments (RFC 2018). The receiver then reports what arrived out
        /// of order; `recovery` sets whether the sender uses it.
        sack: bool => sack,
        /// Longest time that an acknowledgment waits for a second segment, or "off": every segment
        /// is acknowledged at once. Linux adapts it between 40 and 200 ms. At most 500 ms (RFC 9293
        /// section 3.8.6.3); 200 ms in BSD and in many papers.
        delayed_ack: DelayedAck as "s" => delayed_ack,
        /// Acknowledge at once after this many full segments, 2 to 1000. RFC 5681 section 4.2
        /// allows at most 2; more reduce the load of a slow return link, and slow the growth of the
        /// window unless `slow_start` is "byte-counting" (samaraweera1999, section 3.1).
        /// `delayed_ack` still applies.
        ack_every: u32 => ack_every,
        /// Acknowledgments sent without delay: this many at the start of a connection, or "auto":
        /// those that Linux does not delay (at the start, while the window opens, after an idle
        /// time, after duplicates). "auto" also holds back some acknowledgments that SACK the same
        /// data, as Linux does. Default: 0; "auto" with `profile` "linux".
        quick_acks: Option<QuickAcks> = None,
        /// Hold back a small segment while an earlier small one is unacknowledged (Nagle's
        /// algorithm, RFC 9293 section 3.7.4, with Minshall's modification as in Linux). Default:
        /// true; in a gateway, false.
        nagle: Option<bool> = None,
        /// With `profile` "linux": whether applications write with blocking calls, 256 KiB at a
        /// time (scp, iperf 2), or without blocking, as programs with many connections do (web
        /// servers, iperf3). BBR treats them differently: if the send buffer limits a non-blocking
        /// application, BBR takes it for application-limited and stays in Startup.
        blocking_writes: bool => blocking_writes,
        /// Send the first data with the SYN (TCP Fast Open, RFC 7413). A host gives a cookie to
        /// clients that request one, and accepts data in the SYN of clients that have one. Each
        /// connection but the first to a host takes a round trip less. It helps if the client sends
        /// first (uploads, requests, pages, videos). Both ends need it; gateways let it pass. Linux
        /// supports it if applications ask for it.
        fast_open: bool => fast_open,
        /// Send a new segment on each of the first two duplicate acknowledgments (RFC 3042).
        limited_transmit: bool => limited_transmit,
        /// Retransmission timeout before the first measurement of the round-trip time (RFC 6298
        /// section 2.1).
        initial_rto: Length as "s" => initial_rto,
        /// Minimum retransmission timeout. RFC 6298 requires 1 s; Linux has 200 ms.
        minimum_rto: Length as "s" => minimum_rto,
        /// Maximum retransmission timeout, with or without backoff.
        maximum_rto: Length as "s" => maximum_rto,
        /// How the retransmission timeout is computed from round-trip times.
        rto_rule: RtoRule => rto_rule,
        /// The event from which a retransmission timeout counts.
        rto_from: RtoFrom => rto_from,
        /// Granularity of the clock that measures round trips and runs the retransmission timer
        /// (RFC 6298 section 4), with `rto_rule` "rfc6298": round trips are measured in whole
        /// ticks, and the timer expires at a tick. "10 ms" to "1 s" in steps of 10 ms; "500 ms" in
        /// BSD. Default: exact times.
        timer_granularity: Option<Length> as "s" = None,
        /// Explicit congestion notification: queues that mark (RED with `ecn = true`) need not
        /// drop.
        ecn: EcnMode => ecn,
        /// How an idle connection checks whether the peer is still reachable (RFC 9293 section
        /// 3.8.4). Default: it does not.
        keep_alive: Option<KeepAliveFile> as {} = None,
        /// How the connection finds the path MTU, if a link has an `mtu`.
        path_mtu_discovery: PathMtuDiscovery => path_mtu_discovery,
        /// Payload of a full segment at the start of a search for the path MTU ("black-hole",
        /// "search"; Linux: tcp_base_mss). From 64 B to 65000 B.
        base_mss: Size as "bytes" => base_mss,
        /// Consecutive timeouts after which a connection is given up (Linux: tcp_retries2).
        maximum_retransmissions: u32 => maximum_retransmissions,
        /// Consecutive timeouts after which an opening connection is given up (Linux:
        /// tcp_syn_retries).
        maximum_syn_retransmissions: u32 => maximum_syn_retransmissions,
        /// Time in TIME-WAIT of the side that closes first: twice the maximum segment lifetime, 4
        /// min in RFC 9293, 60 s in Linux.
        time_wait: Length as "s" => time_wait,
    }
}

/// Memory of an autotuned buffer. A segment takes more of it than its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryFile {
    /// Memory that a connection keeps if the machine is short of memory. This never happens here:
    /// the key exists because the sysctls have three numbers.
    pub minimum: Option<Size>,
    /// Initial memory of a connection.
    pub initial: Option<Size>,
    /// Maximum memory of a connection. Up to 1 GiB.
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
    /// Returns bytes, or null if the buffer is not autotuned.
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
    /// The TCP implementation to imitate.
    Profile {
        /// The RFCs, with Linux's settings as given for each key.
        Rfc = "rfc",
        /// Linux, including what no RFC specifies. Acknowledgments are not delayed at the start and
        /// while the window opens. Slow start ends by "hystart" with "cubic". A loss reduces the
        /// congestion window and not the data in flight. CUBIC grows by at least 5% per round trip
        /// before the first loss. A probe of a zero window carries no data. Results of Linux's
        /// packetdrill scripts: docs/validation/packetdrill.md.
        Linux = "linux",
        /// The sender of ns-2's TCP-Linux (Wei and Cao 2006), for papers that used it. Every
        /// duplicate acknowledgment gives a round-trip sample by its timestamp and restarts the
        /// retransmission timer. The end of recovery clears the scoreboard, so that data which has
        /// arrived may be sent again. Slow start includes the threshold, except with "hybla" and
        /// "enhanced-hybla". Other keys have the defaults of "rfc", but slow start is "standard".
        TcpLinux = "ns-2-tcp-linux",
    }
}

words! {
    /// Growth of the congestion window in slow start.
    SlowStart {
        /// Each acknowledgment increases the window by one segment (RFC 5681 equation 2): with
        /// delayed acknowledgments, the window grows by half per round trip.
        Standard = "standard",
        /// The acknowledged bytes increase the window (RFC 3465): it doubles every round trip.
        /// Linux.
        ByteCounting = "byte-counting",
        /// Byte counting until round trips get longer; then a quarter of that growth for five round
        /// trips, and then congestion avoidance (HyStart++, RFC 9406). This applies to the first
        /// slow start of a connection only. Linux's CUBIC has HyStart++'s predecessor.
        HyStart = "hystart++",
        /// Byte counting until round trips get longer by an eighth or the acknowledgments of a
        /// round take more than half a round trip; then congestion avoidance at once (HyStart, Ha
        /// and Rhee 2008). Linux, with "cubic".
        LinuxHyStart = "hystart",
    }
}

settings! {
    /// Keep-alive: `keep_alive = {}` has Linux's numbers.
    KeepAliveFile of KeepAlive {
        /// Time without a segment from the peer after which a probe is sent. At least 1 ms.
        idle: Length as "s" => idle,
        /// Time between probes. At least 1 ms.
        interval: Length as "s" => interval,
        /// Number of unanswered probes after which the connection is given up. From 1 to 1000.
        probes: u32 => probes,
    }
}
