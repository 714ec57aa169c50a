//! The part of a scenario that one real machine plays: a gateway with two of its links, or a link.
//!
//! What is real is not simulated: of a gateway's links, the rates, delays and losses are those of the
//! machine's interfaces. What stands at the machine's own end of a link may be wanted still, where it is
//! `shaped`: the transmitter at the file's rate, its queue, what that does about acknowledgments.

use std::fmt;
use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{BitRate, Span};

use crate::quantity::{Interval, QueueLimit};
use crate::queue::{DropTail, QueueRule};
use crate::run::within;
use crate::schema::{Compression, LinkFraming, TcpFile};
use crate::suggest::suggest;
use crate::{
    Acks, Direction, Errors, Gateway, HostSettings, KeyPath, Link, Node, NodeKind, Probes, Queue,
    RandomErrors, Redundancy, Scenario, ScenarioError, Segment, TcpSettings, TrafficClass, Way,
    key_lines,
};

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
    /// Settings that have no effect here: a line each, which begins with the key.
    pub notes: Vec<String>,
}

/// Why a machine cannot play what it was asked to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StationError {
    /// The dotted path of the key in the file; empty where it is about what was asked for.
    pub key: String,
    /// What was expected.
    pub message: String,
}

impl StationError {
    fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }

    /// One line, with the place of the key in the file: the line of the nearest table above it that the
    /// text has.
    #[must_use]
    pub fn in_file(&self, file: &str, text: &str) -> String {
        if self.key.is_empty() {
            return self.message.clone();
        }
        let wanted: Vec<&str> = self.key.split('.').collect();
        let lines = key_lines(text).unwrap_or_default();
        let shared = |path: &KeyPath| {
            let is_key = |(segment, key): &(&Segment, &&str)| matches!(segment, Segment::Key(name) if name == *key);
            path.len() <= wanted.len() && path.iter().zip(&wanted).all(|pair| is_key(&pair))
        };
        let nearest = lines
            .iter()
            .filter(|(path, _)| shared(path))
            .max_by_key(|(path, _)| path.len());
        let line = nearest.map(|(_, line)| *line);
        ScenarioError::in_file(file, line, &self.key, &self.message).to_string()
    }
}

impl fmt::Display for StationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for StationError {}

