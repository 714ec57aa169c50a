//! What takes up a receive buffer, one of the kernel's buffers (`sk_buff`) at a time: `tcp_input.c` of Linux 6.18.
//!
//! A segment takes a whole buffer however little text it brings, unless that fits behind the text of the one before it;
//! and a buffer is given back when its last byte was read. When they take more than was allowed, they are copied together,
//! and if that doesn't help, what is furthest ahead of a gap is thrown away.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// NET_SKB_PAD, skb_shared_info, sk_buff
const BEFORE: u64 = 64;
const BEHIND: u64 = 320;
const RECORD: u64 = 256;
/// SKB_SMALL_HEAD_CACHE_SIZE
const SMALL: u64 = 576;
const PAGE: u64 = 4096;

/// What is copied together goes into buffers of so much text: SKB_MAX_ORDER(0, 0).
const COPIED: u64 = PAGE - BEHIND;

/// A buffer's block of the allocator's, for so many bytes and what lies behind them.
fn block(bytes: u64) -> u64 {
    let block = bytes.next_multiple_of(64) + BEHIND;
    if block <= SMALL {
        SMALL
    } else {
        block.next_power_of_two()
    }
}

/// skb->truesize: what a packet of so many bytes, IP header included, takes of the receive buffer, as
/// the TUN device and most drivers without scatter-gather allocate it: the packet with 64 bytes before
/// it (NET_SKB_PAD) and 320 behind (skb_shared_info), up to the next size of the allocator's, and 256
/// for the record (sk_buff). A packet that needs more than a page lies in pages of its own.
pub(super) fn true_size(packet: u32) -> u64 {
    let head = BEFORE + u64::from(packet);
    if head >= PAGE {
        return SMALL + RECORD + u64::from(packet).next_multiple_of(PAGE);
    }
    block(head) + RECORD
}

/// A buffer: text from `start` up to `end`, whatever of it another one has, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Buffer {
    start: u64,
    end: u64,
    // skb->truesize
    size: u64,
    // skb_tailroom: room behind the text
    tail: u64,
}

impl Buffer {
    /// That of a segment whose text begins at `start`, in a packet of so many bytes.
    pub(crate) fn of(start: u64, length: u32, packet: u32) -> Self {
        let head = BEFORE + u64::from(packet);
        let tail = if head >= PAGE {
            0
        } else {
            block(head) - BEHIND - head
        };
        Self {
            start,
            end: start + u64::from(length),
            size: true_size(packet),
            tail,
        }
    }

    /// One that text is copied into, so much at most.
    fn to_copy_into(start: u64, room: u64) -> Self {
        let block = block(room);
        Self {
            start,
            end: start,
            size: block + RECORD,
            tail: block - BEHIND,
        }
    }

    fn length(&self) -> u64 {
        self.end - self.start
    }

    /// tcp_try_coalesce: does the text of `next` fit behind this one's?
    fn takes(&mut self, next: &Self) -> bool {
        let fits = next.start == self.end && next.length() <= self.tail;
        if fits {
            self.end = next.end;
            self.tail -= next.length();
        }
        fits
    }
}

/// What became of a buffer ahead of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placed {
    /// It takes memory of its own.
    Alone,
    /// Its text lies in another one's.
    Joined,
    /// All of it was there.
    Nowhere,
}

/// The buffers that are held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    // sk_receive_queue: in order, and not read to its end
    queued: VecDeque<Buffer>,
    // out_of_order_queue, by where each begins; by where each ends, too, unless `nested`
    ahead: VecDeque<Buffer>,
    // One that is ahead may end no later than another one before it, of whose text more has joined it since.
    nested: bool,
    // sk_rmem_alloc
    taken: u64,
}

/// What tcp_prune_queue goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// sk_rcvbuf
    pub(crate) allowed: u64,
    /// Where the segment begins that there is no room for.
    pub(crate) incoming: u64,
    /// copied_seq, and RCV.NXT
    pub(crate) read: u64,
    pub(crate) next: u64,
    /// scaling_ratio, in 256ths
    pub(crate) ratio: u8,
}

impl Memory {
    /// sk_rmem_alloc
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Does nothing lie in it?
    pub(crate) fn is_empty(&self) -> bool {
        let empty = self.queued.is_empty() && self.ahead.is_empty();
        debug_assert!(!empty || self.taken == 0, "nothing takes nothing");
        empty
    }

    /// Is anything in order that was not read to its end?
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// sk_forward_alloc: is so much left of the pages that what is taken lies in?
    pub(crate) fn has_pages_for(&self, size: u64) -> bool {
        self.taken.next_multiple_of(PAGE) - self.taken >= size
    }

    /// tcp_queue_rcv: a segment has arrived in order.
    pub(crate) fn queue(&mut self, buffer: Buffer) {
        if self
            .queued
            .back_mut()
            .is_some_and(|last| last.takes(&buffer))
        {
            return;
        }
        self.taken += buffer.size;
        self.queued.push_back(buffer);
    }

