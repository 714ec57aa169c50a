//! Header prediction: the shorter ways that nearly every segment goes, by the same steps.
//!
//! Each is tried before anything is changed, and leads where the long way would:
//! [`Config::header_prediction`](crate::Config::header_prediction) turns all of them off, and a property
//! test compares hostile cases packet for packet.
//!
//! What a connection has to be like for a short way to be open is looked up once, and remembered until
//! something else than that way changes the connection ([`Foresight`]; the idea is Van Jacobson's, in whose
//! BSD it was two comparisons, and Linux's `pred_flags`).

use bentpipe_types::{Ctx, Packet, PacketRef, Time};

use super::ack::{Acknowledged, Told};
use super::known::{Known, PacedQuiet, PacedRepairing, Plain};
use super::receive::NOWHERE;
use super::{Accepted, Connection, Events, Sender, State};
use crate::recovery::{LossRecovery, Reaction, Whole};

/// What may come next that there is a short way for, by what the connection is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Foresight {
    /// To be looked up: something has changed.
    #[default]
    Unknown,
    /// Nothing.
    Nothing,
    /// Text, to an end that has nothing to send: there is but one thing that it can make this end send, an
    /// acknowledgment.
    Text,
    /// An acknowledgment, to a sender of which nothing is lost.
    Acknowledgment(Manner),
    /// A duplicate acknowledgment with SACK blocks, to a sender in fast recovery.
    Duplicate(Manner),
}

/// How a sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// It [paces](Sender::is_paced).
    Paced,
    /// It does not.
    Unpaced,
    /// Nor does it, and the connection [is simple](Connection::is_simple).
    Simple,
}

/// A shorter way, named where it is taken: a test that is to take each of them counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The next text.
    Text,
    /// Text ahead of a gap.
    TextAhead,
    /// An acknowledgment of the first of what is outstanding.
    Acknowledgment,
    /// The same, at a sender that paces, or whose window rule models the path.
    PacedAcknowledgment,
    /// A duplicate acknowledgment with SACK blocks, in fast recovery.
    Duplicate,
    /// The same, at a sender that paces, or whose window rule models the path.
    PacedDuplicate,
    /// Any segment in the window, or with SACK blocks, that passes every check.
    Ordinary,
    /// A write behind a full segment.
    Write,
    /// The pacer's time.
    Paced,
    /// An acknowledgment of whole segments that were sent once, at a sender that does not pace.
    Whole,
    /// What is lost and like what was just sent again.
    Alike,
    /// A write behind a full segment, of what is fed to a socket that keeps no bytes.
    Refill,
}

#[cfg(test)]
thread_local! {
    /// How often each was taken.
    pub(crate) static TAKEN: std::cell::Cell<[u64; 12]> = const { std::cell::Cell::new([0; 12]) };
}

impl Way {
    #[inline(always)]
    pub(super) fn taken(self) {
        #[cfg(test)]
        {
            let mut taken = TAKEN.get();
            taken[self as usize] += 1;
            TAKEN.set(taken);
        }
    }
}

impl Connection {
    /// Something has changed, or may have, that [`foresee`](Self::foresee) looks at.
    #[inline]
    pub(super) fn changed(&mut self) {
        self.foresight = Foresight::Unknown;
    }

    /// Looks up what there is a short way for.
    fn foresee(&self) -> Foresight {
        let sender = &self.sender;
        let established = matches!(self.state, State::Established | State::FinWait1)
            && self.receive.fin == NOWHERE
            && !sender.ecn.is_on();
        if !established || !sender.config.header_prediction {
            Foresight::Nothing
        } else if sender.is_at_rest() && !self.receive.refuses {
            Foresight::Text
        } else if !sender.is_plain() || self.receive.acknowledge_now || self.receive.has_blocks() {
            Foresight::Nothing
        } else {
            let manner = || match (sender.is_paced(), self.is_simple()) {
                (true, _) => Manner::Paced,
                (false, false) => Manner::Unpaced,
                (false, true) => Manner::Simple,
            };
            match (sender.is_quiet(), sender.is_repairing()) {
                (true, _) => Foresight::Acknowledgment(manner()),
                (false, true) => Foresight::Duplicate(manner()),
                (false, false) => Foresight::Nothing,
            }
        }
    }

