//! Gateways.

use std::sync::Arc;

use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::gateway::hybrid::resolve_hybrid;
use crate::gateway::parts::{
    GatewayContext, IDLE_TIMEOUT, LEAST_MEMORY, MEMORY, MOST_MEMORY, SHORTEST_IDLE_TIMEOUT, buffer,
    crashes, facing,
};
use crate::gateway::schema::{ClassFile, Close, GatewayFile, GatewayKind, SetUp};
use crate::gateway::settings::{Gateway, Multiplex, SplitGateway, TrafficClass};
use crate::link::settings::Link;
use crate::node::processing::resolve_processing;
use crate::node::settings::{Node, NodeKind};
use crate::quantity::buffer::Buffer;
use crate::quantity::port::PortRange;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::tcp::resolve::{TcpDefaults, resolve_tcp};
use crate::tcp::schema::TcpFile;

/// Most persistent connections to another gateway.
const MOST_CONNECTIONS: u32 = 16;

/// Returns the gateway of this name, which is the node with this index.
pub(crate) fn resolve_gateway(
    name: &str,
    file: &GatewayFile,
    node: usize,
    around: &GatewayContext<'_>,
) -> Result<Gateway, Fault> {
    let keys = file.kind.keys();
    if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
        let message = format!("has no effect: the gateway's kind is \"{}\"", file.kind);
        return Err(fault(&["gateways", name, foreign], message));
    }
    match file.kind {
        GatewayKind::Router => Ok(Gateway::Router {
            icmp: file.icmp.unwrap_or(true),
            processing: resolve_processing("gateways", name, file.processing.as_ref())?,
        }),
        GatewayKind::Split => Ok(Gateway::Split(Arc::new(split(name, file, node, around)?))),
        GatewayKind::Hybrid => {
            let hybrid = resolve_hybrid(name, file, node, around)?;
            Ok(Gateway::Hybrid(Arc::new(hybrid)))
        }
    }
}

fn split(
    name: &str,
    file: &GatewayFile,
    node: usize,
    around: &GatewayContext<'_>,
) -> Result<SplitGateway, Fault> {
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
        let class = file.as_ref().map(|file| class(name, key, file, around));
        class.transpose()
    };
    Ok(SplitGateway {
        facing,
        tcp: settings("tcp", &file.tcp)?,
        host_tcp: settings("host_tcp", &file.host_tcp)?,
        set_up: file.set_up.unwrap_or(SetUp::EndToEnd),
        close: file.close.unwrap_or(Close::EndToEnd),
        memory: memory.0,
        only: class("only", &file.only)?,
        except: class("except", &file.except)?,
        processing: resolve_processing("gateways", name, file.processing.as_ref())?,
        warm_path: file.warm_path.unwrap_or(false),
        idle_timeout: idle_timeout.0,
        multiplex: multiplex(name, file, node, &around.links[facing])?,
        crashes: crashes(name, file)?,
    })
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

/// Refuses `multiplex` if the other gateway does not have it.
pub(crate) fn check_peers(nodes: &[Node], links: &[Link]) -> Result<(), Fault> {
    for node in nodes {
        let NodeKind::Gateway(Gateway::Split(split)) = &node.kind else {
            continue;
        };
        let Some(multiplex) = split.multiplex else {
            continue;
        };
        let peer = &nodes[multiplex.peer];
        let (there, link) = (quoted(&peer.name), quoted(&links[split.facing].name));
        let refuse = |what: String| {
            let message = format!("expected the same at the other end of {link}: {there} {what}");
            Err(fault(&["gateways", &node.name, "multiplex"], message))
        };
        match &peer.kind {
            NodeKind::Gateway(Gateway::Split(other)) if other.facing != split.facing => {
                return refuse("faces another link".to_owned());
            }
            NodeKind::Gateway(Gateway::Split(other)) => match other.multiplex {
                None => return refuse("has no multiplex".to_owned()),
                Some(its) if its.connections != multiplex.connections => {
                    return refuse(format!("has {}", its.connections));
                }
                Some(_) => {}
            },
            NodeKind::Gateway(other) => return refuse(format!("is a {}", other.kind())),
            NodeKind::Host(_) => return refuse("is a host".to_owned()),
        }
    }
    Ok(())
}

fn class(
    name: &str,
    key: &str,
    file: &ClassFile,
    around: &GatewayContext<'_>,
) -> Result<TrafficClass, Fault> {
    let empty = |part: &str| {
        let message = format!("has no effect: no {part} stands in it");
        Err(fault(&["gateways", name, key, part], message))
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
                let mut keys = path(&["gateways", name, key, "hosts"]);
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
    })
}
