//! The send buffer: its growth, and transmission in bursts as in Linux.

use bentpipe_types::{Ctx, Span, Time};

use super::specialization::Specialization;
use super::{Connection, Events, Sender};
use crate::RecoveryPhase;
use crate::pacing::{is_window_slower, rate_of_window, shortest_burst, unpaced};
use crate::recovery::LossRecovery;
use crate::send_buffer_autotuning::{
    self, SendBufferAutotuning, SendBufferContents, minimum_burst_rate, segments_at_once,
};

/// tcp_tso_win_divisor: this share of the window is sent at once, without deferral.
const WINDOW_DIVISOR: u64 = 3;

/// Time since the last transmission after which a burst is not deferred.
const DEFERRAL_TIMEOUT: Span = Span::from_millis(1);

/// Maximum time until the next expected acknowledgment for which a burst is deferred. (Linux 6.18;
/// before, half a round trip after the oldest segment was sent.)
const MAXIMUM_DEFERRAL: Span = Span::from_millis(1);

/// Maximum number of further buffers written and sent as one step.
const MAXIMUM_BUFFERS_PER_STEP: u64 = 1 << 15;

/// A burst: segments that Linux sends as one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Segments of the burst that have not been sent.
    left: u64,
    /// Maximum number of segments per burst; 0: not determined yet.
    most: u64,
    /// Number of bursts begun.
    begun: u32,
    /// The last burst ends at the edge of the peer's window, with less than a full segment.
    pub(super) ends_at_edge: bool,
}

/// The next part of a write.
#[derive(Clone, Copy, Debug)]
struct BufferFill {
    /// Bytes that fill the current buffer.
    bytes: u64,
    /// Bytes that may be sent, and how many of them per burst.
    sendable: u64,
    at_once: u64,
}

impl Connection {
    /// Grows the send buffer after an arrival and the transmission it caused, as Linux's
    /// tcp_check_space.
    #[inline]
    pub(super) fn check_space<K: Specialization>(&mut self, now: Time) {
        let send = &self.sender.send;
        if !K::SIMPLE
            && let Some(sizing) = &send.sizing
            && (send.writer_waits || sizing.lacks_room())
        {
            self.expand_for_writer(now);
        }
    }

    /// Whether the send buffer counts memory, so that the size of each write matters.
    #[inline(always)]
    pub(crate) fn counts_memory(&self) -> bool {
        self.sender.send.sizing.is_some() && self.quirks().sending.sends_in_bursts
    }

    fn expand_for_writer(&mut self, now: Time) {
        let sender = &mut self.sender;
        // tcp_should_expand_sndbuf: a buffer that fills the congestion window needs no growth. But
        // of several buffers only the first has left by then; the others follow when the device has
        // sent it (tcp_small_queue_check). As seen with `ss`, acknowledgments of two segments in
        // slow start expand the buffer, those of one do not.
        if (sender.send.sizing.as_deref()).is_some_and(SendBufferAutotuning::may_grow)
            && (sender.in_flight() < sender.sending_window() || sender.send.left_in_parts)
        {
            sender.expand_send_buffer();
        }
        if !sender.send.writer_waits {
            sender.note_poll();
        } else if sender.send_buffer_room(now) > 0 {
            self.events |= Events::WRITABLE;
        }
    }

