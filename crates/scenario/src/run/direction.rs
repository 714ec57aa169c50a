//! One direction of a scenario's link in the engine's type.

use bentpipe_link::{
    Access, DropTail, Ends, ErrorModel, FarEnd, Framing, Limit, QueueDiscipline, Queueing,
    Settings, Streams, TrafficClass,
};
use bentpipe_middlebox::ack::{
    self, Expander, ExpanderSettings, Method, Reconstructor, ReconstructorSettings,
};
use bentpipe_middlebox::{
    DataCompression, Encapsulation, Ethernet, FixedFraming, Fragmenter, Gate, Gse,
    HeaderCompression, HeaderCompressionSettings, Reassembler, ReassemblySettings, Stages,
    Terminal, TransportStream, TunnelEntry, TunnelExit,
};
use bentpipe_types::{Address, RandomStream, Tunnel};
use bentpipe_wire::vj;

use crate::queue::QueueContext;
use crate::schema::{Compression, FilterMode, FramingKind, LinkFraming, Spacing};
use crate::{
    Acks, Carrier, Direction, Gateway, Link, NodeKind, Queue, RandomErrors, Scenario, WaterMarks,
    Way,
};

/// Most flows of which an ACK queue or a far end keeps state. A new flow replaces the one that has
/// been idle longest.
const FLOWS: usize = 4096;

/// Properties that all directions of a network share.
pub(super) struct NetworkContext {
    /// Whether a link of the network fragments packets.
    pub(super) fragments: bool,
    /// The scenario's traffic classes.
    pub(super) classes: Vec<TrafficClass>,
    /// Lowest address of a gateway.
    pub(super) first_gateway: u16,
}

