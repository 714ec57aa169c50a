//! Resolves a scenario file: fills in defaults, looks up names, and checks limits.

use bentpipe_types::Span;

use crate::access::resolve::{check_carriers, resolve_carriers};
use crate::application::datagrams::Datagrams;
use crate::class::resolve::resolve_classes;
use crate::custom::CustomControls;
use crate::directory::Directory;
use crate::fault::{Fault, fault};
use crate::flow::ends::flow_counts;
use crate::flow::reachability::check_routes;
use crate::flow::resolve::resolve_flows;
use crate::gateway::one_sided::check_one_sided;
use crate::gateway::parts::GatewayContext;
use crate::group::resolve::resolve_groups;
use crate::limits;
use crate::link::ends::link_counts;
use crate::link::resolve::{LinkContext, resolve_links};
use crate::mix::resolve::resolve_mixes;
use crate::node::resolve::{check_linked, node_directory, resolve_nodes};
use crate::orbit::resolve::resolve_orbits;
use crate::probe::resolve::{SeriesOwners, resolve_probes};
use crate::scenario::schema::ScenarioFile;
use crate::scenario::settings::Scenario;
use crate::traces::files::Files;

/// Resolves a file. `custom` has the congestion control algorithms that are not built in, and
/// `files` opens traces.
pub(crate) fn resolve(
    file: &ScenarioFile,
    custom: &CustomControls,
    files: &Files<'_>,
) -> Result<Scenario, Fault> {
    let duration = file.duration.0;
    if duration == Span::ZERO {
        return Err(fault(&["duration"], "expected more than 0 s"));
    }
    let node_names = node_directory(file)?;
    let link_counts = link_counts(&file.links, &node_names)?;
    let link_names = Directory::of("link", "links", &link_counts)?;
    let groups = resolve_groups(&file.groups, &node_names)?;
    let flow_counts = flow_counts(&file.flows, &node_names, &groups)?;
    let flow_names = Directory::of("flow", "flows", &flow_counts)?;
    // Limits are checked before anything is created.
    limits::check(&node_names, &link_names, &flow_names)?;
    let classes = resolve_classes(&file.classes, &node_names, &flow_names)?;
    let carriers = resolve_carriers(&file.carriers)?;
    let orbits = resolve_orbits(&file.constellations, &file.sites, files)?;
    let links = resolve_links(
        &file.links,
        &node_names,
        &LinkContext {
            classes: &classes,
            carriers: &carriers,
            orbits: &orbits,
            files,
            duration,
        },
    )?;
    check_carriers(&carriers, &links)?;
    let around = GatewayContext {
        nodes: &node_names,
        link_names: &link_names,
        links: &links,
        custom,
        ip: file.ip,
        files,
    };
    let nodes = resolve_nodes(file, &around)?;
    let datagrams = Datagrams::of(&links, file.ip);
    let mixes = resolve_mixes(&file.mixes, datagrams)?;
    let flows = resolve_flows(
        &file.flows,
        &node_names,
        &groups,
        &mixes,
        datagrams,
        duration,
    )?;
    check_routes(&file.flows, &node_names, &groups, &nodes, &links)?;
    check_linked(file, &node_names, &links)?;
    let probes = resolve_probes(
        &file.probes,
        &SeriesOwners {
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
        orbits,
        host_timing: file.randomness.host_timing,
        probes,
    };
    check_one_sided(&scenario)?;
    Ok(scenario)
}
