//! Fair queueing by deficit round robin (Shreedhar and Varghese, "Efficient Fair Queueing Using
//! Deficit Round-Robin", IEEE/ACM Transactions on Networking 4(3), 1996).

use std::net::IpAddr;

use bentpipe_types::{Bytes, PacketRef};

use super::by_flow::{Claim, Claimant, Ends, Flows, List, Longest, Slab};
use super::{Backlog, GivenUp, Limit, QueueCtx, QueueDiscipline, Verdict};
use crate::Tally;
use crate::row::Row;

/// Settings of a fair queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairSettings {
    /// Limit of all flows together.
    pub limit: Limit,
    /// Bytes per turn: the paper's Q. At least a full packet; otherwise a turn may send nothing.
    pub quantum: Bytes,
    /// Number of queues. While no more flows than this are backlogged, each has its own; others
    /// share.
    pub flows: usize,
}

/// A flow's queue in one cache line: between two of its packets come those of so many flows that it
/// has left the cache.
#[derive(Debug)]
#[repr(align(64))]
struct Queue {
    waiting: List,
    bytes: u64,
    /// The paper's deficit counter: bytes that it may still send in this turn.
    deficit: u64,
    /// Position in the order of turns: lower is sooner. [`NOWHERE`] if it is not active.
    place: u64,
    /// The flow that owns it, if any, for removal when none of its packets is queued.
    owner: Ends,
    is_owned: bool,
    /// Rank entered in [`Longest`].
    entered: Claim,
    /// Whether it may have grown since then.
    grown: bool,
}

const _: () = assert!(size_of::<Queue>() == 64);

/// Number of turns by which a queue is prefetched.
const AHEAD: usize = 4;

/// Not active.
const NOWHERE: u64 = u64::MAX;

/// A queue for each flow, served in turn.
#[derive(Debug)]
pub struct Fair {
    settings: FairSettings,
    queues: Vec<Queue>,
    /// Queued packets.
    slab: Slab,
    /// Queues of backlogged flows.
    flows: Flows,
    /// Unused queues.
    free: Vec<u32>,
    /// Active queues in the order of turns, each with its position. An entry with another position
    /// than its queue is of one emptied by drops.
    active: Row<(u32, u64)>,
    /// Number of invalid entries in `active`.
    abandoned: usize,
    /// Next position.
    next_place: u64,
    longest: Longest,
    /// Whether the first active queue has received its quantum for this turn.
    in_turn: bool,
    packets: u64,
    bytes: u64,
    dropped: u64,
    shared: u64,
    first_gateway: u16,
}

impl Fair {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(settings: FairSettings) -> Self {
        let flows = settings.flows.clamp(1, 1 << 16);
        let mut queues = Vec::with_capacity(flows);
        queues.resize_with(flows, Queue::default);
        Self {
            settings,
            queues,
            slab: Slab::default(),
            flows: Flows::with_capacity(flows),
            // The first flow gets queue 0.
            free: (0..flows as u32).rev().collect(),
            active: Row::default(),
            abandoned: 0,
            next_place: 0,
            longest: Longest::new(flows),
            in_turn: false,
            packets: 0,
            bytes: 0,
            dropped: 0,
            shared: 0,
            first_gateway: u16::MAX,
        }
    }

    /// Sets the lowest address of a gateway; all lower ones are of hosts. Gateways are then hashed
    /// by their number, so that another host in the network changes no flow's queue.
    #[must_use]
    pub fn with_gateways_from(mut self, first: u16) -> Self {
        self.first_gateway = first;
        self
    }

    /// Returns the flow's queue: its own, an unused one, or a shared one.
    #[inline]
    fn queue_of(&mut self, ends: Ends, ip: Option<(IpAddr, IpAddr)>) -> u32 {
        if let Some(index) = self.flows.get(ends, ip) {
            return index;
        }
        if let Some(index) = self.free.pop() {
            self.flows.insert(ends, ip, index);
            let queue = &mut self.queues[index as usize];
            (queue.owner, queue.is_owned) = (ends, true);
            return index;
        }
        // Not stored: memory is bounded for any number of flows.
        self.shared += 1;
        let numbered = ends.numbered_from(self.first_gateway);
        (numbered.mixed() % self.queues.len() as u64) as u32
    }

    fn full(&self) -> bool {
        self.settings.limit.is_exceeded(self.packets, self.bytes)
    }

