//! Queues that decide when the transmitter is free, not when a packet arrives.

use std::fmt::Debug;
use std::sync::Arc;

use bentpipe_types::{Bytes, PacketRef, PacketStore, RandomStream, SpanStatistics, Time};

use super::Verdict;
use crate::Tally;

/// All that a queue may touch while it runs.
#[derive(Debug)]
pub struct QueueCtx<'a> {
    /// The time.
    pub now: Time,
    /// The packets. A queue releases what it gives up, the packet offered to it excepted.
    pub packets: &'a mut PacketStore,
    /// This direction's own randomness.
    pub random: &'a mut RandomStream,
    /// The transmitter is free and nothing waits: a packet that is offered is on its way at once. It
    /// does not wait, so that no limit on what waits concerns it.
    pub idle: bool,
}

/// What has become of a class's packets.
#[derive(Clone, Debug, Default)]
pub struct ClassCounts {
    /// Its name.
    pub name: Arc<str>,
    /// Packets that wait.
    pub packets: u64,
    /// Bytes that wait.
    pub bytes: u64,
    /// Most packets that ever waited.
    pub most_packets: u64,
    /// Packets whose transmission has begun.
    pub sent: u64,
    /// Their bytes, IP headers included.
    pub sent_bytes: u64,
    /// Packets dropped, on their arrival or later.
    pub dropped: u64,
    /// How long those that were sent had waited.
    pub waits: SpanStatistics,
}

/// A queue that chooses what is transmitted next, and may give up or change what waits in it.
///
/// A drop-tail queue needs none of this: there the departure of a packet is known when it arrives,
/// and the direction keeps it in its ring (see [`Direction`](crate::Direction)).
pub trait QueueDiscipline: Debug + Send {
    /// Offers a packet. With [`Verdict::Dropped`] it stays the caller's. What the queue gives up of
    /// the packets that waited already, it releases, and counts.
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict;

    /// The transmitter has had nothing to do since `since`: told before the packet that ends that is
    /// offered.
    fn idle_since(&mut self, _since: Time) {}

    /// Is nothing different afterwards, where nothing waits, if a packet is offered to an idle transmitter and taken
    /// at once? Then it need not be.
    fn lets_pass(&self) -> bool {
        false
    }

    /// Takes the packet to be transmitted next, and its length, which the queue has at hand where the packet itself
    /// has left the cache; the transmitter is free.
    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)>;

    /// Packets that wait.
    fn packets(&self) -> u64;

    /// Bytes that wait, headers included.
    fn bytes(&self) -> u64;

    /// Packets ever given up after they were queued: dropped from within (fair queueing), or removed
    /// because a later acknowledgment says as much. Offered = dropped + given up + dequeued + waiting.
    /// Nothing, where what is taken in is always sent.
    fn given_up(&self) -> GivenUp {
        GivenUp::default()
    }

    /// What has become of each class of traffic, where it knows classes.
    fn classes(&self) -> &[ClassCounts] {
        &[]
    }

    /// Tells what it has done, by name: for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}

/// What a queue gave up of the packets it had taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenUp {
    /// Dropped: what they said is lost.
    pub dropped: u64,
    /// Acknowledgments removed: a later one stands for them.
    pub removed: u64,
}
