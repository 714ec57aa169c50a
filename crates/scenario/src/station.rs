//! The part of a scenario that one real machine plays: a gateway with two of its links, or a link.
//!
//! What is real is not simulated: of a gateway's links, the rates, delays and losses are those of the
//! machine's interfaces. What stands at the machine's own end of a link may be wanted still, where it is
//! `shaped`: the transmitter at the file's rate, its queue, what that does about acknowledgments.

mod error;
mod gateway;
mod links;
mod names;

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::Span;

use crate::quantity::Interval;
use crate::schema::TcpFile;
use crate::{
    Addresses, Gateway, HostSettings, Link, Node, NodeKind, Probes, Scenario, TcpSettings, Way,
};
use gateway::placed;
use links::{knows_classes, real, sent_by};
use names::{find_gateway, find_link};

pub use error::StationError;

/// One of the two links of a gateway that are real.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// The link, by name.
    pub link: String,
    /// The longest packet that its interface takes, in bytes.
    pub mtu: u32,
    /// What leaves here is sent at the file's rate, through the file's queue.
    pub shaped: bool,
}

/// What a machine plays: a scenario of its own, in which [`ENDS`](Station::ENDS) are outside.
#[derive(Clone, Debug)]
pub struct Station {
    /// The scenario. It has no flows, and its links have the names of the file's.
    pub scenario: Scenario,
    /// The directions of links, by name, that are as the file has them, and not merely real: what results
    /// say of these means something.
    pub simulated: Vec<String>,
    /// Settings that have no effect here, or hold connections up: a line each, which begins with the key.
    pub notes: Vec<String>,
}
impl Station {
    /// The nodes that are outside, by index: the real networks behind the two links, in the order in which
    /// these were given.
    pub const ENDS: [usize; 2] = [0, 1];

    /// A gateway with these two links, one of which is the one it faces; with these addresses, if it carries connections over
    /// few persistent ones.
    ///
    /// # Errors
    /// No such gateway or link, and settings that one machine between real networks cannot have.
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
            own.push(find_link(scenario, Some((index, name)), &side.link)?);
        }
        let (first, second) = (own[0], own[1]);
        if first == second {
            let message = format!(
                "\"{}\" was given twice: a gateway stands between two links",
                sides[0].link
            );
            return Err(StationError::new("", message));
        }
        let links = sides.iter().zip(&own).enumerate();
        let links: Result<Vec<Link>, StationError> = links
            .map(|(end, (side, link))| {
                let link = &scenario.links[*link];
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
        let gateway = placed(gateway, name, (&own, addresses), scenario, &mut notes)?;
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

    /// The ends of persistent connections to another gateway, where there are any: the gateway's node, and the one that stands for
    /// the other, by index, each with its address.
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

    /// A link, as the file has it in both directions, between the machines that play its two ends: for
    /// where there is no satellite to be had. `ends` are its nodes in the order of the interfaces.
    ///
    /// # Errors
    /// No such link, other nodes than its own, and settings that only simulated nodes can have.
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
            knows_classes(scenario, direction)?;
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
                "links.{name}.arp: no effect, the interfaces ask for themselves"
            ));
        }
        Ok(Self {
            simulated: Way::ALL.iter().map(|way| format!("{name}.{way}")).collect(),
            scenario: part_of(scenario, ends(ends_of), vec![link]),
            notes,
        })
    }
}

/// Why what needs an address of the box's own in the network is refused.
const NO_ADDRESS: &str = "not between real networks: what is tunnelled or cut is for a node of the network, and a gateway's machine has no address there that is not the kernel's";

/// The two nodes that are outside. Their TCP is the real hosts' affair.
fn ends(names: [&str; 2]) -> Vec<Node> {
    let tcp = Arc::new(TcpSettings {
        file: TcpFile::default(),
        config: Config::default(),
    });
    let each = names.map(|name| Node {
        name: format!("({name})"),
        kind: NodeKind::Host(HostSettings {
            tcp: Arc::clone(&tcp),
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
        classes: scenario.classes.clone(),
    }
}
#[cfg(test)]
mod tests;
