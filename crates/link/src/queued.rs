//! Fast path: a link direction with any queue on a constant path, with one event per packet.

use bentpipe_types::{Bytes, PacketRef, PacketStore, RandomStream, Span, Time};

use crate::changes::Fate;
use crate::flight::Airborne;
use crate::row::Row;
use crate::transmitter::{Recent, Transmitter};
use crate::{
    Arrival, ClassCounts, Counters, ErrorModel, Fifo, QueueCtx, QueueDiscipline, Tally, Verdict,
};

/// Number of packets by which a packet is prefetched: about the time that memory takes.
const AHEAD: usize = 4;
/// Number of packets by which the destination of a packet to be handed on is looked up.
const HANDED_ON_AHEAD: usize = 10;

/// A direction with any queue, without processing at its ends and without observers.
///
/// Such a queue selects when the transmitter is free. The selection depends on all packets offered
/// until then, and matters only when another packet is offered or this one arrives. Departures are
/// therefore not events: they are processed, each at its own time, before the next packet is
/// offered and when one arrives. Until then the transmitter is busy, and everything it sends next
/// arrives later.
///
/// A caller that knows future packets may announce them ([`expect`](Self::expect)): they are
/// offered to the queue when it is brought up to date. A caller that can use packets in flight may
/// take them before they arrive ([`hand_on`](Self::hand_on)).
#[derive(Debug)]
pub struct Queued {
    pub(crate) queue: Box<dyn QueueDiscipline>,
    pub(crate) random: RandomStream,
    /// Announced packets with their times.
    pub(crate) coming: Row<(Time, PacketRef)>,
    pub(crate) flight: Row<Airborne>,
    /// Number of packets at the head of the flight that were handed on.
    pub(crate) handed_on: usize,
    pub(crate) transmitter: Transmitter,
    recent: Recent,
    pub(crate) idle_from: Time,
    /// Whether the queue returned nothing although packets are queued; it is asked again after the
    /// next packet.
    pub(crate) stalled: bool,
    /// See [`QueueDiscipline::lets_pass`].
    lets_pass: bool,
    pub(crate) delay: Span,
    pub(crate) errors: Vec<ErrorModel>,
    pub(crate) counters: Counters,
    /// Maximum backlog in packets since the last reading.
    most: u64,
}

impl Queued {
    pub(crate) fn new(
        transmitter: Transmitter,
        delay: Span,
        queue: Box<dyn QueueDiscipline>,
        random: RandomStream,
        errors: Vec<ErrorModel>,
    ) -> Self {
        Self {
            lets_pass: queue.lets_pass(),
            queue,
            random,
            coming: Row::default(),
            flight: Row::default(),
            handed_on: 0,
            transmitter,
            recent: Recent::default(),
            idle_from: Time::ZERO,
            stalled: false,
            delay,
            errors,
            counters: Counters::default(),
            most: 0,
        }
    }

    /// Removes the propagation and the errors of an idle direction: see
    /// [`Fifo::split_propagation`].
    pub(crate) fn split_propagation(&mut self) -> (Fifo, Span) {
        let errors = std::mem::take(&mut self.errors);
        let delay = std::mem::replace(&mut self.delay, Span::ZERO);
        (Fifo::of_arrivals(self.transmitter.clone(), errors), delay)
    }

    /// Offers a packet to the queue. A dropped packet remains with the caller. A packet offered
    /// exactly when a transmission ends finds the next one begun.
    pub fn enqueue(&mut self, now: Time, packet: PacketRef, packets: &mut PacketStore) -> Verdict {
        self.offer(now, packet, packets)
    }

