//! Processing of acknowledgments (RFC 9293 section 3.10.7.4 step 5, RFC 5681).

mod reaction;
mod scoreboard_update;
mod send_window;

use bentpipe_types::{Flags, Packet, SackBlock, SackBlocks, Span, Time};

use super::specialization::{General, Specialization};
use super::timers::Purpose;
use super::{Connection, Events, Sender};
use crate::config::RtoFrom;
use crate::congestion::AckSample;
use crate::recovery::{
    DEFAULT_REORDERING, LossRecovery, MAXIMUM_REORDERING, OneMoreSegment, Reaction, WholeSegments,
};

/// Out-of-order data that an acknowledgment reports.
#[derive(Clone, Copy)]
pub(super) enum SackReport<'a> {
    /// The SACK blocks of the segment, if any.
    Blocks(Option<&'a [SackBlock]>),
    /// The same blocks as the previous acknowledgment, extended by [one
    /// segment](crate::recovery::Scoreboard::one_more_segment).
    OneMore(OneMoreSegment),
}

impl SackReport<'_> {
    /// Whether it reports exactly one more segment.
    #[inline(always)]
    fn is_one_more(&self) -> bool {
        matches!(self, Self::OneMore(_))
    }
}

/// Data that an acknowledgment newly acknowledges.
#[derive(Clone, Copy)]
pub(super) enum Acknowledged<'a> {
    /// [Whole segments](crate::recovery::Scoreboard::acknowledges_whole), each sent once, at a
    /// sender whose recovery is loss-free before and after, and does not count duplicates like SACK
    /// blocks.
    WholeSegments(WholeSegments),
    /// Any data, with the SACK blocks of the segment, if any.
    Something(Option<&'a SackBlocks>),
}

impl Acknowledged<'_> {
    /// The whole segments, if nothing else is acknowledged.
    #[inline(always)]
    fn whole(&self) -> Option<WholeSegments> {
        match self {
            Self::WholeSegments(whole) => Some(*whole),
            Self::Something(_) => None,
        }
    }
}

impl Connection {
    /// RFC 9293 section 3.10.7.4 step 5, in the states after SYN-RECEIVED. Returns false if the
    /// segment is to be dropped.
    #[inline]
    pub(super) fn acknowledgment(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        now: Time,
    ) -> bool {
        let probed = self.is_no_probe_answer(packet);
        match self.sender.on_acknowledgment(packet, sack, now) {
            Ok(0) if probed => self.receive.last_received_at = now,
            Ok(0) => self.note_peer_alive(now),
            Ok(_) => {
                self.raise_progress_events(now);
                if self.sender.timers.is_stopped() {
                    self.start_keep_alive_timer(now);
                }
            }
            Err(_) => {
                self.sender.statistics.unacceptable += 1;
                if self.quirks().acks.rate_limits_challenge_acks {
                    self.send_rate_limited_challenge_ack(now);
                } else {
                    self.send_challenge_ack(packet, now);
                }
                return false;
            }
        }
        true
    }

    /// Raises the events for newly acknowledged data.
    #[inline]
    fn raise_progress_events(&mut self, now: Time) {
        if self.freed_room::<General>(now) > 0 {
            self.events |= Events::WRITABLE;
        }
        let send = &self.sender.send;
        let position = send.sequence.unacknowledged;
        if position > 1 && position >= send.end + u64::from(send.fin) {
            self.events |= Events::DRAINED;
        }
    }

    /// Records progress of less than what was written. Returns how many bytes of room the send
    /// buffer has, if a writer waits and there is room for a segment ([`Events::WRITABLE`]); else
    /// 0.
    #[inline(always)]
    pub(super) fn freed_room<K: Specialization>(&mut self, now: Time) -> u64 {
        self.note_peer_alive(now);
        self.path_error = None;
        let send = &mut self.sender.send;
        if !K::SIMPLE
            && let Some(sizing) = &mut send.sizing
        {
            sizing.on_acknowledged(send.sequence.unacknowledged);
        } else if send.writer_waits {
            let room = send.buffer_room();
            if room >= u64::from(self.sender.negotiated.segment).min(send.buffer) {
                return room;
            }
        }
        0
    }
}