    /// Removes the first packet of a queue, and the flow's assignment if it was the last.
    #[inline(always)]
    fn take(&mut self, index: u32) -> Option<(PacketRef, Bytes)> {
        let queue = &mut self.queues[index as usize];
        let (packet, length, ()) = self.slab.pop(&mut queue.waiting)?;
        queue.bytes -= u64::from(length);
        self.packets -= 1;
        self.bytes -= u64::from(length);
        if queue.waiting.is_empty() {
            // Section III.A: an empty queue loses its deficit.
            queue.deficit = 0;
            if std::mem::take(&mut queue.is_owned) {
                self.flows.remove(queue.owner, index);
                self.free.push(index);
            }
        }
        Some((packet, Bytes::new(u64::from(length))))
    }

    /// Removes the first packet of the longest queue.
    #[inline(never)]
    fn give_up(&mut self) -> Option<PacketRef> {
        let longest = self.longest.find(&mut self.queues)?;
        let (given_up, _) = self.take(longest)?;
        if self.queues[longest as usize].waiting.is_empty() {
            self.deactivate(longest);
        }
        Some(given_up)
    }

    /// Appends the queue to the order of turns.
    fn activate(&mut self, index: u32) {
        let place = self.next_place;
        self.next_place += 1;
        self.queues[index as usize].place = place;
        self.active.push((index, place));
    }

    /// Ends the service of a queue emptied by drops. Its entry is removed when it comes up, or when
    /// there are more such entries than others.
    fn deactivate(&mut self, index: u32) {
        let place = std::mem::replace(&mut self.queues[index as usize].place, NOWHERE);
        if self.active.first() == Some(&(index, place)) {
            self.active.pop();
            self.in_turn = false;
            return;
        }
        self.abandoned += 1;
        if 2 * self.abandoned > self.active.len() {
            let queues = &self.queues;
            self.active
                .retain(|(index, place)| queues[*index as usize].place == *place);
            self.abandoned = 0;
        }
    }

    /// Prefetches a queue whose turn comes soon.
    fn fetch_ahead(&self) {
        // A quantum is about a packet, so a turn is seldom more.
        if let Some((later, _)) = self.active.get(AHEAD) {
            prefetch_index::prefetch_index(&self.queues, *later as usize);
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            waiting: List::default(),
            bytes: 0,
            deficit: 0,
            place: NOWHERE,
            owner: Ends::default(),
            is_owned: false,
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
        Claim::of(index, self.bytes, self.place)
    }

    fn entered(&mut self) -> &mut Claim {
        &mut self.entered
    }

    fn grown(&mut self) -> &mut bool {
        &mut self.grown
    }
}

impl QueueDiscipline for Fair {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let record = cx.packets.get(packet);
        let length = record.length().get();
        let index = self.queue_of(Ends::of(record), cx.packets.ip(packet));
        let queue = &mut self.queues[index as usize];
        let was_empty = queue.waiting.is_empty();
        self.slab
            .push(&mut queue.waiting, packet, length as u32, ());
        queue.bytes += length;
        self.packets += 1;
        self.bytes += length;
        self.longest.grown(index, queue);
        if was_empty {
            self.activate(index);
        }
        // Section III.C, after McKenney: the longest queue drops at its front, as in ns-2 (a sender
        // learns of it sooner).
        while !cx.idle && self.full() {
            let Some(given_up) = self.give_up() else {
                break;
            };
            if given_up == packet {
                return Verdict::Dropped;
            }
            self.dropped += 1;
            cx.packets.release(given_up);
        }
        Verdict::Queued
    }

    fn lets_pass(&self) -> bool {
        // Every flow and every deficit has been forgotten.
        true
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        // A quantum of 1 byte would need many rounds; this bounds them by those for one packet.
        let quantum = self.settings.quantum.get().max(1);
        loop {
            let (index, place) = *self.active.first()?;
            let queue = &mut self.queues[index as usize];
            if queue.place != place {
                // The queue was emptied by drops.
                self.active.pop();
                self.abandoned -= 1;
                continue;
            }
            if !self.in_turn {
                queue.deficit += quantum;
                self.in_turn = true;
            }
            let (packet, length) = self.slab.first(&queue.waiting)?;
            if let Some(left) = queue.deficit.checked_sub(u64::from(length)) {
                queue.deficit = left;
                self.take(index);
                if self.queues[index as usize].waiting.is_empty() {
                    self.deactivate(index);
                }
                self.fetch_ahead();
                return Some((packet, Bytes::new(u64::from(length))));
            }
            queue.place = self.next_place;
            self.next_place += 1;
            self.active.pop();
            self.active.push((index, queue.place));
            self.in_turn = false;
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets,
            bytes: self.bytes,
        }
    }

    fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: self.dropped,
            removed: 0,
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "flows_sharing_a_queue", self.shared);
    }
}

#[cfg(test)]
mod tests;
