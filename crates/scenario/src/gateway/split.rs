//! Gateways that split connections.

use bentpipe_gateway::split::{self, Split};
use bentpipe_sim::NetworkBuilder;
use bentpipe_tcp::{Ranges, Rings};
use bentpipe_types::{BitRate, Bytes, Gauge, Port, Span};
use serde_json::{Value, json};
use std::net::IpAddr;

use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::gateway::parts::{
    Crash, GatewayContext, IDLE_TIMEOUT, LEAST_MEMORY, MEMORY, MOST_MEMORY, SHORTEST_IDLE_TIMEOUT,
    buffer, crashes, facing,
};
use crate::gateway::schema::{ClassFile, Close, GatewayFile, GatewayKind, RateLimitFile, SetUp};
use crate::gateway::settings::{
    Addresses, GatewayFacts, GatewaySettings, Names, Place, RealLinks, TrafficClass, class_of,
    crashes_data, with_crashes,
};
use crate::link::settings::Link;
use crate::node::processing::{Processing, engine_processing, processing_data, resolve_processing};
use crate::quantity::buffer::Buffer;
use crate::quantity::port::PortRange;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::run::error::RunError;
use crate::station_error::StationError;
use crate::tcp::build::{tcp_config, within_mtu};
use crate::tcp::resolve::{TcpDefaults, resolve_tcp};
use crate::tcp::schema::TcpFile;
use crate::tcp::settings::{TcpSettings, tcp_data};

/// Most persistent connections to another gateway.
const MOST_CONNECTIONS: u32 = 16;

/// Largest differentiated services code point (RFC 2474).
const MOST_DSCP: u8 = 63;

/// Longest time that a packet above the rate of its class waits: the default, and its maximum.
const LONGEST_WAIT: Span = Span::from_millis(250);
const MOST_LONGEST_WAIT: Span = Span::from_secs(10);

/// A gateway that splits connections. [`GatewayFile`](crate::schema::GatewayFile) describes each
/// setting.
#[derive(Clone, PartialEq, Debug)]
pub struct SplitGateway {
    /// Index of the link that it serves, which ends at this gateway.
    pub facing: usize,
    /// TCP of the connections over that link.
    pub tcp: TcpSettings,
    /// TCP of the connections on the other side.
    pub host_tcp: TcpSettings,
    /// When the side that opens a connection is answered.
    pub set_up: SetUp,
    /// When the end of a stream is acknowledged.
    pub close: Close,
    /// Total buffer memory of all connections.
    pub memory: Bytes,
    /// Connections that are split, or `None` for all.
    pub only: Option<TrafficClass>,
    /// Connections that are not split, or `None` for none.
    pub except: Option<TrafficClass>,
    /// Most connections of one source, or `None` for no fixed limit.
    pub source_connections: Option<u32>,
    /// Rate limits.
    pub rate_limits: Vec<RateLimit>,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
    /// Whether connections over the link start with the congestion window of earlier ones.
    pub warm_path: bool,
    /// Idle time after which a connection is reset.
    pub idle_timeout: Span,
    /// Persistent connections that carry all others, or `None` if each has its own.
    pub multiplex: Option<Multiplex>,
    /// Crashes in order.
    pub crashes: Vec<Crash>,
    /// Secret of a machine between real networks.
    pub secret: Option<split::HostSecret>,
}

/// A limit of the rate of packets.
#[derive(Clone, PartialEq, Debug)]
pub struct RateLimit {
    /// Packets that it applies to, or `None` for all.
    pub class: Option<TrafficClass>,
    /// Differentiated services code points, or `None` for all.
    pub dscp: Option<Vec<u8>>,
    /// Rate of IP packets in each direction.
    pub rate: BitRate,
    /// Longest time that a packet waits.
    pub longest_wait: Span,
}

/// Persistent connections between two gateways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplex {
    /// Index of the gateway at the other end of the link.
    pub peer: usize,
    /// Most persistent connections.
    pub connections: u32,
    /// Addresses and nodes, if the gateways are real machines.
    pub real: Option<RealEnds>,
}

