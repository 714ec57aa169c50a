//! What a host, a router or a middlebox is, and all that it may touch.

use crate::{PacketRef, PacketStore, RandomStream, Time, Trace};

/// One of a node's attachments to a link, in the order the links were attached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

/// Why a packet went no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// No route to its destination.
    NoRoute,
    /// No connection, and no listener, takes it.
    NoConnection,
    /// A SYN for which the table of connections has no room.
    TableFull,
    /// Its headers contradict one another.
    Malformed,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::NoRoute,
        Self::NoConnection,
        Self::TableFull,
        Self::Malformed,
    ];
}

/// How many packets agents discarded, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discards([u64; DropReason::ALL.len()]);

impl Discards {
    /// Counts one.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// How many were discarded for this reason.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// How many were discarded.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Packets that an agent has emitted and its driver has not yet sent, in order.
pub type Outbox = Vec<(Port, PacketRef)>;

/// All that an agent may touch while it runs. The driver, simulated or live, makes one per call.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// The time.
    pub now: Time,
    /// The packets.
    pub packets: &'a mut PacketStore,
    /// This agent's own randomness.
    pub random: &'a mut RandomStream,
    /// Where series are recorded.
    pub trace: &'a mut Trace,
    /// What the agent emits; the driver drains it after the call.
    pub outbox: &'a mut Outbox,
    /// What the agent discards.
    pub discards: &'a mut Discards,
}

impl Ctx<'_> {
    /// Sends a packet out of one of this agent's ports.
    pub fn emit(&mut self, port: Port, packet: PacketRef) {
        self.outbox.push((port, packet));
    }

    /// Ends a packet's journey here, and counts why.
    pub fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.discards.count(reason);
        self.packets.release(packet);
    }
}

/// All that a [`Ctx`] borrows, owned: for a driver of agents that share one randomness, a live host,
/// a script, a test. (The simulated network keeps a random stream for each of its nodes.)
#[derive(Debug)]
pub struct World {
    /// The time.
    pub now: Time,
    /// The packets.
    pub packets: PacketStore,
    /// The randomness.
    pub random: RandomStream,
    /// Where series are recorded.
    pub trace: Trace,
    /// What was emitted and not yet sent.
    pub outbox: Outbox,
    /// What was discarded.
    pub discards: Discards,
}

impl World {
    /// Nothing has happened.
    #[must_use]
    pub fn new(random: RandomStream) -> Self {
        Self {
            now: Time::ZERO,
            packets: PacketStore::default(),
            random,
            trace: Trace::default(),
            outbox: Outbox::new(),
            discards: Discards::default(),
        }
    }

    /// What an agent may touch now.
    #[inline]
    pub fn cx(&mut self) -> Ctx<'_> {
        Ctx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            trace: &mut self.trace,
            outbox: &mut self.outbox,
            discards: &mut self.discards,
        }
    }

    /// The same at another time, which is the time from then on.
    #[inline]
    pub fn at(&mut self, now: Time) -> Ctx<'_> {
        self.now = now;
        self.cx()
    }
}

/// A host, a router or a middlebox: something that packets reach and that has deadlines.
///
/// An agent never asks for the time and never waits: it is told, and names its next deadline.
pub trait Agent {
    /// A packet has arrived at `from`. The agent now holds it: it emits, discards or releases it.
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>);

    /// `next_deadline` has come.
    fn on_deadline(&mut self, cx: &mut Ctx<'_>);

    /// When this agent next wants to run without a packet. Asked after every call; cheap.
    fn next_deadline(&self) -> Option<Time>;
}