    /// Is its send buffer as large as it was said to be, does recovery hear SACK blocks, and has it none of the habits of
    /// Linux's that are asked for with each segment?
    fn is_simple(&self) -> bool {
        let sender = &self.sender;
        let habits = &sender.config.habits;
        sender.send.sizing.is_none()
            && sender.recovery.hears_blocks()
            && !habits.sends_in_bursts
            && !habits.recognises_dialogue
            && !habits.times_in_ticks
            && !habits.counts_short_segments
    }

    /// What there is a short way for now.
    #[inline]
    pub(super) fn foresight(&mut self) -> Foresight {
        if self.foresight == Foresight::Unknown {
            self.foresight = self.foresee();
        }
        debug_assert_eq!(
            self.foresight,
            self.foresee(),
            "changed, and nobody said so"
        );
        self.foresight
    }

    /// Is this segment one that carries neither flags nor options worth a look, and whose timestamp is no
    /// older than the last?
    #[inline]
    fn is_bare(&self, packet: &Packet) -> bool {
        packet.is_bare(self.sender.negotiated.timestamps) && self.is_timely(packet)
    }

    #[inline]
    fn is_timely(&self, packet: &Packet) -> bool {
        packet
            .timestamps()
            .is_none_or(|(value, _)| value.wrapping_sub(self.receive.timestamp_recent) as i32 >= 0)
    }

