//! Traffic classes.

use std::sync::Arc;

use crate::class::schema::TrafficClassFile;
use crate::class::settings::{OTHERS, PacketClass};
use crate::directory::Directory;
use crate::fault::{Fault, Segment, fault, path};
use crate::named::Named;

/// Most classes of a file: each packet is compared with all of them.
const MOST: usize = 64;

pub(crate) fn resolve_classes(
    file: &Named<TrafficClassFile>,
    nodes: &Directory<'_>,
    flows: &Directory<'_>,
) -> Result<Vec<PacketClass>, Fault> {
    if file.0.len() > MOST {
        let message = format!("expected at most {MOST} classes");
        return Err(fault(&["classes"], message));
    }
    let classes = file
        .iter()
        .map(|(name, class)| resolve_one(name, class, nodes, flows));
    classes.collect()
}

fn resolve_one(
    name: &str,
    file: &TrafficClassFile,
    nodes: &Directory<'_>,
    flows: &Directory<'_>,
) -> Result<PacketClass, Fault> {
    if name == OTHERS {
        let message = format!("expected another name: \"{OTHERS}\" stands for packets of no class");
        return Err(fault(&["classes", name], message));
    }
    let given = [
        ("flows", file.flows.as_ref().map(Vec::len)),
        ("applications", file.applications.as_ref().map(Vec::len)),
        ("hosts", file.hosts.as_ref().map(Vec::len)),
        ("ports", file.ports.as_ref().map(Vec::len)),
    ];
    if given.iter().all(|(_, length)| length.is_none()) {
        let message = "expected one of flows, applications, hosts, ports: they select the packets of the class";
        return Err(fault(&["classes", name], message));
    }
    if let Some((key, _)) = given.iter().find(|(_, length)| *length == Some(0)) {
        let message = "expected at least one: nothing belongs to an empty list";
        return Err(fault(&["classes", name, key], message));
    }
    let indices = |key: &str, names: &Option<Vec<String>>, known: &Directory<'_>| {
        let Some(names) = names else { return Ok(None) };
        let mut found = Vec::new();
        for (index, one) in names.iter().enumerate() {
            let Some(members) = known.find(one) else {
                let mut keys = path(&["classes", name, key]);
                keys.push(Segment::Index(index));
                return Err(Fault::new(keys, known.missing(one)));
            };
            found.extend(members.first..members.first + members.len());
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    };
    Ok(PacketClass {
        name: Arc::from(name),
        flows: indices("flows", &file.flows, flows)?,
        applications: file.applications.clone(),
        hosts: indices("hosts", &file.hosts, nodes)?,
        ports: file.ports.clone(),
    })
}