    /// Writes buffer by buffer, as tcp_sendmsg does for a call of which `accepted` bytes are taken.
    /// When a buffer is full and more than half of the largest window was written since the last
    /// push, everything that may be sent is sent (forced_push). Otherwise, if it is the first
    /// unsent buffer, one buffer's worth is sent (tcp_push_one). Data behind it is not written yet
    /// at that time. Returns how many bytes were written this way. The end of a call that is not
    /// cut short (`writer_waits`) is left to tcp_push.
    pub(super) fn write_buffers(
        &mut self,
        accepted: u64,
        writer_waits: bool,
        cx: &mut Ctx<'_>,
    ) -> u64 {
        let begin = self.sender.send.end;
        let pushed = self.sender.send.pushed;
        let mut pushed_at = begin;
        let last = accepted + u64::from(writer_waits);
        // tcp_current_mss: SACK blocks reduce the segment size.
        let segment = u64::from(self.payload_limit().max(1));
        let goal = send_buffer_autotuning::goal(segment, self.sender.send.window_maximum);
        while let Some(filling) = self.sender.next_buffer_fill(goal, cx.now)
            && self.sender.send.end - begin + filling.bytes < last
        {
            let held = self.sender.held_data();
            let send = &mut self.sender.send;
            send.writer_waits = writer_waits;
            let half = send.window_maximum / 2;
            send.end += filling.bytes;
            let forced = send.end - pushed_at > half;
            let first = send.end <= held.next + goal;
            // Buffers that would leave one after the other are written in one step.
            let mut leave = 1_u64;
            if first && !forced && filling.at_once > 0 {
                let unpushed = half - (send.end - pushed_at);
                let uncut = last - 1 - (send.end - begin);
                let more = filling.sendable / filling.at_once;
                let again = more.saturating_sub(1).min(MAXIMUM_BUFFERS_PER_STEP);
                let again = again.min(unpushed.min(uncut) / filling.at_once);
                send.end += again * filling.at_once;
                leave += again;
            }
            if let Some(sizing) = &mut send.sizing {
                let from = held.next + leave * filling.at_once;
                sizing.record_write_from((leave > 1).then_some(from), &held, goal);
                sizing.limit_buffers(if forced { 0 } else { leave as u16 });
            }
            if forced {
                pushed_at = send.end;
                send.pushed = send.end; // tcp_mark_push
            }
            if forced || first {
                self.output(cx);
            }
            self.sender.send.pushed = pushed;
        }
        if let Some(sizing) = &mut self.sender.send.sizing {
            sizing.limit_buffers(0);
        }
        self.sender.send.end - begin
    }

    /// Called when a waiting writer has written everything. A writer that polls several connections
    /// stops waiting for this one, and Linux checks for room at that time (`ep_modify`,
    /// `tcp_poll`). A blocking writer just continues.
    #[cold]
    pub(super) fn on_writer_done(&mut self) {
        let sender = &mut self.sender;
        if sender.config.linux_quirks.sending.sends_in_bursts && !sender.config.blocking_writes {
            sender.note_poll();
        }
    }
}

impl Sender {
    /// Contents of the send buffer.
    pub(super) fn held_data(&self) -> SendBufferContents {
        let send = &self.send;
        SendBufferContents {
            unacknowledged: send.sequence.unacknowledged.clamp(1, send.end),
            next: send.sequence.highest.clamp(1, send.end),
            end: send.end,
            merged: self.scoreboard.merged(),
        }
    }

    /// Checks for room on behalf of a polling application, as tcp_poll.
    pub(super) fn note_poll(&mut self) {
        let held = self.held_data();
        if let Some(sizing) = &mut self.send.sizing {
            sizing.note_poll(&held);
        }
    }

    /// Bytes that the application may write now.
    #[inline]
    pub(super) fn send_buffer_room(&self, now: Time) -> u64 {
        match &self.send.sizing {
            Some(sizing) => self.linux_send_buffer_room(sizing, now),
            None => self.send.buffer_room(),
        }
    }

    #[inline(never)]
    fn linux_send_buffer_room(&self, sizing: &SendBufferAutotuning, now: Time) -> u64 {
        let send = &self.send;
        let held = self.held_data();
        // Most often a waiting writer has to keep waiting, which makes the windows irrelevant.
        if send.writer_waits && !sizing.is_writeable(&held) {
            return 0;
        }
        let (sendable, at_once) = self.sendable(now);
        let half = (self.quirks().sending.sends_in_bursts).then_some(send.window_maximum / 2);
        sizing.room(&held, sendable, at_once, self.goal(), half)
    }

