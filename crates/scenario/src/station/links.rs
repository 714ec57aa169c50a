//! The links of a machine's part: the sending sides of real links at its own end.

use std::sync::Arc;

use bentpipe_types::{BitRate, Span};

use crate::acks::settings::Acks;
use crate::link::compression::Compression;
use crate::link::framing::LinkFraming;
use crate::link::settings::{Direction, Errors, Link, RandomErrors, Way};
use crate::node::settings::NodeKind;
use crate::quantity::count::QueueLimit;
use crate::quantity::redundancy::Redundancy;
use crate::queue::drop_tail::DropTail;
use crate::queue::resolved::Queue;
use crate::queue::rule::QueueRule;
use crate::scenario::settings::Scenario;
use crate::station::side::{ENDS, NO_ADDRESS, Side};
use crate::station_error::StationError;

/// Rate so high that the transmitter has practically no effect: a full packet takes 12 ns.
pub(crate) const OPEN_RATE: BitRate = match BitRate::new(1_000_000_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Queue of a transmitter at the open rate: it holds at most the packets that are read at once.
const OPEN_QUEUE: QueueLimit = QueueLimit::Packets(1 << 20);

/// Whether a gateway does more than route, so that packets that it sends itself must fit its
/// interfaces.
fn acts_on_connections(scenario: &Scenario, gateway: usize) -> bool {
    match &scenario.nodes[gateway].kind {
        NodeKind::Gateway(gateway) => gateway.kind().facts().acts_on_connections(),
        NodeKind::Host(_) => true,
    }
}

/// Creates a real link of a gateway to the node `end`.
pub(crate) fn real(
    link: &Link,
    gateway: usize,
    end: usize,
    side: &Side,
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Link, StationError> {
    let name = &link.name;
    let own = ENDS.len();
    let sends = sent_by(link, gateway);
    let (forward, backward) = (&link.forward, link.backward.as_ref());
    let (leaves, comes) = match sends {
        Way::Forward => (Some(forward), backward),
        Way::Return => (backward, Some(forward)),
    };
    let (Some(leaves), Some(comes)) = (leaves, comes) else {
        let key = format!("links.{name}");
        let message = "a machine sends and receives; expected a link with both directions, or also an interface for a one-way link of the other direction";
        return Err(StationError::new(key, message));
    };
    let leaves = if side.shaped {
        // Settings that need both ends are refused in both directions: the peer would not do its
        // half.
        for (way, direction) in link.directions() {
            check_packets_unchanged(direction, &format!("links.{name}.{way}"))?;
        }
        shaped(leaves, &format!("links.{name}.{sends}"), scenario, notes)?
    } else {
        open()
    };
    let comes = match comes.acks {
        // This end can fill in acknowledgments that any far end has removed.
        acks @ Acks::Reconstruction { .. } if side.shaped => Direction { acks, ..open() },
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
        // For a router the kernel sends the ICMP errors about long packets: it has addresses.
        mtu: acts_on_connections(scenario, gateway).then_some(side.mtu),
        fragments: false,
        arp: None,
        path: None,
        forward,
        backward: Some(backward),
    })
}

/// Returns the direction in which a node sends on one of its links.
pub(crate) fn sent_by(link: &Link, node: usize) -> Way {
    if link.between[0] == node {
        Way::Forward
    } else {
        Way::Return
    }
}

/// Returns a direction without delay, losses or a relevant rate.
pub(crate) fn open() -> Direction {
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
        framing: LinkFraming::NONE,
        tunnel: false,
        changes: None,
        acm: None,
        access: None,
    }
}

/// Refuses a key of a direction that a real interface cannot implement.
fn refused(direction: &str, key: &str, message: &str) -> StationError {
    StationError::new(format!("{direction}.{key}"), message)
}

/// Refuses settings by which two nodes change the packets between them: real packets must stay
/// unchanged.
fn check_packets_unchanged(direction: &Direction, key: &str) -> Result<(), StationError> {
    if let Acks::Compaction { .. } = direction.acks {
        return Err(refused(
            key,
            "acks",
            "compaction is a tunnel between two nodes of the network, and not to be had between real ones; expected \"suppression\", \"filter\" or \"reconstruction\"",
        ));
    }
    if direction.tunnel {
        return Err(refused(key, "tunnel", NO_ADDRESS));
    }
    if direction.compression != Compression::None {
        return Err(refused(
            key,
            "compression",
            "a real interface carries whole IP packets; let the modem compress them",
        ));
    }
    Ok(())
}

/// Returns the sending side of a direction, without its path.
fn shaped(
    direction: &Direction,
    key: &str,
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Direction, StationError> {
    if direction.changes.is_some() {
        return Err(refused(
            key,
            "rate",
            "a real transmitter's rate changes for itself; expected one that stays, to shape to",
        ));
    }
    if direction.access.is_some() {
        return Err(refused(
            key,
            "access",
            "the real carrier's hub grants capacity; expected \"continuous\", and a rate to shape to",
        ));
    }
    check_classes(scenario, direction)?;
    if direction.errors.random != RandomErrors::None || !direction.errors.lost_packets.is_empty() {
        notes.push(format!(
            "{key}.errors: no effect, packets are lost on the real link"
        ));
    }
    Ok(Direction {
        rate: direction.rate,
        queue: direction.queue.clone(),
        redundancy: direction.redundancy,
        framing: direction.framing,
        acks: match direction.acks {
            // The far end is on another machine.
            Acks::Reconstruction { marks, .. } => Acks::Suppression(marks),
            acks => acks,
        },
        ..open()
    })
}

/// Checks that classes use ports only: flows and hosts of the file are unknown for real packets.
pub(crate) fn check_classes(
    scenario: &Scenario,
    direction: &Direction,
) -> Result<(), StationError> {
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
                "real packets are distinguished by ports only; expected \"ports\"",
            ));
        }
    }
    Ok(())
}
