//! A processor that handles one packet at a time, with a bounded queue.

use std::collections::VecDeque;

use crate::{
    Agent, Ctx, DropReason, Gauge, Holdings, PacketRef, Port, Routes, Span, StreamCheck, Time,
};

/// Processing time of a node per arriving packet: an IP service rate (gaid1998, section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processing {
    /// Time per packet.
    pub time: Span,
    /// Maximum number of waiting packets.
    pub queue_packets: usize,
}

/// Queue of packets for a processor. karir1999, "Discussion": each packet passes the IP layer
/// twice, and "this may cause incoming packets to be dropped and queues to overflow on the
/// gateways".
///
/// `P` is stored beside each packet: its origin or its destination.
#[derive(Debug)]
pub struct Processor<P = Port> {
    settings: Processing,
    /// Waiting packets. The first one is being processed.
    waiting: VecDeque<(P, PacketRef)>,
    done_at: Time,
}

impl Processing {
    /// Gauge of the packets in the processor.
    pub const GAUGE: Gauge = Gauge::new(
        "processing",
        "packets",
        "Packets that wait for the node's processor or are being processed.",
    );
}

impl<P> Processor<P> {
    /// Creates an idle processor.
    #[must_use]
    pub fn new(settings: Processing) -> Self {
        Self {
            settings,
            waiting: VecDeque::new(),
            done_at: Time::ZERO,
        }
    }

    /// Adds a packet. Returns it if the queue is full.
    pub fn offer(&mut self, from: P, packet: PacketRef, now: Time) -> Option<PacketRef> {
        if self.waiting.len() > self.settings.queue_packets {
            return Some(packet);
        }
        if self.waiting.is_empty() {
            self.done_at = now + self.settings.time;
        }
        self.waiting.push_back((from, packet));
        None
    }

    /// Returns when the first packet is done.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.done_at)
    }

    /// Removes the first packet if it is done.
    pub fn take(&mut self, now: Time) -> Option<(P, PacketRef)> {
        if self.next()? > now {
            return None;
        }
        self.done_at += self.settings.time;
        self.waiting.pop_front()
    }

    /// Removes the first packet, done or not.
    pub fn abandon(&mut self) -> Option<PacketRef> {
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// Returns the number of packets, the one being processed included.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
}

/// Decorator: an agent whose packets pass a processor first. It hides the agent's own gauges, so it
/// is meant for agents without gauges.
#[derive(Debug)]
pub struct WithProcessor<A> {
    agent: A,
    processor: Processor,
    dropped: u64,
}

impl WithProcessor<()> {
    /// Gauges of the processor.
    pub const GAUGES: &'static [Gauge] = &[Processing::GAUGE];
}

impl<A: Agent> WithProcessor<A> {
    /// Wraps an agent.
    #[must_use]
    pub fn new(agent: A, processing: Processing) -> Self {
        Self {
            agent,
            processor: Processor::new(processing),
            dropped: 0,
        }
    }
}

impl<A: Agent> Agent for WithProcessor<A> {
    fn routes(&mut self, routes: Routes) {
        self.agent.routes(routes);
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if let Some(packet) = self.processor.offer(from, packet, cx.now) {
            self.dropped += 1;
            cx.discard(packet, DropReason::Busy);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some((from, packet)) = self.processor.take(cx.now) {
            self.agent.on_packet(from, packet, cx);
        }
        if self.agent.next_deadline().is_some_and(|at| at <= cx.now) {
            self.agent.on_deadline(cx);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match (self.processor.next(), self.agent.next_deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn retire(&mut self, cx: &mut Ctx<'_>) {
        self.agent.retire(cx);
    }

    fn holdings(&self) -> Holdings {
        let own = self.agent.holdings();
        Holdings {
            packets: own.packets + self.processor.packets(),
            ..own
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.agent.counters(visit);
        visit("packets.dropped", self.dropped);
    }

    fn gauges(&self) -> &'static [Gauge] {
        WithProcessor::GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        if index == 0 {
            self.processor.packets() as f64
        } else {
            f64::NAN
        }
    }

    fn stream_check(&self) -> StreamCheck {
        self.agent.stream_check()
    }

    fn remark(&self) -> Option<&'static str> {
        self.agent.remark()
    }

    fn is_quiet(&self) -> bool {
        self.processor.packets() == 0 && self.agent.is_quiet()
    }
}
