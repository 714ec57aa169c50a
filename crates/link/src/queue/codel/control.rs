//! What controls the delay of one queue: RFC 8289 section 5.

use bentpipe_types::{Bytes, Ecn, PacketRef, PacketStore, Span, Time};

use super::super::FULL_PACKET;

/// What a delay is to be kept at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayBounds {
    /// TARGET: the least delay that is a standing queue, and to be got rid of.
    pub target: Span,
    /// INTERVAL: for how long even the shortest delay has to be above it; about the longest round trip of the flows.
    pub interval: Span,
    /// Mark packets that are ECN-capable instead of dropping them.
    pub ecn: bool,
}

/// A packet that has just left a queue, its length, and since when it waited there.
pub(in super::super) type Taken = (PacketRef, Bytes, Time);

/// A queue whose delay is controlled.
pub(in super::super) trait Line {
    /// Takes the first packet.
    fn take(&mut self) -> Option<Taken>;

    /// Bytes behind it.
    fn bytes(&self) -> u64;
}

/// What is remembered of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct DelayState {
    /// When the delay will have been above the target for an interval, if it stays there: the RFC's first_above_time.
    ripe: Option<Time>,
    /// The RFC's dropping state.
    dropping: bool,
    /// The RFC's drop_next.
    next_drop: Time,
    /// Packets dropped since the dropping state was entered.
    count: u32,
    /// What `count` began with when it was last entered.
    last_count: u32,
    /// About 1 / sqrt(count), of which there are 65,536ths.
    inverse_root: u16,
}

impl DelayState {
    /// One of Newton's steps towards 1 / sqrt(count), in 32 bits, of which 16 are kept: Linux's `codel_Newton_step`, and
    /// ns-3's. While the count is small that is far from the root: from one drop to two it is 0.5 and not 0.707, so
    /// that the second interval is half of the first.
    fn approach(&mut self) {
        let inverse = u64::from(self.inverse_root) << 16;
        let square = (inverse * inverse) >> 32;
        let error = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.inverse_root = (error.wrapping_mul(inverse) >> 31 >> 16) as u16;
    }

    /// The queue was asked for a packet, and had none.
    pub(in super::super) fn found_empty(&mut self) {
        self.ripe = None;
        self.dropping = false;
    }

    /// Packets have been dropped for another reason: Linux's FQ-CoDel lets the next drops come as much sooner
    /// (`fq_codel_drop`).
    pub(in super::super) fn has_lost(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}

/// How delays are controlled, and what was done for it: of one queue or of many.
#[derive(Debug)]
pub(in super::super) struct DelayControl {
    bounds: DelayBounds,
    /// The longest packet that was ever seen, and no less than a full one: so much may always wait, or the link would
    /// idle (the RFC's maxpacket; Linux takes the MTU for it).
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

    /// Packets dropped.
    pub(in super::super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets marked.
    pub(in super::super) fn marked(&self) -> u64 {
        self.marked
    }

    /// Takes the next packet to be sent, and gives up those that are due before it.
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

    /// Has there been a standing queue for an interval, as this packet sees it? The RFC's `dodequeue`.
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

    /// The dropping state begins. Soon after the last one, it goes on about where that was: what controlled the
    /// queue then will do so now.
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

    /// The RFC's control law: drops come at intervals that shrink with the square root of their number, so that
    /// TCP's throughput falls linearly.
    fn after(&self, time: Time, state: &DelayState) -> Time {
        let interval = u128::from(self.bounds.interval.as_nanos());
        time + Span::from_nanos(((interval * u128::from(state.inverse_root)) >> 16) as u64)
    }

    /// Tells a packet's sender: by a mark, and then it may go on, or by a drop.
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
