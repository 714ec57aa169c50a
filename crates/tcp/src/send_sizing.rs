//! The send buffer as Linux grows it, and the buffers that it is made of: `tcp.c`, `tcp_input.c` and
//! `tcp_output.c` of Linux 6.18.
//!
//! What an application writes lies in buffers of up to 64 KiB. When some of it may be sent, so much is
//! split off and leaves as one buffer: two segments at the least, or a millisecond's worth. Each buffer
//! takes memory beside its payload, and all of it counts.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use bentpipe_types::{Span, fetch, fetch_whole};
use serde::{Deserialize, Serialize};

use crate::config::BufferSizes;

/// A buffer's head for the headers (MAX_TCP_HEADER and skb_shared_info) and its record (sk_buff).
const OVERHEAD: u64 = 832;

/// tcp_sndbuf_expand: what a segment with its headers takes beside its payload, before it is rounded up
/// to the allocator's next size; and the record.
const HEADERS: u64 = 256 + 320;
const RECORD: u64 = 256;

/// GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER: the longest buffer.
const LONGEST: u64 = 65_279;

/// sk_pacing_shift and tcp_tso_rtt_log
const PACING_SHIFT: u32 = 10;
const RTT_SHIFT: u32 = 9;

/// Of a path that takes so long nothing is left by that shift.
const NOT_SHORT: Span = Span::from_micros(16 << RTT_SHIFT);
const _: () = assert!(LONGEST >> 16 == 0);

/// TCP_INIT_CWND
const INITIAL_WINDOW: u64 = 10;

/// A send buffer that Linux would have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct SendSizing {
    // tcp_wmem[2]
    most: u64,
    // sk_sndbuf
    buffer: u64,
    // TCP_NOTSENT_LOWAT: where so many bytes are unsent, no more are taken.
    low_water: Option<NonZeroU32>,
    // push_one: a call goes on when so many buffers have left, if not 0.
    leave: u16,
    // SOCK_NOSPACE: who asked last whether there is room was told that there is none.
    lacks_room: bool,
    // Where buffers that were sent end, in positions; those not acknowledged.
    ends: VecDeque<u64>,
    // Where the others begin and end: from each of these positions on they are of so much payload, up to the
    // next of these positions.
    written: VecDeque<(u64, u64)>,
}

/// What is in a send buffer, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// SND.UNA
    pub(crate) unacknowledged: u64,
    /// SND.NXT
    pub(crate) next: u64,
    /// After the last byte written.
    pub(crate) end: u64,
    /// So many buffers fewer are outstanding than were sent: those that SACK blocks cover become one.
    pub(crate) merged: i32,
}

impl Held {
    /// Bytes written and never sent.
    fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}

