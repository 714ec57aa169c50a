//! Linux's autotuning of the send buffer, and the buffers it consists of: `tcp.c`, `tcp_input.c`
//! and `tcp_output.c` of Linux 6.18.
//!
//! Written data is stored in buffers of up to 64 KiB. When a part of it may be sent, that part is
//! split off and sent as one buffer: at least two segments, or a millisecond's worth. Each buffer
//! uses memory in addition to its payload, and all of it counts.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use bentpipe_types::{Span, fetch, fetch_whole};
use serde::{Deserialize, Serialize};

use crate::config::BufferSizes;

/// Memory of a buffer for headers (MAX_TCP_HEADER and skb_shared_info) and its record (sk_buff).
const OVERHEAD: u64 = 832;

/// tcp_sndbuf_expand: memory of a segment for its headers in addition to its payload, before
/// rounding to the allocator's sizes; and of its record.
const HEADERS: u64 = 256 + 320;
const SKB_SIZE: u64 = 256;

/// GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER: the maximum size of a buffer.
const MAXIMUM_BUFFER: u64 = 65_279;

/// Linux's sk_pacing_shift and tcp_tso_rtt_log.
const PACING_SHIFT: u32 = 10;
const RTT_SHIFT: u32 = 9;

/// Minimum round trip for which the right shift yields zero.
const MAXIMUM_SHORT_RTT: Span = Span::from_micros(16 << RTT_SHIFT);
const _: () = assert!(MAXIMUM_BUFFER >> 16 == 0);

/// Linux's TCP_INIT_CWND.
const INITIAL_WINDOW: u64 = 10;

/// Linux's send buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct SendBufferAutotuning {
    // tcp_wmem[2]
    most: u64,
    // sk_sndbuf
    buffer: u64,
    // TCP_NOTSENT_LOWAT: number of unsent bytes above which writes are not accepted.
    low_water: Option<NonZeroU32>,
    // push_one: number of buffers that the current write may send; 0: no limit.
    buffer_limit: u16,
    // SOCK_NOSPACE: the last poll reported no room.
    lacks_room: bool,
    // End positions of the sent and unacknowledged buffers.
    ends: VecDeque<u64>,
    // The unsent buffers: from each of these positions up to the next, they have this much payload.
    written: VecDeque<(u64, u64)>,
}

/// Contents of a send buffer, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBufferContents {
    /// SND.UNA.
    pub(crate) unacknowledged: u64,
    /// SND.NXT.
    pub(crate) next: u64,
    /// Position after the last byte written.
    pub(crate) end: u64,
    /// Number of outstanding buffers saved by merging SACKed buffers.
    pub(crate) merged: i32,
}

impl SendBufferContents {
    /// Bytes written and not sent.
    fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}

impl SendBufferAutotuning {
    /// See [`Connection::prefetch_senders`](crate::Connection::prefetch_senders).
    #[inline]
    pub(crate) fn prefetch(&self) {
        fetch_whole(self, &self.most);
    }

    /// See [`Connection::prefetch_last`](crate::Connection::prefetch_last).
    #[inline]
    pub(crate) fn prefetch_queues(&self) {
        for end in [self.ends.front(), self.ends.back()] {
            end.inspect(|end| fetch(*end, 1));
        }
        for written in [self.written.front(), self.written.back()] {
            written.inspect(|written| fetch(*written, 1));
        }
    }

    /// Creates a buffer of these sizes.
    pub(crate) fn new(sizes: BufferSizes) -> Self {
        Self {
            most: sizes.most.max(sizes.initial),
            buffer: sizes.initial,
            lacks_room: false,
            low_water: None,
            buffer_limit: 0,
            ends: VecDeque::new(),
            written: VecDeque::new(),
        }
    }

    /// Sets the size (SO_SNDBUF) and stops autotuning.
    pub(crate) fn lock(&mut self, bytes: u64) {
        (self.buffer, self.most) = (bytes, bytes);
    }

    /// Sets the limit of unsent bytes (TCP_NOTSENT_LOWAT); `None`: no limit.
    pub(crate) fn set_low_water(&mut self, bytes: Option<NonZeroU32>) {
        self.low_water = bytes;
    }

    /// tcp_stream_memory_free: whether more is accepted with this many unsent bytes.
    fn accepts_more(&self, unsent: u64) -> bool {
        (self.low_water).is_none_or(|water| unsent < u64::from(water.get()))
    }