    /// The rest of the current buffer, or a new one of `goal` bytes if the current one is full or
    /// sent. `None` if nothing may be sent. It does not matter then whether buffers are written one
    /// by one.
    fn next_buffer_fill(&self, goal: u64, now: Time) -> Option<BufferFill> {
        let sizing = self.send.sizing.as_deref()?;
        let (sendable, at_once) = self.sendable(now);
        if sendable == 0 || !self.send.records.is_empty() {
            return None;
        }
        Some(BufferFill {
            bytes: sizing.until_full(&self.held_data(), goal),
            sendable,
            at_once,
        })
    }

    /// Size of a buffer of full segments, in bytes.
    fn goal(&self) -> u64 {
        send_buffer_autotuning::goal(u64::from(self.negotiated.segment), self.send.window_maximum)
    }

    /// Bytes, written or not, that the windows and the pacer allow at once, and how many of them
    /// per burst.
    fn sendable(&self, now: Time) -> (u64, u64) {
        let segment = u64::from(self.negotiated.segment.max(1));
        let window = self.sending_window().saturating_sub(self.in_flight());
        let usable = self.send.usable();
        let mut sendable = window.min(usable);
        if !self.quirks().sending.sends_in_bursts {
            if self.pacer.is_on() {
                let sent = self.statistics.segments_sent;
                sendable = sendable.min(unpaced(sent, self.negotiated.segment));
            }
            let at_once = match sendable {
                0 => 1,
                _ => self.segments_at_once(segment) * segment,
            };
            return (sendable, at_once);
        }
        if self.pacer.is_on() {
            sendable = sendable.min(self.pacing_allowance(now));
        }
        let whole = sendable / segment;
        if whole == 0 {
            return (0, segment);
        }
        // A burst is no larger than the buffer it was written into.
        let at_once = (self.segments_at_once(segment)).min(self.goal() / segment);
        // A partial segment may end a burst, but not begin one.
        if sendable < usable || whole.is_multiple_of(at_once) {
            sendable = whole * segment;
        }
        (sendable, at_once * segment)
    }

    /// Accounts for `bytes` about to be written.
    #[inline]
    pub(super) fn account_write(&mut self, bytes: u64, now: Time) {
        if self.send.sizing.is_some() {
            self.account_linux_write(bytes, now);
        }
    }

    fn account_linux_write(&mut self, bytes: u64, now: Time) {
        let held = self.held_data();
        let segment = u64::from(self.negotiated.segment.max(1));
        let goal = self.goal();
        // With Linux's bursts, the time of transmission is known: before the rest is written, or
        // after a deferral. Otherwise data that can be sent at once is split off now, except a
        // partial segment (Nagle's algorithm).
        let leaves = if self.quirks().sending.sends_in_bursts {
            0
        } else {
            let unsent = self.send.unsent();
            self.sendable(now).0.saturating_sub(unsent).min(bytes) / segment * segment
        };
        if let Some(sizing) = &mut self.send.sizing {
            sizing.record_write(&held, goal, leaves);
        }
    }

    /// Expands the send buffer (tcp_sndbuf_expand), according to the current window, also during a
    /// reduction (tcp_cwnd_reduction).
    pub(super) fn expand_send_buffer(&mut self) {
        let segment = u64::from(self.negotiated.segment);
        let window = self.sending_window() / segment.max(1);
        let windows = self.congestion.send_buffer_windows();
        if let Some(sizing) = &mut self.send.sizing {
            sizing.expand(window, segment, windows);
        }
    }