impl Sender {
    /// Processes an acceptable acknowledgment, `distance` after SND.UNA.
    #[inline]
    pub(super) fn process_acceptable_ack(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        distance: i64,
        now: Time,
    ) {
        self.reset_probe_attempts();
        if distance > 0 {
            self.update_window::<false>(packet, true);
            let _ = self.new_data_acknowledged::<General>(
                packet,
                distance as u64,
                Acknowledged::Something(sack),
                now,
            );
        } else if distance == 0 {
            let window = self.send.window;
            self.update_window::<false>(packet, false);
            // For in-order data with an unchanged window, Linux does not restart the probe timer.
            if self.quirks().timers.restarts_probe_timer
                && self.timers.runs(Purpose::Probe)
                && (packet.payload_length == 0 || self.send.window != window)
            {
                self.restart_probe_timer(now);
            }
            // RFC 5681 section 2: a duplicate acknowledgment. With a closed window it answers a
            // probe.
            let idle = self.send.is_idle();
            let repeats = packet.payload_length == 0
                && !packet.flags.has(Flags::SYN.with(Flags::FIN))
                && self.send.window == window;
            let duplicate = repeats && !idle && window > 0;
            // SACK blocks may come with data, and a D-SACK when everything is acknowledged.
            if duplicate || sack.is_some() && self.recovery.uses_sack() {
                self.process_no_new_data(packet, duplicate, sack, now);
            } else if repeats && idle {
                self.recovery.on_duplicate_while_idle();
            } else if self.ecn.is_on() && !idle {
                self.process_ece(packet, now);
            }
        } else if let Some(sack) = sack {
            self.process_reordered_acknowledgment(packet, sack, now);
        }
    }

    /// Processes a reordered, older acknowledgment. Its SACK blocks above SND.UNA may still be new
    /// (old_ack in tcp_ack).
    #[inline(never)]
    fn process_reordered_acknowledgment(&mut self, packet: &Packet, sack: &SackBlocks, now: Time) {
        let first = self.send.wire(self.send.sequence.unacknowledged);
        let is_ahead = |block: &SackBlock| block.start.distance_from(first) >= 0;
        let ahead: SackBlocks = sack.as_slice().iter().copied().filter(is_ahead).collect();
        if !ahead.as_slice().is_empty() && self.recovery.uses_sack() {
            let mut packet = *packet;
            packet.acknowledgment = first;
            self.process_no_new_data(&packet, false, Some(&ahead), now);
        }
    }

    /// RFC 9293 section 3.8.6.1: "As long as the receiving TCP peer continues to send
    /// acknowledgments in response to the probe segments, the sending TCP peer MUST allow the
    /// connection to stay open."
    #[inline]
    fn reset_probe_attempts(&mut self) {
        if self.send.window == 0 {
            self.send.attempts = 0;
        }
    }

    /// Processes an [acknowledgment of SND.UNA](Self::process_acceptable_ack) without SACK blocks
    /// or SYN, while nothing is outstanding.
    #[inline]
    pub(super) fn process_idle_acknowledgment(&mut self, packet: &Packet) {
        self.reset_probe_attempts();
        self.update_window::<true>(packet, false);
    }

