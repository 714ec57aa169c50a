//! Explicit congestion notification (RFC 3168, which RFC 9293 section 3.8.2 recommends).

use bentpipe_types::{Ecn, Flags, Packet, PacketRef, PacketStore, Time};
use serde::{Deserialize, Serialize};

use crate::EcnMode;
use crate::congestion::Congestion;
use crate::connection::{Connection, Sender};
use crate::rate_sample::RecoveryPhase;
use crate::recovery::LossRecovery;

/// Both flags set: "ECN-setup SYN" (RFC 3168 section 6.1.1).
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// ECN state of one end.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(in crate::connection) struct EcnState {
    /// ECN was negotiated.
    on: bool,
    /// RFC 3168 section 6.1.3: every acknowledgment carries ECE until the peer sends CWR.
    echoes: bool,
    /// RFC 3168 section 6.1.2: the window was reduced, and the next new data segment carries CWR.
    reduced: bool,
    /// The segment being sent has not been sent before.
    pub(in crate::connection) fresh: bool,
    /// Our SYN requested ECN.
    requested: bool,
    /// ECN-capable data has been received.
    ect_received: bool,
    /// The last window reduction must not be undone, because of a mark at that time or since.
    undo_forbidden: bool,
    /// Position of the first new data after the last window reduction, which carries CWR. Until
    /// more is acknowledged, the peer has not received CWR and echoes marks of the reduced window.
    cwr_position: u64,
}

impl EcnState {
    /// Whether ECN was negotiated. Segments then do not take the fast paths.
    #[inline]
    pub(in crate::connection) const fn is_on(&self) -> bool {
        self.on
    }
}

impl Connection {
    /// ECN flags for our SYN, or SYN+ACK if `answers`. RFC 3168 section 6.1.1.1: a
    /// retransmitted SYN does not request ECN, because the path may drop SYNs that do.
    pub(in crate::connection) fn ecn_syn_flags(&mut self, answers: bool) -> Flags {
        if answers {
            return if self.sender.ecn.on {
                Flags::ECE
            } else {
                Flags::NONE
            };
        }
        self.sender.ecn.requested =
            self.sender.config.ecn == EcnMode::Request && self.sender.send.syns_lost == 0;
        if self.sender.ecn.requested {
            SETUP
        } else {
            Flags::NONE
        }
    }