    /// Prepares the next segment, given `room` bytes in the congestion window: determines whether
    /// it ends a burst. Returns true if it is deferred.
    #[inline(always)]
    pub(super) fn prepare_next_segment<K: Specialization>(
        &mut self,
        burst: &mut Burst,
        room: u64,
        allowance: u64,
        now: Time,
    ) -> bool {
        if K::SIMPLE {
            return false;
        }
        if self.quirks().sending.sends_in_bursts {
            return self.join_burst(burst, room, allowance, now);
        }
        if self.send.sizing.is_some() {
            // Without Linux's bursts, grouping matters only for the contents of the send buffer.
            match burst.left.checked_sub(1) {
                Some(left) => burst.left = left,
                None => self.form_burst(burst, room.min(allowance)),
            }
        }
        false
    }

    #[inline(never)]
    fn join_burst(&mut self, burst: &mut Burst, room: u64, allowance: u64, now: Time) -> bool {
        if burst.left == 0 {
            // tcp_write_xmit with push_one sends one burst, which is not deferred.
            let waits = match self.send.buffer_limit() {
                0 => self.defers_burst(burst, room, now),
                buffers => burst.begun >= u32::from(buffers),
            };
            if waits {
                return true;
            }
        }
        self.form_burst(burst, room.min(allowance));
        false
    }

    /// Whether to defer a burst until the next acknowledgment, because more can then be sent at
    /// once and it is expected soon (tcp_tso_should_defer). `room`: bytes left in the
    /// congestion window.
    fn defers_burst(&self, burst: &mut Burst, room: u64, now: Time) -> bool {
        let segment = u64::from(self.negotiated.segment.max(1));
        if burst.most == 0 {
            burst.most = self.segments_at_once(segment);
        }
        // tcp_wstamp_ns: a paced sender's last buffer counts as sent when its pacing time was over.
        let last_write = self.send.last_sent_at.max(self.pacer.next_send());
        // At exactly a millisecond, a kernel's clock would have moved on.
        if now.since(last_write) >= DEFERRAL_TIMEOUT {
            return false;
        }
        let sequence = &self.send.sequence;
        let unsent = self.send.unsent();
        let limit = room.min(self.send.usable());
        // Most often, a burst of maximum size may be sent.
        if limit >= burst.most * segment {
            return false;
        }
        // The rest of a buffer does not wait for the next buffer, nor does a single segment, which
        // Nagle's algorithm handles.
        let sizing = self.send.sizing.as_deref();
        let mut left = sizing
            .and_then(|sizing| sizing.left_of_buffer(sequence.next))
            .map_or(unsent, |left| left.min(unsent));
        // A burst also takes data from the following buffers, if this one has less (tcp_grow_skb).
        left = left.max(unsent.min(self.quota(room, burst.most) * segment));
        // A record ends its buffer (MSG_EOR).
        let record = self.send.unsent_of_record();
        left = left.min(record.unwrap_or(left));
        if left <= segment || left < unsent && left <= limit {
            return false;
        }
        // A buffer that will not grow is not deferred.
        let ends = self.send.fin || record.is_some();
        if ends && left < limit {
            return false;
        }
        let timed_out = sequence.unacknowledged < self.send.timed_out_below;
        if timed_out || self.recovery.phase() != RecoveryPhase::Open {
            return false;
        }
        // The window as reduced for a mark.
        let congestion_window = if self.ecn.is_on() {
            self.sending_window()
        } else {
            self.congestion.window().congestion_window
        };
        let chunk = self.send.window.min(congestion_window);
        limit < chunk / WINDOW_DIVISOR && self.is_acknowledged_soon(now)
    }

    /// Whether the acknowledgment of the oldest segment is due, one round trip after it was sent.
    fn is_acknowledged_soon(&self, now: Time) -> bool {
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let soon = now + (smoothed / 2).min(MAXIMUM_DEFERRAL);
        self.scoreboard
            .first_sent_at()
            .is_some_and(|first| first + smoothed <= soon)
    }

