//! The node interface ([`Agent`]) and the context of its calls ([`Ctx`]).

use crate::{Managed, PacketRef, PacketStore, Port, RandomStream, Routes, Time};

/// Reason why a node discarded a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// No route to its destination.
    NoRoute,
    /// No connection or listener accepts it.
    NoConnection,
    /// A SYN, while the connection table is full.
    TableFull,
    /// Its headers contradict one another.
    Malformed,
    /// Its hop limit is used up.
    HopLimit,
    /// The queue of a busy processor is full.
    Busy,
    /// It is longer than the MTU of the next link.
    TooBig,
    /// Its checksum is wrong.
    Checksum,
    /// The node is down.
    Down,
    /// The neighbour's link address could not be resolved.
    Unresolved,
    /// The queue of a rate limit is full.
    OverRate,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 11] = [
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
        Self::OverRate,
    ];

    /// Returns the name used in results.
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
            Self::OverRate => "over_rate",
        }
    }
}

/// Number of packets discarded by agents, per reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discards([u64; DropReason::ALL.len()]);

impl Discards {
    /// Counts one packet.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Adds the packets that were counted elsewhere.
    pub fn add(&mut self, others: &Self) {
        for (count, other) in self.0.iter_mut().zip(others.0) {
            *count += other;
        }
    }

    /// Returns the number of packets discarded for this reason.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the total number of discarded packets.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Packets that an agent has emitted and its driver has not sent yet, in order.
pub type Outbox = Vec<(Port, PacketRef)>;

/// Everything an agent may access during a call. The driver creates one per call.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// Current time.
    pub now: Time,
    /// Packet store.
    pub packets: &'a mut PacketStore,
    /// Random stream of this agent.
    pub random: &'a mut RandomStream,
    /// Emitted packets. The driver sends them after the call.
    pub outbox: &'a mut Outbox,
    /// Counters of discarded packets.
    pub discards: &'a mut Discards,
    /// Room in the queue of the agent's only outgoing link, if known.
    pub room: Room,
}

/// Room in the queue of an agent's only outgoing link during a call.
///
/// A window that overflows a queue can be hundreds of thousands of packets, all of which would be
/// dropped at once. An agent that sends many identical packets creates only those for which there
/// may be room, and counts the others in `unmade`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Packets that the queue may accept during this call. All further ones are dropped.
    pub packets: u64,
    /// Packets that were counted as sent but not created.
    pub unmade: u64,
}

impl Room {
    /// Unknown room: every packet is created.
    pub const UNKNOWN: Self = Self::of(u64::MAX);

    /// Room for this many packets.
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

    /// Removes a packet from the network and counts the reason.
    pub fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.discards.count(reason);
        self.packets.release(packet);
    }
}

/// An owned version of everything that a [`Ctx`] borrows, for drivers whose agents share one random
/// stream: live hosts, scripts and tests. The simulated network has one random stream per node.
#[derive(Debug)]
pub struct World {
    /// Current time.
    pub now: Time,
    /// Packet store.
    pub packets: PacketStore,
    /// Random stream.
    pub random: RandomStream,
    /// Emitted packets that were not sent yet.
    pub outbox: Outbox,
    /// Counters of discarded packets.
    pub discards: Discards,
}

impl World {
    /// Creates an empty world at time zero.
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

    /// Returns the context of a call at the current time.
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

    /// Sets the time and returns the context of a call.
    #[inline]
    pub fn at(&mut self, now: Time) -> Ctx<'_> {
        self.now = now;
        self.cx()
    }
}

/// Data that an agent retains between calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Number of packet references that the agent holds: received and not yet emitted, discarded or
    /// released, retained, or created. Invariant: every packet in the store is in transit or held
    /// by an agent that counts it here.
    pub packets: u64,
    /// Bytes of stream data that the agent buffers, as packets or as ranges.
    pub bytes: u64,
}

/// A quantity of an agent that probes can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// Name after the node's name: `buffered` in `hub.buffered`.
    pub name: &'static str,
    /// Unit: `B`, `packets`, `connections` or `s`.
    pub unit: &'static str,
    /// Meaning, in a sentence.
    pub description: &'static str,
}

impl Gauge {
    /// Creates a gauge.
    #[must_use]
    pub const fn new(name: &'static str, unit: &'static str, description: &'static str) -> Self {
        Self {
            name,
            unit,
            description,
        }
    }
}

/// Result of comparing the stream offset at which bytes arrived with the offset at which they were
/// sent: see [`Packet::payload_offset`](crate::Packet::payload_offset).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCheck {
    /// Stream ranges that were accepted and compared.
    pub ranges: u64,
    /// Ranges that arrived at another offset. Any value above zero is a fault.
    pub mismatches: u64,
}

/// A node: host, router or middlebox. It receives packets and has deadlines.
///
/// An agent receives the time as a parameter, never blocks, and returns its next deadline. An agent
/// defined outside the engine has everything that the engine's own hosts have: routes, accounting
/// for retained packets, counters in the results, gauges for probes, stream comparison, and a vote
/// on whether the run is over. All of these methods have defaults, and none is called per packet.
pub trait Agent {
    /// Called once, before anything else, with the routes from this node.
    fn routes(&mut self, _routes: Routes) {}

    /// Handles a packet that arrived at port `from`. The agent emits, discards, retains or releases
    /// it.
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>);

    /// Called when the time returned by `next_deadline` has come.
    fn on_deadline(&mut self, cx: &mut Ctx<'_>);

    /// Returns when the agent next wants to run without a packet. Called after every call; cheap.
    fn next_deadline(&self) -> Option<Time>;

    /// Prepares for an orderly end: the driver will not call the agent again. The agent ends
    /// whatever depends on it and notifies the peers.
    fn retire(&mut self, _cx: &mut Ctx<'_>) {}

    /// Returns what the agent retains now.
    fn holdings(&self) -> Holdings {
        Holdings::default()
    }

    /// Calls `visit` with every counter's name and value, in the order of the results.
    fn counters(&self, _visit: &mut dyn FnMut(&str, u64)) {}

    /// Returns the quantities that probes can read; the same for all agents of a kind.
    fn gauges(&self) -> &'static [Gauge] {
        &[]
    }

    /// Returns the current value of a gauge, by its index in [`gauges`](Self::gauges).
    fn gauge(&self, _index: usize) -> f64 {
        f64::NAN
    }

    /// Returns the stream comparison of the connections that end here.
    fn stream_check(&self) -> StreamCheck {
        StreamCheck::default()
    }

    /// Returns one line that the operator should read, such as settings that contradict each other.
    fn remark(&self) -> Option<&'static str> {
        None
    }

    /// Whether all connections are over, so that the agent sends nothing more by itself except
    /// keep-alives. A run ends early when every flow has ended, every agent is quiet and no packet
    /// is in transit; TIME-WAIT and keep-alive timers do not extend a run.
    fn is_quiet(&self) -> bool {
        true
    }

    /// Returns the node's interface for an operator, if it has one.
    fn managed(&mut self) -> Option<&mut dyn Managed> {
        None
    }
}