    /// Where [text is foreseen](Foresight::Text): is it text, and nothing else? Returns how far after RCV.NXT
    /// it begins, if all of it is in the window.
    #[inline]
    pub(super) fn only_brings_text(&self, packet: &Packet) -> Option<i64> {
        let send = &self.sender.send;
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));
        let end = start + i64::from(packet.payload_length);
        let only = self.is_bare(packet)
            && packet.payload_length > 0
            && packet.acknowledgment == send.wire(send.sequence.unacknowledged)
            && start >= 0
            && end <= self.receive.window() as i64;
        only.then_some(start)
    }

    /// What [`ordinary_segment`](Self::ordinary_segment) does with text that is all a segment brings.
    #[inline(never)]
    pub(super) fn next_text(
        &mut self,
        reference: PacketRef,
        start: i64,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let way = if start > 0 { Way::TextAhead } else { Way::Text };
        way.taken();
        let packet = cx.packets.get(reference);
        let probed = self.answers_no_probe(packet);
        self.sender.nothing_acknowledged(packet);
        if probed {
            self.receive.heard_at = cx.now;
        } else {
            self.heard(cx.now);
        }
        self.note_timestamp(packet, start, cx.now);
        let accepted = if start == 0 {
            self.next_in_order(packet, cx.now)
        } else {
            self.next_ahead(packet, start, cx.now)
        };
        if self.receive.acknowledge_now {
            self.acknowledge_in_place(reference, cx);
        } else {
            cx.packets.release(reference);
        }
        accepted
    }

    /// Where [an acknowledgment](Foresight::Acknowledgment) is foreseen, at a sender that paces or not: does it
    /// acknowledge the first of what is outstanding, and nothing else, at an end with more to send? Returns how
    /// many positions it acknowledges.
    #[inline]
    pub(super) fn only_acknowledges(&self, packet: &Packet, now: Time) -> Option<u64> {
        let send = &self.sender.send;
        let expected = send.wire(send.sequence.unacknowledged);
        let acknowledged = i64::from(packet.acknowledgment.distance_from(expected));
        let only = self.is_bare(packet)
            && packet.payload_length == 0
            && packet.sequence == self.receive.wire()
            && (1..send.sequence.outstanding() as i64).contains(&acknowledged)
            && send.sequence.next < send.end
            && !self.sender.path_mtu.is_looked_after(now)
            && !self.asks_again(packet);
        only.then_some(acknowledged as u64)
    }

    /// The pacer's time has come, and no other: where [an acknowledgment](Foresight::Acknowledgment) or
    /// [a duplicate](Foresight::Duplicate) is foreseen, and there is more to send, what was held up leaves. False:
    /// nothing is done.
    #[inline]
    pub(super) fn pacer_lets_go(&mut self, cx: &mut Ctx<'_>) -> bool {
        if !self.sender.timers.only_paces(cx.now) {
            return false;
        }
        let quiet = match self.foresight() {
            Foresight::Acknowledgment(Manner::Paced) => true,
            Foresight::Duplicate(Manner::Paced) => false,
            _ => return false,
        };
        let sender = &mut self.sender;
        if sender.send.is_idle()
            || sender.send.sequence.next >= sender.send.end
            || sender.path_mtu.is_looked_after(cx.now)
        {
            return false;
        }
        Way::Paced.taken();
        sender.timers.pace(None);
        if quiet {
            self.transmit_paced::<PacedQuiet>(None, cx);
        } else {
            self.transmit_paced::<PacedRepairing>(None, cx);
        }
        self.sender.review_early_timer::<Plain>(true, cx.now);
        true
    }

    /// What [`ordinary_segment`](Self::ordinary_segment) does with an acknowledgment that is all a segment
    /// brings. `KEPT`: whoever feeds the stream keeps its bytes.
    #[inline]
    pub(super) fn next_acknowledgment<K: Known, const KEPT: bool>(
        &mut self,
        reference: PacketRef,
        acknowledged: u64,
        cx: &mut Ctx<'_>,
    ) {
        let packet = cx.packets.get(reference);
        let sender = &mut self.sender;
        sender.set_window(packet, sender.negotiated.send_shift);
        let whole = (!K::PACED).then(|| sender.acknowledges_whole::<K>(acknowledged));
        let quiet = match whole.flatten() {
            Some(whole) => {
                Way::Whole.taken();
                let what = Acknowledged::Whole(whole);
                sender.new_data_acknowledged::<K>(packet, acknowledged, what, cx.now)
            }
            None => {
                let what = Acknowledged::Something(None);
                sender.new_data_acknowledged::<K>(packet, acknowledged, what, cx.now)
            }
        };
        self.note_timestamp(packet, 0, cx.now);
        cx.packets.release(reference);
        let mut room = self.makes_room::<K>(cx.now);
        if quiet {
            if K::PACED {
                Way::PacedAcknowledgment.taken();
                self.transmit_paced::<K>(None, cx);
            } else {
                Way::Acknowledgment.taken();
                self.transmit::<K>(None, cx);
                if !KEPT && room > 0 && self.refill::<K>(room, cx.now) {
                    room = 0;
                }
            }
            self.sender.review_early_timer::<K>(true, cx.now);
        } else {
            self.output(cx);
        }
        if room > 0 {
            self.events |= Events::WRITABLE;
        }
        self.check_space::<K>(cx.now);
    }

    /// What is left to feed it with is written as far as there is `room` for a writer that waits, after an
    /// acknowledgment that is all a segment brings, at a sender that does not pace: where that
    /// [lets nothing out](Self::is_held_up) and more is left, the socket need not do it, if it keeps no bytes.
    /// False: nothing is written.
    #[inline(always)]
    fn refill<K: Known>(&mut self, room: u64, now: Time) -> bool {
        let (sender, Some(feed)) = (&mut self.sender, &mut self.feed) else {
            return false;
        };
        debug_assert_eq!(room, sender.send.buffer_room(), "so it was said");
        debug_assert!(
            sender.send.sizing.is_none(),
            "another says what room there is"
        );
        let lets_nothing_out = feed.left > room
            && !sender.send.fin
            && sender.send.unsent() >= u64::from(sender.negotiated.segment)
            && (K::SIMPLE || !sender.config.habits.sends_in_bursts);
        if lets_nothing_out {
            feed.left -= room;
            debug_assert!(self.is_held_up(now), "it lets something out");
            self.sender.send.pushed = self.sender.send.end + room;
            self.took(room, true, now);
            Way::Refill.taken();
        }
        lets_nothing_out
    }

    /// Where [a duplicate](Foresight::Duplicate) is foreseen, at a sender that paces or not: is it one, with SACK
    /// blocks, and nothing else, at an end with more to send?
    #[inline]
    pub(super) fn only_repeats(&self, packet: &Packet, now: Time) -> bool {
        let send = &self.sender.send;
        packet.is_bare_with_sack_blocks(self.sender.negotiated.timestamps)
            && self.is_timely(packet)
            && packet.payload_length == 0
            && packet.sequence == self.receive.wire()
            && packet.acknowledgment == send.wire(send.sequence.unacknowledged)
            && packet.window > 0
            && u64::from(packet.window) << self.sender.negotiated.send_shift == send.window
            && !send.is_idle()
            && send.sequence.next < send.end
            && !self.sender.path_mtu.is_looked_after(now)
            && !self.asks_again(packet)
    }

    /// What [`ordinary_segment`](Self::ordinary_segment) does with a duplicate that is all a segment brings.
    #[inline(never)]
    pub(super) fn next_duplicate<K: Known>(&mut self, reference: PacketRef, cx: &mut Ctx<'_>) {
        let packet = cx.packets.get(reference);
        let blocks = cx.packets.sack_block_slice(reference);
        self.heard(cx.now);
        let sender = &mut self.sender;
        sender.note_same_window(packet);
        let (from, to) = (
            sender.send.sequence.unacknowledged,
            sender.send.sequence.highest,
        );
        let (reaction, in_flight) =
            if let Some(covered) = sender.scoreboard.covers_one_more(blocks, from, to) {
                let told = Told::OneMore(covered);
                sender.nothing_new_acknowledged::<K>(packet, true, told, cx.now)
            } else {
                let told = Told::Blocks(Some(blocks));
                sender.nothing_new_acknowledged::<K>(packet, true, told, cx.now)
            };
        // (As long as recovery goes on, it holds.)
        if reaction != Reaction::Hold {
            self.changed();
        }
        self.note_timestamp(packet, 0, cx.now);
        cx.packets.release(reference);
        if K::PACED {
            Way::PacedDuplicate.taken();
            self.transmit_paced::<K>(in_flight, cx);
        } else {
            Way::Duplicate.taken();
            self.transmit::<K>(in_flight, cx);
        }
        self.sender.review_early_timer::<K>(true, cx.now);
        self.check_space::<K>(cx.now);
    }

    /// Does a full segment wait, so that whatever lets no more out than was sent is not a want of
    /// something to send? Then writing more lets nothing out either. (A path MTU probe wants more than a
    /// full segment, what may be lost goes again where nothing new may, duplicates may have let out less than
    /// they could where segments are short, a pacer's time may have come just now, and Linux waits for more
    /// than a segment: then it is not known.)
    #[inline(always)]
    pub(super) fn is_held_up(&self, now: Time) -> bool {
        let sender = &self.sender;
        let nothing_else = match self.foresight {
            Foresight::Acknowledgment(_) => true,
            _ => self.has_nothing_else_to_send(),
        };
        nothing_else
            && !sender.timers.has_paced_until(now)
            && !sender.config.habits.sends_in_bursts
            && sender.send.unsent() >= u64::from(sender.negotiated.segment)
            && !sender.send.is_idle()
            && !sender.path_mtu.is_looked_after(now)
    }

    /// Is there nothing to be sent but what is new?
    #[inline(never)]
    fn has_nothing_else_to_send(&self) -> bool {
        self.sender.config.header_prediction
            && !self.receive.acknowledge_now
            && self.sender.is_quiet()
            && self.state.can_send()
    }
}

