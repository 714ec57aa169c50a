//! What a host, a router or a middlebox is, and all that it may touch.

use serde::{Deserialize, Serialize};

use crate::{PacketRef, PacketStore, RandomStream, Routes, Time};

/// One of a node's attachments to a link, in the order the links were attached.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
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
    /// It has gone as many hops as its header allows.
    HopLimit,
    /// The processor that it has to pass is busy, and the queue in front of it full.
    Busy,
    /// It is longer than the link takes that it was to go on by.
    TooBig,
    /// Its checksum is wrong.
    Checksum,
    /// The node that it reaches is not there: it has no power.
    Down,
    /// The neighbour that it was to go on to has not told its link address.
    Unresolved,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::NoRoute,
        Self::NoConnection,
        Self::TableFull,
        Self::Malformed,
        Self::HopLimit,
        Self::Busy,
        Self::TooBig,
        Self::Checksum,
        Self::Down,
        Self::Unresolved,
    ];

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoRoute => "no_route",
            Self::NoConnection => "no_connection",
            Self::TableFull => "table_full",
            Self::Malformed => "malformed",
            Self::HopLimit => "hop_limit",
            Self::Busy => "processor_busy",
            Self::TooBig => "too_long",
            Self::Checksum => "wrong_checksum",
            Self::Down => "node_down",
            Self::Unresolved => "no_link_address",
        }
    }
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
    /// What the agent emits; the driver drains it after the call.
    pub outbox: &'a mut Outbox,
    /// What the agent discards.
    pub discards: &'a mut Discards,
    /// What the way out has room for.
    pub room: Room,
}

/// What is known of the queue on an agent's only way out while the agent runs.
///
/// A window that overflows a queue is hundreds of thousands of packets, which are dropped as soon as they are made. So
/// whoever makes many alike makes those that may have a place, and counts the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Of the packets that one call emits, those after the first so many are dropped, whatever they are.
    pub packets: u64,
    /// So many of those were not made.
    pub unmade: u64,
}

impl Room {
    /// Nothing is known of it: every packet is made.
    pub const UNKNOWN: Self = Self::of(u64::MAX);

    /// For so many.
    #[inline]
    #[must_use]
    pub const fn of(packets: u64) -> Self {
        Self { packets, unmade: 0 }
    }
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
            outbox: &mut self.outbox,
            discards: &mut self.discards,
            room: Room::UNKNOWN,
        }
    }

    /// The same at another time, which is the time from then on.
    #[inline]
    pub fn at(&mut self, now: Time) -> Ctx<'_> {
        self.now = now;
        self.cx()
    }
}

/// What an agent keeps between calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// References to packets of the store: one it has been handed and not yet emitted, discarded or
    /// released, one it has retained, one it has made. Whoever drives the agent counts them: no packet
    /// is anywhere else than under way or with an agent that says so.
    pub packets: u64,
    /// Bytes of streams that it buffers, whether as packets or as ranges.
    pub bytes: u64,
}

/// A quantity of an agent that a probe may look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// What follows the node's name: `buffered` in `hub.buffered`.
    pub name: &'static str,
    /// `B`, `packets`, `connections`, `s`.
    pub unit: &'static str,
}

/// What an agent's own connections found when they compared where bytes came with where they were
/// sent from: see [`Packet::payload_offset`](crate::Packet::payload_offset).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCheck {
    /// Ranges of a stream that were accepted and compared.
    pub ranges: u64,
    /// Those that came at another place than they were sent from. Not zero means a fault.
    pub mismatches: u64,
}

/// A host, a router or a middlebox: something that packets reach and that has deadlines.
///
/// An agent never asks for the time and never waits: it is told, and names its next deadline. Whoever
/// writes one outside the engine has what the engine's own hosts have: routes when the network is
/// built, packets that it keeps and that are accounted for, counters in the results, quantities that
/// probes look at, the check of its streams, a say in whether the run is over. All of that has a
/// default, right for an agent that has none of it, and none of it is asked per packet.
pub trait Agent {
    /// The network is built: these are the routes from here. Called once, before anything else.
    fn routes(&mut self, _routes: Routes) {}

    /// A packet has arrived at `from`. The agent now holds it: it emits, discards or releases it.
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>);

    /// `next_deadline` has come.
    fn on_deadline(&mut self, cx: &mut Ctx<'_>);

    /// When this agent next wants to run without a packet. Asked after every call; cheap.
    fn next_deadline(&self) -> Option<Time>;

    /// It will not be asked again after this: whoever drives it ends, in order. What cannot go on without it is
    /// brought to an end, and who has a part in it is told.
    fn retire(&mut self, _cx: &mut Ctx<'_>) {}

    /// What it keeps now.
    fn holdings(&self) -> Holdings {
        Holdings::default()
    }

    /// Tells what it has counted, by name, in the order in which a result shows it.
    fn counters(&self, _visit: &mut dyn FnMut(&str, u64)) {}

    /// The quantities that probes may look at; the same for all agents of a kind.
    fn gauges(&self) -> &'static [Gauge] {
        &[]
    }

    /// The value now of one of [`gauges`](Self::gauges), by its index there.
    fn gauge(&self, _index: usize) -> f64 {
        f64::NAN
    }

    /// What the streams that end here have come to.
    fn stream_check(&self) -> StreamCheck {
        StreamCheck::default()
    }

    /// What whoever runs it should know now, in one line: a setting that does not fit another's, somebody who is not there.
    fn remark(&self) -> Option<&'static str> {
        None
    }

    /// Are all of its connections over, so that of itself it will send no more but keep-alives? A run ends
    /// early when every flow has ended, every agent says so, and no packet is under way: what it waits for
    /// then (the end of TIME-WAIT, the time to ask a peer whether it is still there) is no work.
    fn is_quiet(&self) -> bool {
        true
    }
}