/// As good as no transmitter at all: a full packet takes 12 ns.
const OPEN_RATE: BitRate = match BitRate::new(1_000_000_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// What may wait at an open transmitter, where at most what was read at once does.
const OPEN_QUEUE: QueueLimit = QueueLimit::Packets(1 << 20);

impl Station {
    /// The nodes that are outside, by index: the real networks behind the two links, in the order in which
    /// these were given.
    pub const ENDS: [usize; 2] = [0, 1];

    /// A gateway with these two links, one of which is the one it faces.
    ///
    /// # Errors
    /// No such gateway or link, and settings that one machine between real networks cannot have.
    pub fn gateway(
        scenario: &Scenario,
        name: &str,
        sides: &[Side; 2],
    ) -> Result<Self, StationError> {
        let index = find_gateway(scenario, name)?;
        let (mut notes, mut simulated) = (Vec::new(), Vec::new());
        let mut own = Vec::new();
        for side in sides {
            own.push(find_link(scenario, index, name, &side.link)?);
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
        let gateway = placed(gateway, name, &own, sides, scenario, &mut notes)?;
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

    /// A link, as the file has it in both directions, between the machines that play its two ends: for
    /// where there is no satellite to be had. `ends` are its nodes in the order of the interfaces.
    ///
    /// # Errors
    /// No such link, other nodes than its own, and settings that only simulated nodes can have.
    pub fn link(scenario: &Scenario, name: &str, ends_of: [&str; 2]) -> Result<Self, StationError> {
        let all = scenario.links.iter();
        let Some(link) = all.clone().find(|link| link.name == name) else {
            let names = all.map(|link| link.name.as_str());
            return Err(unknown("link", name, names));
        };
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
const NO_ADDRESS: &str = "not between real networks: what is tunnelled, cut or multiplexed is for a node of the network, and a gateway's machine has no address there that is not the kernel's";

fn find_gateway(scenario: &Scenario, name: &str) -> Result<usize, StationError> {
    let gateways = (scenario.nodes.iter().enumerate())
        .filter(|(_, node)| matches!(node.kind, NodeKind::Gateway(_)));
    let mut named = gateways.clone().filter(|(_, node)| node.name == name);
    match named.next() {
        Some((index, _)) => Ok(index),
        None => {
            let names = gateways.map(|(_, node)| node.name.as_str());
            Err(unknown("gateway", name, names))
        }
    }
}

fn find_link(
    scenario: &Scenario,
    gateway: usize,
    name: &str,
    link: &str,
) -> Result<usize, StationError> {
    let own = (scenario.links.iter().enumerate())
        .filter(|(_, link)| link.ends().any(|end| end == gateway));
    let mut named = own.clone().filter(|(_, own)| own.name == link);
    match named.next() {
        Some((index, _)) => Ok(index),
        None => {
            let what = format!("link of \"{name}\"");
            Err(unknown(
                &what,
                link,
                own.map(|(_, link)| link.name.as_str()),
            ))
        }
    }
}

fn unknown<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> StationError {
    let hint = match suggest(name, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let known: Vec<&str> = known.take(20).collect();
            if known.is_empty() {
                "the file has none".to_owned()
            } else {
                format!("known: {}", known.join(", "))
            }
        }
    };
    StationError::new("", format!("no {what} is \"{name}\"; {hint}"))
}

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

/// A real link of a gateway: what the gateway sends there goes to the node `end`, and what comes is its.
fn real(
    link: &Link,
    gateway: usize,
    end: usize,
    side: &Side,
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Link, StationError> {
    let name = &link.name;
    let own = Station::ENDS.len();
    let sends = sent_by(link, gateway);
    let (forward, backward) = (&link.forward, link.backward.as_ref());
    let (leaves, comes) = match sends {
        Way::Forward => (Some(forward), backward),
        Way::Return => (backward, Some(forward)),
    };
    let (Some(leaves), Some(comes)) = (leaves, comes) else {
        let key = format!("links.{name}");
        let message =
            "a machine's interface sends and receives; expected a link with both directions";
        return Err(StationError::new(key, message));
    };
    let leaves = if side.shaped {
        shaped(leaves, &format!("links.{name}.{sends}"), scenario, notes)?
    } else {
        open()
    };
    let comes = match comes.acks {
        // What the far end leaves out, this end can fill in, whoever the far end is.
        acks @ Acks::Reconstruction { .. } if side.shaped && !comes.tunnel => {
            Direction { acks, ..open() }
        }
        _ => open(),
    };
    let [forward, backward] = match sends {
        Way::Forward => [leaves, comes],
        Way::Return => [comes, leaves],
    };
    Ok(Link {
        name: name.clone(),
        between: if sends == Way::Forward {
            [own, end]
        } else {
            [end, own]
        },
        others: Vec::new(),
        broadcast: false,
        mtu: None,
        fragments: false,
        framing: if side.shaped {
            link.framing
        } else {
            LinkFraming::None
        },
        arp: None,
        forward,
        backward: Some(backward),
    })
}

/// The direction in which a node sends on a link of its own.
fn sent_by(link: &Link, node: usize) -> Way {
    if link.between[0] == node {
        Way::Forward
    } else {
        Way::Return
    }
}

/// A direction that costs nothing.
fn open() -> Direction {
    Direction {
        rate: OPEN_RATE,
        delay: Span::ZERO,
        queue: Queue {
            rule: QueueRule::DropTail(DropTail),
            limit: OPEN_QUEUE,
            limit_is_default: false,
        },
        errors: Errors {
            random: RandomErrors::None,
            lost_packets: Arc::from([]),
        },
        redundancy: Redundancy::NONE,
        acks: Acks::None,
        compression: Compression::None,
        tunnel: false,
        changes: None,
    }
}

/// What stands at the sending end of a direction, and nothing of the way.
fn shaped(
    direction: &Direction,
    key: &str,
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Direction, StationError> {
    let refuse = |of: &str, message: &str| Err(StationError::new(format!("{key}.{of}"), message));
    if let Acks::Compaction { .. } = direction.acks {
        return refuse(
            "acks",
            "compaction is a tunnel between two nodes of the network, and not to be had between real ones; expected \"suppression\", \"filter\" or \"reconstruction\"",
        );
    }
    if direction.tunnel {
        return refuse("tunnel", NO_ADDRESS);
    }
    if direction.compression != Compression::None {
        return refuse(
            "compression",
            "a real interface carries whole IP packets; let the modem compress them",
        );
    }
    if direction.changes.is_some() {
        return refuse(
            "rate",
            "a real transmitter's rate changes for itself; expected one that stays, to shape to",
        );
    }
    knows_classes(scenario, direction)?;
    if direction.errors.random != RandomErrors::None || !direction.errors.lost_packets.is_empty() {
        notes.push(format!(
            "{key}.errors: no effect, packets are lost on the real link"
        ));
    }
    Ok(Direction {
        rate: direction.rate,
        queue: direction.queue.clone(),
        redundancy: direction.redundancy,
        acks: match direction.acks {
            // The far end is another machine's affair.
            Acks::Reconstruction { marks, .. } => Acks::Suppression(marks),
            acks => acks,
        },
        ..open()
    })
}

/// Of real packets, ports are known, and neither flows nor hosts of the file's.
fn knows_classes(scenario: &Scenario, direction: &Direction) -> Result<(), StationError> {
    if !matches!(
        direction.queue.rule,
        QueueRule::Priority(_) | QueueRule::Weighted(_)
    ) {
        return Ok(());
    }
    for class in &scenario.classes {
        let what = [
            (class.flows.is_some(), "flows"),
            (class.applications.is_some(), "applications"),
            (class.hosts.is_some(), "hosts"),
        ];
        if let Some((_, what)) = what.iter().find(|(is_given, _)| *is_given) {
            let key = format!("classes.{}.{what}", class.name);
            return Err(StationError::new(
                key,
                "real packets are told apart by ports alone; expected \"ports\"",
            ));
        }
    }
    Ok(())
}

/// The gateway, among the links that it has here: `own` are their indices in the file.
fn placed(
    gateway: &Gateway,
    name: &str,
    own: &[usize],
    sides: &[Side; 2],
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Gateway, StationError> {
    let facing = |of: usize| {
        own.iter().position(|link| *link == of).ok_or_else(|| {
            let link = &scenario.links[of].name;
            let message = format!("the gateway is there for the link \"{link}\", and that is none of the two; expected an interface for it");
            StationError::new(format!("gateways.{name}.facing"), message)
        })
    };
    let mut note_processing = || {
        notes.push(format!(
            "gateways.{name}.processing: no effect, a real processor takes its own time"
        ));
    };
    Ok(match gateway {
        Gateway::Router { processing, .. } => {
            if processing.is_some() {
                note_processing();
            }
            Gateway::Router {
                icmp: true,
                processing: None,
            }
        }
        Gateway::Split(split) => {
            let mut split = split.as_ref().clone();
            split.facing = facing(split.facing)?;
            if split.multiplex.is_some() {
                let key = format!("gateways.{name}.multiplex");
                return Err(StationError::new(key, NO_ADDRESS));
            }
            has_no_hosts(split.only.as_ref(), name, "only")?;
            has_no_hosts(split.except.as_ref(), name, "except")?;
            if split.processing.take().is_some() {
                note_processing();
            }
            let mtu = |index: usize| Some(sides[index].mtu);
            split.tcp.config = within(split.tcp.config.clone(), mtu(split.facing));
            split.host_tcp.config = within(split.host_tcp.config.clone(), mtu(1 - split.facing));
            Gateway::Split(Arc::new(split))
        }
        Gateway::Hybrid(hybrid) => {
            let mut hybrid = hybrid.as_ref().clone();
            hybrid.facing = facing(hybrid.facing)?;
            if hybrid.processing.take().is_some() {
                note_processing();
            }
            Gateway::Hybrid(Arc::new(hybrid))
        }
    })
}

/// A class of connections by the hosts of the file: which addresses these have, nobody knows here.
fn has_no_hosts(class: Option<&TrafficClass>, name: &str, key: &str) -> Result<(), StationError> {
    if class.is_some_and(|class| class.hosts.is_some()) {
        let key = format!("gateways.{name}.{key}.hosts");
        return Err(StationError::new(
            key,
            "which addresses the file's hosts have is not known here; expected \"ports\"",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
