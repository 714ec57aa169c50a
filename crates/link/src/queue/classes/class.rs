//! Classes of traffic: which packets wait together.

use std::collections::BTreeMap;

use bentpipe_types::{Address, Endpoint, Packet};

/// Packets, by what they belong to. Where more than one is given, all must fit.
#[derive(Clone, Debug, Default)]
pub struct TrafficClass {
    /// Connections and datagrams of these flows. `None`: of all.
    pub flows: Option<FlowEnds>,
    /// Nodes at either end. `None`: all.
    pub hosts: Option<Vec<Address>>,
    /// Ports at either end, from one to another, both included. `None`: all.
    pub ports: Option<Vec<(u16, u16)>>,
}

/// The two ends of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Who opens its connections.
    pub opener: Address,
    /// From which ports: the first and the last. `None`: where the opener is a real host, nobody knows.
    pub opener_ports: Option<(u16, u16)>,
    /// To whom.
    pub server: Address,
    /// The server's ports. `None`: all.
    pub server_ports: Option<Vec<u16>>,
}

/// The ends of flows, to find a packet's flow in them.
#[derive(Clone, Debug, Default)]
pub struct FlowEnds {
    /// By the opener and the first of its ports: ranges don't overlap.
    known: BTreeMap<(Address, u16), Ends>,
    /// Those whose opener's ports nobody knows.
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
    /// Does a packet between these two belong to it?
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
    /// Does this packet belong to it?
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
