//! Header prediction: the shorter ways that nearly every segment goes, by the same steps.
//!
//! Each is tried before anything is changed, and leads where the long way would:
//! [`Config::header_prediction`](crate::Config::header_prediction) turns all of them off, and a property
//! test compares hostile cases packet for packet.

use bentpipe_types::{Ctx, Packet, PacketRef, Time};

use super::{Accepted, Connection, Sender};
use crate::recovery::{LossRecovery, Reaction};

impl Connection {
    /// Of an ordinary segment: is it text, and nothing to an end that has nothing to send? Then there is
    /// but one thing that it can make this end send: an acknowledgment.
    #[inline]
    pub(super) fn only_brings_text(&self, packet: &Packet) -> bool {
        let sender = &self.sender;
        self.sender.config.header_prediction
            && packet.payload_length > 0
            && packet.acknowledgment == sender.send.wire(sender.send.sequence.unacknowledged)
            && sender.is_at_rest()
            && !self.receive.refuses
    }

    /// What [`ordinary_segment`](Self::ordinary_segment) does with text that is all a segment brings.
    #[inline]
    pub(super) fn next_text(&mut self, reference: PacketRef, cx: &mut Ctx<'_>) -> Option<Accepted> {
        let packet = cx.packets.get(reference);
        self.sender.acknowledged(packet, None, 0, cx.now);
        self.heard(cx.now);
        self.update_timestamp(packet, 0, cx.now);
        let accepted = self.text(packet, 0, cx.now);
        if self.receive.acknowledge_now {
            self.acknowledge_in_place(reference, cx);
        } else {
            cx.packets.release(reference);
        }
        accepted
    }

    /// Of an ordinary segment: does it acknowledge the first of what is outstanding, and nothing else, at
    /// an end with more to send? Returns how many positions it acknowledges.
    #[inline]
    pub(super) fn only_acknowledges(&self, packet: &Packet, now: Time) -> Option<u64> {
        let send = &self.sender.send;
        let expected = send.wire(send.sequence.unacknowledged);
        let acknowledged = i64::from(packet.acknowledgment.distance_from(expected));
        let only = packet.payload_length == 0
            && (1..send.sequence.outstanding() as i64).contains(&acknowledged)
            && send.sequence.next < send.end
            && self.sender.is_plain(now)
            && !self.receive.acknowledge_now;
        only.then_some(acknowledged as u64)
    }

    /// What [`ordinary_segment`](Self::ordinary_segment) does with an acknowledgment that is all a segment
    /// brings.
    #[inline]
    pub(super) fn next_acknowledgment(
        &mut self,
        reference: PacketRef,
        acknowledged: u64,
        cx: &mut Ctx<'_>,
    ) {
        let packet = cx.packets.get(reference);
        let sender = &mut self.sender;
        sender.update_window(packet, true);
        let reaction = sender.new_data_acknowledged::<true>(packet, acknowledged, None, cx.now);
        self.update_timestamp(packet, 0, cx.now);
        cx.packets.release(reference);
        self.progressed(cx.now);
        if reaction == Reaction::Grow {
            self.transmit::<true>(cx);
            self.sender.review_early_timer(true, cx.now);
        } else {
            self.output(cx);
        }
        self.check_space();
    }

    /// Does a full segment wait, so that whatever lets no more out than was sent is not a want of
    /// something to send? Then writing more lets nothing out either. (A path MTU probe wants more than a
    /// full segment, what may be lost goes again where nothing new may, a pacer's time comes of itself,
    /// and Linux waits for more than a segment: then it is not known.)
    #[inline]
    pub(super) fn is_held_up(&self, now: Time) -> bool {
        let sender = &self.sender;
        sender.config.header_prediction
            && !sender.config.habits.sends_in_bursts
            && sender.send.unsent() >= u64::from(sender.negotiated.segment)
            && !sender.send.is_idle()
            && !self.receive.acknowledge_now
            && !sender.pacer.is_on()
            && !sender.recovery.is_recovering()
            && !sender.path_mtu.is_looked_after(now)
            && self.state.can_send()
    }
}

impl Sender {
    /// Is there nothing about this sender but a window? Nothing is lost or was sent twice, it neither
    /// paces nor models the path nor searches its MTU, and its segments are no records.
    #[inline]
    fn is_plain(&self, now: Time) -> bool {
        self.send.is_plain
            && self.send.sequence.next == self.send.sequence.highest
            && self.recovery.is_quiet(&self.scoreboard)
            && !self.path_mtu.is_looked_after(now)
            && self.send.records.is_empty()
    }

    /// What of [`is_plain`](Self::is_plain) does not change once a connection is established.
    pub(super) fn note_what_is_plain(&mut self) {
        self.send.is_plain =
            self.config.header_prediction && self.delivery_rate.is_none() && !self.pacer.is_on();
    }
}
