//! One direction of a scenario's link in the engine's type.

use bentpipe_link::{
    Access, DropTail, Ends, FarEnd, Framing, Queueing, Settings, Streams, TrafficClass,
};
use bentpipe_middlebox::{
    DataCompression, Fragmenter, Gate, HeaderCompression, HeaderCompressionSettings, Reassembler,
    ReassemblySettings, Stages, Terminal, TunnelEntry,
};
use bentpipe_types::{Address, RandomStream, Tunnel};
use bentpipe_wire::vj;

use crate::acks::build::{FLOWS, ack_queue, far_end};
use crate::link::compression::Compression;
use crate::link::errors::error_models;
use crate::link::framing::engine_framing;
use crate::link::settings::{Direction, Link, Way};
use crate::node::settings::NodeKind;
use crate::queue::settings::QueueContext;
use crate::scenario::settings::Scenario;

/// Properties that all directions of a network share.
pub(crate) struct NetworkContext {
    /// Whether a link of the network fragments packets.
    pub(crate) fragments: bool,
    /// The scenario's traffic classes.
    pub(crate) classes: Vec<TrafficClass>,
    /// Lowest address of a gateway.
    pub(crate) first_gateway: u16,
}

/// Returns the engine's settings of a direction and of its terminal, or `None` if the link does not
/// have it.
pub(crate) fn direction_settings(
    scenario: &Scenario,
    link: &Link,
    way: Way,
    access: Option<Access>,
    around: &NetworkContext,
    seed: u64,
) -> Option<Settings> {
    let direction = link.direction(way)?;
    let name = format!("{}.{way}", link.name);
    let [from, to] = match way {
        Way::Forward => link.between,
        Way::Return => [link.between[1], link.between[0]],
    };
    Some(Settings {
        rate: direction.rate,
        delay: direction.delay,
        queue: queueing(direction, around, &name, seed),
        errors: error_models(link, direction, &name, seed),
        redundancy: direction.redundancy.get(),
        ends: ends(scenario, link, direction, [from, to], around.fragments),
        changes: direction.changes.as_ref().map(|changes| {
            let mut changes = changes.as_ref().clone();
            if let Some(path) = &link.path {
                path.vary(&mut changes, &link.name, way, seed);
            }
            let streams = Streams {
                seed,
                component: name,
            };
            (changes, streams)
        }),
        access,
    })
}

/// Returns the address of a node in the engine: its index.
fn address(node: usize) -> Address {
    Address(node as u16)
}

/// Returns the processing at the ends of a direction between these two nodes.
fn ends(
    scenario: &Scenario,
    link: &Link,
    direction: &Direction,
    [from, to]: [usize; 2],
    fragments: bool,
) -> Ends {
    let mut ends = Ends::default();
    let entry = direction.tunnel.then(|| {
        TunnelEntry::new(Tunnel {
            source: address(from),
            destination: address(to),
        })
    });
    match (link.mtu.filter(|_| link.fragments), entry) {
        // Outer packets are fragmented, so encapsulation comes first.
        (Some(mtu), entry) => ends.divider = Some(Box::new(Fragmenter::new(mtu, entry))),
        (None, Some(entry)) => ends.framings.push(Box::new(entry)),
        (None, None) => {}
    }
    let framing = engine_framing(direction.framing);
    let is_serial = direction.framing.is_serial();
    match direction.compression {
        Compression::None => ends.framings.extend(framing),
        // A modem compresses all that its serial line carries.
        Compression::V42bis => {
            let modem: Box<dyn Framing> = Box::new(DataCompression::v42bis());
            if is_serial {
                ends.framings.extend(framing.into_iter().chain([modem]));
            } else {
                ends.framings.extend([modem].into_iter().chain(framing));
            }
        }
        Compression::Rfc1144 => {
            let settings = HeaderCompressionSettings {
                framing: if is_serial {
                    vj::LinkFraming::None
                } else {
                    vj::LinkFraming::Slip
                },
                flows: FLOWS,
                ..HeaderCompressionSettings::default()
            };
            match HeaderCompression::new(settings) {
                Ok(compression) => ends.framings.push(Box::new(compression)),
                Err(_) => debug_assert!(false, "the default number of slots is possible"),
            }
            ends.framings.extend(framing);
        }
    }
    // A host forwards for no other node.
    let is_host = scenario.tcp_of(from).is_some();
    let gate = || {
        let terminal = Terminal {
            address: address(from),
            behind: is_host.then(|| vec![address(from)]),
        };
        Gate::new(Some(address(to)), vec![terminal])
    };
    let far_end = far_end(direction.acks, direction.tunnel, gate);
    let reassembler = fragments.then(|| reassembler(scenario, to));
    ends.far_end = match (reassembler, far_end) {
        (Some(first), Some(then)) => Some(Box::new(Stages::new(vec![first, then]))),
        (first, then) => first.or(then),
    };
    ends
}

/// Returns the reassembly of fragments that arrive at a node: those addressed to it, as a host or
/// as the end of a tunnel. A gateway that acknowledges must see whole segments for any address.
fn reassembler(scenario: &Scenario, node: usize) -> Box<dyn FarEnd> {
    let any = match &scenario.nodes[node].kind {
        NodeKind::Gateway(gateway) => gateway.kind().facts().acknowledges,
        NodeKind::Host(_) => false,
    };
    let at = (!any).then(|| address(node));
    let settings = ReassemblySettings::default();
    Box::new(Reassembler::new(at, settings))
}

fn queueing(direction: &Direction, around: &NetworkContext, name: &str, seed: u64) -> Queueing {
    let place = QueueContext {
        limit: direction.queue.limit,
        rate: direction.rate,
        classes: &around.classes,
        first_gateway: around.first_gateway,
    };
    let limit = place.limit();
    // The queue that removes acknowledgments replaces a drop-tail queue.
    let queue = (direction.queue.rule)
        .discipline(&place)
        .or_else(|| ack_queue(direction, limit));
    let Some(queue) = queue else {
        return DropTail { limit }.into();
    };
    let random = RandomStream::new(seed, name, "queue");
    Queueing::Discipline { queue, random }
}
