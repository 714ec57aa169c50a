//! Usage of a receive buffer in terms of the kernel's buffers (`sk_buff`): `tcp_input.c` of Linux
//! 6.18.
//!
//! A segment occupies a whole buffer even if it has little data, unless its data fits behind that
//! of the previous one. A buffer is freed when its last byte was read. If they use more memory than
//! allowed, their data is copied together; if that does not suffice, the highest out-of-order data
//! is discarded.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Shares of the buffer's memory are in 256ths: TCP_RMEM_TO_WIN_SCALE.
pub(super) const RATIO_UNIT: u64 = 256;

/// Sizes of NET_SKB_PAD, skb_shared_info and sk_buff.
const HEADROOM: u64 = 64;
const SHARED_INFO: u64 = 320;
const SKB_SIZE: u64 = 256;
/// Linux's SKB_SMALL_HEAD_CACHE_SIZE.
const SMALL_HEAD: u64 = 576;
const PAGE: u64 = 4096;

/// Data per buffer after copying together: SKB_MAX_ORDER(0, 0).
const COPIED_PER_BUFFER: u64 = PAGE - SHARED_INFO;

/// Size of the allocator's block for a buffer of this many bytes and the structures behind it.
fn block(bytes: u64) -> u64 {
    let block = bytes.next_multiple_of(64) + SHARED_INFO;
    if block <= SMALL_HEAD {
        SMALL_HEAD
    } else {
        block.next_power_of_two()
    }
}

/// skb->truesize: memory that a packet of `packet` bytes, including the IP header, uses in the
/// receive buffer, as allocated by the TUN device and most drivers without scatter-gather. It has
/// 64 bytes before the packet (NET_SKB_PAD) and 320 behind it (skb_shared_info), rounded up to the
/// allocator's sizes, plus 256 for the record (sk_buff). A packet that needs more than a page is
/// stored in separate pages.
pub(super) fn true_size(packet: u32) -> u64 {
    let head = HEADROOM + u64::from(packet);
    if head >= PAGE {
        return SMALL_HEAD + SKB_SIZE + u64::from(packet).next_multiple_of(PAGE);
    }
    block(head) + SKB_SIZE
}

/// A buffer with data from `start` to `end`, which other buffers may contain too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Buffer {
    start: u64,
    end: u64,
    // skb->truesize
    size: u64,
    // skb_tailroom: room behind the data.
    tail: u64,
}

impl Buffer {
    /// The buffer of a segment whose data begins at `start`, in a packet of this length.
    pub(crate) fn of(start: u64, length: u32, packet: u32) -> Self {
        let head = HEADROOM + u64::from(packet);
        let tail = if head >= PAGE {
            0
        } else {
            block(head) - SHARED_INFO - head
        };
        Self {
            start,
            end: start + u64::from(length),
            size: true_size(packet),
            tail,
        }
    }

    /// An empty buffer for at most `room` bytes of copied data.
    fn to_copy_into(start: u64, room: u64) -> Self {
        let block = block(room);
        Self {
            start,
            end: start,
            size: block + SKB_SIZE,
            tail: block - SHARED_INFO,
        }
    }

    fn length(&self) -> u64 {
        self.end - self.start
    }

    /// tcp_try_coalesce: appends the data of `next` if it fits. Returns whether it did.
    fn append_if_fits(&mut self, next: &Self) -> bool {
        let fits = next.start == self.end && next.length() <= self.tail;
        if fits {
            self.end = next.end;
            self.tail -= next.length();
        }
        fits
    }
}

/// Result of inserting an out-of-order buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placed {
    /// It uses memory of its own.
    Alone,
    /// Its data was appended to another buffer.
    Joined,
    /// All of its data was present.
    Nowhere,
}

/// The buffers held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    // sk_receive_queue: in order, and not read completely.
    queued: VecDeque<Buffer>,
    // out_of_order_queue, sorted by start; also by end, unless `nested`.
    ahead: VecDeque<Buffer>,
    // An out-of-order buffer may end before a previous one, to which data was appended since.
    nested: bool,
    // sk_rmem_alloc
    used: u64,
}

