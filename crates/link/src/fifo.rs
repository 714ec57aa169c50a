//! Fast path: a link direction with a drop-tail queue.

use bentpipe_types::{Bytes, PacketRef, Span, Time, fetch};

use crate::most::Most;
use crate::ring::{InTransit, Ring};
use crate::transmitter::{Recent, Transmitter};
use crate::{Counters, DropTail, ErrorModel, Limit, Verdict};

/// A packet at the end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Intact.
    Delivered(PacketRef),
    /// Corrupted on the way.
    Lost(PacketRef),
}

/// The next packet to arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Arrival time.
    pub arrival: Time,
    /// The packet.
    pub packet: PacketRef,
    length: u32,
}

/// A direction of a link with a drop-tail queue: one event per packet, and none where another
/// direction receives all its packets.
///
/// A packet's `departure`, the end of its transmission, is known when it is enqueued. The ring
/// holds propagating, transmitted and queued packets, in that order. Only what cannot be derived
/// from the ring is counted: packets ever queued minus those still in it have arrived.
///
/// Fields are in the order in which packets need them: those for an arrival, those for an offered
/// packet, and those needed only where others are queued or lost. With many directions, each packet
/// finds its direction outside the cache.
#[derive(Debug)]
#[repr(C)]
pub struct Fifo {
    ring: Ring,
    delay: Span,
    may_lose: bool,
    /// Bits that are certain to arrive: [lent](ErrorModel::lend) by the error models.
    sure_bits: u32,
    recent: Recent,
    idle_from: Time,
    busy: Span,
    queued_bytes: u64,
    waiting_bytes: u64,
    seldom: Box<Seldom>,
}

/// Fields that most packets of most directions do not need. Those that some need come first: one
/// cache line, possibly across two.
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

/// See `DirectionSlot` of the engine, which has the rest of the two cache lines.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(
        std::mem::offset_of!(Fifo, recent) == 48,
        "what an arrival needs"
    );
    assert!(size_of::<Fifo>() == 104);
};

impl Fifo {
    /// Creates an idle direction.
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

    /// Creates an idle direction with these errors, to which packets are added when their arrival
    /// is known ([`add_arrival`](Self::add_arrival)).
    pub(crate) fn of_arrivals(transmitter: Transmitter, errors: Vec<ErrorModel>) -> Self {
        let queue = DropTail {
            limit: Limit::Packets(0),
        };
        Self::new(transmitter, Span::ZERO, queue, errors)
    }

    /// Removes the propagation and the errors of an idle direction. Returns the direction [of its
    /// arrivals](Self::of_arrivals), and the delay.
    pub(crate) fn split_propagation(&mut self) -> (Self, Span) {
        let errors = std::mem::take(&mut self.seldom.errors);
        let delay = std::mem::replace(&mut self.delay, Span::ZERO);
        self.may_lose = false;
        let transmitter = self.seldom.transmitter.clone();
        (Self::of_arrivals(transmitter, errors), delay)
    }

    /// Adds a packet that was transmitted elsewhere and arrives `at` this time, not before any
    /// earlier one.
    pub fn add_arrival(&mut self, at: Time, packet: PacketRef, length: Bytes) {
        debug_assert!(
            self.idle_from <= at,
            "packets arrive in the order of transmission"
        );
        self.ring.depart_all();
        self.idle_from = at;
        self.queued_bytes += length.get();
        self.ring.push(InTransit {
            departure: at,
            packet,
            length: length.get() as u32,
        });
    }

    /// States that no packet will be [added](Self::add_arrival) that arrives before this time.
    pub fn nothing_arrives_before(&mut self, at: Time) {
        self.idle_from = self.idle_from.max(at);
    }

