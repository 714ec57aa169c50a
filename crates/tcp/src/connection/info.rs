//! A look at a connection from outside: what Linux's TCP_INFO tells, as far as it is modelled.

use bentpipe_types::{Span, Time};

use super::{Connection, State};
use crate::rate_sample::RecoveryPhase;
use crate::recovery::LossRecovery;

/// Linux's names for where loss recovery stands (tcp_ca_state).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate acknowledgments or SACK blocks, and nothing lost so far.
    Disorder,
    /// The window is being reduced for an ECN mark.
    WindowReduced,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// What a connection is doing. Lengths of time that have no sample yet are `None`; what Linux counts
/// in packets is counted in segments here.
#[derive(Clone, Debug)]
pub struct TcpInfo {
    /// The state.
    pub state: State,
    /// Where loss recovery stands.
    pub congestion_state: CongestionState,
    /// Timeouts in a row without an acknowledgment of anything new.
    pub retransmits: u32,
    /// Probes of a closed window in a row without an answer.
    pub probes: u32,
    /// How often the retransmission timeout is doubled at present.
    pub backoff: u32,
    /// Both ends use timestamps.
    pub timestamps: bool,
    /// Both ends do SACK.
    pub sack: bool,
    /// Both ends do explicit congestion notification.
    pub ecn: bool,
    /// Both ends scale windows: by the peer's shift, and by ours.
    pub window_scale: (u8, u8),
    /// The retransmission timeout, backed off.
    pub rto: Span,
    /// Payload of a full segment that we send, in bytes.
    pub send_mss: u32,
    /// The same that comes in, as far as is known: the largest seen.
    pub receive_mss: u32,
    /// The MSS that we announced, less what options take.
    pub advertised_mss: u32,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u64,
    /// Of them, those SACKed.
    pub sacked: u64,
    /// Of them, those taken for lost.
    pub lost: u64,
    /// Of them, those sent again.
    pub retransmitted: u64,
    /// Since data was sent, if any was.
    pub since_data_sent: Option<Span>,
    /// Since data came in, or the connection was established.
    pub since_data_received: Span,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// The mean deviation of round trips.
    pub rtt_deviation: Option<Span>,
    /// The shortest round trip.
    pub minimum_rtt: Option<Span>,
    /// Segments of any kind sent; not a SYN+ACK, which Linux's listening socket sends.
    pub segments_out: u64,
    /// Segments sent again, ever, probes for a lost tail included.
    pub total_retransmitted: u64,
    /// Slow-start threshold in segments; none before the first loss.
    pub slow_start_threshold: Option<u64>,
    /// The window that lets segments go now, in segments: in fast recovery, what proportional rate
    /// reduction makes of the congestion window.
    pub congestion_window: u64,
    /// How far apart segments were reordered, in segments; 3 to begin with.
    pub reordering: u64,
    /// Times that reordering was seen.
    pub reorderings_seen: u64,
    /// Bytes of our stream acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes of the peer's stream that are in order.
    pub bytes_received: u64,
    /// Bytes written and never sent.
    pub bytes_not_sent: u64,
    /// Segments delivered to the peer, as far as is known, our SYN included.
    pub delivered: u64,
    /// The window that the peer advertises, in bytes.
    pub send_window: u64,
    /// The window that we advertise, in bytes.
    pub receive_window: u64,
}

impl Connection {
    /// What the connection is doing at `now`.
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
                .max(self.syn_text_again()),
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
