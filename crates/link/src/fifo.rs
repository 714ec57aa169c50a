//! One direction of a link behind a drop-tail queue: the quick way.

use bentpipe_types::{Bytes, PacketRef, Span, Time, fetch};

use crate::most::Most;
use crate::ring::{InTransit, Ring};
use crate::transmitter::{Recent, Transmitter};
use crate::{Counters, DropTail, ErrorModel, Limit, Verdict};

/// A packet that has come to the end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Intact.
    Delivered(PacketRef),
    /// Corrupted on the way.
    Lost(PacketRef),
}

/// The packet that is first to arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// When it arrives.
    pub arrival: Time,
    /// The packet.
    pub packet: PacketRef,
    length: u32,
}

/// One direction of a link, first in, first out, up to a limit: one event per packet, and none where another
/// direction gets all that leaves it.
///
/// `departure`, the end of a packet's transmission, is fixed when it is enqueued; the ring holds
/// propagating, transmitted and waiting packets, in that order.
///
/// What is counted is what cannot be told from the ring: packets ever queued and those still in it say how many
/// have arrived.
///
/// In the order in which packets need it: what one needs that arrives, what one needs besides that is offered, and
/// what is needed only where others wait before it or are lost. Where there are many directions, each packet finds
/// its direction gone from the cache.
#[derive(Debug)]
#[repr(C)]
pub struct Fifo {
    ring: Ring,
    delay: Span,
    may_lose: bool,
    /// So many bits will arrive whatever packets they are in: the error models [have lent them](ErrorModel::lend).
    sure_bits: u32,
    recent: Recent,
    idle_from: Time,
    busy: Span,
    queued_bytes: u64,
    waiting_bytes: u64,
    seldom: Box<Seldom>,
}

/// What most packets of most directions do not need. What some need comes first: as much as a cache line, which it may
/// lie across.
#[derive(Debug)]
#[repr(C)]
struct Seldom {
    queue: DropTail,
    transmitter: Transmitter,
    most: Most,
    dropped: u64,
    lost: u64,
    lost_bytes: u64,
    errors: Vec<ErrorModel>,
}

/// See `DirectionSlot` of the engine, which has the rest of two cache lines.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(
        std::mem::offset_of!(Fifo, recent) == 48,
        "what an arrival needs"
    );
    assert!(size_of::<Fifo>() == 104);
};

impl Fifo {
    /// An empty, idle direction.
    pub(crate) fn new(
        transmitter: Transmitter,
        delay: Span,
        queue: DropTail,
        errors: Vec<ErrorModel>,
    ) -> Self {
        Self {
            ring: Ring::default(),
            delay,
            may_lose: !errors.is_empty(),
            sure_bits: 0,
            recent: Recent::default(),
            idle_from: Time::ZERO,
            busy: Span::ZERO,
            queued_bytes: 0,
            waiting_bytes: 0,
            seldom: Box::new(Seldom {
                queue,
                most: Most::default(),
                transmitter,
                dropped: 0,
                lost: 0,
                lost_bytes: 0,
                errors,
            }),
        }
    }

