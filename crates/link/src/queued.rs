//! One direction of a link behind a queue that chooses, on a path that never changes: one event per packet
//! still.

use std::collections::VecDeque;

use bentpipe_types::{PacketRef, PacketStore, RandomStream, Span, Time};

use crate::changes::Fate;
use crate::flight::Airborne;
use crate::transmitter::{Recent, Transmitter};
use crate::{
    Arrival, ClassCounts, Counters, ErrorModel, QueueCtx, QueueDiscipline, Tally, Verdict,
};

/// One direction of a link behind any queue, with nothing at its ends and nobody who looks.
///
/// Such a queue is asked what goes next when the transmitter is free. The answer depends on what has been
/// offered until then, and matters when another packet is offered or this one arrives. So no departure is an
/// event: they are caught up with, each at its own time, before the next packet is offered and when one
/// arrives. Until then the transmitter has had something to do, and what it does next arrives later.
#[derive(Debug)]
pub struct Queued {
    pub(crate) queue: Box<dyn QueueDiscipline>,
    pub(crate) random: RandomStream,
    pub(crate) flight: VecDeque<Airborne>,
    pub(crate) transmitter: Transmitter,
    recent: Recent,
    pub(crate) idle_from: Time,
    /// The queue had nothing to send though something waits: it is asked again after the next packet.
    pub(crate) stalled: bool,
    pub(crate) delay: Span,
    pub(crate) errors: Vec<ErrorModel>,
    pub(crate) counters: Counters,
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
            queue,
            random,
            flight: VecDeque::new(),
            transmitter,
            recent: Recent::default(),
            idle_from: Time::ZERO,
            stalled: false,
            delay,
            errors,
            counters: Counters::default(),
        }
    }

    /// Offers a packet to the queue. A dropped packet stays the caller's. One that is offered at the very
    /// time a transmission ends finds that the next has begun.
    pub fn enqueue(&mut self, now: Time, packet: PacketRef, packets: &mut PacketStore) -> Verdict {
        self.counters.offered += 1;
        self.advance(now, packets);
        let idle = self.idle_from <= now && self.queue.packets() == 0;
        if idle {
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
        verdict
    }

    /// When the packet at the head of the flight arrives, and the packet.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Time, PacketRef)> {
        let head = self.flight.front()?;
        Some((head.arrival, head.packet))
    }

    /// Takes the packet whose arrival time has come. `None` if there is none.
    pub fn arrive(&mut self, now: Time, packets: &mut PacketStore) -> Option<Arrival> {
        let head = *self.flight.front().filter(|head| head.arrival <= now)?;
        self.flight.pop_front();
        self.advance(now, packets);
        if head.fate.lost {
            self.counters.lost += 1;
            return Some(Arrival::Lost(head.packet));
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(head.length);
        Some(Arrival::Delivered(head.packet))
    }

    /// Catches up with the transmissions that have begun by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, packets: &mut PacketStore) {
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
        let Some(packet) = next else {
            self.stalled = self.queue.packets() > 0;
            return;
        };
        let length = packets.get(packet).length();
        let bytes = length.get() as u32;
        let time = self.recent.time(bytes, &self.transmitter);
        self.counters.busy += time;
        self.idle_from = start + time;
        let fate = Fate {
            lost: ErrorModel::any_loses(&mut self.errors, length),
            ..Fate::default()
        };
        self.flight.push_back(Airborne {
            arrival: self.idle_from + self.delay,
            packet,
            length: bytes,
            fate,
        });
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

    /// Packets in the queue, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        self.queue.packets() as usize + self.flight.len()
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
