//! One direction of a link behind a drop-tail queue: the quick way.

use bentpipe_types::{Bytes, PacketRef, Span, Time};

use crate::ring::{InTransit, Ring};
use crate::transmitter::Transmitter;
use crate::{Counters, DropTail, ErrorModel, Verdict};

/// A packet that has come to the end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Intact.
    Delivered(PacketRef),
    /// Corrupted on the way.
    Lost(PacketRef),
}

/// One direction of a link, first in, first out, up to a limit: one event per packet.
///
/// `departure`, the end of a packet's transmission, is fixed when it is enqueued; the ring holds
/// propagating, transmitted and waiting packets, in that order.
#[derive(Debug)]
pub struct Fifo {
    ring: Ring,
    waiting_bytes: u64,
    idle_from: Time,
    last_start: Time,
    delay: Span,
    transmitter: Transmitter,
    queue: DropTail,
    counters: Counters,
    errors: Vec<ErrorModel>,
}

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
            waiting_bytes: 0,
            idle_from: Time::ZERO,
            last_start: Time::ZERO,
            delay,
            transmitter,
            queue,
            counters: Counters::default(),
            errors,
        }
    }

    /// Offers a packet to the queue. A dropped packet stays the caller's.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: PacketRef, length: Bytes) -> Verdict {
        self.counters.offered += 1;
        let length = length.get() as u32;
        let start = if self.idle_from > now {
            self.advance(now, |_, _, _| {});
            let waiting = self.waiting_packets();
            let verdict = self.queue.enqueue(
                waiting,
                Bytes::new(self.waiting_bytes),
                Bytes::new(u64::from(length)),
            );
            if verdict == Verdict::Dropped {
                self.counters.dropped += 1;
                return verdict;
            }
            self.waiting_bytes += u64::from(length);
            self.counters.queue_max_packets = self.counters.queue_max_packets.max(waiting + 1);
            self.counters.queue_max_bytes = self.counters.queue_max_bytes.max(self.waiting_bytes);
            self.idle_from
        } else {
            // The transmitter is idle: all before it have departed, and nothing waits.
            self.ring.depart_all();
            self.waiting_bytes = 0;
            now
        };
        let transmission = self.transmitter.time(length);
        let departure = start + transmission;
        self.last_start = start;
        self.idle_from = departure;
        self.counters.busy += transmission;
        self.ring.push(InTransit {
            departure,
            packet,
            length,
        });
        Verdict::Queued
    }

    /// When the transmission of the packet last enqueued begins (or began).
    #[must_use]
    pub fn last_start(&self) -> Time {
        self.last_start
    }

    /// When the packet at the head of the ring arrives, and the packet.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Time, PacketRef)> {
        let head = self.ring.first()?;
        Some((head.departure + self.delay, head.packet))
    }

    /// When the packet at the head of the ring arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.ring.first().map(|head| head.departure + self.delay)
    }

    /// Takes the packet whose arrival time has come. `None` if there is none.
    pub fn arrive(&mut self, now: Time) -> Option<Arrival> {
        let head = *self.ring.first()?;
        if head.departure + self.delay > now {
            return None;
        }
        if self.ring.not_departed() == self.ring.len() {
            // Nothing has asked about the queue since this packet left it.
            self.advance(now, |_, _, _| {});
        }
        self.ring.arrive();
        let length = Bytes::new(u64::from(head.length));
        let mut lost = false;
        for model in &mut self.errors {
            // Every model sees every packet, so that one's losses don't shift another's draws.
            lost |= model.loses(length);
        }
        if lost {
            self.counters.lost += 1;
            return Some(Arrival::Lost(head.packet));
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += length.get();
        Some(Arrival::Delivered(head.packet))
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

    /// Packets waiting, as of the last `advance`, `enqueue` or `arrive`.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        // Of those not departed, the first is being transmitted.
        self.ring.not_departed().saturating_sub(1) as u64
    }

    /// Bytes waiting, as of the last `advance`, `enqueue` or `arrive`.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Packets in the queue, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.ring.len()
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            passed_on: self.counters.delivered,
            ..self.counters
        }
    }

    /// Time the transmitter has worked, up to `now`: work it was given but has not done is left out.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        self.counters.busy.saturating_sub(self.idle_from.since(now))
    }
}

#[cfg(test)]
mod tests;