    /// tcp_sendmsg: records a write after the contents `held`, into buffers of `goal` bytes, of
    /// which `leaves` bytes are sent at once. It first fills the last buffer, and then others. The
    /// sent part of the last buffer is split off and does not count.
    pub(crate) fn record_write(&mut self, held: &SendBufferContents, goal: u64, leaves: u64) {
        let from = (leaves > 0).then_some(held.end + leaves);
        self.record_write_from(from, held, goal);
    }

    /// Records a write; data behind `from` is in buffers of `goal` bytes, if any is sent at once.
    pub(crate) fn record_write_from(
        &mut self,
        from: Option<u64>,
        held: &SendBufferContents,
        goal: u64,
    ) {
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

    /// Start of the unsent part of the last buffer; the end, if everything was sent.
    fn last_buffer(&self, held: &SendBufferContents) -> u64 {
        let Some(&(from, goal)) = self.written.back() else {
            return held.end;
        };
        let before = held.end.saturating_sub(from + 1) / goal * goal;
        (from + before).max(held.next).min(held.end)
    }

    /// Bytes that fill the last buffer, or a new one of `goal` bytes if it is full or sent.
    pub(crate) fn until_full(&self, held: &SendBufferContents, goal: u64) -> u64 {
        let last = held.end - self.last_buffer(held);
        if last < goal { goal - last } else { goal }
    }

    /// Number of buffers with unsent data.
    fn unsent_buffers(&self, held: &SendBufferContents) -> u64 {
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

    /// Unsent bytes of the buffer that contains `position`, if known.
    pub(crate) fn left_of_buffer(&self, position: u64) -> Option<u64> {
        let after = self.written.partition_point(|&(from, _)| from <= position);
        let &(from, goal) = self.written.get(after.checked_sub(1)?)?;
        let left = goal - (position - from) % goal;
        let next = self.written.get(after);
        Some(next.map_or(left, |&(next, _)| left.min(next - position)))
    }

    /// The size of the buffer (sk_sndbuf).
    #[cfg(test)]
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// The memory in use (sk_wmem_queued).
    pub(crate) fn memory(&self, held: &SendBufferContents) -> u64 {
        self.memory_at_least(held) + OVERHEAD * self.unsent_buffers(held)
    }

    /// Lower bound of the memory, without the overhead of unsent buffers.
    #[inline]
    fn memory_at_least(&self, held: &SendBufferContents) -> u64 {
        let sent = (self.ends.len() as u64).saturating_add_signed(-i64::from(held.merged));
        held.end.saturating_sub(held.unacknowledged) + OVERHEAD * sent
    }

    /// sk_stream_is_writeable: whether a third of the buffer is free, and less than half of the
    /// unsent limit is used. Required before the next write after one that was cut short.
    #[inline]
    pub(crate) fn is_writeable(&self, held: &SendBufferContents) -> bool {
        let third_is_free = |memory| self.buffer.saturating_sub(memory) >= memory / 2;
        // Most often the lower bound is already too much.
        third_is_free(self.memory_at_least(held))
            && third_is_free(self.memory(held))
            && self.accepts_more(2 * held.unsent())
    }

    /// tcp_poll (for any event) and sk_stream_write_space: checks for room. Without room, the
    /// buffer may grow, even if nobody waits for that.
    pub(crate) fn note_poll(&mut self, held: &SendBufferContents) {
        self.lacks_room = !self.is_writeable(held);
    }

    /// Records that a non-blocking write was cut short (SOCK_NOSPACE, whatever a poll would
    /// report).
    pub(crate) fn note_short_write(&mut self) {
        self.lacks_room = true;
    }

    /// Whether the last poll reported no room.
    #[inline]
    pub(crate) fn lacks_room(&self) -> bool {
        self.lacks_room
    }

    /// tcp_push_one: limits the number of buffers to send, without deferral; 0: no limit.
    pub(crate) fn limit_buffers(&mut self, buffers: u16) {
        self.buffer_limit = buffers;
    }

    /// Maximum number of buffers to send; 0: no limit.
    #[inline]
    pub(crate) fn buffer_limit(&self) -> u16 {
        self.buffer_limit
    }

    /// Bytes that a write may add now, into buffers of `goal` bytes. The windows admit `sendable`
    /// bytes at once, in bursts of `at_once` bytes. Half of the largest window that the peer has
    /// advertised is `half_window`; without Linux's bursts, `None`.
    ///
    /// tcp_sendmsg checks for memory (sk_stream_memory_free) when it begins a buffer. When the last
    /// one is full, a burst is split off it (tcp_push_one), which makes room in it. So no check
    /// occurs until the windows are full, and the send buffer exceeds its size. But after each half
    /// of the largest window, and at the end of each call, everything is sent (forced_push,
    /// tcp_push), and the next buffer requires a check.
    pub(crate) fn room(
        &self,
        held: &SendBufferContents,
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
            if tail == 0 && (memory >= self.buffer || !self.accepts_more(unsent)) {
                return written;
            }
            // Full for the first time, and then again after each burst.
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
        // The last buffer is filled, and others are begun as long as there is any room.
        let (first, taken, waits) = if leaves > 0 {
            // It is full again when the windows are.
            let sent = leaves + OVERHEAD * leaves.div_ceil(at_once);
            (leaves + goal, sent + goal + OVERHEAD, goal)
        } else if half_window.is_some() && tail > 0 && last == unsent {
            // A deferred burst is sent when the buffer is full, which makes room in it.
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

    /// Whether the buffer can still grow.
    #[inline]
    pub(crate) fn may_grow(&self) -> bool {
        self.buffer < self.most
    }

    /// tcp_sndbuf_expand: expands the buffer for a window of `window` segments of `segment` bytes,
    /// of which the window rule wants `factor`.
    pub(crate) fn expand(&mut self, window: u64, segment: u64, factor: u64) {
        let each = (segment + HEADERS).next_power_of_two() + SKB_SIZE;
        let wanted = factor
            .saturating_mul(window.max(INITIAL_WINDOW))
            .saturating_mul(each);
        if self.buffer < wanted {
            self.buffer = wanted.min(self.most).max(self.buffer);
        }
    }

    /// Records that a buffer ending at `end` was sent.
    pub(crate) fn sent(&mut self, end: u64) {
        self.ends.push_back(end);
    }

    /// Removes buffers acknowledged up to `position`.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, position: u64) {
        while self.ends.front().is_some_and(|&end| end <= position) {
            self.ends.pop_front();
        }
    }
}

/// tcp_xmit_size_goal and tcp_bound_to_half_wnd: payload of a buffer, in whole segments, at most
/// half of the largest window that the peer has advertised.
pub(crate) fn goal(segment: u64, largest_window: u64) -> u64 {
    let segment = segment.max(1);
    let longest = MAXIMUM_BUFFER.min(largest_window / 2).max(segment);
    longest - longest % segment
}

/// tcp_tso_autosize: number of segments per burst at a pacing rate of `rate` bytes per second; at
/// least `shortest`.
pub(crate) fn segments_at_once(
    rate: u64,
    segment: u64,
    shortest: u64,
    minimum_rtt: Option<Span>,
) -> u64 {
    let bytes = (rate >> PACING_SHIFT) + short_path_allowance(minimum_rtt);
    (bytes.min(MAXIMUM_BUFFER) / segment.max(1)).max(shortest)
}

/// Additional bytes per burst on short paths; none for round trips of 8 ms or more.
#[inline]
fn short_path_allowance(minimum_rtt: Option<Span>) -> u64 {
    match minimum_rtt {
        Some(rtt) if rtt < MAXIMUM_SHORT_RTT => {
            MAXIMUM_BUFFER >> ((rtt.as_nanos() / 1_000) >> RTT_SHIFT)
        }
        _ => 0,
    }
}

/// The rate in bytes per second below which bursts have the minimum of `shortest` segments (see
/// [`segments_at_once`]).
pub(crate) fn minimum_burst_rate(segment: u64, shortest: u64, minimum_rtt: Option<Span>) -> u64 {
    let more = ((shortest + 1) * segment).min(MAXIMUM_BUFFER);
    more.saturating_sub(short_path_allowance(minimum_rtt)) << PACING_SHIFT
}

impl BufferSizes {
    /// Payload that fits into a send buffer of these sizes, in buffers of two full segments of
    /// `segment` bytes.
    #[must_use]
    pub fn sendable(&self, segment: u32) -> u64 {
        payload_in(self.most, segment)
    }
}

/// Payload that fits into `memory`, in buffers of two segments.
fn payload_in(memory: u64, segment: u32) -> u64 {
    let payload = 2 * u64::from(segment);
    memory.saturating_mul(payload) / (payload + OVERHEAD)
}

#[cfg(test)]
mod tests;
