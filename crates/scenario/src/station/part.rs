//! The part of one machine.

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_gateway::split::HostSecret;
use bentpipe_tcp::Config;
use bentpipe_types::Span;

use crate::gateway::dispatch::Gateway;
use crate::gateway::settings::{Addresses, RealLinks};
use crate::link::settings::{Link, Way};
use crate::node::settings::{HostSettings, Node, NodeKind};
use crate::probe::settings::Probes;
use crate::quantity::time::Interval;
use crate::scenario::settings::Scenario;
use crate::station::links::{check_classes, real, sent_by};
use crate::station::names::{find_gateway, find_link};
use crate::station::side::{ENDS, NO_ADDRESS, Side};
use crate::station_error::StationError;
use crate::tcp::schema::TcpFile;
use crate::tcp::settings::TcpSettings;

/// The part of a machine: a scenario in which the nodes [`ENDS`](Station::ENDS) are real networks.
#[derive(Clone, Debug)]
pub struct Station {
    /// The scenario. It has no flows, and its links have the names of the file's.
    pub scenario: Scenario,
    /// Names of the link directions that are simulated as in the file. Only their results are
    /// meaningful.
    pub simulated: Vec<String>,
    /// Notes about settings that have no effect here, or that limit connections: one line each,
    /// beginning with the key.
    pub notes: Vec<String>,
}

impl Station {
    /// Indices of the nodes that stand for the real networks behind the two links, in the order in
    /// which the links were given.
    pub const ENDS: [usize; 2] = ENDS;

    /// Creates the part of a gateway with these two links, one of which is the link that it faces.
    /// The addresses are those of its persistent connections, if it multiplexes.
    ///
    /// # Errors
    /// There is no such gateway or link, or a setting is impossible on one machine between real
    /// networks.
    pub fn gateway(
        scenario: &Scenario,
        name: &str,
        sides: &[Side; 2],
        addresses: Option<Addresses>,
    ) -> Result<Self, StationError> {
        let index = find_gateway(scenario, name)?;
        let (mut notes, mut simulated) = (Vec::new(), Vec::new());
        let mut own = Vec::new();
        for side in sides {
            let find = |link: &String| find_link(scenario, Some((index, name)), link);
            own.push((
                find(&side.link)?,
                side.other_way.as_ref().map(find).transpose()?,
            ));
        }
        if own[0].0 == own[1].0 {
            let message = format!(
                "\"{}\" was given twice: a gateway stands between two links",
                sides[0].link
            );
            return Err(StationError::new("", message));
        }
        let links = sides.iter().zip(&own).enumerate();
        let links: Result<Vec<Link>, StationError> = links
            .map(|(end, (side, (link, other_way)))| {
                let mut link = scenario.links[*link].clone();
                if let Some(other) = other_way {
                    link.backward = Some(scenario.links[*other].forward.clone());
                }
                let link = &link;
                if side.shaped {
                    let way = sent_by(link, index);
                    simulated.push(format!("{}.{way}", link.name));
                }
                real(link, index, end, side, scenario, &mut notes)
            })
            .collect();
        let NodeKind::Gateway(gateway) = &scenario.nodes[index].kind else {
            return Err(StationError::new("", format!("\"{name}\" is no gateway")));
        };
        let multiplexes = matches!(gateway, Gateway::Split(split) if split.multiplex.is_some());
        if addresses.is_some() && !multiplexes {
            let key = format!("gateways.{name}");
            return Err(StationError::new(
                key,
                "addresses are for persistent connections between gateways, and this one has no \"multiplex\"",
            ));
        }
        let gateway = gateway.between_real_links(&mut RealLinks {
            name,
            own: &own,
            link: &|index| scenario.links[index].name.as_str(),
            addresses,
            notes: &mut notes,
        })?;
        notes.extend(scenario.window_note(index));
        let mut nodes = ends([&sides[0].link, &sides[1].link]);
        nodes.push(Node {
            name: name.to_owned(),
            kind: NodeKind::Gateway(gateway),
        });
        Ok(Self {
            scenario: part_of(scenario, nodes, links?),
            simulated,
            notes,
        })
    }

    /// Groups links of a gateway by side, in the order given. A one-way link to the gateway and one
    /// from it are one side; each other link is a side.
    ///
    /// # Errors
    /// There is no such gateway or link.
    pub fn links_by_side(
        scenario: &Scenario,
        gateway: &str,
        links: &[String],
    ) -> Result<Vec<(String, Option<String>)>, StationError> {
        let index = find_gateway(scenario, gateway)?;
        let mut sides: Vec<(usize, (String, Option<String>))> = Vec::new();
        for name in links {
            let own = find_link(scenario, Some((index, gateway)), name)?;
            let link = &scenario.links[own];
            let is_other_way = |other: &Link| {
                link.backward.is_none()
                    && other.backward.is_none()
                    && (link.between[0] == index) != (other.between[0] == index)
            };
            let partner = sides.iter_mut().find(|(other, (_, partner))| {
                partner.is_none() && is_other_way(&scenario.links[*other])
            });
            match partner {
                Some((_, (_, partner))) => *partner = Some(name.clone()),
                None => sides.push((own, (name.clone(), None))),
            }
        }
        Ok(sides.into_iter().map(|(_, side)| side).collect())
    }