    /// Processes an acknowledgment of new data. Returns whether the congestion window alone
    /// determines how much may be in flight afterwards.
    #[inline(always)]
    pub(super) fn new_data_acknowledged<K: Specialization>(
        &mut self,
        packet: &Packet,
        acknowledged: u64,
        what: Acknowledged<'_>,
        now: Time,
    ) -> bool {
        if K::PACED {
            // On a path with only new data, recovery was loss-free before.
            self.begin_rate_sample(K::NEW_DATA_ONLY);
        }
        let send = &mut self.send;
        let before = send.sequence.unacknowledged;
        let position = before + acknowledged;
        send.sequence.unacknowledged = position;
        if !K::NEW_DATA_ONLY {
            send.sequence.next = send.sequence.next.max(position);
        }
        while !K::NEW_DATA_ONLY && send.records.front().is_some_and(|&end| end <= position) {
            send.records.pop_front();
        }
        send.attempts = 0;
        send.excused = 0;
        self.statistics.bytes_acknowledged = if K::NEW_DATA_ONLY {
            position - 1
        } else {
            position.clamp(1, send.end) - 1
        };
        let segments = match what {
            Acknowledged::WholeSegments(whole) => {
                self.scoreboard.acknowledge_whole(&whole, acknowledged, now);
                whole.segments()
            }
            Acknowledged::Something(sack) => {
                let segments = self.scoreboard.acknowledged_segments();
                let report = SackReport::Blocks(sack.map(SackBlocks::as_slice));
                self.update_scoreboard::<true>(packet, report, now);
                self.scoreboard.acknowledged_segments() - segments
            }
        };
        // An acknowledgment of no whole segment restarts no timer (tcp_clean_rtx_queue).
        let restarts =
            what.whole().is_some() || segments > 0 || K::SIMPLE || !self.quirks().timers.ticks;
        if !K::NEW_DATA_ONLY {
            self.path_mtu_probe_arrived();
        }
        let rtt = self.measure(packet, before, what.whole(), now);
        if K::SIMPLE || self.recovery.uses_sack() {
            if restarts {
                self.timers.request_restart();
            }
            let newly = self.newly_acknowledged(what, acknowledged);
            self.delivered.add(newly);
        } else if self.counts_duplicates(what) {
            self.count_duplicates(false);
        } else {
            self.delivered
                .on_acknowledged(acknowledged, u64::from(self.negotiated.segment));
        }
        let last = what.whole().map(|whole| whole.last());
        (self.recovery).observe_ack(&self.send.sequence, &self.scoreboard, last, now);
        debug_assert!(
            what.whole().is_none() || self.is_loss_free(),
            "loss-free as before"
        );
        let marked = !K::NEW_DATA_ONLY && self.ecn.is_on() && self.continue_reduction_for_mark();
        let quiet = what.whole().is_some() || !marked && self.is_loss_free();

        if self.congestion.sees_every_ack() {
            let in_flight = self.in_flight_if(quiet);
            let sample = self.ack_sample(acknowledged, in_flight, rtt, now);
            self.congestion.on_delivery(&sample);
        }
        let reaction = if quiet {
            Reaction::Grow
        } else {
            self.run_loss_recovery(packet, acknowledged, false, false, now)
        };
        let mut restart_timer = true;
        if let Reaction::Partial {
            restart_timer: restart,
        } = reaction
        {
            restart_timer = restart;
        } else {
            self.react(reaction, now);
            if matches!(reaction, Reaction::Grow) || self.grows_on_recovery_exit(reaction) {
                if self.window_may_grow()
                    && (K::NEW_DATA_ONLY || !self.marks_prevent_growth(packet))
                {
                    let counted = self.counts_for_growth::<K>(what, acknowledged, before, segments);
                    let in_flight = self.in_flight_if(quiet);
                    let sample = self.ack_sample(counted, in_flight, rtt, now);
                    self.congestion.on_ack(&sample);
                } else {
                    self.congestion.on_application_limited();
                }
            }
        }
        if K::PACED {
            self.finish_rate_sample(acknowledged, reaction, quiet, rtt, now);
        }
        let begins = !K::NEW_DATA_ONLY && self.ecn.is_on() && self.process_ece(packet, now);
        if !quiet || begins {
            self.update_recovery_window_on_progress();
        }

        // RFC 6298 section 5.2: turn off the timer when all data is acknowledged.
        // RFC 6298 section 5.3: else restart it.
        if !K::NEW_DATA_ONLY && self.send.is_idle() {
            self.timers.stop();
        } else if restart_timer && restarts || !self.timers.retransmits() {
            let rto = self.rtt.rto();
            let at = match self.config.rto_from {
                RtoFrom::Acknowledgment => now + rto,
                RtoFrom::OldestSegment if self.first_awaits_retransmission() => now + rto,
                RtoFrom::OldestSegment => {
                    (self.scoreboard.first_sent_at().unwrap_or(now) + rto).max(now)
                }
            };
            self.timers.set(Purpose::Retransmit, at);
            if !quiet {
                self.replace_early_timer(now);
            }
        }
        quiet
    }

