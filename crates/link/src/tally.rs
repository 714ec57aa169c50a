//! Named counters of the parts of a direction.

use std::net::IpAddr;

use bentpipe_types::{Endpoint, PacketRef, PacketStore};

/// The two ends of a connection, in the direction of the counted packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flow {
    /// Sender.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// Real addresses of a real flow, source first: a node may stand for many.
    pub ip: Option<(IpAddr, IpAddr)>,
}

impl Flow {
    /// Returns the flow of a packet.
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

/// Receives counters, one call each: the flow or `None` for the total, the counter's name, its
/// value.
///
/// Names are those of results and probes: `acks_removed`, `refused_count`. Calls are always in the
/// same order; flows are in the order in which they were first seen.
pub type Tally<'a> = dyn FnMut(Option<Flow>, &'static str, u64) + 'a;
