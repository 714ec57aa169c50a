//! Explicit congestion notification (RFC 3168): queues mark instead of dropping.

use bentpipe_types::{Ecn, Flags, Packet, PacketRef, PacketStore, Time};
use serde::{Deserialize, Serialize};

use super::{Connection, Sender};
use crate::EcnMode;
use crate::congestion::Congestion;
use crate::rate_sample::RecoveryPhase;
use crate::recovery::LossRecovery;

/// Both flags: "ECN-setup SYN" (RFC 3168 section 6.1.1).
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// Where one end stands.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct Notification {
    /// Both ends have agreed on it.
    on: bool,
    /// Every segment says ECE until the peer says CWR (section 6.1.3).
    echoes: bool,
    /// The window was reduced: the next new data say so (section 6.1.2).
    reduced: bool,
    /// The segment being sent has not been sent before.
    pub(super) fresh: bool,
    /// Our SYN asked for it.
    requested: bool,
    /// Text has come that may be marked.
    seen: bool,
    /// The window that was reduced last is not to be restored: the path has marked since, or then.
    stays_reduced: bool,
    /// The first new data after the window was reduced begins here, and says so: until more than what is before it is
    /// acknowledged, the peer has not heard, and echoes marks of the window that was reduced.
    reduced_until: u64,
}

impl Notification {
    /// Is it in use? Then no segment is ordinary.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }
}

impl Connection {
    /// What our SYN, or SYN+ACK, says besides. A SYN that has to be sent again asks for nothing
    /// (RFC 3168 section 6.1.1.1): a path may drop those that do.
    pub(super) fn ecn_setup(&mut self, answers: bool) -> Flags {
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

    /// The peer's SYN, or SYN+ACK, has come.
    pub(super) fn agree_on_ecn(&mut self, syn: &Packet) {
        let both = syn.flags.has(Flags::ECE) && syn.flags.has(Flags::CWR);
        self.sender.ecn.on = if syn.flags.has(Flags::ACK) {
            self.sender.ecn.requested && syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR)
        } else {
            self.sender.config.ecn != EcnMode::Off && both
        };
    }

    /// What an acceptable segment says of congestion: its own mark is to be echoed, an echo reduces
    /// the window, once per window of data (RFC 3168 section 6.1.2). `start`: its text begins so far after
    /// RCV.NXT.
    pub(super) fn notified(&mut self, packet: &Packet, start: i64, now: Time) {
        if !self.sender.ecn.on {
            return;
        }
        // (What acknowledges what was acknowledged before says nothing more to Linux: tcp_ack. What only an old segment did,
        // was not: tcp_validate_incoming.)
        let newly = packet
            .acknowledgment
            .distance_from(self.acknowledged_in_window);
        let old = newly < 0;
        if !old {
            self.acknowledged_in_window = packet.acknowledgment;
        }
        if packet.flags.has(Flags::CWR) && !(old && self.sender.config.habits.overlooks_old_cwr) {
            self.sender.ecn.echoes = false;
            // tcp_ecn_accept_cwr: at once, since its window may be of one segment.
            let linux = self.receive.quick_as_linux;
            self.receive.acknowledge_now |= linux && packet.payload_length > 0;
        }
        // RFC 3168 section 6.1.5: what is outside of the window may say what it likes. (Where acknowledgments are as
        // Linux has them, that is looked at with the text: `mark_of_text`.)
        let window = self.receive.window() as i64;
        let end = start + i64::from(packet.payload_length);
        let in_window = packet.payload_length > 0 && start < window && end > 0;
        if in_window && !self.receive.quick_as_linux && self.mark_has_come(packet.ecn()) {
            // As in Linux, at once: the sooner the sender knows, the shorter the queue.
            self.receive.acknowledge_now |= packet.ecn() == Ecn::Congestion;
        }
        let reduces = packet.flags.has(Flags::ECE)
            && !self.sender.reduces_gradually()
            && !self.sender.is_reducing()
            && self.sender.phase() == RecoveryPhase::Open
            && !self.sender.send.is_idle();
        if reduces {
            // As for a loss: what was outstanding when the acknowledgment came.
            let outstanding =
                self.sender.send.sequence.outstanding() + u64::from(newly.max(0) as u32);
            let flight_size = self.sender.congested_flight(outstanding);
            self.sender.reduce(Congestion::Ecn, flight_size, now);
            self.sender.note_reduction();
        }
    }

    /// The mark of the next text, which there is room for, where acknowledgments are as Linux has them: is it a reason to
    /// acknowledge sooner (tcp_event_data_recv)? What is old altogether, or beyond the window, is not asked for its mark.
    #[inline]
    pub(super) fn mark_of_text(&mut self, packet: &Packet) -> bool {
        self.sender.ecn.on && self.receive.quick_as_linux && self.mark_has_come(packet.ecn())
    }

    /// The same of text ahead of a gap, whether there is room for it or not (tcp_data_queue_ofo).
    pub(super) fn mark_ahead(&mut self, packet: &Packet) {
        if self.mark_of_text(packet)
            && let Some(sizing) = &mut self.receive.sizing
        {
            sizing.should_hurry();
        }
    }

