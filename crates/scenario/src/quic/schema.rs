//! `[hosts.NAME.quic]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::size::Size;
use crate::quantity::time::Length;

/// QUIC settings of a host, for its flows with `transport = "quic"`. The stack is quinn (Rust); the
/// defaults are quinn's.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicFile {
    /// Congestion control: "quinn-cubic" or "quinn-new-reno", which are quinn's, or a name that
    /// `tcp.congestion_control` takes; its settings are those of `[hosts.NAME.tcp]`. quinn paces
    /// all of them at 1.25 windows per round-trip time. Default: "quinn-cubic".
    pub congestion_control: Option<String>,
    /// Initial congestion window. Default: "12000 B" (quinn); ten packets for the algorithms of TCP
    /// (RFC 9002).
    pub initial_window: Option<Size>,
    /// Flow-control window of a stream at this host as a receiver. It limits a stream to one window
    /// per round-trip time. Default: "1250 kB".
    pub stream_window: Option<Size>,
    /// Flow-control window of a connection at this host as a receiver. Default: no limit.
    pub connection_window: Option<Size>,
    /// Most unacknowledged data of a connection at this host as a sender. Default: "10 MB".
    pub send_window: Option<Size>,
    /// Streams that the other end may have open at once. Default: 100.
    #[schemars(range(min = 1, max = 65_535))]
    pub streams: Option<u32>,
    /// Asks the other end to send an acknowledgment after more than this number of packets
    /// (draft-ietf-quic-ack-frequency). Default: it is not asked, and sends one for every second
    /// packet.
    #[schemars(range(min = 1, max = 1_000))]
    pub ack_threshold: Option<u32>,
    /// With `ack_threshold`: asks the other end to delay an acknowledgment for at most this time.
    /// Default: the other end's own, "25 ms".
    pub ack_delay: Option<Length>,
    /// Round-trip time before the first measurement, from which the first timeout follows. Default:
    /// "333 ms".
    pub initial_rtt: Option<Length>,
    /// Time without packets after which a connection ends. "0 s": never. Default: "30 s".
    pub idle_timeout: Option<Length>,
    /// Time without packets after which a PING is sent. Default: none is sent.
    pub keep_alive: Option<Length>,
    /// Payload of the first UDP datagrams, without IP and UDP headers. From "1200 B". Default:
    /// "1200 B".
    pub mtu: Option<Size>,
    /// Largest payload of UDP datagrams that path MTU discovery tries; as small as `mtu` for none.
    /// Default: "1452 B".
    pub max_mtu: Option<Size>,
    /// Most packets that are sent at once (segmentation offload). Default: 10.
    #[schemars(range(min = 1, max = 64))]
    pub burst: Option<u32>,
    /// Whether connections after the first one send data in their first packets (0-RTT). Default:
    /// false.
    pub early_data: Option<bool>,
    /// Length of the server's certificates with their signature, at this host as a server. A longer
    /// flight than three times the client's first packet takes another round trip (RFC 9000 section
    /// 8.1). Default: "2500 B".
    pub certificate: Option<Size>,
}
