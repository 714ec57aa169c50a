//! Counters by name, of whatever a direction is made of.

use std::net::IpAddr;

use bentpipe_types::{Endpoint, PacketRef, PacketStore};

/// The two ends of a connection, in the direction of the packets that are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flow {
    /// Who sends them.
    pub source: Endpoint,
    /// Who is to get them.
    pub destination: Endpoint,
    /// The real addresses of a flow of a real network, source first: a node may stand for many.
    pub ip: Option<(IpAddr, IpAddr)>,
}

impl Flow {
    /// The flow a packet belongs to.
    #[must_use]
    pub fn of(packets: &PacketStore, packet: PacketRef) -> Self {
        let record = packets.get(packet);
        Self {
            source: record.source,
            destination: record.destination,
            ip: packets.ip(packet),
        }
    }
}

/// Takes counters, one call each: of one flow or (`None`) of all, the counter's name, its value.
///
/// Names are those of results and probes: `acks_removed`, `refused_count`. Whoever counts calls in the
/// same order every time; flows come in the order in which they were first seen.
pub type Tally<'a> = dyn FnMut(Option<Flow>, &'static str, u64) + 'a;