    /// tcp_data_ecn_check, of text.
    #[inline(never)]
    fn mark_has_come(&mut self, mark: Ecn) -> bool {
        let ecn = &mut self.sender.ecn;
        let quicker = match mark {
            Ecn::Congestion => !std::mem::replace(&mut ecn.echoes, true),
            // What is not capable, of a sender whose text is: most likely it was sent again.
            Ecn::NotCapable => ecn.seen,
            _ => false,
        };
        ecn.seen |= mark != Ecn::NotCapable;
        quicker
    }

    /// Marks a segment that is no SYN: new data are ECN-capable, retransmissions and bare
    /// acknowledgments are not (RFC 3168 sections 6.1.4 and 6.1.5).
    pub(super) fn mark_outgoing(
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
            packet.set_ecn(Ecn::Capable0);
            if std::mem::take(&mut self.sender.ecn.reduced) {
                packet.flags = packet.flags.with(Flags::CWR);
            }
        }
    }
}

impl Sender {
    /// Is the window not to grow, because it is being reduced for a mark?
    #[inline]
    pub(super) fn is_reducing(&self) -> bool {
        self.ecn.on && self.is_reducing_for_mark()
    }

    /// The same, or does this acknowledgment begin it? After a timeout the window grows whatever is echoed, as in Linux
    /// (tcp_may_raise_cwnd). The peer echoes until it hears of the reduction, which only new data may tell it (RFC 3168
    /// section 6.1.2), and none goes before all that was lost is repaired: that would go a segment a round trip. (ns-2
    /// has the same end by other means: its retransmissions may tell, too, SetCWRonRetransmit_.)
    #[inline]
    pub(super) fn marks_hold(&self, packet: &Packet) -> bool {
        self.ecn.on
            && self.phase() != RecoveryPhase::AfterTimeout
            && (self.echo_counts(packet) || self.is_reducing_for_mark())
    }

    fn echo_counts(&self, packet: &Packet) -> bool {
        packet.flags.has(Flags::ECE)
            && !(self.reduces_gradually() && self.recovery.phase() != RecoveryPhase::Open)
    }

    #[inline(never)]
    fn is_reducing_for_mark(&self) -> bool {
        if self.reduces_gradually() {
            self.recovery.is_reducing_for_mark()
        } else {
            // As in Linux: "CWR is to be held something *above* high_seq is ACKed for CWR bit to reach receiver".
            self.send.sequence.unacknowledged <= self.ecn.reduced_until
        }
    }

    /// Does a mark make the window come down bit by bit? A rule that models the path sees to its window itself.
    fn reduces_gradually(&self) -> bool {
        self.config.habits.reduces_gradually_for_marks
            && self.recovery.can_reduce_for_marks()
            && self.delivery_rate.is_none()
    }

    /// An acknowledgment of what is outstanding, or of some of it, and what loss recovery makes of it is done. Does it echo a
    /// mark (tcp_try_to_open)? Returns whether the window begins to come down.
    #[inline(never)]
    pub(super) fn hear_echo(&mut self, packet: &Packet, now: Time) -> bool {
        // (tcp_ecn_rcv_ecn_echo: that of a SYN+ACK is an agreement.)
        let echoes = packet.flags.has(Flags::ECE) && !packet.flags.has(Flags::SYN);
        if !echoes || !self.reduces_gradually() {
            return false;
        }
        let begins =
            self.recovery.phase() == RecoveryPhase::Open && !self.recovery.is_reducing_for_mark();
        if begins {
            self.reduce_for_mark(now);
        }
        self.ecn.stays_reduced = true;
        begins
    }

    fn reduce_for_mark(&mut self, now: Time) {
        let window = self.congestion.window().congestion_window;
        self.reduce(Congestion::Ecn, window, now);
        self.recovery.reduce_for_mark(window, &self.send.sequence);
        self.note_reduction();
    }

    /// Something new is acknowledged: does the window come down for a mark, and still does?
    #[inline(never)]
    pub(super) fn goes_on_for_mark(&mut self) -> bool {
        self.recovery.end_of_mark(self.send.sequence.unacknowledged);
        self.recovery.is_reducing_for_mark()
    }

    /// Recovery begins: is the window reduced already, for a mark?
    #[inline(never)]
    pub(super) fn is_reduced_for_mark(&self) -> bool {
        self.reduces_gradually() && self.recovery.goes_on_reducing()
    }

    /// Is the window that was reduced last to be what it was before?
    pub(super) fn may_restore_window(&self) -> bool {
        !self.ecn.stays_reduced
    }

    /// A timeout that is no new reason to reduce the window: Linux tells of a reduction all the same (tcp_enter_loss).
    pub(super) fn note_repeated_timeout(&mut self) {
        if self.ecn.on && self.config.habits.reduces_gradually_for_marks {
            self.ecn.reduced = true;
        }
    }

    /// The window was reduced, for whatever reason.
    pub(super) fn note_reduction(&mut self) {
        if self.ecn.on {
            self.ecn.reduced = true;
            self.ecn.stays_reduced = false;
            self.ecn.reduced_until = self.send.sequence.highest;
        }
    }
}
