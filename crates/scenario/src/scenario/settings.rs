//! A scenario with every default filled in and every name resolved.

use bentpipe_tcp::congestion::SavedPath;
use bentpipe_types::Span;

use crate::class::settings::PacketClass;
use crate::flow::settings::Flow;
use crate::ip::IpName;
use crate::link::settings::{Link, Way};
use crate::node::settings::{Node, NodeKind};
use crate::orbit::settings::Orbits;
use crate::probe::settings::Probes;
use crate::quic::settings::QuicHostSettings;
use crate::tcp::settings::TcpSettings;

/// A network, its traffic, and what to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of the results.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// End of the run; above zero, at most three days.
    pub duration: Span,
    /// Seed of all randomness.
    pub seed: u64,
    /// IP version of all packets.
    pub ip: IpName,
    /// Hosts, then gateways, in the order of the file. Flows and links refer to them by index.
    pub nodes: Vec<Node>,
    /// Links in the order of the file. Probes refer to them by index.
    pub links: Vec<Link>,
    /// Flows in the order of the file; each has a route. Probes refer to them by index.
    pub flows: Vec<Flow>,
    /// Classes of traffic, for queues that know classes.
    pub classes: Vec<PacketClass>,
    /// Constellations and sites. Paths of links refer to them by index.
    pub orbits: Orbits,
    /// Whether hosts with Linux's profile draw their timing from the seed.
    pub host_timing: bool,
    /// Series to record over time.
    pub probes: Probes,
}

impl Scenario {
    /// Returns the number of a link direction: all directions are counted in the order of the file,
    /// those of a link together. Returns `None` if the link does not have this direction.
    #[must_use]
    pub fn direction_index(&self, link: usize, way: Way) -> Option<usize> {
        let directions = |link: &Link| 1 + usize::from(link.backward.is_some());
        self.links.get(link)?.direction(way)?;
        let before: usize = self.links[..link].iter().map(directions).sum();
        Some(before + usize::from(way == Way::Return))
    }

    /// Returns the names of all directions, in the order of their numbers.
    pub(crate) fn direction_names(&self) -> Vec<String> {
        let names = self.links.iter().flat_map(|link| {
            let ways = link.directions();
            ways.map(|(way, _)| format!("{}.{way}", link.name))
        });
        names.collect()
    }

    /// Whether the node is a host that draws its timing from the seed: one with Linux's profile.
    #[must_use]
    pub fn draws_timing(&self, node: usize) -> bool {
        self.host_timing && self.tcp_of(node).is_some_and(TcpSettings::has_linux_quirks)
    }

    /// The TCP of the host with this index; none for a gateway.
    #[must_use]
    pub fn tcp_of(&self, node: usize) -> Option<&TcpSettings> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Host(host) => Some(&host.tcp),
            NodeKind::Gateway(_) => None,
        }
    }

    /// Returns the parameters of the path that a host has saved.
    pub(crate) fn saved_path_of(&self, node: usize) -> Option<SavedPath> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Host(host) => host.resume,
            NodeKind::Gateway(_) => None,
        }
    }

    /// Returns the QUIC settings of a host, or the defaults.
    pub(crate) fn quic_of(&self, node: usize) -> QuicHostSettings {
        let host = self.nodes.get(node).and_then(|node| match &node.kind {
            NodeKind::Host(host) => host.quic.as_deref().cloned(),
            NodeKind::Gateway(_) => None,
        });
        host.unwrap_or_default()
    }
}