    /// Offers a packet to the queue. A dropped packet stays the caller's.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: PacketRef, length: Bytes) -> Verdict {
        let verdict = self.offer(now, packet, length);
        if verdict == Verdict::Dropped {
            self.count_dropped(1);
        }
        verdict
    }

    /// Offers a packet that comes `at` a time, which need not be now: all that come before it have been offered.
    /// One that will be dropped is not counted as yet, and stays the caller's.
    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: PacketRef, length: Bytes) -> Verdict {
        let length = length.get() as u32;
        let start = if self.idle_from > at {
            if self.finds(length) != (Verdict::Queued, false) {
                // What has left the queue since that was last looked at makes it fewer; otherwise, nobody need look.
                self.advance(at, |_, _, _| {});
                let (verdict, more_than_ever) = self.finds(length);
                if verdict == Verdict::Dropped {
                    return verdict;
                }
                if more_than_ever {
                    self.note_most(length);
                }
            }
            self.waiting_bytes += u64::from(length);
            self.idle_from
        } else {
            // The transmitter is idle: all before it have departed, and nothing waits.
            self.ring.depart_all();
            self.waiting_bytes = 0;
            at
        };
        let transmission = self.recent.time(length, &self.seldom.transmitter);
        let departure = start + transmission;
        self.idle_from = departure;
        self.busy += transmission;
        self.queued_bytes += u64::from(length);
        self.ring.push(InTransit {
            departure,
            packet,
            length,
        });
        Verdict::Queued
    }

    /// What one more finds, for all that is known of who waits: has it room, and do more wait with it than ever?
    #[inline(always)]
    fn finds(&self, length: u32) -> (Verdict, bool) {
        let (packets, bytes) = (self.waiting_packets(), Bytes::new(self.waiting_bytes));
        let length = Bytes::new(u64::from(length));
        let seldom = &*self.seldom;
        let verdict = (seldom.queue).enqueue(packets, bytes, length);
        let more = (seldom.most).is_exceeded(packets + 1, (bytes + length).get());
        (verdict, more)
    }

    /// With the next, more wait than ever.
    #[inline(always)]
    fn note_most(&mut self, length: u32) {
        let (number, arrived) = (self.ring.pushed() + 1, self.ring.arrived());
        let (packets, bytes) = (
            self.waiting_packets() + 1,
            self.waiting_bytes + u64::from(length),
        );
        (self.seldom.most).note(number, arrived, packets, bytes);
    }

    /// Counts packets that the queue has dropped.
    pub fn count_dropped(&mut self, packets: u64) {
        self.seldom.dropped += packets;
    }

    /// Of packets that are offered at the same time, whenever that is, those after the first so many are dropped, whatever
    /// they are, and so is one of the first.
    #[inline]
    #[must_use]
    pub fn most_at_once(&self) -> u64 {
        match self.seldom.queue.limit {
            // What waits, what begins to be transmitted, and the one that is dropped. (Where the rate is such that a
            // packet may be transmitted in no time, none need be.)
            Limit::Packets(limit) if self.seldom.transmitter.takes_time() => {
                limit.saturating_add(2)
            }
            _ => u64::MAX,
        }
    }

    /// The same of packets that are offered `at` this time, before which all that come sooner have been.
    #[inline(never)]
    pub fn most_at(&mut self, at: Time) -> u64 {
        let most = self.most_at_once();
        if self.idle_from <= at || most == u64::MAX {
            return most;
        }
        self.advance(at, |_, _, _| {});
        (most - 1).saturating_sub(self.waiting_packets()).max(1)
    }

    /// Has it dropped something, and does so much wait that it may soon again?
    #[inline]
    #[must_use]
    pub fn is_cramped(&self) -> bool {
        self.seldom.dropped > 0 && self.waiting_packets() >= self.most_at_once() / 2
    }

    /// When the transmission of the packet last enqueued begins (or began).
    #[must_use]
    pub fn last_start(&self) -> Time {
        Time::ZERO + (self.idle_from.since(Time::ZERO) - self.recent.time)
    }

    /// When the packet last enqueued departs (or departed).
    #[must_use]
    pub fn last_departure(&self) -> Time {
        self.idle_from
    }

    /// When the packet last enqueued arrives (or arrived).
    #[inline]
    #[must_use]
    pub fn last_arrival(&self) -> Time {
        self.idle_from + self.delay
    }

    /// What is offered then, or later, arrives after this time.
    #[must_use]
    pub fn arrives_after(&self, offered: Time) -> Time {
        self.idle_from.max(offered) + self.delay
    }

    /// The packet at the head of the ring.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<Head> {
        let head = self.ring.first()?;
        Some(Head {
            arrival: head.departure + self.delay,
            packet: head.packet,
            length: head.length,
        })
    }

    /// The packet that is this far behind the head of the ring.
    #[inline]
    #[must_use]
    pub fn behind_first(&self, number: u64) -> Option<PacketRef> {
        Some(self.ring.behind_first(number)?.packet)
    }

    /// Asks for what hangs from it that the next to arrive needs.
    #[inline]
    pub fn fetch_for_arrival(&self) {
        self.ring.fetch_first();
    }

    /// Asks for what hangs from it that the next that is offered needs.
    #[inline]
    pub fn fetch_for_offer(&self) {
        self.ring.fetch_end();
        fetch(&self.seldom.queue, 1);
        fetch(&self.seldom.most, 1);
    }

    /// When the packet at the head of the ring arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.first().map(|head| head.arrival)
    }

    /// Takes the packet at the head of the ring, whose arrival time has come, at least for who gets it: the queue
    /// need not have come so far. `None` if there is none.
    #[inline]
    pub fn arrive(&mut self, now: Time) -> Option<Arrival> {
        let head = self.first()?;
        debug_assert!(head.arrival <= now, "it is under way");
        Some(self.take(head))
    }

    /// The same, of a packet that [was found](Self::first) to be at the head of the ring.
    #[inline]
    pub fn take(&mut self, head: Head) -> Arrival {
        debug_assert_eq!(Some(head), self.first(), "another is first");
        self.ring.arrive();
        if self.may_lose && self.loses(head.length) {
            return Arrival::Lost(head.packet);
        }
        Arrival::Delivered(head.packet)
    }

    /// Is the next packet to arrive lost?
    #[inline(never)]
    fn loses(&mut self, length: u32) -> bool {
        match u64::from(self.sure_bits).checked_sub(u64::from(length) * 8) {
            Some(left) => {
                self.sure_bits = left as u32;
                false
            }
            None => self.ask_models(length),
        }
    }

    #[inline(never)]
    fn ask_models(&mut self, length: u32) -> bool {
        let seldom = &mut *self.seldom;
        ErrorModel::give_back(&mut seldom.errors, self.sure_bits);
        let lost = ErrorModel::any_loses(&mut seldom.errors, Bytes::new(u64::from(length)));
        self.sure_bits = ErrorModel::lend(&mut seldom.errors);
        if lost {
            seldom.lost += 1;
            seldom.lost_bytes += u64::from(length);
        }
        lost
    }

    /// Does it lose nothing?
    #[must_use]
    pub fn is_error_free(&self) -> bool {
        !self.may_lose
    }

    /// Does even the shortest packet take time to cross it?
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.delay + self.seldom.transmitter.exact(1) > Span::ZERO
    }

    /// Makes room in a ring that is full for what comes `now`, of a direction whose arrivals are nobody's events:
    /// what has arrived by now is in it no more.
    #[inline]
    pub fn make_room(&mut self, now: Time) {
        if self.ring.is_full() {
            self.retire(now);
        }
    }

    #[cold]
    fn retire(&mut self, now: Time) {
        self.advance(now, |_, _, _| {});
        while self.next_arrival().is_some_and(|at| at <= now) {
            self.ring.arrive();
        }
    }

    /// Brings the queue up to `now`, telling `left` of each packet that has left it meanwhile: when
    /// it began to be transmitted, and how many packets and bytes then still waited.
    pub fn advance(&mut self, now: Time, mut left: impl FnMut(Time, u64, u64)) {
        while let Some(first) = self.ring.next_departure() {
            if first.departure > now {
                break;
            }
            let at = first.departure;
            self.ring.depart();
            // The next one leaves the queue for the transmitter. It did wait: one that finds the
            // transmitter idle comes after an `advance` that has departed all before it.
            if let Some(next) = self.ring.next_departure() {
                self.waiting_bytes -= u64::from(next.length);
                left(at, self.waiting_packets(), self.waiting_bytes);
            }
        }
    }

    /// Packets waiting, as of the last [`advance`](Self::advance), and those that have come since.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        // Of those not departed, the first is being transmitted.
        self.ring.not_departed().saturating_sub(1) as u64
    }

    /// Bytes waiting, of the [same](Self::waiting_packets) packets.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Packets in the queue, in transmission or in flight.
    #[inline]
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.ring.not_arrived()
    }

    /// Packets that its queue dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.seldom.dropped
    }

    /// Packets lost to errors so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.seldom.lost
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters_without(0, self.ring.not_arrived())
    }

    /// Time the transmitter has worked, up to `now`: work it was given but has not done is left out.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        self.busy_without(0, now)
    }

    /// The packets offered that arrive after `now`, the last first.
    pub fn arriving_after(&self, now: Time) -> impl Iterator<Item = PacketRef> {
        let mut packets = self.ring.newest();
        std::iter::from_fn(move || {
            let next = packets.next()?;
            (next.departure + self.delay > now).then_some(next.packet)
        })
    }

    /// What it has done so far, without the last `ahead` packets offered, which come later, and with so many of
    /// the others in transit.
    #[must_use]
    pub fn counters_without(&self, ahead: usize, in_transit: usize) -> Counters {
        let queued = self.ring.pushed() - ahead as u64;
        let delivered = queued - self.seldom.lost - in_transit as u64;
        let not_arrived: u64 = (self.ring.newest().take(ahead + in_transit))
            .map(|each| u64::from(each.length))
            .sum();
        let (queue_max_packets, queue_max_bytes) = self.seldom.most.among(queued);
        Counters {
            offered: queued + self.seldom.dropped,
            dropped: self.seldom.dropped,
            lost: self.seldom.lost,
            delivered,
            delivered_bytes: self.queued_bytes - self.seldom.lost_bytes - not_arrived,
            passed_on: delivered,
            queue_max_packets,
            queue_max_bytes,
            busy: self.given_without(ahead),
            ..Counters::default()
        }
    }

    /// Time the transmitter has worked, up to `now`, without the last `ahead` packets offered, which come later.
    #[must_use]
    pub fn busy_without(&self, ahead: usize, now: Time) -> Span {
        let idle_from = if ahead == 0 {
            self.idle_from
        } else {
            let before = self.ring.newest().nth(ahead);
            before.map_or(Time::ZERO, |last| last.departure)
        };
        self.given_without(ahead)
            .saturating_sub(idle_from.since(now))
    }

    /// Time the transmitter was given work for, without the last `ahead` packets offered.
    fn given_without(&self, ahead: usize) -> Span {
        let times = self.ring.newest().take(ahead);
        times.fold(self.busy, |busy, each| {
            busy - self.seldom.transmitter.exact(each.length)
        })
    }
}

#[cfg(test)]
mod tests;
