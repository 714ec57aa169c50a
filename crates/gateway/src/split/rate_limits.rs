//! Rate limits of classes of traffic: packets wait in a queue for each limit and port.

use std::collections::VecDeque;

use bentpipe_types::{BitRate, Ctx, DropReason, FlowKey, PacketRef, PacketStore, Port, Span, Time};

use crate::ConnectionClass;

/// A limit of the rate at which packets of a class are taken, in each direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// Connections in either direction, and other packets with such ports and hosts; `None` for
    /// all packets.
    pub class: Option<ConnectionClass>,
    /// Differentiated services code points; `None` for all.
    pub dscp: Option<Vec<u8>>,
    /// Rate of IP packets.
    pub rate: BitRate,
    /// Longest time that a packet waits. Packets that would wait longer are dropped.
    pub longest_wait: Span,
}

impl RateLimit {
    fn contains(&self, packet: PacketRef, packets: &PacketStore) -> bool {
        let class = self.class.as_ref().is_none_or(|class| {
            let key = FlowKey::of(packets, packet);
            class.contains(&key) || class.contains(&key.reversed())
        });
        class
            && self.dscp.as_ref().is_none_or(|wanted| {
                let fields = packets.ip_fields(packet).unwrap_or_default();
                wanted.contains(&fields.dscp)
            })
    }
}

/// Packets that wait, of a limit and from a port.
#[derive(Debug)]
struct Queue {
    /// Index of the limit; `None` if it is in force no more.
    limit: Option<usize>,
    from: Port,
    /// Packets, and when they have been transmitted at the rate.
    waiting: VecDeque<(Time, PacketRef)>,
    busy_until: Time,
}

/// The rate limits of a gateway. The first one that matches a packet applies.
#[derive(Debug, Default)]
pub(super) struct RateLimits {
    limits: Vec<RateLimit>,
    queues: Vec<Queue>,
    pub(super) dropped: u64,
}

impl RateLimits {
    pub(super) fn new(limits: Vec<RateLimit>) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Returns true if neither a limit is in force, nor a packet waits.
    pub(super) fn is_idle(&self) -> bool {
        self.limits.is_empty() && self.queues.is_empty()
    }

    /// Replaces the limits. Packets that wait leave as they would have.
    pub(super) fn replace(&mut self, limits: Vec<RateLimit>) {
        if limits == self.limits {
            return;
        }
        self.limits = limits;
        self.queues.retain(|queue| !queue.waiting.is_empty());
        for queue in &mut self.queues {
            queue.limit = None;
        }
    }

    /// Puts a packet into the queue of its limit. Returns it if it has none.
    pub(super) fn offer(
        &mut self,
        from: Port,
        packet: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let found = (self.limits.iter()).position(|limit| limit.contains(packet, cx.packets));
        let Some(index) = found else {
            return Some(packet);
        };
        let limit = &self.limits[index];
        let of_queue = |queue: &Queue| queue.limit == Some(index) && queue.from == from;
        let at = self.queues.iter().position(of_queue).unwrap_or_else(|| {
            self.queues.push(Queue {
                limit: Some(index),
                from,
                waiting: VecDeque::new(),
                busy_until: Time::ZERO,
            });
            self.queues.len() - 1
        });
        let queue = &mut self.queues[at];
        let start = queue.busy_until.max(cx.now);
        if start.since(cx.now) > limit.longest_wait {
            self.dropped += 1;
            cx.discard(packet, DropReason::OverRate);
            return None;
        }
        queue.busy_until = start
            + limit
                .rate
                .transmission_time(cx.packets.get(packet).length());
        queue.waiting.push_back((queue.busy_until, packet));
        None
    }

    /// Returns when the next packet leaves its queue.
    pub(super) fn next(&self) -> Option<Time> {
        let fronts = self.queues.iter().filter_map(|queue| queue.waiting.front());
        fronts.map(|(at, _)| *at).min()
    }

    /// Removes the next packet that has waited long enough.
    pub(super) fn take(&mut self, now: Time) -> Option<(Port, PacketRef)> {
        let next = self.next().filter(|at| *at <= now)?;
        let is_next = |queue: &&mut Queue| queue.waiting.front().is_some_and(|(at, _)| *at == next);
        let queue = self.queues.iter_mut().find(is_next)?;
        let (_, packet) = queue.waiting.pop_front()?;
        let taken = (queue.from, packet);
        self.queues
            .retain(|queue| queue.limit.is_some() || !queue.waiting.is_empty());
        Some(taken)
    }

    /// Removes a packet, wherever it waits.
    pub(super) fn abandon(&mut self) -> Option<PacketRef> {
        let queue = self
            .queues
            .iter_mut()
            .find(|queue| !queue.waiting.is_empty())?;
        queue.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// Number of packets that wait.
    pub(super) fn packets(&self) -> u64 {
        self.queues
            .iter()
            .map(|queue| queue.waiting.len() as u64)
            .sum()
    }
}
