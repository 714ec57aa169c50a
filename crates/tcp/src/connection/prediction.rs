//! Header prediction: fast paths for the most common segments, made of the same steps as the
//! general path.
//!
//! Each fast path is checked before any state changes, and has the same result as the general path.
//! [`Config::header_prediction`](crate::Config::header_prediction) turns all of them off; a
//! property test compares hostile cases packet by packet.
//!
//! The conditions on the connection are evaluated once and cached in a [`Foresight`] until anything
//! other than the fast path itself changes the connection. The idea is Van Jacobson's (two
//! comparisons in BSD); Linux has `pred_flags`.

use bentpipe_types::{Ctx, Packet, PacketRef, Time};

use super::ack::{Acknowledged, Told};
use super::known::{Known, PacedQuiet, PacedRepairing, Plain};
use super::receive::NOWHERE;
use super::{Accepted, Connection, Events, Sender, State};
use crate::recovery::{LossRecovery, Reaction, Whole};

/// The fast path that the connection's state allows for the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Foresight {
    /// Not evaluated yet: the connection has changed.
    #[default]
    Unknown,
    /// No fast path.
    Nothing,
    /// Data for an end that has nothing to send and can only answer with an acknowledgment.
    Text,
    /// An acknowledgment for a sender without losses.
    Acknowledgment(Manner),
    /// A duplicate acknowledgment with SACK blocks for a sender in fast recovery.
    Duplicate(Manner),
}

/// Sender variants for which the fast paths are compiled separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// The sender [paces](Sender::is_paced).
    Paced,
    /// The sender does not pace.
    Unpaced,
    /// The sender does not pace and the connection [is simple](Connection::is_simple).
    Simple,
}

/// Fast paths, counted in tests to check that each of them is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// In-order data.
    Text,
    /// Out-of-order data.
    TextAhead,
    /// An acknowledgment of the first outstanding data.
    Acknowledgment,
    /// Like `Acknowledgment`, at a sender that paces or has model-based congestion control.
    PacedAcknowledgment,
    /// A duplicate acknowledgment with SACK blocks, in fast recovery.
    Duplicate,
    /// Like `Duplicate`, at a sender that paces or has model-based congestion control.
    PacedDuplicate,
    /// Any segment in the window that passes every check; SACK blocks are allowed.
    Ordinary,
    /// A write while at least a full segment is unsent.
    Write,
    /// Expiry of the pacing timer.
    Paced,
    /// An acknowledgment of whole segments that were sent once, at a sender that does not pace.
    Whole,
    /// Retransmission of a lost segment with the same properties as the one just retransmitted.
    Alike,
    /// A write while at least a full segment is unsent, from a socket that keeps no bytes.
    Refill,
}

#[cfg(test)]
thread_local! {
    /// Number of times each fast path was taken.
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
    /// Invalidates the cached fast path. To be called after any change that
    /// [`foresee`](Self::foresee) depends on.
    #[inline]
    pub(super) fn changed(&mut self) {
        self.foresight = Foresight::Unknown;
    }

    /// Determines the fast path that the connection's state allows.
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

    /// Whether the connection needs no per-segment special cases: fixed send buffer, SACK
    /// negotiated, no per-segment Linux behaviour enabled.
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

    /// The current fast path, evaluated if necessary.
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

    /// Whether the segment has no special flags or options, and its timestamp is not older than the
    /// last one.
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

    /// With [`Foresight::Text`]: whether the segment carries data and nothing else. Returns its
    /// distance from RCV.NXT, if all of it is in the window.
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

    /// Fast path of [`ordinary_segment`](Self::ordinary_segment) for a segment that only carries
    /// data.
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

    /// With [`Foresight::Acknowledgment`]: whether the segment only acknowledges a part of the
    /// outstanding data, at an end with more to send. Returns the number of positions acknowledged.
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

    /// Fast path for the pacing timer, if no other timer has expired. Sends delayed segments where
    /// [an acknowledgment](Foresight::Acknowledgment) or [a duplicate](Foresight::Duplicate) is
    /// expected and there is more to send. Returns false if it did nothing.
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

    /// Fast path of [`ordinary_segment`](Self::ordinary_segment) for a pure acknowledgment. `KEPT`:
    /// the feeder of the stream keeps its bytes.
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

    /// Writes as much of the feed as there is `room` for, after a pure acknowledgment at a sender
    /// that does not pace. Only where the write [sends nothing](Self::is_held_up) and data is left
    /// over, so that the socket, if it keeps no bytes, need not do it. Returns false if nothing was
    /// written.
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

    /// With [`Foresight::Duplicate`]: whether the segment is a duplicate acknowledgment with SACK
    /// blocks and nothing else, at an end with more to send.
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

    /// Fast path of [`ordinary_segment`](Self::ordinary_segment) for a pure duplicate
    /// acknowledgment.
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
        // While recovery continues, the reaction is `Hold`.
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

    /// Whether at least a full segment is unsent and held back by the window, so that a further
    /// write sends nothing. Conservatively false in these cases:
    ///
    /// * A path MTU probe needs more than a full segment.
    /// * A lost segment may be retransmitted where no new data may be sent.
    /// * Duplicates may have sent less than they could, with short segments.
    /// * The pacing timer may have just expired.
    /// * Linux's burst deferral waits for more than a segment.
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

    /// Whether only new data is to be sent.
    #[inline(never)]
    fn has_nothing_else_to_send(&self) -> bool {
        self.sender.config.header_prediction
            && !self.receive.acknowledge_now
            && self.sender.is_quiet()
            && self.state.can_send()
    }
}

impl Sender {
    /// Whether the next data to send is new and not divided into records. (Whether a path MTU
    /// search is in progress depends on the time and is checked separately.)
    #[inline]
    fn is_plain(&self) -> bool {
        self.send.sequence.next == self.send.sequence.highest && self.send.records.is_empty()
    }

    /// The whole segments, each sent once, that an acknowledgment of `acknowledged` positions
    /// covers. Requires that recovery [is loss-free](Self::is_quiet). `None` also if recovery
    /// counts duplicates like SACK blocks.
    #[inline(always)]
    fn acknowledges_whole<K: Known>(&self, acknowledged: u64) -> Option<Whole> {
        if !K::SIMPLE && self.recovery.counts_duplicates() {
            return None;
        }
        let position = self.send.sequence.unacknowledged + acknowledged;
        self.scoreboard.acknowledges_whole(position)
    }

    /// Whether the sender is in fast recovery with SACK.
    #[inline]
    fn is_repairing(&self) -> bool {
        self.recovery.hears_blocks() && self.recovery.is_recovering()
    }

    /// Whether the sender paces, or measures the delivery rate.
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.pacer.is_on() || self.delivery_rate.is_some()
    }

    /// Whether loss recovery is inactive. All outstanding data is then in flight.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let sequence = &self.send.sequence;
        let quiet = self.recovery.is_quiet(sequence, &self.scoreboard);
        debug_assert!(!quiet || self.in_flight() == sequence.outstanding());
        quiet
    }

    /// Bytes in flight. `quiet`: recovery is known to be [loss-free](Self::is_quiet), so that all
    /// outstanding data is in flight.
    #[inline(always)]
    pub(super) fn in_flight_if(&self, quiet: bool) -> u64 {
        if quiet {
            self.send.sequence.outstanding()
        } else {
            self.in_flight()
        }
    }
}