impl SendSizing {
    /// See [`Connection::fetch_senders`](crate::Connection::fetch_senders).
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch_whole(self, &self.most);
    }

    /// See [`Connection::fetch_last`](crate::Connection::fetch_last).
    #[inline]
    pub(crate) fn fetch_queues(&self) {
        for end in [self.ends.front(), self.ends.back()] {
            end.inspect(|end| fetch(*end, 1));
        }
        for written in [self.written.front(), self.written.back()] {
            written.inspect(|written| fetch(*written, 1));
        }
    }

    /// A buffer of these sizes.
    pub(crate) fn new(sizes: BufferSizes) -> Self {
        Self {
            most: sizes.most.max(sizes.initial),
            buffer: sizes.initial,
            lacks_room: false,
            low_water: None,
            leave: 0,
            ends: VecDeque::new(),
            written: VecDeque::new(),
        }
    }

    /// The application sets it (SO_SNDBUF): it does not grow any more.
    pub(crate) fn lock(&mut self, bytes: u64) {
        (self.buffer, self.most) = (bytes, bytes);
    }

    /// The application says how much may be unsent (TCP_NOTSENT_LOWAT); `None`: anything.
    pub(crate) fn set_low_water(&mut self, bytes: Option<NonZeroU32>) {
        self.low_water = bytes;
    }

    /// tcp_stream_memory_free, where so many bytes are unsent.
    fn takes_more(&self, unsent: u64) -> bool {
        (self.low_water).is_none_or(|water| unsent < u64::from(water.get()))
    }

    /// tcp_sendmsg: more is written than `held` has, into buffers of `goal` bytes, and `leaves` of it leave at
    /// once. It goes into the last one, as long as that is not full, and then into others. What was sent of
    /// the last one is split off, and does not count.
    pub(crate) fn written(&mut self, held: &Held, goal: u64, leaves: u64) {
        let from = (leaves > 0).then_some(held.end + leaves);
        self.written_from(from, held, goal);
    }

    /// The same, where what is behind `from` is in buffers of that, if anything leaves.
    pub(crate) fn written_from(&mut self, from: Option<u64>, held: &Held, goal: u64) {
        while self
            .written
            .get(1)
            .is_some_and(|&(from, _)| from <= held.next)
        {
            self.written.pop_front();
        }
        let start = from.unwrap_or_else(|| self.last_buffer(held));
        match self.written.back_mut() {
            Some((from, last)) if start == *from => *last = goal,
            Some(&mut (from, last)) if last == goal && (start - from).is_multiple_of(goal) => (),
            _ => self.written.push_back((start, goal)),
        }
    }

    /// Where the last buffer begins, or what of it was not sent; the end, if everything was.
    fn last_buffer(&self, held: &Held) -> u64 {
        let Some(&(from, goal)) = self.written.back() else {
            return held.end;
        };
        let before = held.end.saturating_sub(from + 1) / goal * goal;
        (from + before).max(held.next).min(held.end)
    }

    /// What fills the last buffer, or another of `goal` bytes if that is full already, or all of it was sent.
    pub(crate) fn until_full(&self, held: &Held, goal: u64) -> u64 {
        let last = held.end - self.last_buffer(held);
        if last < goal { goal - last } else { goal }
    }

    /// How many there are of which something was not sent.
    fn unsent_buffers(&self, held: &Held) -> u64 {
        let mut until = held.end;
        let mut count = 0;
        for &(from, goal) in self.written.iter().rev() {
            let begin = from.max(held.next);
            if begin < until {
                count += (until - from).div_ceil(goal) - (begin - from) / goal;
            }
            until = from;
        }
        count
    }

    /// What is left to send of the buffer that `position` is in, if anything is known of it.
    pub(crate) fn left_of_buffer(&self, position: u64) -> Option<u64> {
        let after = self.written.partition_point(|&(from, _)| from <= position);
        let &(from, goal) = self.written.get(after.checked_sub(1)?)?;
        let left = goal - (position - from) % goal;
        let next = self.written.get(after);
        Some(next.map_or(left, |&(next, _)| left.min(next - position)))
    }

    /// sk_sndbuf
    #[cfg(test)]
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// sk_wmem_queued
    pub(crate) fn memory(&self, held: &Held) -> u64 {
        self.memory_at_least(held) + OVERHEAD * self.unsent_buffers(held)
    }

    /// The same without what the buffers take that were not sent beside their payload.
    #[inline]
    fn memory_at_least(&self, held: &Held) -> u64 {
        let sent = (self.ends.len() as u64).saturating_add_signed(-i64::from(held.merged));
        held.end.saturating_sub(held.unacknowledged) + OVERHEAD * sent
    }

    /// sk_stream_is_writeable: is a third of the buffer free, and less than half unsent of what may be? After a write that was cut
    /// short it has to be before the next.
    #[inline]
    pub(crate) fn is_writeable(&self, held: &Held) -> bool {
        let third_is_free = |memory| self.buffer.saturating_sub(memory) >= memory / 2;
        // (Most often, what is certain is too much already.)
        third_is_free(self.memory_at_least(held))
            && third_is_free(self.memory(held))
            && self.takes_more(2 * held.unsent())
    }

    /// tcp_poll, whatever is waited for, and sk_stream_write_space: is there room? If not, the buffer may grow, although
    /// nobody waits for that.
    pub(crate) fn polled(&mut self, held: &Held) {
        self.lacks_room = !self.is_writeable(held);
    }

    /// A write that does not wait was cut short (SOCK_NOSPACE, whatever a poll would say).
    pub(crate) fn was_cut_short(&mut self) {
        self.lacks_room = true;
    }

    /// Was whoever asked last told that there is no room?
    #[inline]
    pub(crate) fn lacks_room(&self) -> bool {
        self.lacks_room
    }

    /// tcp_push_one: from now on so many buffers leave, and no more, without waiting for more to leave with; 0: as many as may.
    pub(crate) fn let_leave(&mut self, buffers: u16) {
        self.leave = buffers;
    }

    /// How many buffers leave, if not as many as may.
    #[inline]
    pub(crate) fn lets_leave(&self) -> u16 {
        self.leave
    }

    /// The bytes that a call may write now, into buffers of `goal`, of which the windows let `sendable` leave at
    /// once, in buffers of `at_once`; the largest window that the peer has offered is twice `half_window`, where it
    /// matters what is written in one call (`None`: without the profile).
    ///
    /// tcp_sendmsg asks for memory (sk_stream_memory_free) when it begins a buffer. As soon as the last one is
    /// full, what leaves at once is split off it (tcp_push_one), so that there is room in it again: nobody asks
    /// until the windows are full, and the send buffer holds more than it should. But after each half of the
    /// largest window, and at the end of each call, all of it leaves (forced_push, tcp_push), and the next
    /// buffer is asked for.
    pub(crate) fn room(
        &self,
        held: &Held,
        sendable: u64,
        at_once: u64,
        goal: u64,
        half_window: Option<u64>,
    ) -> u64 {
        let mut memory = self.memory(held);
        if half_window.is_none() && memory >= self.buffer {
            return 0;
        }
        let unsent = held.unsent();
        let last = held.end - self.last_buffer(held);
        let mut tail = match last {
            0 => 0,
            _ => goal.saturating_sub(last),
        };
        let mut leaves = sendable.saturating_sub(unsent);
        let at_once = at_once.max(1);
        let mut written = 0;
        while let Some(half) = half_window {
            if tail == 0 && (memory >= self.buffer || !self.takes_more(unsent)) {
                return written;
            }
            // Full for the first time, and then again whenever something was split off.
            let full = if tail > 0 { tail } else { goal };
            let beyond = (half + 1).saturating_sub(full);
            let pushed = full + beyond.div_ceil(at_once) * at_once;
            if pushed > leaves {
                break;
            }
            memory += pushed + OVERHEAD * pushed.div_ceil(at_once);
            written += pushed;
            leaves -= pushed;
            tail = 0;
        }
        // The last buffer is filled up, and others are begun as long as there is any room.
        let (first, taken, waits) = if leaves > 0 {
            // It is full again when the windows are, too.
            let sent = leaves + OVERHEAD * leaves.div_ceil(at_once);
            (leaves + goal, sent + goal + OVERHEAD, goal)
        } else if half_window.is_some() && tail > 0 && last == unsent {
            // What waited for more to leave with, which may leave, does when the buffer is full, and leaves room in it.
            let parts = OVERHEAD * sendable.div_ceil(at_once);
            (tail + sendable, tail + sendable + parts, goal)
        } else {
            (tail, tail, unsent + tail)
        };
        let free = self.buffer.saturating_sub(memory + taken);
        let mut buffers = free.div_ceil(goal + OVERHEAD);
        if let Some(water) = self.low_water {
            let more = u64::from(water.get()).saturating_sub(waits);
            buffers = buffers.min(more.div_ceil(goal));
        }
        written + first + buffers * goal
    }

    /// Is it smaller than it may become?
    #[inline]
    pub(crate) fn may_grow(&self) -> bool {
        self.buffer < self.most
    }

    /// tcp_sndbuf_expand: the window is `window` segments of `segment` bytes, and the window rule wants
    /// `factor` of them in the buffer.
    pub(crate) fn expand(&mut self, window: u64, segment: u64, factor: u64) {
        let each = (segment + HEADERS).next_power_of_two() + RECORD;
        let wanted = factor
            .saturating_mul(window.max(INITIAL_WINDOW))
            .saturating_mul(each);
        if self.buffer < wanted {
            self.buffer = wanted.min(self.most).max(self.buffer);
        }
    }

    /// A buffer that ends at `end` was sent.
    pub(crate) fn sent(&mut self, end: u64) {
        self.ends.push_back(end);
    }

    /// Everything up to `position` is acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&mut self, position: u64) {
        while self.ends.front().is_some_and(|&end| end <= position) {
            self.ends.pop_front();
        }
    }
}