    /// Whether the first outstanding segment is known to be lost and was not retransmitted since:
    /// it waits for the pacer or a window. After a timeout, it is marked lost, or SND.NXT was set
    /// back to it ([`RetransmitScope`](crate::recovery::RetransmitScope)).
    #[inline(never)]
    fn first_awaits_retransmission(&self) -> bool {
        let sequence = &self.send.sequence;
        sequence.next == sequence.unacknowledged || self.scoreboard.first_is_lost_to_send()
    }

    /// Like [`no_new_data_acknowledged`](Self::no_new_data_acknowledged), on the general path.
    fn process_no_new_data(
        &mut self,
        packet: &Packet,
        duplicate: bool,
        sack: Option<&SackBlocks>,
        now: Time,
    ) {
        let report = SackReport::Blocks(sack.map(SackBlocks::as_slice));
        let _ = self.no_new_data_acknowledged::<General>(packet, duplicate, report, now);
    }

    /// Processes an acknowledgment that does not advance SND.UNA; SACK blocks may still report new
    /// data. With `K::NEW_DATA_ONLY`, recovery uses SACK and ECN is not negotiated. Returns the
    /// reaction of recovery, and the bytes in flight if they were computed.
    #[inline(always)]
    pub(super) fn no_new_data_acknowledged<K: Specialization>(
        &mut self,
        packet: &Packet,
        duplicate: bool,
        report: SackReport<'_>,
        now: Time,
    ) -> (Reaction, Option<u64>) {
        if duplicate {
            self.statistics.duplicate_acks += 1;
        }
        if K::PACED {
            self.begin_rate_sample(false);
        }
        self.update_scoreboard::<false>(packet, report, now);
        let mut rtt = None;
        if !K::NEW_DATA_ONLY && self.recovery.counts_duplicates() {
            self.count_duplicates(duplicate);
        } else if !K::NEW_DATA_ONLY && !self.recovery.uses_sack() {
            self.delivered
                .on_duplicate(u64::from(self.negotiated.segment));
        } else if report.is_one_more() || self.scoreboard.delivered().sacked() > 0 {
            rtt = self.measure_sacked(report, now);
            self.delivered.add(self.newly_reported(report));
        }
        // ns-2's sender has no FIN. If a gateway withholds the acknowledgment of a FIN, samples of
        // duplicates would end the backoff of each retransmission.
        if self.config.tcp_linux && self.send.has_outstanding_data() {
            self.measure_echo_of_duplicate(packet, now);
        }
        if self.congestion.sees_every_ack() {
            let sample = self.ack_sample(0, self.in_flight(), rtt, now);
            self.congestion.on_delivery(&sample);
        }
        let last = match report {
            SackReport::OneMore(covered) => Some(covered.transmission()),
            SackReport::Blocks(_) => None,
        };
        (self.recovery).observe_ack(&self.send.sequence, &self.scoreboard, last, now);
        let reaction = self.run_loss_recovery(packet, 0, duplicate, report.is_one_more(), now);
        self.react(reaction, now);
        if self.scoreboard.reordering() > 0 {
            self.grow_while_reordered(packet, reaction, rtt, now);
        }
        if K::PACED {
            self.finish_rate_sample(0, reaction, false, rtt, now);
        }
        if !K::NEW_DATA_ONLY && self.ecn.is_on() {
            self.process_ece(packet, now);
        }
        let in_flight = self.update_recovery_window(false, self.newly_reported(report));
        (reaction, in_flight)
    }

    /// Passes a duplicate acknowledgment, or progress, to a recovery that counts duplicates.
    #[inline(never)]
    fn count_duplicates(&mut self, duplicate: bool) {
        let board = &mut self.scoreboard;
        (self.recovery).count_duplicates(&self.send.sequence, board, duplicate);
        self.delivered.add(board.delivered().bytes());
    }

    /// Grows the window for SACKed data while the reordering degree is above Linux's default, so
    /// that no segment is considered lost yet (tcp_may_raise_cwnd).
    #[inline(never)]
    fn grow_while_reordered(
        &mut self,
        packet: &Packet,
        reaction: Reaction,
        rtt: Option<Span>,
        now: Time,
    ) {
        if self.quirks().window.grows_while_reordered
            && matches!(reaction, Reaction::Hold)
            && !self.recovery.is_recovering()
            && self.scoreboard.delivered().sacked() > 0
            && self.reordering() > DEFAULT_REORDERING
            && self.window_may_grow()
            && !self.marks_prevent_growth(packet)
        {
            let sample = self.ack_sample(self.newly_delivered(), self.in_flight(), rtt, now);
            self.congestion.on_ack(&sample);
        }
    }

