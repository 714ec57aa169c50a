//! The send buffer: when it grows, and what leaves of it at once.

use bentpipe_types::{Ctx, Span, Time};

use super::known::Known;
use super::{Connection, Events, Sender};
use crate::RecoveryPhase;
use crate::pacing::{is_window_slower, rate_of_window, shortest_burst, unpaced};
use crate::recovery::LossRecovery;
use crate::send_sizing::{self, Held, SendSizing, segments_at_once, slowest_rate};

/// tcp_tso_win_divisor: so large a part of the window leaves at once, whatever may follow.
const WINDOW_DIVISOR: u64 = 3;

/// After such a silence, what leaves first does not wait for more.
const LAST_WRITE: Span = Span::from_millis(1);

/// What is acknowledged later than this from now is not worth waiting for. (Linux 6.18; until then half a
/// round trip from when the oldest segment left.)
const ACKNOWLEDGED_SOON: Span = Span::from_millis(1);

/// So many buffers more, at the most, leave one after the other before what follows them is looked at.
const MOST_AT_ONCE: u64 = 1 << 15;

/// Segments that leave as one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Those of them that have not been sent.
    left: u64,
    /// How many there may be; 0: not known yet.
    most: u64,
    /// Buffers begun.
    begun: u32,
    /// The last of them ends where the peer's window does, with less than a segment.
    pub(super) ends_at_edge: bool,
}

/// What a call writes next.
#[derive(Clone, Copy, Debug)]
struct Filling {
    /// The bytes that fill a buffer.
    bytes: u64,
    /// Bytes that may leave, and how many of them in one buffer.
    sendable: u64,
    at_once: u64,
}

impl Connection {
    /// A segment has arrived, and what it lets us send is sent: Linux's tcp_check_space.
    #[inline]
    pub(super) fn check_space<K: Known>(&mut self, now: Time) {
        let send = &self.sender.send;
        if !K::SIMPLE
            && let Some(sizing) = &send.sizing
            && (send.writer_waits || sizing.lacks_room())
        {
            self.expand_for_writer(now);
        }
    }

    /// Is its send buffer one that counts memory, so that it matters what is written in one call?
    #[inline(always)]
    pub(crate) fn counts_memory(&self) -> bool {
        self.sender.send.sizing.is_some() && self.sender.config.habits.sends_in_bursts
    }

    fn expand_for_writer(&mut self, now: Time) {
        let sender = &mut self.sender;
        // tcp_should_expand_sndbuf: what fills the congestion window needs no more. But of several
        // buffers only the first has left by then, and the others follow when the device has taken it
        // (tcp_small_queue_check): as seen with `ss`, acknowledgments of two segments in slow start
        // expand the buffer, and those of one don't.
        if (sender.send.sizing.as_deref()).is_some_and(SendSizing::may_grow)
            && (sender.in_flight() < sender.sending_window() || sender.send.left_in_parts)
        {
            sender.expand_send_buffer();
        }
        if !sender.send.writer_waits {
            sender.polled();
        } else if sender.room_in_send_buffer(now) > 0 {
            self.events |= Events::WRITABLE;
        }
    }

