//! One direction of a link behind a queue that chooses, on a path that never changes: one event per packet
//! still.

use bentpipe_types::{Bytes, PacketRef, PacketStore, RandomStream, Span, Time};

use crate::changes::Fate;
use crate::flight::Airborne;
use crate::row::Row;
use crate::transmitter::{Recent, Transmitter};
use crate::{
    Arrival, ClassCounts, Counters, ErrorModel, QueueCtx, QueueDiscipline, Tally, Verdict,
};

/// How many packets ahead one is fetched that will be looked at: about as long as it takes to come from memory.
const AHEAD: usize = 4;
/// The same, of one that will be handed on: where it goes is looked for before it does.
const HANDED_ON_AHEAD: usize = 10;

/// One direction of a link behind any queue, with nothing at its ends and nobody who looks.
///
/// Such a queue is asked what goes next when the transmitter is free. The answer depends on what has been
/// offered until then, and matters when another packet is offered or this one arrives. So no departure is an
/// event: they are caught up with, each at its own time, before the next packet is offered and when one
/// arrives. Until then the transmitter has had something to do, and what it does next arrives later.
///
/// Whoever knows what comes to it later may say so at once ([`expect`](Self::expect)): it is offered to the queue
/// when it is caught up with. And whoever can do something with what is on its way may have that before it arrives
/// ([`hand_on`](Self::hand_on)).
#[derive(Debug)]
pub struct Queued {
    pub(crate) queue: Box<dyn QueueDiscipline>,
    pub(crate) random: RandomStream,
    /// What will be offered, and when.
    pub(crate) coming: Row<(Time, PacketRef)>,
    pub(crate) flight: Row<Airborne>,
    /// How many of the flight, the first, have been handed on.
    pub(crate) handed_on: usize,
    pub(crate) transmitter: Transmitter,
    recent: Recent,
    pub(crate) idle_from: Time,
    /// The queue had nothing to send though something waits: it is asked again after the next packet.
    pub(crate) stalled: bool,
    /// See [`QueueDiscipline::lets_pass`].
    lets_pass: bool,
    pub(crate) delay: Span,
    pub(crate) errors: Vec<ErrorModel>,
    pub(crate) counters: Counters,
    /// The most packets that have waited since somebody last asked.
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

    /// Offers a packet to the queue. A dropped packet stays the caller's. One that is offered at the very
    /// time a transmission ends finds that the next has begun.
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

    /// A packet will be offered at this time, which is not before that of any other.
    #[inline]
    pub fn expect(&mut self, at: Time, packet: PacketRef) {
        self.coming.push((at, packet));
    }

    /// When the next packet arrives that has not been handed on. Where nothing is on its way, but something waits or
    /// will be offered, it is a time before which nothing arrives. `None` if there is nothing.
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

    /// What has not been handed on, or is offered then or later, arrives no sooner than this.
    #[must_use]
    pub fn arrives_after(&self, offered: Time) -> Time {
        let later = self.idle_from.max(offered) + self.delay;
        self.next_arrival().map_or(later, |next| next.min(later))
    }

    /// The packet at the head of the flight.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<PacketRef> {
        Some(self.flight.first()?.packet)
    }

    /// Takes the packet whose arrival time has come. `None` if there is none.
    pub fn arrive(&mut self, now: Time, packets: &mut PacketStore) -> Option<Arrival> {
        self.catch_up(now, packets);
        let head = self.leave(now)?;
        if head.fate.lost {
            return Some(Arrival::Lost(head.packet));
        }
        Some(Arrival::Delivered(head.packet))
    }

    /// Takes the head of the flight out, if it has arrived by now.
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

    /// The next packet that is on its way and has not been handed on: when it arrives, its length. It counts as handed
    /// on, and is in the flight still. Of a direction that loses nothing.
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

    /// The packet that will be [handed on](Self::hand_on) after so many others.
    #[inline]
    #[must_use]
    pub fn later(&self, others: usize) -> Option<PacketRef> {
        Some(self.flight.get(self.handed_on + others)?.packet)
    }

    /// Brings it up to `now`: what has come by then is offered, and what has begun to be transmitted is on its way.
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

    /// Catches up with the transmissions that have begun by `now`.
    #[inline]
    fn send_until(&mut self, now: Time, packets: &mut PacketStore) {
        while self.idle_from <= now && !self.stalled && self.queue.packets() > 0 {
            self.transmit(self.idle_from, packets);
        }
    }

    /// Gives the transmitter what the queue has for it at `start`.
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

    /// The transmission of a packet begins.
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

    /// Is this packet lost?
    #[inline(never)]
    fn loses(&mut self, length: Bytes) -> bool {
        ErrorModel::any_loses(&mut self.errors, length)
    }

    /// Packets waiting, as of the last packet that was offered or has arrived.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Bytes waiting, likewise.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The most packets that have waited since this was last asked, as of the last [`advance`](Self::advance); what waits
    /// now begins the next time.
    pub fn take_most(&mut self) -> u64 {
        let waiting = self.waiting_packets();
        std::mem::replace(&mut self.most, waiting).max(waiting)
    }

    /// Packets in the queue, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.queue.packets() as usize + self.flight.len()
    }

    /// Packets in flight, whether or not they have been handed on.
    pub fn in_flight(&self) -> impl Iterator<Item = PacketRef> {
        self.flight.iter().map(|each| each.packet)
    }

    /// Packets that will be offered.
    #[must_use]
    pub fn expected(&self) -> usize {
        self.coming.len()
    }

    /// Packets that will be offered, that wait, or that are on their way and have not been handed on.
    #[must_use]
    pub fn to_come(&self) -> usize {
        self.coming.len() + self.in_transit() - self.handed_on
    }

    /// Does it lose nothing?
    #[must_use]
    pub fn is_error_free(&self) -> bool {
        self.errors.is_empty()
    }

    /// Does even the shortest packet take time to cross it?
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.delay + self.transmitter.exact(1) > Span::ZERO
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            passed_on: self.counters.delivered,
            ..self.counters.with(self.queue.given_up())
        }
    }

    /// Time the transmitter has worked, up to `now`, as of the last [`advance`](Self::advance).
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        self.counters.busy.saturating_sub(self.idle_from.since(now))
    }

    /// What has become of each class of its queue.
    #[must_use]
    pub fn classes(&self) -> &[ClassCounts] {
        self.queue.classes()
    }

    /// Tells what its queue has done, by name.
    pub fn tally(&self, each: &mut Tally<'_>) {
        self.queue.tally(each);
    }
}