    /// Reordering degree in segments, above which Linux considers a segment lost
    /// (`tp->reordering`).
    pub(super) fn reordering(&self) -> u64 {
        let seen = self.scoreboard.reordering();
        let segment = u64::from(self.negotiated.segment.max(1));
        let seen = seen.div_ceil(segment).max(DEFAULT_REORDERING);
        seen.min(MAXIMUM_REORDERING).max(self.recovery.reordering())
    }

    /// The acknowledgment as passed to congestion control.
    #[inline]
    fn ack_sample(
        &self,
        acknowledged: u64,
        in_flight: u64,
        rtt: Option<Span>,
        now: Time,
    ) -> AckSample {
        let sequence = &self.send.sequence;
        AckSample {
            now,
            acknowledged,
            delivered: self.delivered.total(),
            in_flight,
            unacknowledged: sequence.unacknowledged,
            next: sequence.next,
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            minimum_rtt: self.rtt.minimum(),
        }
    }

    /// Bytes that the acknowledgment newly reports as delivered. As in Linux, optionally including
    /// duplicates, and with short segments counted as full ones.
    #[inline]
    pub(super) fn newly_delivered(&self) -> u64 {
        let delivered = self.scoreboard.delivered();
        if !delivered.counts_more() {
            return delivered.bytes();
        }
        self.scoreboard.delivered_with_short() + self.delivered_twice()
    }

    /// Newly delivered bytes according to `report`.
    #[inline(always)]
    fn newly_reported(&self, report: SackReport<'_>) -> u64 {
        match report {
            SackReport::OneMore(covered) => covered.length(),
            SackReport::Blocks(_) => self.newly_delivered(),
        }
    }

    /// Bytes of a spurious retransmission, which count as delivered, in whole segments
    /// (tcp_dsack_seen).
    #[inline(never)]
    fn delivered_twice(&self) -> u64 {
        match self.scoreboard.delivered().duplicate() {
            Some((start, end))
                if self.quirks().recovery.counts_duplicates_as_delivered
                    && self.scoreboard.explains_duplicate() =>
            {
                (end - start).next_multiple_of(u64::from(self.negotiated.segment))
            }
            _ => 0,
        }
    }

    /// Bytes by which the acknowledgment may grow the congestion window.
    #[inline]
    fn counts_for_growth<K: Specialization>(
        &self,
        what: Acknowledged<'_>,
        acknowledged: u64,
        before: u64,
        segments: u64,
    ) -> u64 {
        if K::SIMPLE || self.recovery.uses_sack() || self.counts_duplicates(what) {
            // As in Linux: all newly delivered data, including SACKed data.
            let newly = self.newly_acknowledged(what, acknowledged);
            if !K::SIMPLE && newly == acknowledged && self.quirks().sending.counts_short_segments {
                segments * u64::from(self.negotiated.segment)
            } else {
                newly
            }
        } else if before < self.send.timed_out_below {
            // RFC 3465 section 2.3: L = 1 until everything retransmitted after a timeout is
            // acknowledged, because such an acknowledgment covers segments that left the network
            // long ago. An acknowledgment of a thousand of them at once would open the window by as
            // many.
            acknowledged.min(u64::from(self.negotiated.segment))
        } else {
            acknowledged
        }
    }

    /// Bytes that an acknowledgment of new data newly reports as delivered, including SACKed data.
    #[inline(always)]
    fn newly_acknowledged(&self, what: Acknowledged<'_>, acknowledged: u64) -> u64 {
        match what {
            Acknowledged::WholeSegments(_) => acknowledged,
            Acknowledged::Something(_) => self.newly_delivered(),
        }
    }

    /// Whether recovery counts duplicates like SACK blocks; false if this is implied.
    #[inline(always)]
    fn counts_duplicates(&self, what: Acknowledged<'_>) -> bool {
        what.whole().is_none() && self.recovery.counts_duplicates()
    }
}
