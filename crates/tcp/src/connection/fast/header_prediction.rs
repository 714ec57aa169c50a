//! Header prediction: fast paths for the most common segments, made of the same steps as the
//! general path.
//!
//! The idea is Van Jacobson's (two comparisons in BSD); Linux has `pred_flags`.

use bentpipe_types::{Ctx, Packet, PacketRef, Time};

use super::{FastPath, SenderKind, TakenPath};
use crate::connection::ack::{Acknowledged, SackReport};
use crate::connection::receive::UNSET;
use crate::connection::specialization::Specialization;
use crate::connection::{Accepted, Connection, Events, Sender, State};
use crate::recovery::{LossRecovery, Reaction, WholeSegments};

impl Connection {
    /// Determines the fast path that the connection's state allows.
    pub(super) fn determine_fast_path(&self) -> FastPath {
        let sender = &self.sender;
        let established = matches!(self.state, State::Established | State::FinWait1)
            && self.receive.fin == UNSET
            && !sender.ecn.is_on();
        if !established || !sender.config.header_prediction {
            FastPath::None
        } else if sender.is_quiescent() && !self.receive.reader_gone {
            FastPath::Text
        } else if !sender.sends_only_new_data()
            || self.receive.acknowledge_now
            || self.receive.has_blocks()
        {
            FastPath::None
        } else {
            let manner = || match (sender.is_paced(), self.is_simple()) {
                (true, _) => SenderKind::Paced,
                (false, false) => SenderKind::Unpaced,
                (false, true) => SenderKind::Simple,
            };
            match (sender.is_loss_free(), sender.is_recovering_with_sack()) {
                (true, _) => FastPath::Acknowledgment(manner()),
                (false, true) => FastPath::Duplicate(manner()),
                (false, false) => FastPath::None,
            }
        }
    }

    /// Whether the connection needs no per-segment special cases: fixed send buffer, SACK
    /// negotiated, no per-segment Linux behaviour enabled.
    fn is_simple(&self) -> bool {
        let sender = &self.sender;
        let quirks = &sender.config.linux_quirks;
        sender.send.sizing.is_none()
            && sender.recovery.uses_sack()
            && !quirks.sending.sends_in_bursts
            && !quirks.acks.pingpong_mode
            && !quirks.timers.ticks
            && !quirks.sending.counts_short_segments
    }

    /// Whether the segment has no special flags or options, and its timestamp is not older than the
    /// last one.
    #[inline]
    fn has_no_special_fields(&self, packet: &Packet) -> bool {
        packet.is_bare(self.sender.negotiated.timestamps) && self.passes_timestamp_check(packet)
    }

    #[inline]
    fn passes_timestamp_check(&self, packet: &Packet) -> bool {
        packet
            .timestamps()
            .is_none_or(|(value, _)| value.wrapping_sub(self.receive.timestamp_recent) as i32 >= 0)
    }

