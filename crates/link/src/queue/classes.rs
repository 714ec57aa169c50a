//! A queue per traffic class, served by priority or by weight.
//!
//! By priority: whenever the transmitter is free, the first non-empty class sends, without
//! interrupting a transmission (A. Cobham, "Priority assignment in waiting line problems",
//! Operations Research 2(1), 1954, with each class's waiting time). By weight: start-time fair
//! queueing (P. Goyal, H. M. Vin and H. Cheng, "Start-time fair queueing", IEEE/ACM Transactions on
//! Networking 5(5), 1997), which is fair at changing rates as well.

mod class;

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_types::{Bytes, PacketRef, Time};

pub use class::{Ends, FlowEnds, TrafficClass};

use super::{Backlog, ClassCounts, GivenUp, Limit, QueueCtx, QueueDiscipline, Verdict};

/// Settings of a queue with classes.
#[derive(Clone, Debug)]
pub struct ClassesSettings {
    /// Limit of all classes together.
    pub limit: Limit,
    /// Order of service.
    pub service: Service,
    /// The classes. A packet belongs to the first that matches. By priority, the first is served
    /// first.
    pub classes: Vec<ClassSettings>,
}

/// Settings of a class.
#[derive(Clone, Debug)]
pub struct ClassSettings {
    /// Name in results.
    pub name: Arc<str>,
    /// Packets of the class, or `None` for packets of no other class.
    pub packets: Option<TrafficClass>,
    /// Share relative to other classes; above zero. Ignored with priorities.
    pub weight: u32,
}

/// Order of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// The first non-empty class.
    Priority,
    /// Each class gets bytes in proportion to its weight.
    Weighted,
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    packet: PacketRef,
    length: u32,
    since: Time,
}

#[derive(Debug)]
struct Lane {
    packets: Option<TrafficClass>,
    weight: u32,
    waiting: VecDeque<Waiter>,
    /// Start tag of its first packet, if one is queued.
    start: u128,
    /// Finish tag of the packet that it sent last.
    finish: u128,
}

/// A queue for each class.
#[derive(Debug)]
pub struct Classes {
    limit: Limit,
    service: Service,
    lanes: Vec<Lane>,
    counts: Vec<ClassCounts>,
    /// Class of packets that match none.
    others: usize,
    /// Start tag of the packet in service.
    virtual_time: u128,
    packets: u64,
    bytes: u64,
    given_up: u64,
}

impl Classes {
    /// Creates an empty queue. Without a class for packets that match none, they belong to the last
    /// class.
    #[must_use]
    pub fn new(settings: ClassesSettings) -> Self {
        let last = settings.classes.len().saturating_sub(1);
        let others = settings.classes.iter().position(|c| c.packets.is_none());
        let counts = settings.classes.iter().map(|class| ClassCounts {
            name: class.name.clone(),
            ..ClassCounts::default()
        });
        Self {
            limit: settings.limit,
            service: settings.service,
            counts: counts.collect(),
            lanes: settings
                .classes
                .into_iter()
                .map(|class| Lane {
                    packets: class.packets,
                    weight: class.weight.max(1),
                    waiting: VecDeque::new(),
                    start: 0,
                    finish: 0,
                })
                .collect(),
            others: others.unwrap_or(last),
            virtual_time: 0,
            packets: 0,
            bytes: 0,
            given_up: 0,
        }
    }

    fn class_of(&self, packet: PacketRef, cx: &QueueCtx<'_>) -> usize {
        let record = cx.packets.get(packet);
        let fits = |lane: &Lane| lane.packets.as_ref().is_some_and(|c| c.contains(record));
        self.lanes.iter().position(fits).unwrap_or(self.others)
    }

    fn is_too_long(&self) -> bool {
        self.limit.is_exceeded(self.packets, self.bytes)
    }

    fn push(&mut self, class: usize, waiter: Waiter) {
        let lane = &mut self.lanes[class];
        if lane.waiting.is_empty() {
            // Section II.A of the paper: S = max(v, F of the previous packet).
            lane.start = self.virtual_time.max(lane.finish);
        }
        lane.waiting.push_back(waiter);
        self.packets += 1;
        self.bytes += u64::from(waiter.length);
        let counts = &mut self.counts[class];
        counts.packets += 1;
        counts.bytes += u64::from(waiter.length);
    }

    /// Removes the first packet of a class.
    fn pop(&mut self, class: usize) -> Option<Waiter> {
        let waiter = self.lanes[class].waiting.pop_front()?;
        self.packets -= 1;
        self.bytes -= u64::from(waiter.length);
        let counts = &mut self.counts[class];
        counts.packets -= 1;
        counts.bytes -= u64::from(waiter.length);
        Some(waiter)
    }

    /// Returns the class that sends next.
    fn next(&self) -> Option<usize> {
        let mut busy = (0..self.lanes.len()).filter(|class| !self.lanes[*class].waiting.is_empty());
        match self.service {
            Service::Priority => busy.next(),
            // Among equal start tags, the first class.
            Service::Weighted => busy.min_by_key(|class| self.lanes[*class].start),
        }
    }

    /// Returns the class that drops a packet when too much is queued: the last one, or the one with
    /// most bytes for its weight.
    fn victim(&self) -> Option<usize> {
        let mut busy = (0..self.lanes.len()).filter(|class| !self.lanes[*class].waiting.is_empty());
        match self.service {
            Service::Priority => busy.next_back(),
            Service::Weighted => busy.max_by(|one, other| {
                let due = |a: usize, b: usize| {
                    u128::from(self.counts[a].bytes) * u128::from(self.lanes[b].weight)
                };
                due(*one, *other).cmp(&due(*other, *one))
            }),
        }
    }
}

impl QueueDiscipline for Classes {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length().get() as u32;
        let class = self.class_of(packet, cx);
        if cx.idle {
            // Section II.A: at the end of a busy period, v is the greatest finish tag.
            let finishes = self.lanes.iter().map(|lane| lane.finish);
            self.virtual_time = finishes.max().unwrap_or(0);
        }
        let since = cx.now;
        self.push(
            class,
            Waiter {
                packet,
                length,
                since,
            },
        );
        // As with fair queueing, the class with most drops, at its front: a sender learns of it
        // sooner.
        while !cx.idle && self.is_too_long() {
            let Some(victim) = self.victim() else { break };
            let Some(waiter) = self.pop(victim) else {
                break;
            };
            self.counts[victim].dropped += 1;
            if waiter.packet == packet {
                return Verdict::Dropped;
            }
            self.given_up += 1;
            cx.packets.release(waiter.packet);
        }
        let counts = &mut self.counts[class];
        counts.most_packets = counts.most_packets.max(counts.packets - u64::from(cx.idle));
        Verdict::Queued
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        let class = self.next()?;
        let waiter = self.pop(class)?;
        let lane = &mut self.lanes[class];
        self.virtual_time = lane.start;
        // F = S + length / weight, in units small enough that the remainder does not matter.
        lane.finish = lane.start + (u128::from(waiter.length) << 40) / u128::from(lane.weight);
        lane.start = lane.finish;
        let waited = cx.now.since(waiter.since);
        let counts = &mut self.counts[class];
        counts.sent += 1;
        counts.sent_bytes += u64::from(waiter.length);
        counts.waits.record(waited);
        Some((waiter.packet, Bytes::new(u64::from(waiter.length))))
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets,
            bytes: self.bytes,
        }
    }

    fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: self.given_up,
            removed: 0,
        }
    }

    fn classes(&self) -> &[ClassCounts] {
        &self.counts
    }
}

#[cfg(test)]
mod tests;