    /// Offers a packet to the queue. A dropped packet remains with the caller.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: PacketRef, length: Bytes) -> Verdict {
        let verdict = self.offer(now, packet, length);
        if verdict == Verdict::Dropped {
            self.count_dropped(1);
        }
        verdict
    }

    /// Offers a packet that arrives `at` a time, possibly later than now; all earlier ones must
    /// have been offered. A packet that will be dropped is not counted yet, and remains with the
    /// caller.
    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: PacketRef, length: Bytes) -> Verdict {
        let length = length.get() as u32;
        let start = if self.idle_from > at {
            if self.finds(length) != (Verdict::Queued, false) {
                // Packets that have left the queue since the last check make room; otherwise no
                // check is needed.
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
            // The transmitter is idle: all earlier packets have departed, and none is queued.
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

    /// Returns the result of offering one packet, given the known backlog: accepted or not, and
    /// whether this would be a new maximum.
    #[inline(always)]
    fn finds(&self, length: u32) -> (Verdict, bool) {
        let (packets, bytes) = (self.waiting_packets(), Bytes::new(self.waiting_bytes));
        let length = Bytes::new(u64::from(length));
        let seldom = &*self.seldom;
        let verdict = (seldom.queue).enqueue(packets, bytes, length);
        let more = (seldom.most).is_exceeded(packets + 1, (bytes + length).get());
        (verdict, more)
    }

    /// Records a new maximum backlog with the next packet.
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

    /// Returns a number of packets offered at one time, whenever that is, beyond which all are
    /// dropped; at least one of that many is dropped as well.
    #[inline]
    #[must_use]
    pub fn most_at_once(&self) -> u64 {
        match self.seldom.queue.limit {
            // The queue's limit, one that begins transmission, and one that is dropped. (At a rate
            // at which a packet may take no time, none need be dropped.)
            Limit::Packets(limit) if self.seldom.transmitter.takes_time() => {
                limit.saturating_add(2)
            }
            _ => u64::MAX,
        }
    }

    /// The same for packets offered `at` this time, before which all earlier ones have been
    /// offered.
    #[inline(never)]
    pub fn most_at(&mut self, at: Time) -> u64 {
        let most = self.most_at_once();
        if self.idle_from <= at || most == u64::MAX {
            return most;
        }
        self.advance(at, |_, _, _| {});
        (most - 1).saturating_sub(self.waiting_packets()).max(1)
    }

    /// Whether it has dropped packets and its backlog is such that it may soon do so again.
    #[inline]
    #[must_use]
    pub fn is_cramped(&self) -> bool {
        self.seldom.dropped > 0 && self.waiting_packets() >= self.most_at_once() / 2
    }

    /// Returns the start of the last packet's transmission.
    #[must_use]
    pub fn last_start(&self) -> Time {
        Time::ZERO + (self.idle_from.since(Time::ZERO) - self.recent.time)
    }

    /// Returns the departure of the last packet.
    #[must_use]
    pub fn last_departure(&self) -> Time {
        self.idle_from
    }

    /// Returns the arrival of the last packet.
    #[inline]
    #[must_use]
    pub fn last_arrival(&self) -> Time {
        self.idle_from + self.delay
    }

    /// Returns a time after which all packets offered at `offered` or later arrive.
    #[must_use]
    pub fn arrives_after(&self, offered: Time) -> Time {
        self.idle_from.max(offered) + self.delay
    }

    /// Returns the head of the ring.
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

    /// Returns the packet `number` positions behind the head.
    #[inline]
    #[must_use]
    pub fn behind_first(&self, number: u64) -> Option<PacketRef> {
        Some(self.ring.behind_first(number)?.packet)
    }

    /// Prefetches what the next arrival needs.
    #[inline]
    pub fn fetch_for_arrival(&self) {
        self.ring.fetch_first();
    }

    /// Prefetches what the next offered packet needs.
    #[inline]
    pub fn fetch_for_offer(&self) {
        self.ring.fetch_end();
        fetch(&self.seldom.queue, 1);
        fetch(&self.seldom.most, 1);
    }

    /// Returns when the head of the ring arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.first().map(|head| head.arrival)
    }

    /// Removes the head of the ring at its arrival time. For a host that runs ahead, this may
    /// precede the queue's own time. Returns `None` if there is none.
    #[inline]
    pub fn arrive(&mut self, now: Time) -> Option<Arrival> {
        let head = self.first()?;
        debug_assert!(head.arrival <= now, "it is under way");
        Some(self.take(head))
    }

    /// Removes a packet that is known to be the [head](Self::first).
    #[inline]
    pub fn take(&mut self, head: Head) -> Arrival {
        debug_assert_eq!(Some(head), self.first(), "another is first");
        self.ring.arrive();
        if self.may_lose && self.loses(head.length) {
            return Arrival::Lost(head.packet);
        }
        Arrival::Delivered(head.packet)
    }

    /// Whether the next arriving packet is lost.
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

    /// Returns the propagation delay.
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    /// Whether it never loses packets.
    #[must_use]
    pub fn is_error_free(&self) -> bool {
        !self.may_lose
    }

    /// Whether even the shortest packet takes time to cross it.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.delay + self.seldom.transmitter.exact(1) > Span::ZERO
    }

    /// Makes room in a full ring at time `now`, for a direction without arrival events: removes
    /// packets that have arrived.
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

    /// Advances the queue to `now`. Calls `left` for each packet that has left it: start of its
    /// transmission, and packets and bytes then still queued.
    pub fn advance(&mut self, now: Time, mut left: impl FnMut(Time, u64, u64)) {
        while let Some(first) = self.ring.next_departure() {
            if first.departure > now {
                break;
            }
            let at = first.departure;
            self.ring.depart();
            // The next packet leaves the queue. It was queued: a packet that finds the transmitter
            // idle comes after an `advance` that departed all earlier ones.
            if let Some(next) = self.ring.next_departure() {
                self.waiting_bytes -= u64::from(next.length);
                left(at, self.waiting_packets(), self.waiting_bytes);
            }
        }
    }

    /// Returns the backlog in packets as of the last [`advance`](Self::advance), plus later
    /// arrivals.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        // The first packet that has not departed is in transmission.
        self.ring.not_departed().saturating_sub(1) as u64
    }

    /// Returns the bytes of the [same](Self::waiting_packets) packets.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Returns the number of packets queued, in transmission or in flight.
    #[inline]
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.ring.not_arrived()
    }

    /// Returns the number of packets dropped by the queue.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.seldom.dropped
    }

    /// Returns the number of packets lost to errors.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.seldom.lost
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters_without(0, self.ring.not_arrived())
    }

    /// Returns for how long the transmitter has worked up to `now`, without pending transmissions.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        self.busy_without(0, now)
    }

    /// Iterates over packets that arrive after `now`, last first.
    pub fn arriving_after(&self, now: Time) -> impl Iterator<Item = PacketRef> {
        let mut packets = self.ring.newest();
        std::iter::from_fn(move || {
            let next = packets.next()?;
            (next.departure + self.delay > now).then_some(next.packet)
        })
    }

    /// Returns the counters without the last `ahead` packets, which come later, and with
    /// `in_transit` of the others in transit.
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

    /// Returns for how long the transmitter has worked up to `now`, without the last `ahead`
    /// packets, which come later.
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

    /// Returns the transmission time of all packets except the last `ahead`.
    fn given_without(&self, ahead: usize) -> Span {
        let times = self.ring.newest().take(ahead);
        times.fold(self.busy, |busy, each| {
            busy - self.seldom.transmitter.exact(each.length)
        })
    }
}

#[cfg(test)]
mod tests;