    /// Completes the ECN negotiation with the peer's SYN or SYN+ACK.
    pub(in crate::connection) fn negotiate_ecn(&mut self, syn: &Packet) {
        let both = syn.flags.has(Flags::ECE) && syn.flags.has(Flags::CWR);
        self.sender.ecn.on = if syn.flags.has(Flags::ACK) {
            self.sender.ecn.requested && syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR)
        } else {
            self.sender.config.ecn != EcnMode::Off && both
        };
    }

    /// Processes the ECN fields of an acceptable segment. A CE mark is to be echoed. An ECE reduces
    /// the window like a loss (RFC 3168 section 5), once per window of data
    /// (RFC 3168 section 6.1.2). `start`: distance of its data from RCV.NXT.
    pub(in crate::connection) fn process_ecn(&mut self, packet: &Packet, start: i64, now: Time) {
        if !self.sender.ecn.on {
            return;
        }
        // Linux ignores ECE on an acknowledgment of old data (tcp_ack). Acknowledgments of entirely
        // old segments are not counted here (tcp_validate_incoming).
        let newly = packet
            .acknowledgment
            .distance_from(self.acknowledged_in_window);
        let old = newly < 0;
        if !old {
            self.acknowledged_in_window = packet.acknowledgment;
        }
        if packet.flags.has(Flags::CWR)
            && !(old && self.quirks().acceptance.ignores_cwr_of_old_acks)
        {
            self.sender.ecn.echoes = false;
            // tcp_ecn_accept_cwr: acknowledges at once, since the peer's window may be one segment.
            let linux = self.receive.linux_ack_policy;
            self.receive.acknowledge_now |= linux && packet.payload_length > 0;
        }
        // RFC 3168 section 6.1.5: marks outside of the receive window are ignored. With Linux's ACK
        // policy, `record_mark` checks this together with the data.
        let window = self.receive.window() as i64;
        let end = start + i64::from(packet.payload_length);
        // RFC 3168 section 6.1.6 would have marks of window probes count too.
        let in_window = packet.payload_length > 0 && start < window && end > 0;
        if in_window && !self.receive.linux_ack_policy && self.process_mark(packet.ecn()) {
            // As in Linux, at once: an early reaction of the sender keeps the queue short.
            self.receive.acknowledge_now |= packet.ecn() == Ecn::Congestion;
        }
        let reduces = packet.flags.has(Flags::ECE)
            && !self.sender.reduces_gradually()
            && !self.sender.is_reducing()
            && self.sender.phase() == RecoveryPhase::Open
            && !self.sender.send.is_idle();
        if reduces {
            // As for a loss: the data outstanding when the acknowledgment arrived.
            let outstanding =
                self.sender.send.sequence.outstanding() + u64::from(newly.max(0) as u32);
            let flight_size = self.sender.congested_flight(outstanding);
            self.sender.reduce(Congestion::Ecn, flight_size, now);
            self.sender.note_reduction();
        }
    }

    /// With Linux's ACK policy, records the mark of in-order data for which there is room. Returns
    /// whether to acknowledge sooner (tcp_event_data_recv). Marks of old data, or of data beyond
    /// the window, are ignored.
    #[inline]
    pub(in crate::connection) fn record_mark(&mut self, packet: &Packet) -> bool {
        self.sender.ecn.on && self.receive.linux_ack_policy && self.process_mark(packet.ecn())
    }

    /// Records the mark of out-of-order data, whether there is room for it or not
    /// (tcp_data_queue_ofo).
    pub(in crate::connection) fn record_out_of_order_mark(&mut self, packet: &Packet) {
        if self.record_mark(packet)
            && let Some(sizing) = &mut self.receive.sizing
        {
            sizing.schedule_two_quick_acks();
        }
    }

    /// Records the mark of received data (tcp_data_ecn_check).
    #[inline(never)]
    fn process_mark(&mut self, mark: Ecn) -> bool {
        let ecn = &mut self.sender.ecn;
        let quicker = match mark {
            Ecn::Congestion => !std::mem::replace(&mut ecn.echoes, true),
            // A segment without ECT from an ECN-capable sender is most likely a retransmission.
            Ecn::NotCapable => ecn.ect_received,
            _ => false,
        };
        ecn.ect_received |= mark != Ecn::NotCapable;
        quicker
    }

    /// Sets the ECN fields of a segment that is no SYN. New data is ECN-capable; pure
    /// acknowledgments (RFC 3168 section 6.1.4) and retransmissions (RFC 3168 section 6.1.5) are
    /// not.
    pub(in crate::connection) fn set_ecn_fields(
        &mut self,
        reference: PacketRef,
        length: u32,
        packets: &mut PacketStore,
    ) {
        let packet = packets.get_mut(reference);
        if self.sender.ecn.echoes {
            packet.flags = packet.flags.with(Flags::ECE);
        }
        if length > 0 && self.sender.ecn.fresh {
            // RFC 3168 section 5: ECT(0). RFC 3168 section 5.2: only where a loss is detected.
            packet.set_ecn(Ecn::Capable0);
            if std::mem::take(&mut self.sender.ecn.reduced) {
                packet.flags = packet.flags.with(Flags::CWR);
            }
        }
    }
}

impl Sender {
    /// Whether a reduction for a mark is in progress, during which the window must not grow.
    #[inline]
    pub(in crate::connection) fn is_reducing(&self) -> bool {
        self.ecn.on && self.is_reducing_for_mark()
    }

