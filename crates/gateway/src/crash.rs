//! Crashes of gateways: loss of all state, and a restart (RFC 3135 section 4.1.2, "fate sharing").

use std::collections::VecDeque;

use bentpipe_types::{
    Agent, Ctx, DropReason, Gauge, Holdings, Managed, PacketRef, Port, Routes, Span, StreamCheck,
    Time,
};

/// An agent that loses its state in a crash.
pub trait VolatileAgent: Agent {
    /// Discards all connections and all packets held, without a word to any host. Counters are
    /// kept, since they are for the observer. Returns the number of connections lost.
    fn lose_power(&mut self, cx: &mut Ctx<'_>) -> u64;
}

/// A crash of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Time of the crash.
    pub at: Time,
    /// Time until the restart. Packets that arrive in between are lost.
    pub duration: Span,
}

/// An agent that crashes at given times.
#[derive(Debug)]
pub struct CrashingAgent<A> {
    agent: A,
    /// Crashes to come, earliest first. Invariant: they do not overlap.
    crashes: VecDeque<Crash>,
    /// Time of the restart, while it is down.
    back: Option<Time>,
    died: u64,
    connections_lost: u64,
    packets_lost: u64,
}

impl<A: VolatileAgent> CrashingAgent<A> {
    /// Returns the agent with these crashes, which must be in order and must not overlap.
    #[must_use]
    pub fn new(agent: A, crashes: impl IntoIterator<Item = Crash>) -> Self {
        Self {
            agent,
            crashes: crashes.into_iter().collect(),
            back: None,
            died: 0,
            connections_lost: 0,
            packets_lost: 0,
        }
    }
}

impl<A: VolatileAgent> Agent for CrashingAgent<A> {
    fn routes(&mut self, routes: Routes) {
        self.agent.routes(routes);
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if self.back.is_some() {
            self.packets_lost += 1;
            cx.discard(packet, DropReason::Down);
        } else {
            self.agent.on_packet(from, packet, cx);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some(crash) = self.crashes.front().copied()
            && crash.at <= cx.now
        {
            self.crashes.pop_front();
            let held = self.agent.holdings().packets;
            self.connections_lost += self.agent.lose_power(cx);
            self.packets_lost += held - self.agent.holdings().packets;
            self.died += 1;
            self.back = Some(crash.at + crash.duration);
        }
        if self.back.is_some_and(|back| back <= cx.now) {
            self.back = None;
        }
        if self.back.is_none() && self.agent.next_deadline().is_some_and(|at| at <= cx.now) {
            self.agent.on_deadline(cx);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let own = match self.back {
            Some(_) => None,
            None => self.agent.next_deadline(),
        };
        let next = self.crashes.front().map(|crash| crash.at);
        [own, next, self.back].into_iter().flatten().min()
    }

    fn retire(&mut self, cx: &mut Ctx<'_>) {
        // A crashed agent has no state, and sends nothing.
        if self.back.is_none() {
            self.agent.retire(cx);
        }
    }

    fn holdings(&self) -> Holdings {
        self.agent.holdings()
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.agent.counters(visit);
        visit("crashes.count", self.died);
        visit("crashes.connections_lost", self.connections_lost);
        visit("crashes.packets_lost", self.packets_lost);
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.agent.gauges()
    }

    fn gauge(&self, index: usize) -> f64 {
        self.agent.gauge(index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.agent.stream_check()
    }

    fn remark(&self) -> Option<&'static str> {
        self.agent.remark()
    }

    fn is_quiet(&self) -> bool {
        self.agent.is_quiet()
    }

    fn managed(&mut self) -> Option<&mut dyn Managed> {
        self.agent.managed()
    }
}
