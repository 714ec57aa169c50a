//! CoDel's control of the delay of one queue (RFC 8289 section 5).

use bentpipe_types::{Bytes, Ecn, PacketRef, PacketStore, Span, Time};

use super::super::FULL_PACKET;

/// Target and interval of the delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayBounds {
    /// TARGET: the minimum delay that counts as a standing queue.
    pub target: Span,
    /// INTERVAL: the time for which the minimum delay must exceed the target; about the longest
    /// round trip of the flows.
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

/// A packet just dequeued, its length, and its arrival time.
pub(in super::super) type Taken = (PacketRef, Bytes, Time);

/// A queue with controlled delay.
pub(in super::super) trait Line {
    /// Removes the first packet.
    fn take(&mut self) -> Option<Taken>;

    /// Returns the bytes behind it.
    fn bytes(&self) -> u64;
}

/// Control state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct DelayState {
    /// When the delay will have been above the target for an interval: the RFC's first_above_time.
    ripe: Option<Time>,
    /// The RFC's dropping state.
    dropping: bool,
    /// The RFC's drop_next.
    next_drop: Time,
    /// Packets dropped in the current dropping state.
    count: u32,
    /// Initial `count` of the current dropping state.
    last_count: u32,
    /// Approximation of 1 / sqrt(count), in units of 1/65,536.
    inverse_root: u16,
}

impl DelayState {
    /// One Newton step towards 1 / sqrt(count), in 32 bits of which 16 are kept: Linux's
    /// `codel_Newton_step`, as in ns-3. For small counts it is inaccurate: from one drop to two it
    /// gives 0.5 instead of 0.707, so the second interval is half of the first.
    fn approach(&mut self) {
        let inverse = u64::from(self.inverse_root) << 16;
        let square = (inverse * inverse) >> 32;
        let error = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.inverse_root = (error.wrapping_mul(inverse) >> 31 >> 16) as u16;
    }

    /// Called when the queue was empty at dequeue.
    pub(in super::super) fn found_empty(&mut self) {
        self.ripe = None;
        self.dropping = false;
    }

    /// Called when packets were dropped for another reason: Linux's FQ-CoDel then advances the next
    /// drops (`fq_codel_drop`).
    pub(in super::super) fn has_lost(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}

/// Control parameters and counters, for one queue or many.
#[derive(Debug)]
pub(in super::super) struct DelayControl {
    bounds: DelayBounds,
    /// Length of the longest packet seen, at least a full one: this much may always be queued, or
    /// the link would idle (the RFC's maxpacket; Linux uses the MTU).
    full_packet: u64,
    dropped: u64,
    marked: u64,
}

impl DelayControl {
    pub(in super::super) fn new(bounds: DelayBounds) -> Self {
        Self {
            bounds,
            full_packet: FULL_PACKET,
            dropped: 0,
            marked: 0,
        }
    }

    /// Returns the number of dropped packets.
    pub(in super::super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of marked packets.
    pub(in super::super) fn marked(&self) -> u64 {
        self.marked
    }

    /// Dequeues the next packet to be sent; drops those that are due before it.
    pub(in super::super) fn dequeue(
        &mut self,
        state: &mut DelayState,
        line: &mut impl Line,
        now: Time,
        packets: &mut PacketStore,
    ) -> Option<(PacketRef, Bytes)> {
        let mut first = line.take();
        let stands = self.stands(state, first, line.bytes(), now);
        if state.dropping {
            state.dropping = stands;
            while state.dropping && state.next_drop <= now {
                state.count = state.count.saturating_add(1);
                state.approach();
                let next = self.after(state.next_drop, state);
                if self.signal(first, packets) {
                    state.next_drop = next;
                    break;
                }
                first = line.take();
                if self.stands(state, first, line.bytes(), now) {
                    state.next_drop = next;
                } else {
                    state.dropping = false;
                }
            }
        } else if stands {
            if !self.signal(first, packets) {
                first = line.take();
                self.stands(state, first, line.bytes(), now);
            }
            self.enter(state, now);
        }
        first.map(|(packet, length, _)| (packet, length))
    }

    /// Whether there has been a standing queue for an interval, given this packet: the RFC's
    /// `dodequeue`.
    #[inline]
    fn stands(
        &mut self,
        state: &mut DelayState,
        first: Option<Taken>,
        behind: u64,
        now: Time,
    ) -> bool {
        let Some((_, length, since)) = first else {
            state.ripe = None;
            return false;
        };
        self.full_packet = self.full_packet.max(length.get());
        if now.since(since) < self.bounds.target || behind <= self.full_packet {
            state.ripe = None;
            return false;
        }
        match state.ripe {
            None => {
                state.ripe = Some(now + self.bounds.interval);
                false
            }
            Some(ripe) => ripe <= now,
        }
    }

    /// Enters the dropping state. Soon after the previous one, it continues with about the same
    /// drop rate, which controlled the queue then.
    fn enter(&mut self, state: &mut DelayState, now: Time) {
        let interval = self.bounds.interval.as_nanos();
        let of_the_last = state.count.wrapping_sub(state.last_count);
        let soon = now.since(state.next_drop).as_nanos() < interval.saturating_mul(16);
        state.dropping = true;
        if of_the_last > 1 && soon {
            state.count = of_the_last;
            state.approach();
        } else {
            state.count = 1;
            state.inverse_root = u16::MAX;
        }
        state.last_count = state.count;
        state.next_drop = self.after(now, state);
    }

    /// The RFC's control law: intervals between drops decrease with the square root of their
    /// number, so that TCP's throughput decreases linearly.
    fn after(&self, time: Time, state: &DelayState) -> Time {
        let interval = u128::from(self.bounds.interval.as_nanos());
        time + Span::from_nanos(((interval * u128::from(state.inverse_root)) >> 16) as u64)
    }

    /// Signals congestion to a packet's sender by a mark or a drop. Returns true if the packet was
    /// marked and continues.
    fn signal(&mut self, packet: Option<Taken>, packets: &mut PacketStore) -> bool {
        let Some((packet, _, _)) = packet else {
            return false;
        };
        if self.bounds.ecn && packets.get(packet).ecn() != Ecn::NotCapable {
            packets.get_mut(packet).set_ecn(Ecn::Congestion);
            self.marked += 1;
            return true;
        }
        self.dropped += 1;
        packets.release(packet);
        false
    }
}
