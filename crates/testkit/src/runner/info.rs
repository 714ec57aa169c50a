//! Fields of tcp_info under the names that assertions use.

use bentpipe_tcp::{CongestionState, Limit, State};
use bentpipe_types::Span;

use super::Runner;
use crate::python::{Names, Value};

/// Linux's TCP_INFINITE_SSTHRESH.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

const CONSTANTS: &[(&str, u64)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
];

/// Returns the names that assertions may use.
pub(super) fn names(runner: &Runner) -> Names {
    let mut names: Names = CONSTANTS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
        .collect();
    let Some(conversation) = runner.current() else {
        return names;
    };
    let connection = runner.host.connection(conversation);
    let info = connection.info(runner.host.world.now);
    let microseconds = |span: Span| span.as_nanos() / 1000;
    let scaled = info.window_scale != (0, 0);
    let options = u64::from(info.timestamps) | u64::from(info.sack) << 1 | u64::from(scaled) << 2;
    let options = options | u64::from(info.ecn) << 3;
    let options = options | u64::from(connection.fast_open_succeeded()) << 5;
    let counted = connection.statistics();
    let limited = |limit| microseconds(counted.limited.spent(limit, runner.host.world.now));
    for (name, value) in [
        ("tcpi_state", state(info.state)),
        ("tcpi_ca_state", congestion_state(info.congestion_state)),
        ("tcpi_retransmits", u64::from(info.retransmits)),
        ("tcpi_probes", u64::from(info.probes)),
        ("tcpi_backoff", u64::from(info.backoff)),
        ("tcpi_options", options),
        ("tcpi_snd_wscale", u64::from(info.window_scale.0)),
        ("tcpi_rcv_wscale", u64::from(info.window_scale.1)),
        ("tcpi_rto", microseconds(info.rto)),
        ("tcpi_snd_mss", u64::from(info.send_mss)),
        ("tcpi_rcv_mss", u64::from(info.receive_mss)),
        ("tcpi_advmss", u64::from(info.advertised_mss)),
        ("tcpi_unacked", info.unacknowledged),
        ("tcpi_sacked", info.sacked),
        ("tcpi_lost", info.lost),
        ("tcpi_retrans", info.retransmitted),
        (
            "tcpi_last_data_recv",
            microseconds(info.since_data_received) / 1000,
        ),
        ("tcpi_rtt", microseconds(info.rtt.unwrap_or(Span::ZERO))),
        (
            "tcpi_min_rtt",
            info.minimum_rtt.map_or(u64::from(u32::MAX), microseconds),
        ),
        ("tcpi_total_retrans", info.total_retransmitted),
        (
            "tcpi_snd_ssthresh",
            info.slow_start_threshold.unwrap_or(NO_THRESHOLD),
        ),
        ("tcpi_snd_cwnd", info.congestion_window),
        ("tcpi_reordering", info.reordering),
        ("tcpi_reord_seen", info.reorderings_seen),
        ("tcpi_bytes_acked", info.bytes_acknowledged),
        ("tcpi_bytes_received", info.bytes_received),
        ("tcpi_notsent_bytes", info.bytes_not_sent),
        ("tcpi_delivered", info.delivered),
        ("tcpi_snd_wnd", info.send_window),
        ("tcpi_rcv_wnd", info.receive_window),
        (
            "tcpi_rttvar",
            microseconds(info.rtt_deviation.unwrap_or(Span::ZERO)),
        ),
        ("tcpi_segs_in", counted.segments_received),
        ("tcpi_segs_out", info.segments_out),
        ("tcpi_data_segs_out", counted.segments_sent),
        ("tcpi_rcv_ooopack", counted.out_of_order),
        ("tcpi_total_rto", counted.timeouts),
        ("tcpi_busy_time", Limit::ALL.into_iter().map(limited).sum()),
        ("tcpi_rwnd_limited", limited(Limit::ReceiveWindow)),
        ("tcpi_sndbuf_limited", limited(Limit::SendBuffer)),
    ] {
        names.insert(name.to_owned(), Value::from(value));
    }
    if let Some(since) = info.since_data_sent {
        let milliseconds = microseconds(since) / 1000;
        names.insert("tcpi_last_data_sent".to_owned(), Value::from(milliseconds));
    }
    names
}

fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

fn congestion_state(state: CongestionState) -> u64 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::WindowReduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}

impl Runner {
    /// Returns the connection that the script is about, open or closed.
    pub(super) fn current(&self) -> Option<usize> {
        let flow = &self.flow;
        (0..self.host.conversations.len()).rev().find(|&index| {
            let connection = self.host.connection(index);
            connection.local().port == flow.local && connection.remote().port == flow.remote
        })
    }
}