    /// Returns which of the two links the gateway faces, in the order in which they were given.
    #[must_use]
    pub fn facing_end(&self) -> Option<usize> {
        self.scenario
            .nodes
            .iter()
            .find_map(|node| match &node.kind {
                NodeKind::Gateway(Gateway::Split(split)) => Some(split.facing),
                NodeKind::Gateway(Gateway::Hybrid(hybrid)) => Some(hybrid.facing),
                _ => None,
            })
    }

    /// Sets the secret of this machine, for the timestamps and sequence numbers of its gateway.
    pub fn set_secret(&mut self, secret: HostSecret) {
        for node in &mut self.scenario.nodes {
            if let NodeKind::Gateway(Gateway::Split(split)) = &mut node.kind {
                Arc::make_mut(split).secret = Some(secret);
            }
        }
    }

    /// Returns the ends of the persistent connections to another gateway, if there are any: the
    /// gateway's node and the node that stands for the other gateway, each with its address.
    #[must_use]
    pub fn persistent_connections(&self) -> Option<[(usize, IpAddr); 2]> {
        let mut nodes = self.scenario.nodes.iter().enumerate();
        nodes.find_map(|(index, node)| match &node.kind {
            NodeKind::Gateway(Gateway::Split(split)) => {
                let with = split.multiplex?;
                let Addresses { own, peer } = with.real?.addresses;
                Some([(index, own), (with.peer, peer)])
            }
            _ => None,
        })
    }

    /// Creates the part of a link, as the file has it in both directions, between the machines that
    /// play its two ends. It replaces a satellite that is not available. `ends_of` names its nodes
    /// in the order of the interfaces.
    ///
    /// # Errors
    /// There is no such link, the nodes are not its own, or a setting is possible only between
    /// simulated nodes.
    pub fn link(scenario: &Scenario, name: &str, ends_of: [&str; 2]) -> Result<Self, StationError> {
        let link = &scenario.links[find_link(scenario, None, name)?];
        let nodes = link.between.map(|end| scenario.nodes[end].name.as_str());
        let turned = match ends_of {
            [one, other] if one == nodes[0] && other == nodes[1] => false,
            [one, other] if one == nodes[1] && other == nodes[0] => true,
            [one, other] => {
                let message = format!(
                    "link \"{name}\" is between \"{}\" and \"{}\", not \"{one}\" and \"{other}\"",
                    nodes[0], nodes[1]
                );
                return Err(StationError::new("", message));
            }
        };
        let mut link = link.clone();
        if link.broadcast {
            let key = format!("links.{name}.to");
            return Err(StationError::new(
                key,
                "a machine between two can't play a link that many hear",
            ));
        }
        if link.backward.is_none() {
            let key = format!("links.{name}.return");
            return Err(StationError::new(
                key,
                "a machine between two needs both directions of a link",
            ));
        }
        if link.fragments {
            let key = format!("links.{name}.fragment");
            return Err(StationError::new(key, NO_ADDRESS));
        }
        for (way, direction) in link.directions() {
            let key = |of: &str| format!("links.{name}.{way}.{of}");
            if direction.tunnel {
                return Err(StationError::new(key("tunnel"), NO_ADDRESS));
            }
            check_classes(scenario, direction)?;
        }
        link.between = if turned { [1, 0] } else { [0, 1] };
        let mut notes = Vec::new();
        if link.mtu.take().is_some() {
            notes.push(format!(
                "links.{name}.mtu: no effect, the interfaces have MTUs of their own"
            ));
        }
        if link.arp.take().is_some() {
            notes.push(format!(
                "links.{name}.arp: no effect, the interfaces resolve addresses"
            ));
        }
        Ok(Self {
            simulated: Way::ALL.iter().map(|way| format!("{name}.{way}")).collect(),
            scenario: part_of(scenario, ends(ends_of), vec![link]),
            notes,
        })
    }
}

/// Returns the two nodes that stand for real networks. Their TCP is that of the real hosts.
fn ends(names: [&str; 2]) -> Vec<Node> {
    let tcp = Arc::new(TcpSettings {
        file: TcpFile::default(),
        config: Config::default(),
    });
    let each = names.map(|name| Node {
        name: format!("({name})"),
        kind: NodeKind::Host(HostSettings {
            tcp: Arc::clone(&tcp),
            quic: None,
            resume: None,
            processing: None,
        }),
    });
    each.into()
}

fn part_of(scenario: &Scenario, nodes: Vec<Node>, links: Vec<Link>) -> Scenario {
    Scenario {
        nodes,
        links,
        flows: Vec::new(),
        probes: Probes {
            series: Vec::new(),
            interval: Interval::Every(Span::from_secs(1)),
            averages_every: Span::from_secs(1),
        },
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        duration: scenario.duration,
        seed: scenario.seed,
        ip: scenario.ip,
        orbits: crate::orbit::settings::Orbits::default(),
        classes: scenario.classes.clone(),
        host_timing: scenario.host_timing,
    }
}

#[cfg(test)]
mod tests;