impl Sender {
    /// Is there nothing about what this sender sends next? It was never sent, and its segments are no
    /// records. (Whether it searches its MTU depends on the time.)
    #[inline]
    fn is_plain(&self) -> bool {
        self.send.sequence.next == self.send.sequence.highest && self.send.records.is_empty()
    }

    /// Where recovery [is quiet](Self::is_quiet), and counts no duplicates as if they told of segments: does an
    /// acknowledgment of so much acknowledge whole segments that were sent once?
    #[inline(always)]
    fn acknowledges_whole<K: Known>(&self, acknowledged: u64) -> Option<Whole> {
        if !K::SIMPLE && self.recovery.counts_duplicates() {
            return None;
        }
        let position = self.send.sequence.unacknowledged + acknowledged;
        self.scoreboard.acknowledges_whole(position)
    }

    /// Is it in fast recovery, by what the peer says of each segment?
    #[inline]
    fn is_repairing(&self) -> bool {
        self.recovery.hears_blocks() && self.recovery.is_recovering()
    }

    /// Does it pace, or is what the path delivers measured?
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.pacer.is_on() || self.delivery_rate.is_some()
    }

    /// Has loss recovery nothing to say? Then what is outstanding is in flight.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let sequence = &self.send.sequence;
        let quiet = self.recovery.is_quiet(sequence, &self.scoreboard);
        debug_assert!(!quiet || self.in_flight() == sequence.outstanding());
        quiet
    }

    /// Bytes believed to be in the network, by a loss recovery that [is quiet](Self::is_quiet), or is not known
    /// to be.
    #[inline(always)]
    pub(super) fn in_flight_if(&self, quiet: bool) -> u64 {
        if quiet {
            self.send.sequence.outstanding()
        } else {
            self.in_flight()
        }
    }
}