/// Inputs of tcp_prune_queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// The size of the buffer (sk_rcvbuf).
    pub(crate) allowed: u64,
    /// Start of the segment for which there is no room.
    pub(crate) incoming: u64,
    /// Position read by the application (copied_seq), and RCV.NXT.
    pub(crate) read: u64,
    pub(crate) next: u64,
    /// scaling_ratio, in 256ths.
    pub(crate) ratio: u8,
}

impl Memory {
    /// The memory in use (sk_rmem_alloc).
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Whether no buffer is held.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = self.queued.is_empty() && self.ahead.is_empty();
        debug_assert!(!empty || self.used == 0, "an empty queue uses no memory");
        empty
    }

    /// Whether any in-order data was not read.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// sk_forward_alloc: whether this much is free in the last page used.
    pub(crate) fn has_pages_for(&self, size: u64) -> bool {
        self.used.next_multiple_of(PAGE) - self.used >= size
    }

    /// tcp_queue_rcv: queues an in-order segment.
    pub(crate) fn queue(&mut self, buffer: Buffer) {
        if self
            .queued
            .back_mut()
            .is_some_and(|last| last.append_if_fits(&buffer))
        {
            return;
        }
        self.used += buffer.size;
        self.queued.push_back(buffer);
    }

    /// tcp_ofo_queue: moves buffers that follow in-order data up to `next` to the in-order queue.
    pub(crate) fn advance(&mut self, mut next: u64) {
        while let Some(&first) = self.ahead.front()
            && first.start <= next
        {
            self.ahead.pop_front();
            let joined = first.end <= next
                || (self.queued.back_mut()).is_some_and(|last| last.append_if_fits(&first));
            next = next.max(first.end);
            if joined {
                self.used -= first.size;
            } else {
                self.queued.push_back(first);
            }
        }
    }

    /// tcp_data_queue_ofo: inserts an out-of-order segment.
    pub(crate) fn insert_out_of_order(&mut self, buffer: Buffer) -> Placed {
        let Buffer { start, end, .. } = buffer;
        self.nested &= !self.ahead.is_empty();
        if self
            .ahead
            .back_mut()
            .is_some_and(|last| last.append_if_fits(&buffer))
        {
            return Placed::Joined;
        }
        let mut place = self.place_of(start);
        if self.is_covered(place, end) {
            return Placed::Nowhere;
        }
        if let Some(before) = place.checked_sub(1) {
            let other = &mut self.ahead[before];
            if other.append_if_fits(&buffer) {
                self.nested |= (self.ahead.get(place)).is_some_and(|next| next.end <= end);
                return Placed::Joined;
            }
            if other.start == start {
                self.used -= other.size;
                self.ahead.remove(before);
                place = before;
            }
        }
        let covered = (self.ahead.range(place..)).take_while(|other| other.end <= end);
        let after = place + covered.count();
        self.used -= (self.ahead.drain(place..after))
            .map(|other| other.size)
            .sum::<u64>();
        self.used += buffer.size;
        self.ahead.insert(place, buffer);
        Placed::Alone
    }

    /// Number of out-of-order buffers that begin at or before `start`: nearly always all, because
    /// data usually arrives in order.
    fn place_of(&self, start: u64) -> usize {
        match self.ahead.back() {
            Some(last) if last.start > start => {
                self.ahead.partition_point(|other| other.start <= start)
            }
            _ => self.ahead.len(),
        }
    }

    /// Whether one of the first `count` out-of-order buffers has data up to `end`. Unless `nested`,
    /// the last of them reaches furthest, which avoids a search through the window.
    fn is_covered(&self, count: usize, end: u64) -> bool {
        let least = if self.nested {
            0
        } else {
            count.saturating_sub(1)
        };
        (self.ahead.range(least..count)).any(|other| other.end >= end)
    }

    fn ends_ascend(&self) -> bool {
        (self.ahead.iter()).is_sorted_by(|one, other| one.end < other.end)
    }

    /// tcp_eat_recv_skb: frees buffers that the application has read.
    pub(crate) fn read(&mut self, read: u64) {
        while let Some(&first) = self.queued.front()
            && first.end <= read
        {
            self.queued.pop_front();
            self.used -= first.size;
        }
    }

    /// tcp_prune_queue without its first step (tcp_clamp_window): makes room by copying together,
    /// and then by discarding the highest out-of-order data. Returns the position from which on
    /// data was discarded, if any.
    pub(crate) fn prune(&mut self, pressure: &Pressure) -> Option<u64> {
        self.collapse_out_of_order(pressure);
        let queued = std::mem::take(&mut self.queued);
        self.queued = self.collapse(queued, pressure.read, pressure.next, pressure.ratio);
        if self.used <= pressure.allowed {
            return None;
        }
        self.prune_out_of_order(pressure)
    }

    /// tcp_collapse_ofo_queue: copies each contiguous part of the out-of-order data together.
    fn collapse_out_of_order(&mut self, pressure: &Pressure) {
        let mut rest = std::mem::take(&mut self.ahead);
        let mut little = 0;
        while let Some(&head) = rest.front() {
            let mut end = head.end;
            let mut count = 1;
            while let Some(next) = rest.get(count)
                && next.start <= end
            {
                end = end.max(next.end);
                count += 1;
            }
            let part: VecDeque<Buffer> = rest.drain(..count).collect();
            if count > 1 || end - head.start >= COPIED_PER_BUFFER {
                let part = self.collapse(part, head.start, end, pressure.ratio);
                self.ahead.extend(part);
                continue;
            }
            self.ahead.extend(part);
            // Small parts are not worth copying.
            little += head.size;
            if little > pressure.allowed / 8 {
                break;
            }
        }
        self.ahead.extend(rest);
        self.nested = !self.ends_ascend();
    }

    /// tcp_collapse: copies the data from `start` to `end` into as few buffers as possible,
    /// beginning with the first where that saves memory.
    fn collapse(
        &mut self,
        buffers: VecDeque<Buffer>,
        mut start: u64,
        end: u64,
        ratio: u8,
    ) -> VecDeque<Buffer> {
        let mut rest = buffers;
        let mut kept = VecDeque::new();
        loop {
            let Some(&first) = rest.front() else {
                return kept;
            };
            if start >= first.end {
                self.used -= first.size;
                rest.pop_front();
                continue;
            }
            let bloated = first.size * u64::from(ratio) / RATIO_UNIT > first.length();
            let overlaps = rest.get(1).is_some_and(|next| next.start != first.end);
            if bloated || first.start < start || overlaps {
                break;
            }
            start = first.end;
            kept.push_back(first);
            rest.pop_front();
        }
        while start < end && !rest.is_empty() {
            let mut copy = COPIED_PER_BUFFER.min(end - start);
            let mut new = Buffer::to_copy_into(start, copy);
            self.used += new.size;
            while copy > 0
                && let Some(&first) = rest.front()
            {
                let size = first.end.saturating_sub(start).min(copy);
                start += size;
                copy -= size;
                if start >= first.end {
                    self.used -= first.size;
                    rest.pop_front();
                }
            }
            new.tail -= start - new.start;
            new.end = start;
            kept.push_back(new);
        }
        kept.extend(rest);
        kept
    }

    /// tcp_prune_ofo_queue: discards an eighth of the buffer at a time until it suffices, but
    /// nothing before the segment for which there is no room.
    fn prune_out_of_order(&mut self, pressure: &Pressure) -> Option<u64> {
        let eighth = pressure.allowed / 8;
        let mut left = eighth;
        let mut pruned = false;
        while let Some(&last) = self.ahead.back() {
            if pressure.incoming > last.start {
                break;
            }
            pruned = true;
            self.ahead.pop_back();
            self.used -= last.size;
            if left <= last.size || self.ahead.is_empty() {
                if self.used <= pressure.allowed {
                    break;
                }
                left = eighth;
            } else {
                left -= last.size;
            }
        }
        pruned.then(|| {
            self.ahead
                .iter()
                .map(|buffer| buffer.end)
                .max()
                .unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests;