    #[inline(never)]
    fn form_burst(&mut self, burst: &mut Burst, room: u64) {
        if burst.left > 0 {
            burst.left -= 1;
            if self.quirks().sending.sends_in_bursts {
                self.scoreboard.continue_buffer();
            }
        } else {
            burst.begun += 1;
            self.send.left_in_parts = burst.begun > 1;
            let segment = u64::from(self.negotiated.segment.max(1));
            if burst.most == 0 {
                burst.most = self.segments_at_once(segment);
            }
            burst.left = self.rest_of_burst(burst, room, segment);
            self.send.ends_burst = false;
            if burst.left == 0 {
                return; // a burst of one segment
            }
        }
        // tcp_transmit_skb: PSH, so that the receiver's driver passes on the segments it has
        // merged.
        self.send.ends_burst = burst.left == 0 && self.quirks().sending.sends_in_bursts;
    }

    /// Number of further segments in the burst after the next segment.
    #[inline(always)]
    fn rest_of_burst(&self, burst: &mut Burst, room: u64, segment: u64) -> u64 {
        // Most often, a burst of maximum size.
        let most = burst.most * segment;
        let (usable, unsent) = (self.send.usable(), self.send.unsent());
        if room.min(usable).min(unsent) >= most
            && self.congestion.window().congestion_window >= 2 * most
        {
            burst.ends_at_edge &= usable >= room;
            return burst.most.saturating_sub(1);
        }
        let segments = room.min(usable) / segment;
        let quota = self.quota(room, burst.most);
        let rest = segments.min(unsent.div_ceil(segment)).min(quota).max(1) - 1;
        if usable >= room || !self.quirks().sending.sends_in_bursts {
            return rest;
        }
        burst.ends_at_edge = self.ends_at_edge(quota, segment);
        rest + u64::from(burst.ends_at_edge)
    }

    /// Segments per burst that `room` bytes of the congestion window allow, at most half a
    /// window and at most `most` (tcp_cwnd_test).
    fn quota(&self, room: u64, most: u64) -> u64 {
        let segment = u64::from(self.negotiated.segment.max(1));
        let half = self.congestion.window().congestion_window / segment / 2;
        (room / segment).min(half).min(most)
    }

    /// Whether a burst extends to the edge of the peer's window with a short segment. It does if
    /// the window admits some whole segments, fewer than `most`, and no other short segment is
    /// outstanding (tcp_mss_split_point).
    fn ends_at_edge(&self, most: u64, segment: u64) -> bool {
        let send = &self.send;
        let usable = send.usable();
        let short = self.config.nagle && send.small_end > send.sequence.unacknowledged;
        (1..most).contains(&(usable / segment))
            && !usable.is_multiple_of(segment)
            && send.unsent() > usable
            && !short
            && send.records.is_empty()
    }

    #[inline]
    pub(super) fn finish_segment<K: Specialization>(&mut self, burst: &mut Burst) {
        if K::SIMPLE {
            return;
        }
        self.send.ends_burst = false;
        if let Some(sizing) = &mut self.send.sizing
            && burst.left == 0
        {
            sizing.sent(self.send.sequence.highest);
        }
    }

    /// Segments per burst (tcp_tso_autosize), at the rate of tcp_update_pacing_rate or of the
    /// window rule.
    pub(super) fn segments_at_once(&self, segment: u64) -> u64 {
        let (rate, shortest) = match self.congestion.pacing_rate() {
            // bbr_min_tso_segs
            Some(rate) => (Some(rate), shortest_burst(rate)),
            None => {
                let outstanding = self.send.sequence.outstanding();
                let smoothed = self.rtt.smoothed().unwrap_or_default();
                let window = self.congestion.window();
                let shortest = u64::from(self.config.shortest_burst);
                let slow = minimum_burst_rate(segment, shortest, self.rtt.minimum());
                if is_window_slower(window, outstanding, smoothed, slow) {
                    return shortest;
                }
                (rate_of_window(window, outstanding, smoothed), shortest)
            }
        };
        let bytes = rate.map_or(u64::MAX, |rate| rate.bits_per_second() / 8);
        segments_at_once(bytes, segment, shortest, self.rtt.minimum())
    }
}
