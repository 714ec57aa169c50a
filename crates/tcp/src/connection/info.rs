//! Linux's TCP_INFO, as far as it is modelled.

use bentpipe_types::{Span, Time};

use super::{Connection, State};
use crate::rate_sample::RecoveryPhase;
use crate::recovery::LossRecovery;

/// Linux's states of loss recovery (tcp_ca_state).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// Normal operation.
    Open,
    /// Duplicate acknowledgments or SACK blocks, without a detected loss.
    Disorder,
    /// The window is being reduced for an ECN mark.
    WindowReduced,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// Snapshot of a connection. Times without a sample are `None`. Values that Linux counts in packets
/// are counted in segments.
#[derive(Clone, Debug)]
pub struct TcpInfo {
    /// The connection state.
    pub state: State,
    /// Phase of loss recovery.
    pub congestion_state: CongestionState,
    /// Consecutive timeouts without an acknowledgment of new data.
    pub retransmits: u32,
    /// Consecutive unanswered probes of a closed window.
    pub probes: u32,
    /// Number of doublings of the retransmission timeout.
    pub backoff: u32,
    /// Timestamps were negotiated.
    pub timestamps: bool,
    /// SACK was negotiated.
    pub sack: bool,
    /// ECN was negotiated.
    pub ecn: bool,
    /// Negotiated window scale: the peer's shift, and ours.
    pub window_scale: (u8, u8),
    /// The retransmission timeout, with backoff.
    pub rto: Span,
    /// Payload of a full segment that we send, in bytes.
    pub send_mss: u32,
    /// Payload of the largest segment received, in bytes.
    pub receive_mss: u32,
    /// The MSS that we announced, less the options of every segment.
    pub advertised_mss: u32,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u64,
    /// Unacknowledged segments that are SACKed.
    pub sacked: u64,
    /// Unacknowledged segments marked lost.
    pub lost: u64,
    /// Unacknowledged segments that were retransmitted.
    pub retransmitted: u64,
    /// Time since data was sent, if any was.
    pub since_data_sent: Option<Span>,
    /// Time since data was received, or since the connection was established.
    pub since_data_received: Span,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Mean deviation of the round-trip times.
    pub rtt_deviation: Option<Span>,
    /// Minimum round-trip time.
    pub minimum_rtt: Option<Span>,
    /// Segments of any kind sent, except a SYN+ACK, which Linux's listening socket sends.
    pub segments_out: u64,
    /// Segments retransmitted in total, including tail loss probes.
    pub total_retransmitted: u64,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub slow_start_threshold: Option<u64>,
    /// Current sending window in segments: in fast recovery the window of proportional rate
    /// reduction, else the congestion window.
    pub congestion_window: u64,
    /// Reordering degree, in segments; initially 3.
    pub reordering: u64,
    /// Number of reordering events.
    pub reorderings_seen: u64,
    /// Bytes of our stream acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes of the peer's stream received in order.
    pub bytes_received: u64,
    /// Bytes written and not sent yet.
    pub bytes_not_sent: u64,
    /// Segments reported as delivered to the peer, including our SYN.
    pub delivered: u64,
    /// The peer's advertised window, in bytes.
    pub send_window: u64,
    /// Our advertised window, in bytes.
    pub receive_window: u64,
}

impl Connection {
    /// Snapshot of the connection at `now` (RFC 9293 section 3.10.6).
    #[must_use]
    pub fn info(&self, now: Time) -> TcpInfo {
        let segment = u64::from(self.sender.negotiated.segment.max(1));
        let window = self.sender.congestion.window();
        let threshold = window.slow_start_threshold;
        let ahead = self.segments_ahead();
        let probing = self.sender.send.window == 0;
        let attempts = self.sender.send.attempts;
        TcpInfo {
            state: self.state,
            congestion_state: self.congestion_state(),
            retransmits: if probing { 0 } else { attempts },
            probes: if probing { attempts } else { 0 },
            backoff: self.sender.rtt.backoff(),
            timestamps: self.sender.negotiated.timestamps,
            sack: self.sender.negotiated.sack,
            ecn: self.sender.ecn.is_on(),
            window_scale: (
                self.sender.negotiated.send_shift,
                self.sender.negotiated.receive_shift,
            ),
            rto: self.sender.rtt.rto(),
            send_mss: self.sender.negotiated.segment,
            receive_mss: self.receive.largest_segment(),
            advertised_mss: self.advertised_mss(),
            unacknowledged: self.sender.scoreboard.segments() as u64,
            sacked: ahead,
            lost: self.sender.scoreboard.lost().div_ceil(segment),
            retransmitted: (self.sender.scoreboard.retransmitted_segments())
                .max(self.resent_syn_segments()),
            since_data_sent: (self.sender.statistics.first_data_at)
                .map(|_| now.since(self.sender.send.last_sent_at)),
            since_data_received: now.since(self.receive.data_at),
            rtt: self.sender.rtt.smoothed(),
            rtt_deviation: self.sender.rtt.mean_deviation(),
            minimum_rtt: self.sender.rtt.minimum(),
            segments_out: self.segments_out(),
            total_retransmitted: self.sender.statistics.segments_retransmitted,
            slow_start_threshold: (threshold < u64::MAX).then_some(threshold / segment),
            congestion_window: self.sending_window() / segment,
            reordering: self.sender.reordering(),
            reorderings_seen: self.sender.scoreboard.reorderings_seen(),
            bytes_acknowledged: self.sender.statistics.bytes_acknowledged,
            bytes_received: self.received_offset(),
            bytes_not_sent: self.written_offset() - self.sent_offset(),
            delivered: self.sender.scoreboard.acknowledged_segments() + ahead,
            send_window: self.sender.send.window,
            receive_window: self.receive.window(),
        }
    }

    fn segments_out(&self) -> u64 {
        let counted = &self.sender.statistics;
        let answers = if self.passive {
            1 + u64::from(self.sender.send.syns_lost)
        } else {
            0
        };
        (counted.segments_sent + counted.control_segments_sent).saturating_sub(answers)
    }

    fn segments_ahead(&self) -> u64 {
        (self.sender.recovery).segments_ahead(&self.sender.scoreboard)
    }

    fn congestion_state(&self) -> CongestionState {
        match self.sender.recovery.phase() {
            RecoveryPhase::FastRecovery => CongestionState::Recovery,
            RecoveryPhase::AfterTimeout => CongestionState::Loss,
            RecoveryPhase::Open if self.sender.is_reducing() => CongestionState::WindowReduced,
            RecoveryPhase::Open if self.segments_ahead() > 0 => CongestionState::Disorder,
            RecoveryPhase::Open => CongestionState::Open,
        }
    }

    fn advertised_mss(&self) -> u32 {
        let announced = u32::from(self.offered.maximum_segment_size.unwrap_or(0));
        let options = if self.sender.negotiated.timestamps {
            12
        } else {
            0
        };
        announced.saturating_sub(options)
    }
}
