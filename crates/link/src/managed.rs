//! A link direction with an event for each departure.

use bentpipe_types::{Bytes, PacketRef, PacketStore, RandomStream, Span, Time};

use crate::access::{AccessCounts, Terminal};
use crate::changes::{Course, Fate, Passage};
use crate::flight::{Airborne, Flight};
use crate::queue::DropTailQueue;
use crate::transmitter::{Recent, Transmitter};
use crate::{
    ClassCounts, Counters, EndCtx, Ends, ErrorModel, Limit, QueueCtx, QueueDiscipline, Queued,
    Tally, Verdict,
};

/// Observer of the packets on a link, with their framing.
pub trait Watch {
    /// Called when the transmission of a packet begins.
    fn sent(&mut self, now: Time, packet: PacketRef, packets: &PacketStore);
    /// Called when a packet has arrived intact, before its framing is removed.
    fn received(&mut self, now: Time, packet: PacketRef, packets: &PacketStore);
}

/// A link direction with any queue, framings, a far end, a changing path, and capacity on demand.
///
/// The flight contains packets that have left the queue. The next event is the first of three: the
/// end of a transmission while packets are queued, the arrival of the flight's head, the far end's
/// deadline. At the same time they are processed in another order: arrivals, then the deadline
/// (which may release what has just arrived), then the next transmission. A packet offered exactly
/// when a transmission ends finds the next one begun, as with a drop-tail queue.
///
/// With capacity on demand a transmission may last until a grant that is not known yet, and the
/// beginning of a frame is an event while anything is queued or requested. It is processed with the
/// next transmission, and before a packet offered at that time.
#[derive(Debug)]
pub struct Managed {
    queue: Box<dyn QueueDiscipline>,
    random: RandomStream,
    ends: Ends,
    flight: Flight,
    transmitter: Transmitter,
    recent: Recent,
    idle_from: Time,
    /// Earliest time of the next transmission while the transmitter is idle.
    not_before: Time,
    /// Whether the queue returned nothing although packets are queued; it is asked again after the
    /// next packet.
    stalled: bool,
    delay: Span,
    errors: Vec<ErrorModel>,
    course: Option<Box<Course>>,
    access: Option<Box<Terminal>>,
    /// The packet whose last bit is sent in a later frame.
    begun: Option<Begun>,
    counters: Counters,
    // Reused for every packet.
    pieces: Vec<PacketRef>,
}

/// A packet whose departure is not known yet.
#[derive(Clone, Copy, Debug)]
struct Begun {
    packet: PacketRef,
    length: Bytes,
    start: Time,
}

impl Managed {
    pub(crate) fn new(
        transmitter: Transmitter,
        delay: Span,
        queue: Box<dyn QueueDiscipline>,
        random: RandomStream,
        errors: Vec<ErrorModel>,
        ends: Ends,
        course: Option<Box<Course>>,
    ) -> Self {
        Self {
            queue,
            random,
            ends,
            flight: Flight::default(),
            transmitter,
            recent: Recent::default(),
            idle_from: Time::ZERO,
            not_before: Time::ZERO,
            stalled: false,
            delay,
            errors,
            course,
            access: None,
            begun: None,
            counters: Counters::default(),
            pieces: Vec::new(),
        }
    }

    /// Limits transmission to a hub's grants.
    pub(crate) fn on_demand(mut self, terminal: Terminal) -> Self {
        self.access = Some(Box::new(terminal));
        self
    }