/// Returns the engine's settings of a direction and of its terminal, or `None` if the link does not
/// have it.
pub(super) fn settings(
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
        errors: errors(link, direction, &name, seed),
        redundancy: direction.redundancy.get(),
        ends: ends(scenario, link, direction, [from, to], around.fragments),
        changes: direction.changes.as_ref().map(|changes| {
            let streams = Streams {
                seed,
                component: name,
            };
            (changes.as_ref().clone(), streams)
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
    let framing = framing(direction.framing);
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
    let spacing = |spacing| match spacing {
        Spacing::Off => None,
        Spacing::Shared => Some(ack::Spacing::default()),
        Spacing::PerFlow => Some(ack::Spacing {
            per_flow: true,
            ..ack::Spacing::default()
        }),
    };
    let far_end: Option<Box<dyn FarEnd>> = match direction.acks {
        Acks::Compaction {
            marks,
            spacing: wanted,
        } => Some(Box::new(Expander::new(ExpanderSettings {
            gate: gate(),
            high: u8::try_from(marks.high).unwrap_or(u8::MAX),
            spacing: spacing(wanted),
            flows: FLOWS,
        }))),
        Acks::Reconstruction { threshold, .. } => {
            let reconstructor = Box::new(Reconstructor::new(ReconstructorSettings {
                threshold: threshold.get() as u32,
                flows: FLOWS,
                ..ReconstructorSettings::default()
            }));
            Some(if direction.tunnel {
                let exit = Box::new(TunnelExit::new(gate()));
                Box::new(Stages::new(vec![exit, reconstructor]))
            } else {
                reconstructor
            })
        }
        Acks::None | Acks::Suppression(_) | Acks::Filter(_) => direction
            .tunnel
            .then(|| Box::new(TunnelExit::new(gate())) as Box<dyn FarEnd>),
    };
    let reassembler = fragments.then(|| reassembler(scenario, to));
    ends.far_end = match (reassembler, far_end) {
        (Some(first), Some(then)) => Some(Box::new(Stages::new(vec![first, then]))),
        (first, then) => first.or(then),
    };
    ends
}

/// Returns the reassembly of fragments that arrive at a node: those addressed to it, as a host or
/// as the end of a tunnel. A hybrid gateway must see whole segments for any address.
fn reassembler(scenario: &Scenario, node: usize) -> Box<dyn FarEnd> {
    let hybrid = matches!(
        scenario.nodes[node].kind,
        NodeKind::Gateway(Gateway::Hybrid(_))
    );
    let at = (!hybrid).then(|| address(node));
    let settings = ReassemblySettings::default();
    Box::new(Reassembler::new(at, settings))
}

/// Returns the framing of a direction, if it has one.
fn framing(framing: LinkFraming) -> Option<Box<dyn Framing>> {
    let cells = |encapsulation, packing| -> Option<Box<dyn Framing>> {
        Some(Box::new(TransportStream::new(encapsulation, packing)))
    };
    let kind = match framing {
        LinkFraming::Kind(kind) => kind,
        LinkFraming::Bytes(bytes) => return Some(Box::new(FixedFraming::new(u64::from(bytes)))),
    };
    match kind {
        FramingKind::None => None,
        FramingKind::Ethernet => Some(Box::new(Ethernet::default())),
        FramingKind::Ppp => Some(Box::new(FixedFraming::PPP)),
        FramingKind::PppCompressed => Some(Box::new(FixedFraming::PPP_COMPRESSED)),
        FramingKind::Mpe => cells(Encapsulation::Mpe, true),
        FramingKind::MpePadding => cells(Encapsulation::Mpe, false),
        FramingKind::Ule => cells(Encapsulation::Ule, true),
        FramingKind::UlePadding => cells(Encapsulation::Ule, false),
        FramingKind::Gse => Some(Box::new(Gse)),
    }
}

/// Returns the queue that removes acknowledgments, if one is configured.
fn ack_queue(direction: &Direction, limit: Limit) -> Option<Box<dyn QueueDiscipline>> {
    let marks = |marks: WaterMarks| ack::WaterMarks {
        low: marks.low,
        high: marks.high,
        duplicates: marks.duplicates.unwrap_or(u32::MAX),
    };
    let method = match direction.acks {
        Acks::None => return None,
        Acks::Suppression(wanted) | Acks::Reconstruction { marks: wanted, .. } => {
            Method::Suppression(marks(wanted))
        }
        Acks::Compaction { marks: wanted, .. } => Method::Compaction(marks(wanted)),
        Acks::Filter(mode) => Method::Filter {
            aggressive: mode == FilterMode::Aggressive,
        },
    };
    Some(method.queue(limit, FLOWS))
}

/// Returns the random losses, drawn from random streams of this component.
pub(super) fn random_errors(
    direction: &Direction,
    component: &str,
    seed: u64,
) -> Option<ErrorModel> {
    let random = || RandomStream::new(seed, component, "errors");
    match direction.errors.random {
        RandomErrors::None => None,
        RandomErrors::Bursts(settings) => Some(ErrorModel::bursts(settings, random())),
        RandomErrors::BitErrorRate(rate) => Some(ErrorModel::bit_errors(rate, random())),
        RandomErrors::PacketLossRate(rate) => Some(ErrorModel::packet_loss(rate, random())),
    }
}

fn errors(link: &Link, direction: &Direction, name: &str, seed: u64) -> Vec<ErrorModel> {
    let random = random_errors(direction, name, seed);
    // For a broadcast channel, each receiver has its own.
    let mut errors: Vec<ErrorModel> = random.into_iter().filter(|_| !link.broadcast).collect();
    if !direction.errors.lost_packets.is_empty() {
        errors.push(ErrorModel::listed_losses(
            direction.errors.lost_packets.iter().copied(),
        ));
    }
    errors
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

/// Properties of a direction for its summary that the network does not have.
pub(super) struct DirectionInfo {
    pub(super) queue: Queue,
    /// The carrier on which it requests capacity.
    pub(super) carrier: Option<Carrier>,
}

/// Returns the properties of every direction, in the order in which the network numbers them.
pub(super) fn direction_info(scenario: &Scenario) -> Vec<DirectionInfo> {
    let all = scenario.links.iter().flat_map(Link::directions);
    all.map(|(_, direction)| DirectionInfo {
        queue: direction.queue.clone(),
        carrier: direction
            .access
            .as_ref()
            .map(|access| access.carrier.clone()),
    })
    .collect()
}