/// tcp_xmit_size_goal and tcp_bound_to_half_wnd: what a buffer takes is whole segments, and no more than half
/// the largest window that the peer has offered.
pub(crate) fn goal(segment: u64, largest_window: u64) -> u64 {
    let segment = segment.max(1);
    let longest = LONGEST.min(largest_window / 2).max(segment);
    longest - longest % segment
}

/// tcp_tso_autosize: the segments that leave as one buffer, at a pacing rate of so many bytes a second;
/// `shortest` of them at the least.
pub(crate) fn segments_at_once(
    rate: u64,
    segment: u64,
    shortest: u64,
    minimum_rtt: Option<Span>,
) -> u64 {
    let bytes = (rate >> PACING_SHIFT) + more_at_once(minimum_rtt);
    (bytes.min(LONGEST) / segment.max(1)).max(shortest)
}

/// The bytes that leave besides, the more the shorter the path is; none where it takes 8 ms and more.
#[inline]
fn more_at_once(minimum_rtt: Option<Span>) -> u64 {
    match minimum_rtt {
        Some(rtt) if rtt < NOT_SHORT => LONGEST >> ((rtt.as_nanos() / 1_000) >> RTT_SHIFT),
        _ => 0,
    }
}

/// The bytes a second below which no more than `shortest` segments [leave at once](segments_at_once), whatever the rate.
pub(crate) fn slowest_rate(segment: u64, shortest: u64, minimum_rtt: Option<Span>) -> u64 {
    let more = ((shortest + 1) * segment).min(LONGEST);
    more.saturating_sub(more_at_once(minimum_rtt)) << PACING_SHIFT
}

impl BufferSizes {
    /// The most payload that a send buffer of these sizes holds, in buffers of two full segments of
    /// `segment` bytes.
    #[must_use]
    pub fn sendable(&self, segment: u32) -> u64 {
        payload_in(self.most, segment)
    }
}

/// The most payload that `memory` holds, in buffers of two segments.
fn payload_in(memory: u64, segment: u32) -> u64 {
    let payload = 2 * u64::from(segment);
    memory.saturating_mul(payload) / (payload + OVERHEAD)
}

#[cfg(test)]
mod tests;