    /// Offers a packet to the queue. A dropped packet remains with the caller. A fragmented packet
    /// counts as queued, whatever happens to its fragments.
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: PacketRef,
        packets: &mut PacketStore,
        watch: &mut dyn Watch,
    ) -> Verdict {
        let Some(divider) = &mut self.ends.divider else {
            return self.enqueue_piece(now, packet, packets, watch);
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        divider.divide(packet, &mut EndCtx::new(now, packets, &mut pieces));
        for piece in pieces.drain(..) {
            if self.enqueue_piece(now, piece, packets, watch) == Verdict::Dropped {
                packets.release(piece);
            }
        }
        self.pieces = pieces;
        Verdict::Queued
    }

    fn enqueue_piece(
        &mut self,
        now: Time,
        packet: PacketRef,
        packets: &mut PacketStore,
        watch: &mut dyn Watch,
    ) -> Verdict {
        self.counters.offered += 1;
        self.transmit(now, packets, watch);
        if let Some(course) = &mut self.course {
            course.offered(now);
        }
        let idle = self.idle_from <= now && self.queue.packets() == 0;
        if idle {
            self.queue.idle_since(self.idle_from);
        }
        // Once queued, an acknowledgment may be merged into another.
        let length = (self.access.as_ref()).map_or(Bytes::ZERO, |_| packets.get(packet).length());
        let verdict = self.queue.enqueue(
            packet,
            &mut QueueCtx {
                now,
                packets,
                random: &mut self.random,
                idle,
            },
        );
        self.stalled = false;
        if verdict == Verdict::Dropped {
            self.counters.dropped += 1;
            return verdict;
        }
        if let Some(access) = &mut self.access {
            access.offered(now, length, idle);
        }
        if idle {
            self.transmit(now, packets, watch);
        }
        let counters = &mut self.counters;
        counters.queue_max_packets = counters.queue_max_packets.max(self.queue.packets());
        counters.queue_max_bytes = counters.queue_max_bytes.max(self.queue.bytes());
        verdict
    }

    /// Returns the time of the next event without offered packets.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        let mut next = self.flight.first().map(|first| first.arrival);
        let mut consider = |at: Time| next = Some(next.map_or(at, |next| next.min(at)));
        if self.queue.packets() > 0 && !self.stalled {
            consider(self.idle_from.max(self.not_before));
        }
        if let Some(far_end) = &self.ends.far_end
            && let Some(deadline) = far_end.next_deadline()
        {
            consider(deadline);
        }
        if let Some(access) = &self.access
            && let Some(frame) = access.next_frame()
        {
            consider(frame);
        }
        next
    }

    /// Processes what is due at `now`. Appends packets for the node to `out`.
    pub fn on_event(
        &mut self,
        now: Time,
        packets: &mut PacketStore,
        watch: &mut dyn Watch,
        out: &mut Vec<PacketRef>,
    ) {
        while let Some(head) = self.flight.arrived(now) {
            self.arrive(now, head, packets, watch, out);
        }
        if let Some(far_end) = &mut self.ends.far_end
            && far_end.next_deadline().is_some_and(|at| at <= now)
        {
            self.at_far_end(packets, out, |far_end, packets, out| {
                far_end.on_deadline(&mut EndCtx::new(now, packets, out));
            });
        }
        self.transmit(now, packets, watch);
        // As with a drop-tail queue: a packet that has crossed a long link has left the cache.
        if let Some(first) = self.flight.first() {
            packets.prefetch(first.packet);
        }
    }

    fn arrive(
        &mut self,
        now: Time,
        head: Airborne,
        packets: &mut PacketStore,
        watch: &mut dyn Watch,
        out: &mut Vec<PacketRef>,
    ) {
        let length = Bytes::new(u64::from(head.length));
        if head.fate.lost {
            self.counters.lost += 1;
            for framing in self.ends.framings.iter_mut().rev() {
                framing.lose(now, head.packet, packets);
            }
            packets.release(head.packet);
            return;
        }
        watch.received(now, head.packet, packets);
        let mut packet = Some(head.packet);
        for framing in self.ends.framings.iter_mut().rev() {
            match packet {
                Some(framed) => packet = framing.receive(now, framed, packets),
                None => framing.lose(now, head.packet, packets),
            }
        }
        let Some(packet) = packet else {
            self.counters.undecodable += 1;
            return;
        };
        if head.fate.corrupted {
            packets.corrupt(packet);
        }
        if head.fate.duplicated {
            let copy = packets.duplicate(packet);
            self.counters.duplicated += 1;
            self.deliver(now, copy, length, packets, out);
        }
        self.deliver(now, packet, length, packets, out);
    }

    /// Handles a packet that arrived intact.
    fn deliver(
        &mut self,
        now: Time,
        packet: PacketRef,
        length: Bytes,
        packets: &mut PacketStore,
        out: &mut Vec<PacketRef>,
    ) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += length.get();
        if self.ends.far_end.is_some() {
            self.at_far_end(packets, out, |far_end, packets, out| {
                far_end.on_arrival(packet, &mut EndCtx::new(now, packets, out));
            });
        } else {
            self.counters.passed_on += 1;
            out.push(packet);
        }
    }

    /// Counts a packet of `length` for `ends` far ends of a broadcast direction, `heard` of which
    /// received it.
    pub fn spread(&mut self, ends: u64, heard: u64, length: Bytes) {
        let counters = &mut self.counters;
        // It was counted once.
        counters.delivered = counters.delivered + heard - 1;
        counters.passed_on = counters.passed_on + heard - 1;
        counters.delivered_bytes = counters.delivered_bytes + heard * length.get() - length.get();
        match ends {
            0 => counters.undecodable += 1,
            _ => counters.copied += ends - 1,
        }
        counters.lost += ends - heard;
    }

    /// Runs the far end, and counts the packets that it creates and ends.
    fn at_far_end(
        &mut self,
        packets: &mut PacketStore,
        out: &mut Vec<PacketRef>,
        run: impl FnOnce(&mut dyn crate::FarEnd, &mut PacketStore, &mut Vec<PacketRef>),
    ) {
        let Some(far_end) = &mut self.ends.far_end else {
            return;
        };
        let (inserted, held, passed_on) = (packets.inserted(), packets.held(), out.len());
        run(far_end.as_mut(), packets, out);
        let made = packets.inserted() - inserted;
        self.counters.made += made;
        self.counters.released += held as u64 + made - packets.held() as u64;
        self.counters.passed_on += (out.len() - passed_on) as u64;
    }

    /// If the transmitter is free, lets the queue select the next packet.
    fn transmit(&mut self, now: Time, packets: &mut PacketStore, watch: &mut dyn Watch) {
        if self.access.is_some() {
            self.enter_frame(now);
        }
        while self.idle_from <= now && self.queue.packets() > 0 && !self.stalled {
            if let Some(course) = &mut self.course
                && let Err(later) = course.ready(now)
            {
                self.not_before = later;
                return;
            }
            if let Some(access) = &mut self.access
                && let Err(later) = access.ready(now)
            {
                self.not_before = later;
                return;
            }
            let next = self.queue.dequeue(&mut QueueCtx {
                now,
                packets,
                random: &mut self.random,
                idle: false,
            });
            let Some((packet, mut length)) = next else {
                self.stalled = true;
                return;
            };
            debug_assert_eq!(length, packets.get(packet).length());
            let is_last = self.queue.packets() == 0;
            for framing in &mut self.ends.framings {
                length = framing.transmit(packet, length, packets);
                if is_last {
                    length = framing.complete(length);
                }
            }
            watch.sent(now, packet, packets);
            let departure = match &mut self.access {
                None => None,
                Some(access) => {
                    access.begin(now, length);
                    let departure = access.go_on(now);
                    if departure.is_none() {
                        self.begun = Some(Begun {
                            packet,
                            length,
                            start: now,
                        });
                        self.idle_from = Time::NEVER;
                        return;
                    }
                    departure
                }
            };
            self.launch(now, departure, packet, length);
        }
    }

    /// Sends a packet whose transmission began at `start` and ends at `departure`, if a hub has
    /// determined that.
    fn launch(&mut self, start: Time, departure: Option<Time>, packet: PacketRef, length: Bytes) {
        let passage = self.way(start, departure, length);
        self.idle_from = passage.departure;
        self.flight.push(Airborne {
            arrival: passage.arrival,
            packet,
            length: u32::try_from(length.get()).unwrap_or(u32::MAX),
            fate: passage.fate,
        });
    }

    /// Enters the frame of `now`, if it is new: its grant is first used for the packet in
    /// transmission.
    #[inline(never)]
    fn enter_frame(&mut self, now: Time) {
        let Some(access) = &mut self.access else {
            return;
        };
        let packets = self.queue.packets();
        let queued = Bytes::new(self.queue.bytes());
        let framings = self.ends.framings.iter();
        let backlog = framings.fold(queued, |bytes, framing| framing.backlog(packets, bytes));
        access.enter(now, backlog.get());
        if let Some(begun) = self.begun
            && let Some(departure) = access.go_on(now)
        {
            self.begun = None;
            self.launch(begun.start, Some(departure), begun.packet, begun.length);
        }
    }

    /// Returns a packet's passage over the link, from now to `departure` or for the transmission
    /// time. Errors are drawn here, in the order of transmission; the order of arrival may differ.
    fn way(&mut self, now: Time, departure: Option<Time>, length: Bytes) -> Passage {
        let mut passage = match (&mut self.course, departure) {
            (Some(course), None) => course.send(now, length),
            (Some(course), Some(departure)) => course.leave(now, departure, length),
            (None, Some(departure)) => Passage {
                departure,
                arrival: departure + self.delay,
                fate: Fate::default(),
            },
            (None, None) => {
                let length = u32::try_from(length.get()).unwrap_or(u32::MAX);
                let time = self.recent.time(length, &self.transmitter);
                self.counters.busy += time;
                let departure = now + time;
                Passage {
                    departure,
                    arrival: departure + self.delay,
                    fate: Fate::default(),
                }
            }
        };
        passage.fate.lost |= ErrorModel::any_loses(&mut self.errors, length);
        passage
    }

    /// Returns the backlog in packets.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Returns the backlog in bytes.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Returns the number of packets queued, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.queue.packets() as usize + usize::from(self.begun.is_some()) + self.flight.len()
    }

    /// Whether its terminal enters the next frame in any case.
    #[must_use]
    pub fn awaits_capacity(&self) -> bool {
        let access = self.access.as_ref();
        access.is_some_and(|access| access.next_frame().is_some())
    }

    /// Returns the number of packets held by the far end.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.ends
            .far_end
            .as_ref()
            .map_or(0, |far_end| far_end.held())
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters.with(self.queue.given_up())
    }

    /// Returns for how long the transmitter has worked up to `now`.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        if let Some(access) = &self.access {
            return access.busy(now);
        }
        if let Some(course) = &self.course {
            return course.busy(now);
        }
        self.counters.busy.saturating_sub(self.idle_from.since(now))
    }

    /// Returns requested, granted and used capacity up to the frame of `now`, with capacity on
    /// demand.
    #[must_use]
    pub fn access(&self, now: Time) -> Option<AccessCounts> {
        self.access.as_ref().map(|access| access.counts(now))
    }

    /// Returns the bits granted until `now`, with capacity on demand.
    #[must_use]
    pub fn granted_bits(&self, now: Time) -> Option<f64> {
        self.access.as_ref().map(|access| access.granted_bits(now))
    }

    /// Returns the counters per traffic class.
    #[must_use]
    pub fn classes(&self) -> &[ClassCounts] {
        self.queue.classes()
    }

    /// Reports the counters of its parts by name.
    pub fn tally(&self, each: &mut Tally<'_>) {
        self.queue.tally(each);
        if let Some(divider) = &self.ends.divider {
            divider.tally(each);
        }
        for framing in &self.ends.framings {
            framing.tally(each);
        }
        if let Some(far_end) = &self.ends.far_end {
            far_end.tally(each);
        }
        if let Some(course) = &self.course {
            course.tally(each);
        }
        if let Some(access) = &self.access {
            access.tally(each);
        }
    }
}

impl From<&mut Queued> for Managed {
    /// Converts a direction to one with an event for each departure.
    fn from(queued: &mut Queued) -> Self {
        debug_assert!(
            queued.coming.is_empty() && queued.handed_on == 0,
            "nothing is ahead"
        );
        let mut flight = Flight::default();
        for airborne in queued.flight.iter() {
            flight.push(*airborne);
        }
        let nothing = Box::new(DropTailQueue::new(Limit::Packets(0)));
        Self {
            flight,
            idle_from: queued.idle_from,
            stalled: queued.stalled,
            counters: Counters {
                passed_on: queued.counters.delivered,
                ..queued.counters
            },
            ..Self::new(
                queued.transmitter.clone(),
                queued.delay,
                std::mem::replace(&mut queued.queue, nothing),
                queued.random.clone(),
                std::mem::take(&mut queued.errors),
                Ends::default(),
                None,
            )
        }
    }
}

#[cfg(test)]
mod tests;
