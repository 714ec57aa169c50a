//! Multicast groups of hosts.

use std::collections::{BTreeMap, BTreeSet};

use crate::directory::Directory;
use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::group::schema::GroupFile;
use crate::named::Named;

/// Hosts of each group, by its name.
pub(crate) type Groups<'a> = BTreeMap<&'a str, Vec<usize>>;

pub(crate) fn resolve_groups<'a>(
    file: &'a Named<GroupFile>,
    nodes: &Directory<'_>,
) -> Result<Groups<'a>, Fault> {
    let groups = file.iter().map(|(name, group)| {
        if nodes.find(name).is_some() {
            let message = "expected another name: a node is called this, too";
            return Err(fault(&["groups", name], message));
        }
        Ok((name, members(name, group, nodes)?))
    });
    groups.collect()
}

fn members(name: &str, group: &GroupFile, nodes: &Directory<'_>) -> Result<Vec<usize>, Fault> {
    if group.members.is_empty() {
        return Err(fault(
            &["groups", name, "members"],
            "expected at least one host",
        ));
    }
    let mut found = Vec::new();
    let mut there = BTreeSet::new();
    for (index, member) in group.members.iter().enumerate() {
        let refuse = |message: String| {
            let mut keys = path(&["groups", name, "members"]);
            keys.push(Segment::Index(index));
            Err(Fault::new(keys, message))
        };
        let Some(members) = nodes.find(member) else {
            return refuse(nodes.missing(member));
        };
        for node in members.first..members.first + members.len() {
            if !there.insert(node) {
                return refuse(format!(
                    "expected each host once, got {} again",
                    quoted(member)
                ));
            }
            found.push(node);
        }
    }
    Ok(found)
}
