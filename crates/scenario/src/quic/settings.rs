//! QUIC settings of a host, with every default filled in.

use bentpipe_tcp::congestion::WindowRule;
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::tcp::congestion::CongestionControlName;

/// Congestion control of QUIC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuicControlName {
    /// quinn's CUBIC.
    QuinnCubic,
    /// quinn's NewReno.
    QuinnNewReno,
    /// An algorithm of TCP.
    Tcp(CongestionControlName),
}

impl QuicControlName {
    pub(crate) const QUINN_CUBIC: &'static str = "quinn-cubic";
    pub(crate) const QUINN_NEW_RENO: &'static str = "quinn-new-reno";

    /// Returns the algorithm of this name.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            Self::QUINN_CUBIC => Self::QuinnCubic,
            Self::QUINN_NEW_RENO => Self::QuinnNewReno,
            _ => Self::Tcp(
                match WindowRule::ALL.iter().find(|rule| rule.name() == name) {
                    Some(rule) => CongestionControlName::BuiltIn(*rule),
                    None => CongestionControlName::Custom(name.to_owned()),
                },
            ),
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::QuinnCubic => Self::QUINN_CUBIC.to_owned(),
            Self::QuinnNewReno => Self::QUINN_NEW_RENO.to_owned(),
            Self::Tcp(name) => name.to_string(),
        }
    }
}

/// QUIC settings of a host. Sizes are in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct QuicHostSettings {
    /// Congestion control.
    pub congestion_control: QuicControlName,
    /// Initial congestion window, or `None` for that of the algorithm.
    pub initial_window: Option<u64>,
    /// Flow-control window of a stream.
    pub stream_window: u64,
    /// Flow-control window of a connection, or `None` for no limit.
    pub connection_window: Option<u64>,
    /// Most unacknowledged data.
    pub send_window: u64,
    /// Streams that the other end may have open.
    pub streams: u32,
    /// Requested ACK threshold.
    pub ack_threshold: Option<u32>,
    /// Requested maximum delay of acknowledgments.
    pub ack_delay: Option<Span>,
    /// Round-trip time before the first measurement.
    pub initial_rtt: Span,
    /// Idle timeout, or `None` for none.
    pub idle_timeout: Option<Span>,
    /// Interval of PINGs.
    pub keep_alive: Option<Span>,
    /// Payload of the first datagrams.
    pub mtu: u16,
    /// Largest payload that path MTU discovery tries.
    pub max_mtu: u16,
    /// Most packets sent at once.
    pub burst: u32,
    /// 0-RTT.
    pub early_data: bool,
    /// Length of the certificates.
    pub certificate: u16,
}

impl Default for QuicHostSettings {
    fn default() -> Self {
        Self {
            congestion_control: QuicControlName::QuinnCubic,
            initial_window: None,
            stream_window: 1_250_000,
            connection_window: None,
            send_window: 10_000_000,
            streams: 100,
            ack_threshold: None,
            ack_delay: None,
            initial_rtt: Span::from_millis(333),
            idle_timeout: Some(Span::from_secs(30)),
            keep_alive: None,
            mtu: 1_200,
            max_mtu: 1_452,
            burst: 10,
            early_data: false,
            certificate: 2_500,
        }
    }
}

pub(crate) fn quic_data(quic: &QuicHostSettings) -> Value {
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    json!({
        "congestion_control": quic.congestion_control.name(),
        "initial_window_bytes": quic.initial_window,
        "stream_window_bytes": quic.stream_window,
        "connection_window_bytes": quic.connection_window,
        "send_window_bytes": quic.send_window,
        "streams": quic.streams,
        "ack_threshold": quic.ack_threshold,
        "ack_delay_s": seconds(quic.ack_delay),
        "initial_rtt_s": quic.initial_rtt.as_secs_f64(),
        "idle_timeout_s": seconds(quic.idle_timeout),
        "keep_alive_s": seconds(quic.keep_alive),
        "mtu_bytes": quic.mtu,
        "max_mtu_bytes": quic.max_mtu,
        "burst": quic.burst,
        "early_data": quic.early_data,
        "certificate_bytes": quic.certificate,
    })
}