/// The ends of two gateways between real networks, each a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealEnds {
    /// Index of the node that stands for all hosts on this side.
    pub hosts: usize,
    /// Addresses of the persistent connections.
    pub addresses: Addresses,
}

impl GatewaySettings for SplitGateway {
    const FACTS: GatewayFacts = GatewayFacts {
        ends_connections: true,
        acknowledges: false,
    };
    const PROBES: Option<(&'static str, &'static [Gauge])> = Some(("", split::GAUGES));

    fn resolve(
        name: &str,
        file: &GatewayFile,
        node: usize,
        around: &GatewayContext<'_>,
    ) -> Result<Self, Fault> {
        let facing = facing(name, file, node, around)?;
        if around.links[facing].broadcast {
            let message = format!(
                "expected a link with one far end: {} has many, and a split connection ends at the gateway across",
                quoted(&around.links[facing].name)
            );
            return Err(fault(&["gateways", name, "facing"], message));
        }
        let buffer = buffer(&around.links[facing]);
        let defaults = TcpDefaults {
            send_buffer: Buffer::Of(Size(buffer)),
            receive_buffer: Buffer::Of(Size(buffer)),
            nagle: false,
            ip: around.ip,
        };
        let settings = |key: &str, table: &Option<TcpFile>| {
            let table = table.clone().unwrap_or_default();
            resolve_tcp(["gateways", name, key], &table, defaults, around.custom)
        };
        let refuse = |key: &str, message: String| Err(fault(&["gateways", name, key], message));

        let memory = file.memory.unwrap_or(Size(MEMORY));
        if !(LEAST_MEMORY..=MOST_MEMORY).contains(&memory.0.get()) {
            let message = format!(r#"expected "256 KiB" to "1024 GiB", got "{memory}""#);
            return refuse("memory", message);
        }
        let idle_timeout = file.idle_timeout.unwrap_or(Length(IDLE_TIMEOUT));
        if idle_timeout.0 < SHORTEST_IDLE_TIMEOUT {
            let message = format!(r#"expected at least "1 s", got "{idle_timeout}""#);
            return refuse("idle_timeout", message);
        }
        let class = |key: &str, file: &Option<ClassFile>| {
            let class =
                (file.as_ref()).map(|file| class(&path(&["gateways", name, key]), file, around));
            class.transpose()
        };
        Ok(Self {
            facing,
            tcp: settings("tcp", &file.tcp)?,
            host_tcp: settings("host_tcp", &file.host_tcp)?,
            set_up: file.set_up.unwrap_or(SetUp::EndToEnd),
            close: file.close.unwrap_or(Close::EndToEnd),
            memory: memory.0,
            only: class("only", &file.only)?,
            except: class("except", &file.except)?,
            source_connections: source_connections(name, file)?,
            rate_limits: rate_limits(name, file, around)?,
            processing: resolve_processing("gateways", name, file.processing.as_ref())?,
            warm_path: file.warm_path.unwrap_or(false),
            idle_timeout: idle_timeout.0,
            multiplex: multiplex(name, file, node, &around.links[facing])?,
            crashes: crashes(name, file)?,
            secret: None,
        })
    }

    fn measured(&self, names: &Names<'_>) -> Value {
        let class = |class: &Option<TrafficClass>| {
            class.as_ref().map(|class| {
                let name = |index: &usize| (names.node)(*index);
                json!({
                    "ports": class.ports.as_ref().map(|ports| {
                        ports.iter().map(|range| [range.first, range.last]).collect::<Vec<_>>()
                    }),
                    "hosts": class.hosts.as_ref()
                        .map(|hosts| hosts.iter().map(name).collect::<Vec<_>>()),
                })
            })
        };
        json!({
            "kind": GatewayKind::Split,
            "facing": (names.link)(self.facing),
            "tcp": tcp_data(&self.tcp),
            "host_tcp": tcp_data(&self.host_tcp),
            "set_up": self.set_up,
            "close": self.close,
            "memory_bytes": self.memory.get(),
            "only": class(&self.only),
            "except": class(&self.except),
            "source_connections": self.source_connections,
            "rate_limits": self.rate_limits.iter().map(|limit| json!({
                "class": class(&limit.class),
                "dscp": limit.dscp,
                "rate_bps": limit.rate.bits_per_second(),
                "longest_wait_s": limit.longest_wait.as_secs_f64(),
            })).collect::<Vec<_>>(),
            "processing": processing_data(self.processing),
            "warm_path": self.warm_path,
            "multiplex": self.multiplex.map(|with| with.connections),
            "idle_timeout_s": self.idle_timeout.as_secs_f64(),
            "crashes": crashes_data(&self.crashes),
        })
    }

    fn put(&self, place: &Place<'_>, builder: &mut NetworkBuilder) -> Result<(), RunError> {
        let Some(facing) = (place.ports)(self.facing).first().copied() else {
            debug_assert!(false, "a link has two ends");
            return Ok(());
        };
        let mut settings = self.engine(facing, place)?;
        let mtu = |faces| (place.mtu)(self.facing, faces);
        settings.facing_tcp = within_mtu(settings.facing_tcp, mtu(true));
        settings.host_tcp = within_mtu(settings.host_tcp, mtu(false));
        let agent = if place.bytes {
            with_crashes(Split::<Rings>::new(settings), &self.crashes)
        } else {
            with_crashes(Split::<Ranges>::new(settings), &self.crashes)
        };
        builder.replace(place.node, agent);
        Ok(())
    }

    fn between_real_links(&self, station: &mut RealLinks<'_>) -> Result<Self, StationError> {
        let mut split = self.clone();
        split.facing = station.facing(self.facing)?;
        let name = station.name;
        if let Some(with) = &mut split.multiplex {
            *with = multiplexing(*with, name, split.facing, station.addresses)?;
        }
        has_no_hosts(split.only.as_ref(), name, "only")?;
        has_no_hosts(split.except.as_ref(), name, "except")?;
        for limit in &split.rate_limits {
            has_no_hosts(limit.class.as_ref(), name, "rate_limits.class")?;
        }
        if split.processing.take().is_some() {
            station.note_processing();
        }
        Ok(split)
    }

    /// Without `only` and `except`, it splits all connections (RFC 3135 section 4.2).
    fn needs_both_directions(&self) -> bool {
        self.only.is_none() && self.except.is_none()
    }
}

impl SplitGateway {
    /// Returns its settings in the engine.
    fn engine(&self, facing: Port, place: &Place<'_>) -> Result<split::Settings, RunError> {
        let tcp = |tcp: &TcpSettings| -> Result<_, RunError> { tcp_config(tcp, place.custom) };
        let class = |class: &Option<TrafficClass>| {
            (class.as_ref()).map(|class| class_of(class, place.nodes, place.bytes))
        };
        Ok(split::Settings {
            facing,
            facing_tcp: tcp(&self.tcp)?,
            host_tcp: tcp(&self.host_tcp)?,
            set_up: match self.set_up {
                SetUp::EndToEnd => split::Confirmation::EndToEnd,
                SetUp::Early => split::Confirmation::Early,
            },
            close: match self.close {
                Close::EndToEnd => split::Confirmation::EndToEnd,
                Close::Early => split::Confirmation::Early,
            },
            memory: self.memory.get(),
            only: class(&self.only),
            // Simulated hosts have none of the addresses.
            except: class(&self.except).filter(|_| place.bytes || !has_prefixes(&self.except)),
            source_connections: self.source_connections,
            rate_limits: (self.rate_limits.iter())
                .filter(|limit| place.bytes || !has_prefixes(&limit.class))
                .map(|limit| split::RateLimit {
                    class: class(&limit.class),
                    dscp: limit.dscp.clone(),
                    rate: limit.rate,
                    longest_wait: limit.longest_wait,
                })
                .collect(),
            processing: self.processing.map(engine_processing),
            warm_path: self.warm_path,
            idle_timeout: self.idle_timeout,
            suspend_after: split::SUSPEND_AFTER,
            secret: self.secret,
            multiplex: self.multiplex.map(|with| split::Multiplexing {
                peer: place.nodes[with.peer].address(),
                connections: with.connections as usize,
                real: with.real.map(|real| split::RealAddresses {
                    hosts: place.nodes[real.hosts].address(),
                    own: real.addresses.own,
                    peer: real.addresses.peer,
                }),
            }),
        })
    }
}

/// Returns the persistent connections to the gateway at the other end of the link.
fn multiplex(
    name: &str,
    file: &GatewayFile,
    node: usize,
    link: &Link,
) -> Result<Option<Multiplex>, Fault> {
    let Some(connections) = file.multiplex else {
        return Ok(None);
    };
    let refuse = |message: String| Err(fault(&["gateways", name, "multiplex"], message));
    if !(1..=MOST_CONNECTIONS).contains(&connections) {
        return refuse(format!(
            "expected 1 to {MOST_CONNECTIONS}, got {connections}"
        ));
    }
    if link.backward.is_none() {
        let link = quoted(&link.name);
        return refuse(format!(
            "expected a link with two directions: {link} is one_way"
        ));
    }
    let [first, second] = link.between;
    let peer = if first == node { second } else { first };
    Ok(Some(Multiplex {
        peer,
        connections,
        real: None,
    }))
}

/// Returns the most connections of one source.
fn source_connections(name: &str, file: &GatewayFile) -> Result<Option<u32>, Fault> {
    let refuse = |message: &str| Err(fault(&["gateways", name, "source_connections"], message));
    match file.source_connections {
        Some(0) => refuse("expected at least 1, got 0"),
        Some(_) if file.multiplex.is_some() => {
            refuse("cannot be combined with \"multiplex\", whose connections are not counted")
        }
        limit => Ok(limit),
    }
}

/// Returns the rate limits.
fn rate_limits(
    name: &str,
    file: &GatewayFile,
    around: &GatewayContext<'_>,
) -> Result<Vec<RateLimit>, Fault> {
    let files = file.rate_limits.iter().flatten().enumerate();
    let limits = files.map(|(index, file)| {
        let mut at = path(&["gateways", name, "rate_limits"]);
        at.push(Segment::Index(index));
        rate_limit(&at, file, around)
    });
    limits.collect()
}

fn rate_limit(
    at: &[Segment],
    file: &RateLimitFile,
    around: &GatewayContext<'_>,
) -> Result<RateLimit, Fault> {
    let dscp = |points: &Vec<u8>| {
        let refuse = |message: String| Err(Fault::new(within(at, &["dscp"]), message));
        match points.iter().find(|point| **point > MOST_DSCP) {
            _ if points.is_empty() => {
                refuse("has no effect: no code points stand in it".to_owned())
            }
            Some(point) => refuse(format!("expected 0 to {MOST_DSCP}, got {point}")),
            None => Ok(points.clone()),
        }
    };
    let longest_wait = file.longest_wait.unwrap_or(Length(LONGEST_WAIT));
    if longest_wait.0 > MOST_LONGEST_WAIT {
        let message = format!(r#"expected at most "10 s", got "{longest_wait}""#);
        return Err(Fault::new(within(at, &["longest_wait"]), message));
    }
    let of_class = |file: &ClassFile| class(&within(at, &["class"]), file, around);
    Ok(RateLimit {
        class: file.class.as_ref().map(of_class).transpose()?,
        dscp: file.dscp.as_ref().map(dscp).transpose()?,
        rate: file.rate.0,
        longest_wait: longest_wait.0,
    })
}

/// Returns the path of a key below another path.
fn within(at: &[Segment], keys: &[&str]) -> Vec<Segment> {
    [at, &path(keys)].concat()
}

/// Returns the class of connections at this path.
fn class(
    at: &[Segment],
    file: &ClassFile,
    around: &GatewayContext<'_>,
) -> Result<TrafficClass, Fault> {
    let empty = |part: &str| {
        let message = format!("has no effect: no {part} stands in it");
        Err(Fault::new(within(at, &[part]), message))
    };
    if file.ports.as_ref().is_some_and(Vec::is_empty) {
        return empty("ports");
    }
    if file.hosts.as_ref().is_some_and(Vec::is_empty) {
        return empty("hosts");
    }
    let hosts = file.hosts.as_ref().map(|hosts| {
        let mut found = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            let Some(members) = around.nodes.find(host) else {
                let mut keys = within(at, &["hosts"]);
                keys.push(Segment::Index(index));
                return Err(Fault::new(keys, around.nodes.missing(host)));
            };
            found.extend(members.first..members.first + members.len());
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    });
    Ok(TrafficClass {
        ports: file.ports.clone() as Option<Vec<PortRange>>,
        hosts: hosts.transpose()?,
        prefixes: prefixes(at, file, around)?,
    })
}

fn has_prefixes(class: &Option<TrafficClass>) -> bool {
    class.as_ref().is_some_and(|class| class.prefixes.is_some())
}

/// Returns the prefixes of a class: those in the file itself, and those in its list.
fn prefixes(
    at: &[Segment],
    file: &ClassFile,
    around: &GatewayContext<'_>,
) -> Result<Option<Vec<(IpAddr, u8)>>, Fault> {
    const EXPECTED: &str = r#"expected an address or a prefix such as "192.0.2.0/24", got "#;
    if file.addresses.is_none() && file.addresses_file.is_none() {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (index, text) in file.addresses.iter().flatten().enumerate() {
        let Some(prefix) = prefix(text) else {
            let mut keys = within(at, &["addresses"]);
            keys.push(Segment::Index(index));
            return Err(Fault::new(keys, format!("{EXPECTED}{}", quoted(text))));
        };
        found.push(prefix);
    }
    if let Some(list) = &file.addresses_file {
        let refuse = |message: String| Fault::new(within(at, &["addresses_file"]), message);
        let content = around.files.text(list).map_err(refuse)?;
        for (index, line) in content.lines().enumerate() {
            let text = line.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let Some(prefix) = prefix(text) else {
                let line = index + 1;
                return Err(refuse(format!("{list}:{line}: {EXPECTED}{}", quoted(text))));
            };
            found.push(prefix);
        }
    }
    if found.is_empty() {
        return Err(Fault::new(
            within(at, &["addresses"]),
            "has no effect: no addresses stand in it",
        ));
    }
    Ok(Some(found))
}

/// Reads an address, or a prefix whose bits behind its length are 0.
fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => width,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
        Some(_) => return None,
    };
    let bits = match address {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let behind = bits.checked_shl(length.into()).unwrap_or(0);
    (length <= width && behind == 0).then_some((address, length))
}

/// Returns the settings of persistent connections to the gateway at the other end of the facing
/// link.
fn multiplexing(
    with: Multiplex,
    name: &str,
    facing: usize,
    addresses: Option<Addresses>,
) -> Result<Multiplex, StationError> {
    let refuse = |message: String| {
        let key = format!("gateways.{name}.multiplex");
        Err(StationError::new(key, message))
    };
    let Some(addresses) = addresses else {
        return refuse("persistent connections between gateways need an unused address at each: give this one's and the other's (--address 192.0.2.250 --peer 198.51.100.250), of the networks that are behind them".to_owned());
    };
    let Addresses { own, peer } = addresses;
    if own.is_ipv4() != peer.is_ipv4() {
        return refuse(format!("{own} and {peer} are of two versions of IP"));
    }
    let usable = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
    if own == peer || !usable(&own) || !usable(&peer) {
        return refuse(format!("{own} and {peer} are no addresses of two gateways"));
    }
    Ok(Multiplex {
        // The nodes that stand for the networks behind the two links have the indices of the links.
        peer: facing,
        real: Some(RealEnds {
            hosts: 1 - facing,
            addresses,
        }),
        ..with
    })
}

/// Refuses a class of connections that names hosts of the file: their real addresses are unknown.
fn has_no_hosts(class: Option<&TrafficClass>, name: &str, key: &str) -> Result<(), StationError> {
    if class.is_some_and(|class| class.hosts.is_some()) {
        let key = format!("gateways.{name}.{key}.hosts");
        return Err(StationError::new(
            key,
            "which addresses the file's hosts have is not known here; expected \"ports\" or \"addresses\"",
        ));
    }
    Ok(())
}
