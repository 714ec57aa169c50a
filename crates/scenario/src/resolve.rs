//! Resolves a scenario file: fills in defaults, looks up names, and checks limits.

mod access;
mod acks;
mod acm;
mod app;
mod changes;
mod classes;
mod directory;
mod flows;
mod gateway_parts;
mod gateways;
mod groups;
mod hybrid;
pub mod limits;
mod links;
mod mixes;
mod nodes;
mod one_sided;
mod probes;
mod tcp;

use bentpipe_types::Span;

use crate::document::{Fault, path};
use crate::schema::ScenarioFile;
use crate::traces::Files;
use crate::{CustomControls, Scenario};
use directory::Directory;

/// Resolves a file. `custom` has the congestion control algorithms that are not built in, and
/// `files` opens traces.
pub(crate) fn resolve(
    file: &ScenarioFile,
    custom: &CustomControls,
    files: &Files,
) -> Result<Scenario, Fault> {
    let duration = file.duration.0;
    if duration == Span::ZERO {
        return Err(fault(&["duration"], "expected more than 0 s"));
    }
    let node_names = nodes::directory(file)?;
    let link_counts = links::count(&file.links, &node_names)?;
    let link_names = Directory::of("link", "links", &link_counts)?;
    let groups = groups::resolve(&file.groups, &node_names)?;
    let flow_counts = flows::count(&file.flows, &node_names, &groups)?;
    let flow_names = Directory::of("flow", "flows", &flow_counts)?;
    // Limits are checked before anything is created.
    limits::check(&node_names, &link_names, &flow_names)?;
    let classes = classes::resolve(&file.classes, &node_names, &flow_names)?;
    let carriers = access::carriers(&file.carriers)?;
    let links = links::resolve(
        &file.links,
        &node_names,
        &links::LinkContext {
            classes: &classes,
            carriers: &carriers,
            files,
            duration,
        },
    )?;
    access::check(&carriers, &links)?;
    let around = gateway_parts::GatewayContext {
        nodes: &node_names,
        link_names: &link_names,
        links: &links,
        custom,
        ip: file.ip,
    };
    let nodes = nodes::resolve(file, &around)?;
    let datagrams = app::Datagrams::of(&links, file.ip);
    let mixes = mixes::resolve(&file.mixes, datagrams)?;
    let flows = flows::resolve(
        &file.flows,
        &node_names,
        &groups,
        &mixes,
        datagrams,
        duration,
    )?;
    flows::check_routes(&file.flows, &node_names, &groups, &nodes, &links)?;
    nodes::check_linked(file, &node_names, &links)?;
    let probes = probes::resolve(
        &file.probes,
        &probes::Owners {
            flows: &flow_names,
            links: &link_names,
            made_links: &links,
            node_names: &node_names,
            nodes: &nodes,
        },
        duration,
    )?;
    let scenario = Scenario {
        name: file.name.as_str().to_owned(),
        description: file.description.clone(),
        duration,
        seed: file.seed,
        ip: file.ip,
        nodes,
        links,
        flows,
        classes,
        host_timing: file.randomness.host_timing,
        probes,
    };
    one_sided::check(&scenario)?;
    Ok(scenario)
}

fn fault(keys: &[&str], message: impl Into<String>) -> Fault {
    Fault::new(path(keys), message)
}
