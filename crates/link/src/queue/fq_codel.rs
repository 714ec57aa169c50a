//! FQ-CoDel: T. Hoeiland-Joergensen and others, "The Flow Queue CoDel Packet Scheduler and Active
//! Queue Management Algorithm", RFC 8290, as in Linux's `sch_fq_codel.c`.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use bentpipe_types::{Bytes, PacketRef, PacketStore, Time, splitmix64};
use rustc_hash::FxHasher;

use super::by_flow::{Claim, Claimant, Ends, List, Longest, Slab};
use super::codel::{DelayControl, DelayState, Line, Taken};
use super::{Backlog, DelayBounds, GivenUp, Limit, QueueCtx, QueueDiscipline, Verdict};
use crate::Tally;

/// Settings of an FQ-CoDel queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelSettings {
    /// Limit of all flows together.
    pub limit: Limit,
    /// Target and interval of each queue.
    pub bounds: DelayBounds,
    /// Bytes that a flow may send per turn.
    pub quantum: Bytes,
    /// Number of queues, over which flows are hashed.
    pub flows: usize,
}

/// Maximum number of packets that the longest queue drops at once (section 4.1.3).
const DROP_BATCH: u32 = 64;

/// The list that contains a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// None: it is empty.
    Nowhere,
    /// New flows.
    New,
    /// Old flows.
    Old,
}

#[derive(Debug)]
struct Queue {
    waiting: List,
    bytes: u64,
    /// Remaining bytes of this turn: it may send a packet while above 0.
    credits: i64,
    state: DelayState,
    place: Place,
    /// Flow of the last packet.
    owner: Ends,
    /// See [`Longest`].
    entered: Claim,
    grown: bool,
}

/// A queue for each flow with controlled delay; new flows are served first.
#[derive(Debug)]
pub struct FqCodel {
    settings: FqCodelSettings,
    control: DelayControl,
    queues: Vec<Queue>,
    all: All,
    /// New flows in the order of turns.
    new: VecDeque<u32>,
    /// Old flows in the order of turns.
    old: VecDeque<u32>,
    longest: Longest,
    /// Lowest address of a gateway.
    first_gateway: u16,
    /// Perturbation of the hash, drawn with the first packet.
    perturbation: Option<u64>,
    /// Packets dropped because the limit was exceeded.
    overlimit: u64,
    /// Packets that were dropped after they had been accepted.
    given_up: u64,
    shared: u64,
}

/// The packets of all queues.
#[derive(Debug, Default)]
struct All {
    slab: Slab<Time>,
    packets: u64,
    bytes: u64,
}

/// One of the queues.
struct One<'a> {
    all: &'a mut All,
    waiting: &'a mut List,
    bytes: &'a mut u64,
}

impl Line for One<'_> {
    fn take(&mut self) -> Option<Taken> {
        let (packet, length, since) = self.all.slab.pop(self.waiting)?;
        *self.bytes -= u64::from(length);
        self.all.bytes -= u64::from(length);
        self.all.packets -= 1;
        Some((packet, Bytes::new(u64::from(length)), since))
    }

    /// Returns the backlog of all queues, as in Linux: a flow that always has a packet or two is
    /// controlled too, while others keep the link busy. (RFC 8289 knows only one queue.)
    fn bytes(&self) -> u64 {
        self.all.bytes
    }
}