    /// tcp_sendmsg, of a call of which `accepted` bytes are taken: it fills one buffer after the other. When one is full all that
    /// may leave does, if more than half of the largest window was written since the last time (forced_push); else
    /// one buffer's worth of it, if nothing waits before it (tcp_push_one), and what fills it again is written. What comes
    /// behind is not written yet when that leaves. Returns how many bytes were written so: only as many as fill buffers of
    /// which something can leave, and not the end of a call that is not cut short (`writer_waits`), which is tcp_push's.
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
        // (tcp_current_mss: SACK blocks take their room of it.)
        let segment = u64::from(self.payload_limit().max(1));
        let goal = send_sizing::goal(segment, self.sender.send.window_maximum);
        while let Some(filling) = self.sender.fills_buffer(goal, cx.now)
            && self.sender.send.end - begin + filling.bytes < last
        {
            let held = self.sender.held();
            let send = &mut self.sender.send;
            send.writer_waits = writer_waits;
            let half = send.window_maximum / 2;
            send.end += filling.bytes;
            let forced = send.end - pushed_at > half;
            let first = send.end <= held.next + goal;
            // Where one leaves after the other, it is the same if they are written before.
            let mut leave = 1_u64;
            if first && !forced && filling.at_once > 0 {
                let unpushed = half - (send.end - pushed_at);
                let uncut = last - 1 - (send.end - begin);
                let more = filling.sendable / filling.at_once;
                let again = more.saturating_sub(1).min(MOST_AT_ONCE);
                let again = again.min(unpushed.min(uncut) / filling.at_once);
                send.end += again * filling.at_once;
                leave += again;
            }
            if let Some(sizing) = &mut send.sizing {
                let from = held.next + leave * filling.at_once;
                sizing.written_from((leave > 1).then_some(from), &held, goal);
                sizing.let_leave(if forced { 0 } else { leave as u16 });
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
            sizing.let_leave(0);
        }
        self.sender.send.end - begin
    }

    /// A writer that had to wait has written all. One that waits for any of many connections no longer waits for this one to
    /// have room: it says so, and is told whether there is (`ep_modify`, `tcp_poll`). One that waits in its calls goes on.
    #[cold]
    pub(super) fn waits_no_longer(&mut self) {
        let sender = &mut self.sender;
        if sender.config.habits.sends_in_bursts && !sender.config.blocking_writes {
            sender.polled();
        }
    }
}

impl Sender {
    /// What is in the send buffer.
    pub(super) fn held(&self) -> Held {
        let send = &self.send;
        Held {
            unacknowledged: send.sequence.unacknowledged.clamp(1, send.end),
            next: send.sequence.highest.clamp(1, send.end),
            end: send.end,
            merged: self.scoreboard.merged(),
        }
    }

    /// tcp_poll: whoever waits for any of many connections asks whether this one has room.
    pub(super) fn polled(&mut self) {
        let held = self.held();
        if let Some(sizing) = &mut self.send.sizing {
            sizing.polled(&held);
        }
    }

    /// Bytes that the application may write now.
    #[inline]
    pub(super) fn room_in_send_buffer(&self, now: Time) -> u64 {
        match &self.send.sizing {
            Some(sizing) => self.room_as_sized(sizing, now),
            None => self.send.buffer_room(),
        }
    }

    #[inline(never)]
    fn room_as_sized(&self, sizing: &SendSizing, now: Time) -> u64 {
        let send = &self.send;
        let held = self.held();
        // (Most often, who waits has to wait on: then it need not be known what the windows let leave.)
        if send.writer_waits && !sizing.is_writeable(&held) {
            return 0;
        }
        let (sendable, at_once) = self.sendable(now);
        let half = (self.config.habits.sends_in_bursts).then_some(send.window_maximum / 2);
        sizing.room(&held, sendable, at_once, self.goal(), half)
    }

    /// What fills the last buffer, or another of `goal` bytes if that is full or all of it was sent. None where nothing may
    /// leave: then it is the same whether buffers are written one by one.
    fn fills_buffer(&self, goal: u64, now: Time) -> Option<Filling> {
        let sizing = self.send.sizing.as_deref()?;
        let (sendable, at_once) = self.sendable(now);
        if sendable == 0 || !self.send.records.is_empty() {
            return None;
        }
        Some(Filling {
            bytes: sizing.until_full(&self.held(), goal),
            sendable,
            at_once,
        })
    }

    /// What a buffer of full segments takes.
    fn goal(&self) -> u64 {
        send_sizing::goal(u64::from(self.negotiated.segment), self.send.window_maximum)
    }