    /// Whether the window must not grow because of a mark, reported by this acknowledgment or
    /// before. After a timeout it grows in spite of ECE, as in Linux (tcp_may_raise_cwnd). The peer
    /// sends ECE until it receives CWR, which only new data may carry (RFC 3168 section 6.1.2). New
    /// data is sent only after all lost data is retransmitted, which would otherwise proceed at one
    /// segment per round trip. (ns-2 reaches the same by allowing CWR on retransmissions,
    /// SetCWRonRetransmit_.)
    #[inline]
    pub(in crate::connection) fn marks_prevent_growth(&self, packet: &Packet) -> bool {
        self.ecn.on
            && self.phase() != RecoveryPhase::AfterTimeout
            && (self.ece_counts(packet) || self.is_reducing_for_mark())
    }

    fn ece_counts(&self, packet: &Packet) -> bool {
        packet.flags.has(Flags::ECE)
            && !(self.reduces_gradually() && self.recovery.phase() != RecoveryPhase::Open)
    }

    #[inline(never)]
    fn is_reducing_for_mark(&self) -> bool {
        if self.reduces_gradually() {
            self.recovery.is_reducing_for_mark()
        } else {
            // As in Linux: "CWR is to be held something *above* high_seq is ACKed for CWR bit to
            // reach receiver".
            self.send.sequence.unacknowledged <= self.ecn.cwr_position
        }
    }

    /// Whether a mark reduces the window gradually. Model-based congestion control sets its window
    /// itself.
    fn reduces_gradually(&self) -> bool {
        self.quirks().window.reduces_gradually_for_marks
            && self.recovery.can_reduce_for_marks()
            && self.delivery_rate.is_none()
    }

    /// Reacts to ECE on an acknowledgment of outstanding data, after loss recovery has processed it
    /// (tcp_try_to_open). Returns whether a window reduction begins.
    #[inline(never)]
    pub(in crate::connection) fn process_ece(&mut self, packet: &Packet, now: Time) -> bool {
        // tcp_ecn_rcv_ecn_echo: ECE on a SYN+ACK is part of the negotiation.
        let echoes = packet.flags.has(Flags::ECE) && !packet.flags.has(Flags::SYN);
        if !echoes || !self.reduces_gradually() {
            return false;
        }
        let begins =
            self.recovery.phase() == RecoveryPhase::Open && !self.recovery.is_reducing_for_mark();
        if begins {
            self.reduce_for_mark(now);
        }
        self.ecn.undo_forbidden = true;
        begins
    }

    fn reduce_for_mark(&mut self, now: Time) {
        let window = self.congestion.window().congestion_window;
        self.reduce(Congestion::Ecn, window, now);
        self.recovery.reduce_for_mark(window, &self.send.sequence);
        self.note_reduction();
    }

    /// Ends the reduction for a mark if new data was acknowledged beyond it. Returns whether it
    /// continues.
    #[inline(never)]
    pub(in crate::connection) fn continue_reduction_for_mark(&mut self) -> bool {
        self.recovery
            .end_reduction_for_mark(self.send.sequence.unacknowledged);
        self.recovery.is_reducing_for_mark()
    }

    /// At the start of recovery: whether a reduction for a mark is in progress already.
    #[inline(never)]
    pub(in crate::connection) fn is_reduced_for_mark(&self) -> bool {
        self.reduces_gradually() && self.recovery.is_reducing()
    }

    /// Whether the last window reduction may be undone.
    pub(in crate::connection) fn may_undo_reduction(&self) -> bool {
        !self.ecn.undo_forbidden
    }

    /// After a repeated timeout that does not reduce the window, Linux sends CWR all the same
    /// (tcp_enter_loss).
    pub(in crate::connection) fn note_repeated_timeout(&mut self) {
        if self.ecn.on && self.quirks().window.reduces_gradually_for_marks {
            self.ecn.reduced = true;
        }
    }

    /// Records a window reduction of any cause.
    pub(in crate::connection) fn note_reduction(&mut self) {
        if self.ecn.on {
            self.ecn.reduced = true;
            self.ecn.undo_forbidden = false;
            self.ecn.cwr_position = self.send.sequence.highest;
        }
    }
}