impl FqCodel {
    /// Creates empty queues.
    #[must_use]
    pub fn new(settings: FqCodelSettings) -> Self {
        let flows = settings.flows.clamp(1, 1 << 16);
        let mut queues = Vec::with_capacity(flows);
        queues.resize_with(flows, Queue::default);
        Self {
            settings,
            control: DelayControl::new(settings.bounds),
            queues,
            all: All::default(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            longest: Longest::new(flows),
            first_gateway: u16::MAX,
            perturbation: None,
            overlimit: 0,
            given_up: 0,
            shared: 0,
        }
    }

    /// Sets the lowest address of a gateway; all lower ones are of hosts. Gateways are then hashed
    /// by their number, so that another host in the network changes no flow's queue.
    #[must_use]
    pub fn with_gateways_from(mut self, first: u16) -> Self {
        self.first_gateway = first;
        self
    }

    /// Returns the queue of a packet, and its flow.
    fn queue_of(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> (u32, Ends) {
        let perturbation = *self.perturbation.get_or_insert_with(|| cx.random.bits());
        let ends = Ends::of(cx.packets.get(packet));
        let mut flow = FxHasher::default();
        let numbered = ends.numbered_from(self.first_gateway);
        (numbered, cx.packets.ip(packet)).hash(&mut flow);
        // The hash preserves differences between flows: without mixing, another perturbation would
        // not change which flows collide.
        let index = splitmix64(flow.finish() ^ perturbation) % self.queues.len() as u64;
        (index as u32, ends)
    }

    fn full(&self) -> bool {
        self.settings
            .limit
            .is_exceeded(self.all.packets, self.all.bytes)
    }

    /// Drops half of the longest queue from its front, at most 64 packets: many packets pay for the
    /// search. Returns whether the offered packet was dropped, which remains with the caller, or
    /// `None` if nothing is queued.
    #[inline(never)]
    fn shorten(&mut self, packet: PacketRef, packets: &mut PacketStore) -> Option<bool> {
        let index = self.longest.find(&mut self.queues)?;
        let queue = &mut self.queues[index as usize];
        let half = queue.bytes / 2;
        let enough = queue.bytes - half;
        let mut one = One {
            all: &mut self.all,
            waiting: &mut queue.waiting,
            bytes: &mut queue.bytes,
        };
        let (mut gone, mut was_it) = (0, false);
        while let Some((first, _, _)) = one.take() {
            gone += 1;
            self.overlimit += 1;
            if first == packet {
                was_it = true;
            } else {
                self.given_up += 1;
                packets.release(first);
            }
            if gone == DROP_BATCH || *one.bytes <= enough {
                break;
            }
        }
        queue.state.has_lost(gone);
        Some(was_it)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            waiting: List::default(),
            bytes: 0,
            credits: 0,
            state: DelayState::default(),
            place: Place::Nowhere,
            owner: Ends::default(),
            entered: Claim::NOTHING,
            grown: false,
        }
    }
}

impl Claimant for Queue {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn claim(&self, index: u32) -> Claim {
        Claim::of(index, self.bytes, 0)
    }

    fn entered(&mut self) -> &mut Claim {
        &mut self.entered
    }

    fn grown(&mut self) -> &mut bool {
        &mut self.grown
    }
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length().get();
        let (index, ends) = self.queue_of(packet, cx);
        let queue = &mut self.queues[index as usize];
        self.shared += u64::from(!queue.waiting.is_empty() && queue.owner != ends);
        queue.owner = ends;
        self.all
            .slab
            .push(&mut queue.waiting, packet, length as u32, cx.now);
        queue.bytes += length;
        self.all.packets += 1;
        self.all.bytes += length;
        self.longest.grown(index, queue);
        if queue.place == Place::Nowhere {
            queue.place = Place::New;
            queue.credits = self.settings.quantum.get() as i64;
            self.new.push_back(index);
        }
        let mut verdict = Verdict::Queued;
        while !cx.idle && self.full() {
            match self.shorten(packet, cx.packets) {
                Some(true) => verdict = Verdict::Dropped,
                Some(false) => {}
                None => break,
            }
        }
        verdict
    }

    /// Nothing was queued when the transmitter became free: every queue has had its turn and left
    /// its list.
    fn idle_since(&mut self, _since: Time) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            let queue = &mut self.queues[index as usize];
            queue.place = Place::Nowhere;
            queue.state.found_empty();
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        // A quantum of 1 byte would need many rounds; this bounds them by those for one packet.
        let quantum = self.settings.quantum.get().max(1) as i64;
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.credits <= 0 {
                queue.credits += quantum;
                queue.place = Place::Old;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let mut one = One {
                all: &mut self.all,
                waiting: &mut queue.waiting,
                bytes: &mut queue.bytes,
            };
            let taken = self
                .control
                .dequeue(&mut queue.state, &mut one, cx.now, cx.packets);
            if let Some((packet, length)) = taken {
                queue.credits -= length.get() as i64;
                return Some((packet, length));
            }
            // Section 4.2: a new queue passes through the old ones once; otherwise it could be new
            // again at once and starve them.
            list.pop_front();
            if is_new && !self.old.is_empty() {
                queue.place = Place::Old;
                self.old.push_back(index);
            } else {
                queue.place = Place::Nowhere;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.all.packets,
            bytes: self.all.bytes,
        }
    }

    fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: self.control.dropped() + self.given_up,
            removed: 0,
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_for_delay", self.control.dropped());
        each(None, "dropped_at_limit", self.overlimit);
        each(None, "marked", self.control.marked());
        each(None, "flows_sharing_a_queue", self.shared);
    }
}

#[cfg(test)]
mod tests;