    #[inline(always)]
    fn offer(&mut self, now: Time, packet: PacketRef, packets: &mut PacketStore) -> Verdict {
        self.counters.offered += 1;
        self.send_until(now, packets);
        let idle = self.idle_from <= now && self.queue.packets() == 0;
        if idle {
            if self.lets_pass {
                self.send(now, packet, packets.get(packet).length());
                return Verdict::Queued;
            }
            self.queue.idle_since(self.idle_from);
        }
        let verdict = self.queue.enqueue(
            packet,
            &mut QueueCtx {
                now,
                packets,
                random: &mut self.random,
                idle,
            },
        );
        let was_stalled = std::mem::take(&mut self.stalled);
        if verdict == Verdict::Dropped {
            self.counters.dropped += 1;
        } else {
            if idle {
                self.transmit(now, packets);
            }
            let counters = &mut self.counters;
            counters.queue_max_packets = counters.queue_max_packets.max(self.queue.packets());
            counters.queue_max_bytes = counters.queue_max_bytes.max(self.queue.bytes());
        }
        if was_stalled && self.idle_from <= now {
            self.transmit(now, packets);
        }
        self.most = self.most.max(self.queue.packets());
        verdict
    }

    /// Announces a packet at this time, which must not be before that of any other.
    #[inline]
    pub fn expect(&mut self, at: Time, packet: PacketRef) {
        self.coming.push((at, packet));
    }

