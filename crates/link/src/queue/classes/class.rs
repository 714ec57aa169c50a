//! Traffic classes: which packets are queued together.

use std::collections::BTreeMap;

use bentpipe_types::{Address, Endpoint, Packet};

/// Criteria of a traffic class. If several are given, all must match.
#[derive(Clone, Debug, Default)]
pub struct TrafficClass {
    /// Flows whose connections and datagrams match, or `None` for all.
    pub flows: Option<FlowEnds>,
    /// Nodes at either end, or `None` for all.
    pub hosts: Option<Vec<Address>>,
    /// Inclusive port ranges at either end, or `None` for all.
    pub ports: Option<Vec<(u16, u16)>>,
}

/// The two ends of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The node that opens connections.
    pub opener: Address,
    /// First and last port of the opener, or `None` if unknown (a real host).
    pub opener_ports: Option<(u16, u16)>,
    /// The other node.
    pub server: Address,
    /// The server's ports, or `None` for all.
    pub server_ports: Option<Vec<u16>>,
}

/// Ends of flows, for looking up a packet's flow.
#[derive(Clone, Debug, Default)]
pub struct FlowEnds {
    /// By the opener and its first port. Invariant: ranges do not overlap.
    known: BTreeMap<(Address, u16), Ends>,
    /// Flows whose opener's ports are unknown.
    unknown: Vec<Ends>,
}

impl FromIterator<Ends> for FlowEnds {
    fn from_iter<I: IntoIterator<Item = Ends>>(ends: I) -> Self {
        let mut all = Self::default();
        for ends in ends {
            match ends.opener_ports {
                Some((first, _)) => {
                    all.known.insert((ends.opener, first), ends);
                }
                None => all.unknown.push(ends),
            }
        }
        all
    }
}

impl Ends {
    /// Whether a packet between these two belongs to one of the flows.
    fn contains(&self, opener: Endpoint, server: Endpoint) -> bool {
        let port = opener.port;
        self.opener == opener.address
            && self.server == server.address
            && self
                .opener_ports
                .is_none_or(|(first, last)| (first..=last).contains(&port))
            && (self.server_ports.as_ref()).is_none_or(|ports| ports.contains(&server.port))
    }
}

impl FlowEnds {
    fn contains(&self, one: Endpoint, other: Endpoint) -> bool {
        let opened = |opener: Endpoint, server: Endpoint| {
            let mut before = self.known.range(..=(opener.address, opener.port));
            let mut candidates = before
                .next_back()
                .map(|(_, ends)| ends)
                .into_iter()
                .chain(&self.unknown);
            candidates.any(|ends| ends.contains(opener, server))
        };
        opened(one, other) || opened(other, one)
    }
}

impl TrafficClass {
    /// Whether the packet belongs to the class.
    #[must_use]
    pub fn contains(&self, packet: &Packet) -> bool {
        let (source, destination) = (packet.source, packet.destination);
        let at_an_end = |fits: &dyn Fn(Endpoint) -> bool| fits(source) || fits(destination);
        let hosts = self.hosts.as_ref();
        let ports = self.ports.as_ref();
        ports.is_none_or(|ports| {
            at_an_end(&|end| {
                let mut ranges = ports.iter();
                ranges.any(|&(first, last)| (first..=last).contains(&end.port))
            })
        }) && hosts.is_none_or(|hosts| at_an_end(&|end| hosts.contains(&end.address)))
            && (self.flows.as_ref()).is_none_or(|flows| flows.contains(source, destination))
    }
}