    /// Bytes that the windows and the pacer let leave at once, written or not, and how many of them in one buffer.
    fn sendable(&self, now: Time) -> (u64, u64) {
        let segment = u64::from(self.negotiated.segment.max(1));
        let window = self.sending_window().saturating_sub(self.in_flight());
        let usable = self.send.usable();
        let mut sendable = window.min(usable);
        if !self.config.habits.sends_in_bursts {
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
        // What was written into one buffer leaves as no more than that.
        let at_once = (self.segments_at_once(segment)).min(self.goal() / segment);
        // (With what is no whole segment a buffer may end, but none begins.)
        if sendable < usable || whole.is_multiple_of(at_once) {
            sendable = whole * segment;
        }
        (sendable, at_once * segment)
    }

    /// So many bytes are about to be written.
    #[inline]
    pub(super) fn before_write(&mut self, bytes: u64, now: Time) {
        if self.send.sizing.is_some() {
            self.before_sized_write(bytes, now);
        }
    }

    fn before_sized_write(&mut self, bytes: u64, now: Time) {
        let held = self.held();
        let segment = u64::from(self.negotiated.segment.max(1));
        let goal = self.goal();
        // (In Linux's profile it is known when it leaves: before the rest is written, or not before what waits for more to leave
        // with. Else what leaves at once is split off now, but for what is no whole segment: Nagle's algorithm.)
        let leaves = if self.config.habits.sends_in_bursts {
            0
        } else {
            let unsent = self.send.unsent();
            self.sendable(now).0.saturating_sub(unsent).min(bytes) / segment * segment
        };
        if let Some(sizing) = &mut self.send.sizing {
            sizing.written(&held, goal, leaves);
        }
    }

    /// tcp_sndbuf_expand, by what the congestion window is in the midst of a reduction (tcp_cwnd_reduction).
    pub(super) fn expand_send_buffer(&mut self) {
        let segment = u64::from(self.negotiated.segment);
        let window = self.sending_window() / segment.max(1);
        let windows = self.congestion.send_buffer_windows();
        if let Some(sizing) = &mut self.send.sizing {
            sizing.expand(window, segment, windows);
        }
    }

    /// Before the next segment is sent, with so much room in the congestion window: is it the last of
    /// those that leave at once? True: it waits until more can.
    #[inline(always)]
    pub(super) fn before_next<K: Known>(
        &mut self,
        burst: &mut Burst,
        room: u64,
        allowance: u64,
        now: Time,
    ) -> bool {
        if K::SIMPLE {
            return false;
        }
        if self.config.habits.sends_in_bursts {
            return self.goes_into_burst(burst, room, allowance, now);
        }
        if self.send.sizing.is_some() {
            // (What leaves together matters only for what the send buffer holds.)
            match burst.left.checked_sub(1) {
                Some(left) => burst.left = left,
                None => self.form_burst(burst, room.min(allowance)),
            }
        }
        false
    }

    #[inline(never)]
    fn goes_into_burst(&mut self, burst: &mut Burst, room: u64, allowance: u64, now: Time) -> bool {
        if burst.left == 0 {
            // (tcp_write_xmit with push_one sends one, and that does not wait for more.)
            let waits = match self.send.lets_leave() {
                0 => self.defers(burst, room, now),
                buffers => burst.begun >= u32::from(buffers),
            };
            if waits {
                return true;
            }
        }
        self.form_burst(burst, room.min(allowance));
        false
    }

    /// tcp_tso_should_defer: what could leave, with `room` bytes in the congestion window, waits for the
    /// next acknowledgment if that lets more leave at once and is not far away.
    fn defers(&self, burst: &mut Burst, room: u64, now: Time) -> bool {
        let segment = u64::from(self.negotiated.segment.max(1));
        if burst.most == 0 {
            burst.most = self.segments_at_once(segment);
        }
        // tcp_wstamp_ns: a paced sender's last buffer left when its time was over.
        let last_write = self.send.last_sent_at.max(self.pacer.next_send());
        // (Where it is a millisecond to the nanosecond, a kernel's clock would have gone on.)
        if now.since(last_write) >= LAST_WRITE {
            return false;
        }
        let sequence = &self.send.sequence;
        let unsent = self.send.unsent();
        let limit = room.min(self.send.usable());
        // Most often, everything that leaves at once may leave.
        if limit >= burst.most * segment {
            return false;
        }
        // What is left of a buffer does not wait for the next one, with which it would leave; nor does a
        // single segment, which is Nagle's algorithm's business.
        let sizing = self.send.sizing.as_deref();
        let mut left = sizing
            .and_then(|sizing| sizing.left_of_buffer(sequence.next))
            .map_or(unsent, |left| left.min(unsent));
        // What may leave at once is taken of the next buffers, if this one has less (tcp_grow_skb).
        left = left.max(unsent.min(self.quota(room, burst.most) * segment));
        // A record ends its buffer (MSG_EOR).
        let record = self.send.unsent_of_record();
        left = left.min(record.unwrap_or(left));
        if left <= segment || left < unsent && left <= limit {
            return false;
        }
        // What gets no longer does not wait for more of it.
        let ends = self.send.fin || record.is_some();
        if ends && left < limit {
            return false;
        }
        let timed_out = sequence.unacknowledged < self.send.timed_out_below;
        if timed_out || self.recovery.phase() != RecoveryPhase::Open {
            return false;
        }
        // (What it is while it comes down for a mark.)
        let congestion_window = if self.ecn.is_on() {
            self.sending_window()
        } else {
            self.congestion.window().congestion_window
        };
        let chunk = self.send.window.min(congestion_window);
        limit < chunk / WINDOW_DIVISOR && self.is_acknowledged_soon(now)
    }

    /// Is the oldest segment's acknowledgment due, a round trip after it left?
    fn is_acknowledged_soon(&self, now: Time) -> bool {
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let soon = now + (smoothed / 2).min(ACKNOWLEDGED_SOON);
        self.scoreboard
            .first_sent_at()
            .is_some_and(|first| first + smoothed <= soon)
    }

    #[inline(never)]
    fn form_burst(&mut self, burst: &mut Burst, room: u64) {
        if burst.left > 0 {
            burst.left -= 1;
            if self.config.habits.sends_in_bursts {
                self.scoreboard.go_on_with_next();
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
                return; // on its own
            }
        }
        // tcp_transmit_skb: PSH, so that the receiver's driver passes on what it has put together
        self.send.ends_burst = burst.left == 0 && self.config.habits.sends_in_bursts;
    }

    /// How many segments leave with the next one.
    #[inline(always)]
    fn rest_of_burst(&self, burst: &mut Burst, room: u64, segment: u64) -> u64 {
        // Most often, as many as may.
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
        if usable >= room || !self.config.habits.sends_in_bursts {
            return rest;
        }
        burst.ends_at_edge = self.ends_at_edge(quota, segment);
        rest + u64::from(burst.ends_at_edge)
    }

    /// tcp_cwnd_test: the segments that `room` bytes of the congestion window let leave as one buffer, of which at least two
    /// are in a window, and no more than `most`.
    fn quota(&self, room: u64, most: u64) -> u64 {
        let segment = u64::from(self.negotiated.segment.max(1));
        let half = self.congestion.window().congestion_window / segment / 2;
        (room / segment).min(half).min(most)
    }

    /// tcp_mss_split_point: a buffer of which the peer's window takes some whole segments, fewer than the `most` that
    /// may leave at once, takes what is left of the window, too: a short segment, unless another is outstanding.
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
    pub(super) fn after_next<K: Known>(&mut self, burst: &mut Burst) {
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

    /// tcp_tso_autosize, at the rate of tcp_update_pacing_rate or the window rule's.
    pub(super) fn segments_at_once(&self, segment: u64) -> u64 {
        let (rate, shortest) = match self.congestion.pacing_rate() {
            // bbr_min_tso_segs
            Some(rate) => (Some(rate), shortest_burst(rate)),
            None => {
                let outstanding = self.send.sequence.outstanding();
                let smoothed = self.rtt.smoothed().unwrap_or_default();
                let window = self.congestion.window();
                let shortest = u64::from(self.config.shortest_burst);
                let slow = slowest_rate(segment, shortest, self.rtt.minimum());
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
