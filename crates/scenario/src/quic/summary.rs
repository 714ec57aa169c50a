//! QUIC connections of a flow, as data.

use bentpipe_sim::report::QuicReport;
use bentpipe_types::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::limited::LimitedSummary;

/// QUIC connections of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuicSummary {
    /// Connections begun.
    pub connections: u64,
    /// Connections whose handshake the client completed.
    pub established: u64,
    /// Duration of the first handshake at the client, in milliseconds; null if it was not
    /// completed.
    pub handshake_ms: Option<f64>,
    /// Time from the client's first packet to the first byte of data from the server, in
    /// milliseconds; null if there was none.
    pub first_byte_ms: Option<f64>,
    /// Connections on which the server accepted 0-RTT data.
    pub early_data: u64,
    /// The end that opens connections.
    pub opener: QuicEndSummary,
    /// The end that accepts them.
    pub server: QuicEndSummary,
}

/// QUIC connections at one end of a flow.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct QuicEndSummary {
    /// UDP datagrams sent.
    pub packets_sent: u64,
    /// Payload of these datagrams.
    pub bytes_sent: u64,
    /// Packets declared lost, without probes of the path MTU.
    pub packets_lost: u64,
    /// Times at which packets were declared lost or marked. Those of one round trip reduce the
    /// window once.
    pub congestion_events: u64,
    /// Of them, those of ECN marks.
    pub ecn_marks: u64,
    /// Of them, those at which all packets of three probe timeouts were lost (RFC 9002 section
    /// 7.6).
    pub persistent_congestion: u64,
    /// Probe timeouts (RFC 9002 section 6.2).
    pub probe_timeouts: u64,
    /// Probes of the path MTU.
    pub mtu_probes: u64,
    /// Of them, those that were lost.
    pub mtu_probes_lost: u64,
    /// Number of times that the path stopped taking packets of the discovered size.
    pub black_holes: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// Smoothed round-trip time of the last connection, in milliseconds.
    pub smoothed_rtt_ms: Option<f64>,
    /// Minimum round-trip time of the last connection, in milliseconds.
    pub minimum_rtt_ms: Option<f64>,
    /// Largest payload of a datagram on the last connection.
    pub mtu_bytes: u16,
    /// Congestion window of the last connection at the end.
    pub window_bytes: u64,
    /// Time in seconds during which each limit kept this end from sending more, for all connections
    /// together. The other end's flow-control windows, and this end's limit of unacknowledged data,
    /// count as the receive window.
    pub limited_s: LimitedSummary,
    /// Reason why a connection failed; null if none did.
    pub failure: Option<String>,
}

impl QuicSummary {
    pub(crate) fn new(opener: &QuicReport, server: Option<&QuicReport>) -> Self {
        let milliseconds = |span: Option<Span>| span.map(Span::as_millis_f64);
        Self {
            connections: opener.connections,
            established: opener.established,
            handshake_ms: milliseconds(opener.handshake),
            first_byte_ms: milliseconds(opener.first_byte),
            early_data: opener.early_data,
            opener: QuicEndSummary::new(opener),
            server: server.map(QuicEndSummary::new).unwrap_or_default(),
        }
    }
}

impl QuicEndSummary {
    fn new(end: &QuicReport) -> Self {
        let milliseconds = |span: Option<Span>| span.map(Span::as_millis_f64);
        Self {
            packets_sent: end.packets_sent,
            bytes_sent: end.bytes_sent,
            packets_lost: end.packets_lost,
            congestion_events: end.congestion_events,
            ecn_marks: end.ecn_marks,
            persistent_congestion: end.persistent_congestion,
            probe_timeouts: end.probe_timeouts,
            mtu_probes: end.mtu_probes,
            mtu_probes_lost: end.mtu_probes_lost,
            black_holes: end.black_holes,
            acks_sent: end.acks_sent,
            acks_received: end.acks_received,
            smoothed_rtt_ms: milliseconds(end.smoothed_rtt),
            minimum_rtt_ms: milliseconds(end.minimum_rtt),
            mtu_bytes: end.mtu,
            window_bytes: end.window,
            limited_s: LimitedSummary::new(&end.limited, Time::NEVER),
            failure: end.failure.clone(),
        }
    }
}