    /// With [`FastPath::Text`]: whether the segment carries data and nothing else. Returns its
    /// distance from RCV.NXT, if all of it is in the window.
    #[inline]
    pub(super) fn is_pure_data(&self, packet: &Packet) -> Option<i64> {
        let send = &self.sender.send;
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));
        let end = start + i64::from(packet.payload_length);
        let only = self.has_no_special_fields(packet)
            && packet.payload_length > 0
            && packet.acknowledgment == send.wire(send.sequence.unacknowledged)
            && start >= 0
            && end <= self.receive.window() as i64;
        only.then_some(start)
    }

    /// Fast path of [`Self::process_ordinary_segment`] for a segment that only carries data.
    #[inline(never)]
    pub(super) fn process_pure_data(
        &mut self,
        reference: PacketRef,
        start: i64,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let way = if start > 0 {
            TakenPath::TextAhead
        } else {
            TakenPath::Text
        };
        way.count();
        let packet = cx.packets.get(reference);
        let probed = self.is_no_probe_answer(packet);
        self.sender.process_idle_acknowledgment(packet);
        if probed {
            self.receive.last_received_at = cx.now;
        } else {
            self.note_peer_alive(cx.now);
        }
        self.record_timestamp(packet, start, cx.now);
        let accepted = if start == 0 {
            self.accept_in_order(packet, cx.now)
        } else {
            self.accept_out_of_order(packet, start, cx.now)
        };
        if self.receive.acknowledge_now {
            self.acknowledge_in_place(reference, cx);
        } else {
            cx.packets.release(reference);
        }
        accepted
    }

    /// With [`FastPath::Acknowledgment`]: whether the segment only acknowledges a part of the
    /// outstanding data, at an end with more to send. Returns the number of positions acknowledged.
    #[inline]
    pub(super) fn is_pure_acknowledgment(&self, packet: &Packet, now: Time) -> Option<u64> {
        let send = &self.sender.send;
        let expected = send.wire(send.sequence.unacknowledged);
        let acknowledged = i64::from(packet.acknowledgment.distance_from(expected));
        let only = self.has_no_special_fields(packet)
            && packet.payload_length == 0
            && packet.sequence == self.receive.wire()
            && (1..send.sequence.outstanding() as i64).contains(&acknowledged)
            && send.sequence.next < send.end
            && !self.sender.path_mtu.is_active(now)
            && !self.reconsiders_delayed_ack(packet);
        only.then_some(acknowledged as u64)
    }

    /// Fast path of [`Self::process_ordinary_segment`] for a pure acknowledgment.
    /// `KEPT`: the feeder of the stream keeps its bytes.
    #[inline]
    pub(super) fn process_pure_acknowledgment<K: Specialization, const KEPT: bool>(
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
                TakenPath::WholeSegments.count();
                let what = Acknowledged::WholeSegments(whole);
                sender.new_data_acknowledged::<K>(packet, acknowledged, what, cx.now)
            }
            None => {
                let what = Acknowledged::Something(None);
                sender.new_data_acknowledged::<K>(packet, acknowledged, what, cx.now)
            }
        };
        self.record_timestamp(packet, 0, cx.now);
        cx.packets.release(reference);
        let mut room = self.freed_room::<K>(cx.now);
        if quiet {
            if K::PACED {
                TakenPath::PacedAcknowledgment.count();
                self.transmit_paced::<K>(None, cx);
            } else {
                TakenPath::Acknowledgment.count();
                self.transmit::<K>(None, cx);
                if !KEPT && room > 0 && self.refill::<K>(room, cx.now) {
                    room = 0;
                }
            }
            self.sender.update_early_timer::<K>(true, cx.now);
        } else {
            self.output(cx);
        }
        if room > 0 {
            self.events |= Events::WRITABLE;
        }
        self.check_space::<K>(cx.now);
    }

    /// Writes as much of the feed as there is `room` for, after a pure acknowledgment at a
    /// sender that does not pace. Only where the write [sends nothing](Self::is_held_back) and data
    /// is left over, so that the socket, if it keeps no bytes, need not do it. Returns false if
    /// nothing was written.
    #[inline(always)]
    fn refill<K: Specialization>(&mut self, room: u64, now: Time) -> bool {
        let (sender, Some(feed)) = (&mut self.sender, &mut self.feed) else {
            return false;
        };
        debug_assert_eq!(room, sender.send.buffer_room(), "room as computed before");
        debug_assert!(
            sender.send.sizing.is_none(),
            "only for a send buffer of fixed size"
        );
        let lets_nothing_out = feed.left > room
            && !sender.send.fin
            && sender.send.unsent() >= u64::from(sender.negotiated.segment)
            && (K::SIMPLE || !sender.config.linux_quirks.sending.sends_in_bursts);
        if lets_nothing_out {
            feed.left -= room;
            debug_assert!(self.is_held_back(now), "the write would send something");
            self.sender.send.pushed = self.sender.send.end + room;
            self.queue_written(room, true, now);
            TakenPath::Refill.count();
        }
        lets_nothing_out
    }

    /// With [`FastPath::Duplicate`]: whether the segment is a duplicate acknowledgment with SACK
    /// blocks and nothing else, at an end with more to send.
    #[inline]
    pub(super) fn is_pure_duplicate(&self, packet: &Packet, now: Time) -> bool {
        let send = &self.sender.send;
        packet.is_bare_with_sack_blocks(self.sender.negotiated.timestamps)
            && self.passes_timestamp_check(packet)
            && packet.payload_length == 0
            && packet.sequence == self.receive.wire()
            && packet.acknowledgment == send.wire(send.sequence.unacknowledged)
            && packet.window > 0
            && u64::from(packet.window) << self.sender.negotiated.send_shift == send.window
            && !send.is_idle()
            && send.sequence.next < send.end
            && !self.sender.path_mtu.is_active(now)
            && !self.reconsiders_delayed_ack(packet)
    }

    /// Fast path of [`Self::process_ordinary_segment`] for a pure duplicate acknowledgment.
    #[inline(never)]
    pub(super) fn process_pure_duplicate<K: Specialization>(
        &mut self,
        reference: PacketRef,
        cx: &mut Ctx<'_>,
    ) {
        let packet = cx.packets.get(reference);
        let blocks = cx.packets.sack_block_slice(reference);
        self.note_peer_alive(cx.now);
        let sender = &mut self.sender;
        sender.record_same_window(packet);
        let (from, to) = (
            sender.send.sequence.unacknowledged,
            sender.send.sequence.highest,
        );
        let (reaction, in_flight) =
            if let Some(covered) = sender.scoreboard.one_more_segment(blocks, from, to) {
                let report = SackReport::OneMore(covered);
                sender.no_new_data_acknowledged::<K>(packet, true, report, cx.now)
            } else {
                let report = SackReport::Blocks(Some(blocks));
                sender.no_new_data_acknowledged::<K>(packet, true, report, cx.now)
            };
        // While recovery continues, the reaction is `Hold`.
        if reaction != Reaction::Hold {
            self.invalidate_fast_path();
        }
        self.record_timestamp(packet, 0, cx.now);
        cx.packets.release(reference);
        if K::PACED {
            TakenPath::PacedDuplicate.count();
            self.transmit_paced::<K>(in_flight, cx);
        } else {
            TakenPath::Duplicate.count();
            self.transmit::<K>(in_flight, cx);
        }
        self.sender.update_early_timer::<K>(true, cx.now);
        self.check_space::<K>(cx.now);
    }

    /// Whether only new data is to be sent.
    #[inline(never)]
    pub(super) fn has_only_new_data_to_send(&self) -> bool {
        self.sender.config.header_prediction
            && !self.receive.acknowledge_now
            && self.sender.is_loss_free()
            && self.state.can_send()
    }
}

impl Sender {
    /// Whether the next data to send is new and not divided into records. (Whether a path MTU
    /// search is in progress depends on the time and is checked separately.)
    #[inline]
    fn sends_only_new_data(&self) -> bool {
        self.send.sequence.next == self.send.sequence.highest && self.send.records.is_empty()
    }

    /// The whole segments, each sent once, that an acknowledgment of `acknowledged` positions
    /// covers. Requires that recovery [is loss-free](Self::is_loss_free). `None` also if recovery
    /// counts duplicates like SACK blocks.
    #[inline(always)]
    fn acknowledges_whole<K: Specialization>(&self, acknowledged: u64) -> Option<WholeSegments> {
        if !K::SIMPLE && self.recovery.counts_duplicates() {
            return None;
        }
        let position = self.send.sequence.unacknowledged + acknowledged;
        self.scoreboard.acknowledges_whole(position)
    }

    /// Whether the sender is in fast recovery with SACK.
    #[inline]
    fn is_recovering_with_sack(&self) -> bool {
        self.recovery.uses_sack() && self.recovery.is_recovering()
    }
}
