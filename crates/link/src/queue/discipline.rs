//! The interface of queues that decide when the transmitter is free.

use std::fmt::Debug;
use std::sync::Arc;

use bentpipe_types::{Bytes, PacketRef, PacketStore, RandomStream, SpanStatistics, Time};

use super::Verdict;
use crate::Tally;

/// Context of a queue's calls.
#[derive(Debug)]
pub struct QueueCtx<'a> {
    /// Current time.
    pub now: Time,
    /// Packet store. A queue releases the packets that it drops, except the one offered to it.
    pub packets: &'a mut PacketStore,
    /// Random stream of this direction.
    pub random: &'a mut RandomStream,
    /// Whether the transmitter is free and nothing is queued: an offered packet is transmitted at
    /// once, and the limit does not apply to it.
    pub idle: bool,
}

/// Counters of a traffic class.
#[derive(Clone, Debug, Default)]
pub struct ClassCounts {
    /// Name of the class.
    pub name: Arc<str>,
    /// Backlog in packets.
    pub packets: u64,
    /// Backlog in bytes.
    pub bytes: u64,
    /// Maximum backlog in packets.
    pub most_packets: u64,
    /// Packets whose transmission has begun.
    pub sent: u64,
    /// Bytes of these, IP headers included.
    pub sent_bytes: u64,
    /// Packets dropped, on arrival or later.
    pub dropped: u64,
    /// Queueing delays of sent packets.
    pub waits: SpanStatistics,
}

/// A queue that selects the next packet, and may drop or change queued ones.
///
/// A drop-tail queue needs none of this: its departures are known at arrival, and the direction
/// stores packets in its ring (see [`Direction`](crate::Direction)).
pub trait QueueDiscipline: Debug + Send {
    /// Offers a packet. With [`Verdict::Dropped`] it remains with the caller. Queued packets that
    /// are dropped or removed are released and counted.
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict;

    /// Called when a packet ends an idle period that began at `since`, before it is offered.
    fn idle_since(&mut self, _since: Time) {}

    /// Whether offering a packet to the empty queue of an idle transmitter and taking it at once
    /// has no effect, so that both can be omitted.
    fn lets_pass(&self) -> bool {
        false
    }

    /// Removes the next packet for transmission. Returns its length as well, since the packet
    /// itself may have left the cache.
    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)>;

    /// Returns the backlog.
    fn backlog(&self) -> Backlog;

    /// Returns the backlog in packets.
    fn packets(&self) -> u64 {
        self.backlog().packets
    }

    /// Returns the backlog in bytes, headers included.
    fn bytes(&self) -> u64 {
        self.backlog().bytes
    }

    /// Returns the packets given up after they were queued: dropped (fair queueing), or removed
    /// because a later acknowledgment replaces them. Offered = dropped + given up + dequeued +
    /// queued. Zero if everything accepted is sent.
    fn given_up(&self) -> GivenUp {
        GivenUp::default()
    }

    /// Returns the counters per traffic class, if it has classes.
    fn classes(&self) -> &[ClassCounts] {
        &[]
    }

    /// Reports counters by name, for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}

/// Queued packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

/// Packets that a queue gave up after accepting them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenUp {
    /// Dropped: their content is lost.
    pub dropped: u64,
    /// Removed acknowledgments, which later ones replace.
    pub removed: u64,
}
