//! Hosts and gateways.

use std::sync::Arc;

use bentpipe_tcp::congestion::SavedPath;
use bentpipe_types::{Span, Time};

use crate::directory::{Directory, member_name};
use crate::fault::{Fault, fault};
use crate::gateway::dispatch::Gateway;
use crate::gateway::parts::GatewayContext;
use crate::gateway::peers::check_peers;
use crate::gateway::schema::GatewayFile;
use crate::limits;
use crate::limits::MAX_NODES_AND_DIRECTIONS;
use crate::link::settings::Link;
use crate::node::processing::resolve_processing;
use crate::node::schema::{HostFile, ResumeFile};
use crate::node::settings::{HostSettings, Node, NodeKind};
use crate::quic::resolve::resolve_quic;
use crate::scenario::schema::ScenarioFile;
use crate::tcp::resolve::{HOST_DEFAULTS, TcpDefaults, resolve_tcp};

/// Returns the names of all nodes, hosts first.
pub(crate) fn node_directory(file: &ScenarioFile) -> Result<Directory<'_>, Fault> {
    let hosts: Vec<_> = file
        .hosts
        .iter()
        .map(|(name, host)| Ok((name, count_of(name, host)?)))
        .collect::<Result<_, Fault>>()?;
    let mut directory = Directory::of("node", "hosts", &hosts)?;
    for (name, gateway) in file.gateways.iter() {
        if !directory.add(name, gateways_of(name, gateway)?) {
            let message = "expected another name: a host is called this, too";
            return Err(fault(&["gateways", name], message));
        }
    }
    // A host may have the name of one of several gateways, and the other way round.
    for (table, name) in tables(file) {
        directory.refuse_duplicate_name(table, name)?;
    }
    Ok(directory)
}

fn count_of(name: &str, host: &HostFile) -> Result<Option<usize>, Fault> {
    counted("hosts", name, host.count, limits::SHARE)
}

fn gateways_of(name: &str, gateway: &GatewayFile) -> Result<Option<usize>, Fault> {
    counted("gateways", name, gateway.count, limits::FEWER)
}

fn counted(
    table: &str,
    name: &str,
    count: Option<i64>,
    then: &str,
) -> Result<Option<usize>, Fault> {
    let of = |count| {
        limits::count_of(table, count, MAX_NODES_AND_DIRECTIONS, then)
            .map_err(|message| fault(&[table, name, "count"], message))
    };
    count.map(of).transpose()
}

/// Returns every table of a node, and its name.
fn tables(file: &ScenarioFile) -> impl Iterator<Item = (&'static str, &str)> {
    let hosts = file.hosts.iter().map(|(name, _)| ("hosts", name));
    hosts.chain(file.gateways.iter().map(|(name, _)| ("gateways", name)))
}

/// Returns the nodes in the order of the directory.
pub(crate) fn resolve_nodes(
    file: &ScenarioFile,
    around: &GatewayContext<'_>,
) -> Result<Vec<Node>, Fault> {
    let mut nodes = Vec::new();
    for (name, host) in file.hosts.iter() {
        let tcp = Arc::new(resolve_tcp(
            ["hosts", name, "tcp"],
            &host.tcp,
            TcpDefaults {
                ip: file.ip,
                ..HOST_DEFAULTS
            },
            around.custom,
        )?);
        let quic = (host.quic.as_ref())
            .map(|quic| resolve_quic(name, quic, around.custom).map(Arc::new))
            .transpose()?;
        let resume = (host.resume.as_ref())
            .map(|resume| saved_path(name, resume))
            .transpose()?;
        let processing = resolve_processing("hosts", name, host.processing.as_ref())?;
        let count = count_of(name, host)?;
        nodes.extend((0..count.unwrap_or(1)).map(|n| Node {
            name: member_name(name, count, n),
            kind: NodeKind::Host(HostSettings {
                tcp: Arc::clone(&tcp),
                quic: quic.clone(),
                resume,
                processing,
            }),
        }));
    }
    for (name, gateway) in file.gateways.iter() {
        let count = gateways_of(name, gateway)?;
        for n in 0..count.unwrap_or(1) {
            let gateway = Gateway::resolve(name, gateway, nodes.len(), around)?;
            nodes.push(Node {
                name: member_name(name, count, n),
                kind: NodeKind::Gateway(gateway),
            });
        }
    }
    check_peers(&nodes, around.links)?;
    Ok(nodes)
}

/// Checks saved parameters of a path.
fn saved_path(name: &str, file: &ResumeFile) -> Result<SavedPath, Fault> {
    if file.rtt.0 == Span::ZERO {
        let message = r#"expected more than "0 s""#;
        return Err(fault(&["hosts", name, "resume", "rtt"], message));
    }
    Ok(SavedPath {
        window: file.window.0.get(),
        rtt: file.rtt.0,
        expires: file
            .expires
            .map_or(Time::NEVER, |expires| Time::ZERO + expires.0),
    })
}

/// Refuses a node without links: its name is probably misspelled, and its settings have no effect.
pub(crate) fn check_linked(
    file: &ScenarioFile,
    directory: &Directory<'_>,
    links: &[Link],
) -> Result<(), Fault> {
    let mut linked = vec![false; directory.len()];
    for end in links.iter().flat_map(Link::ends) {
        linked[end] = true;
    }
    for (table, name) in tables(file) {
        let Some(members) = directory.find(name) else {
            continue;
        };
        if let Some(n) = (0..members.len()).find(|n| !linked[members.first + n]) {
            let which = member_name(name, members.count, n);
            return Err(fault(&[table, name], format!("no link leads to {which}")));
        }
    }
    Ok(())
}