    /// Returns when the next packet arrives that was not handed on. If none is in flight but some
    /// are queued or announced, returns a time before which nothing arrives. Returns `None` if
    /// there are none.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        if let Some(next) = self.flight.get(self.handed_on) {
            return Some(next.arrival);
        }
        let start = if self.queue.packets() > 0 && !self.stalled {
            self.idle_from
        } else {
            self.coming.first()?.0.max(self.idle_from)
        };
        Some(start + self.delay)
    }

    /// Returns a time before which nothing arrives that was not handed on, or is offered at
    /// `offered` or later.
    #[must_use]
    pub fn arrives_after(&self, offered: Time) -> Time {
        let later = self.idle_from.max(offered) + self.delay;
        self.next_arrival().map_or(later, |next| next.min(later))
    }

    /// Returns the head of the flight.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<PacketRef> {
        Some(self.flight.first()?.packet)
    }

    /// Removes the packet that has arrived, or returns `None`.
    pub fn arrive(&mut self, now: Time, packets: &mut PacketStore) -> Option<Arrival> {
        self.catch_up(now, packets);
        let head = self.leave(now)?;
        if head.fate.lost {
            return Some(Arrival::Lost(head.packet));
        }
        Some(Arrival::Delivered(head.packet))
    }

    /// Removes the head of the flight, if it has arrived by now.
    fn leave(&mut self, now: Time) -> Option<Airborne> {
        let head = *self.flight.first().filter(|head| head.arrival <= now)?;
        self.flight.pop();
        if head.fate.lost {
            self.counters.lost += 1;
        } else {
            self.counters.delivered += 1;
            self.counters.delivered_bytes += u64::from(head.length);
        }
        Some(head)
    }

    /// Returns the next packet in flight that was not handed on, with arrival time and length. It
    /// counts as handed on and stays in the flight. For directions without losses.
    #[inline]
    pub fn hand_on(&mut self, packets: &PacketStore) -> Option<(Time, PacketRef, Bytes)> {
        let next = self.flight.get(self.handed_on)?;
        debug_assert!(!next.fate.lost, "it loses nothing");
        self.handed_on += 1;
        if let Some(later) = self.flight.get(self.handed_on + HANDED_ON_AHEAD) {
            packets.prefetch(later.packet);
        }
        Some((
            next.arrival,
            next.packet,
            Bytes::new(u64::from(next.length)),
        ))
    }

    /// Returns the packet that will be [handed on](Self::hand_on) after `others` others.
    #[inline]
    #[must_use]
    pub fn later(&self, others: usize) -> Option<PacketRef> {
        Some(self.flight.get(self.handed_on + others)?.packet)
    }

    /// Advances to `now`: offers announced packets, and processes departures.
    pub fn advance(&mut self, now: Time, packets: &mut PacketStore) {
        self.catch_up(now, packets);
        while self.handed_on > 0 && self.leave(now).is_some() {
            self.handed_on -= 1;
        }
    }

    #[inline]
    fn catch_up(&mut self, now: Time, packets: &mut PacketStore) {
        while let Some((at, packet)) = self.coming.first().copied()
            && at <= now
        {
            self.coming.pop();
            if let Some((_, later)) = self.coming.get(AHEAD) {
                packets.prefetch(*later);
            }
            if self.offer(at, packet, packets) == Verdict::Dropped {
                packets.release(packet);
            }
        }
        self.send_until(now, packets);
    }

    /// Processes the transmissions that have begun by `now`.
    #[inline]
    fn send_until(&mut self, now: Time, packets: &mut PacketStore) {
        while self.idle_from <= now && !self.stalled && self.queue.packets() > 0 {
            self.transmit(self.idle_from, packets);
        }
    }

    /// Lets the queue select a packet for transmission at `start`.
    fn transmit(&mut self, start: Time, packets: &mut PacketStore) {
        let next = self.queue.dequeue(&mut QueueCtx {
            now: start,
            packets,
            random: &mut self.random,
            idle: false,
        });
        match next {
            Some((packet, length)) => {
                debug_assert_eq!(length, packets.get(packet).length());
                self.send(start, packet, length);
            }
            None => self.stalled = self.queue.packets() > 0,
        }
    }

    /// Starts the transmission of a packet.
    #[inline]
    fn send(&mut self, start: Time, packet: PacketRef, length: Bytes) {
        let bytes = length.get() as u32;
        let time = self.recent.time(bytes, &self.transmitter);
        self.counters.busy += time;
        self.idle_from = start + time;
        let fate = Fate {
            lost: !self.errors.is_empty() && self.loses(length),
            ..Fate::default()
        };
        self.flight.push(Airborne {
            arrival: self.idle_from + self.delay,
            packet,
            length: bytes,
            fate,
        });
    }

    /// Whether the packet is lost.
    #[inline(never)]
    fn loses(&mut self, length: Bytes) -> bool {
        ErrorModel::any_loses(&mut self.errors, length)
    }

    /// Returns the backlog in packets as of the last offered or arrived packet.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Returns the backlog in bytes as of the last offered or arrived packet.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Returns the maximum backlog in packets since the previous call, as of the last
    /// [`advance`](Self::advance). The current backlog begins the next interval.
    pub fn take_most(&mut self) -> u64 {
        let waiting = self.waiting_packets();
        std::mem::replace(&mut self.most, waiting).max(waiting)
    }

    /// Returns the number of packets queued, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.queue.packets() as usize + self.flight.len()
    }

    /// Iterates over packets in flight, handed on or not.
    pub fn in_flight(&self) -> impl Iterator<Item = PacketRef> {
        self.flight.iter().map(|each| each.packet)
    }

    /// Returns the number of announced packets.
    #[must_use]
    pub fn expected(&self) -> usize {
        self.coming.len()
    }

    /// Returns the number of packets announced, queued, or in flight and not handed on.
    #[must_use]
    pub fn to_come(&self) -> usize {
        self.coming.len() + self.in_transit() - self.handed_on
    }

    /// Whether it never loses packets.
    #[must_use]
    pub fn is_error_free(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether even the shortest packet takes time to cross it.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.delay + self.transmitter.exact(1) > Span::ZERO
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            passed_on: self.counters.delivered,
            ..self.counters.with(self.queue.given_up())
        }
    }

    /// Returns for how long the transmitter has worked up to `now`, as of the last
    /// [`advance`](Self::advance).
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        self.counters.busy.saturating_sub(self.idle_from.since(now))
    }

    /// Returns the counters per traffic class.
    #[must_use]
    pub fn classes(&self) -> &[ClassCounts] {
        self.queue.classes()
    }

    /// Reports the queue's counters by name.
    pub fn tally(&self, each: &mut Tally<'_>) {
        self.queue.tally(each);
    }
}