    /// tcp_ofo_queue: all is in order up to `next`, and more with what was ahead and follows.
    pub(crate) fn advance(&mut self, mut next: u64) {
        while let Some(&first) = self.ahead.front()
            && first.start <= next
        {
            self.ahead.pop_front();
            let joined = first.end <= next
                || (self.queued.back_mut()).is_some_and(|last| last.takes(&first));
            next = next.max(first.end);
            if joined {
                self.taken -= first.size;
            } else {
                self.queued.push_back(first);
            }
        }
    }

    /// tcp_data_queue_ofo: a segment has arrived ahead of a gap.
    pub(crate) fn put_ahead(&mut self, buffer: Buffer) -> Placed {
        let Buffer { start, end, .. } = buffer;
        self.nested &= !self.ahead.is_empty();
        if self
            .ahead
            .back_mut()
            .is_some_and(|last| last.takes(&buffer))
        {
            return Placed::Joined;
        }
        let mut place = self.place_of(start);
        if self.is_covered(place, end) {
            return Placed::Nowhere;
        }
        if let Some(before) = place.checked_sub(1) {
            let other = &mut self.ahead[before];
            if other.takes(&buffer) {
                self.nested |= (self.ahead.get(place)).is_some_and(|next| next.end <= end);
                return Placed::Joined;
            }
            if other.start == start {
                self.taken -= other.size;
                self.ahead.remove(before);
                place = before;
            }
        }
        let covered = (self.ahead.range(place..)).take_while(|other| other.end <= end);
        let after = place + covered.count();
        self.taken -= (self.ahead.drain(place..after))
            .map(|other| other.size)
            .sum::<u64>();
        self.taken += buffer.size;
        self.ahead.insert(place, buffer);
        Placed::Alone
    }

    /// How many of those that are ahead begin at `start` or before: nearly always all of them, as text comes in order there,
    /// too.
    fn place_of(&self, start: u64) -> usize {
        match self.ahead.back() {
            Some(last) if last.start > start => {
                self.ahead.partition_point(|other| other.start <= start)
            }
            _ => self.ahead.len(),
        }
    }

    /// Is text up to `end` in one of the first `count` that are ahead? Of those the last reaches furthest, which spares
    /// looking at a whole window for each segment.
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

    /// tcp_eat_recv_skb: the application has read up to `read`.
    pub(crate) fn read(&mut self, read: u64) {
        while let Some(&first) = self.queued.front()
            && first.end <= read
        {
            self.queued.pop_front();
            self.taken -= first.size;
        }
    }

    /// tcp_prune_queue, but for its first step (tcp_clamp_window): makes room by copying together, and then by throwing
    /// away what is furthest ahead. Some: something was thrown away, and nothing is ahead any more beyond here.
    pub(crate) fn prune(&mut self, pressure: &Pressure) -> Option<u64> {
        self.collapse_ahead(pressure);
        let queued = std::mem::take(&mut self.queued);
        self.queued = self.collapse(queued, pressure.read, pressure.next, pressure.ratio);
        if self.taken <= pressure.allowed {
            return None;
        }
        self.prune_ahead(pressure)
    }

    /// tcp_collapse_ofo_queue: each contiguous part of what is ahead.
    fn collapse_ahead(&mut self, pressure: &Pressure) {
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
            if count > 1 || end - head.start >= COPIED {
                let part = self.collapse(part, head.start, end, pressure.ratio);
                self.ahead.extend(part);
                continue;
            }
            self.ahead.extend(part);
            // What is little is not worth it.
            little += head.size;
            if little > pressure.allowed / 8 {
                break;
            }
        }
        self.ahead.extend(rest);
        self.nested = !self.ends_ascend();
    }

    /// tcp_collapse: copies the text of these from `start` up to `end` into as few as hold it, from the first on that
    /// there is something to gain of.
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
                self.taken -= first.size;
                rest.pop_front();
                continue;
            }
            let bloated = first.size * u64::from(ratio) / super::WHOLE > first.length();
            let overlaps = rest.get(1).is_some_and(|next| next.start != first.end);
            if bloated || first.start < start || overlaps {
                break;
            }
            start = first.end;
            kept.push_back(first);
            rest.pop_front();
        }
        while start < end && !rest.is_empty() {
            let mut copy = COPIED.min(end - start);
            let mut new = Buffer::to_copy_into(start, copy);
            self.taken += new.size;
            while copy > 0
                && let Some(&first) = rest.front()
            {
                let size = first.end.saturating_sub(start).min(copy);
                start += size;
                copy -= size;
                if start >= first.end {
                    self.taken -= first.size;
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

    /// tcp_prune_ofo_queue: an eighth of the buffer at a time, until it is enough; but nothing that lies before the
    /// segment that there is no room for.
    fn prune_ahead(&mut self, pressure: &Pressure) -> Option<u64> {
        let eighth = pressure.allowed / 8;
        let mut left = eighth;
        let mut pruned = false;
        while let Some(&last) = self.ahead.back() {
            if pressure.incoming > last.start {
                break;
            }
            pruned = true;
            self.ahead.pop_back();
            self.taken -= last.size;
            if left <= last.size || self.ahead.is_empty() {
                if self.taken <= pressure.allowed {
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
