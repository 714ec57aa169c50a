//! The ends of flows.

use bentpipe_types::Span;

use crate::directory::{Directory, Members, pairs};
use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::flow::schema::FlowFile;
use crate::group::resolve::Groups;
use crate::limits;
use crate::limits::MAX_FLOWS_OF_TABLE;
use crate::named::Named;
use crate::quantity::time::Length;

/// Returns the number of flows of each table.
pub(crate) fn flow_counts<'a>(
    flows: &'a Named<FlowFile>,
    nodes: &Directory<'_>,
    groups: &Groups<'_>,
) -> Result<Vec<(&'a str, Option<usize>)>, Fault> {
    if flows.0.is_empty() {
        return Err(fault(&["flows"], "expected at least one flow"));
    }
    flows
        .iter()
        .map(|(name, flow)| Ok((name, flow_ends(name, flow, nodes, groups)?.count)))
        .collect()
}

/// Destination of the flows of a `[flows.NAME]` table.
pub(crate) enum Destination<'a> {
    /// One host, or each host of a name with a `count`.
    Hosts(Members),
    /// All hosts of a group.
    Group(&'a [usize]),
}

/// Both ends of the flows of a `[flows.NAME]` table, and their number.
pub(crate) struct FlowEnds<'a> {
    pub(crate) from: Members,
    pub(crate) to: Destination<'a>,
    pub(crate) count: Option<usize>,
}

impl FlowEnds<'_> {
    /// Returns the ends of the n-th flow.
    pub(crate) fn nth(&self, n: usize) -> (usize, usize) {
        let to = match &self.to {
            Destination::Hosts(members) => members.nth(n),
            Destination::Group(members) => members[n],
        };
        (self.from.nth(n), to)
    }

    pub(crate) fn made(&self) -> usize {
        self.count.unwrap_or(1)
    }
}

pub(crate) fn flow_ends<'a>(
    name: &str,
    flow: &FlowFile,
    nodes: &Directory<'_>,
    groups: &'a Groups<'_>,
) -> Result<FlowEnds<'a>, Fault> {
    let find = |key: &str, end: &str| {
        let missing = || match groups.keys().next() {
            Some(group) if key == "to" => {
                format!("{}; or a group, such as {group}", nodes.missing(end))
            }
            _ => nodes.missing(end),
        };
        let found = nodes.find(end);
        found.ok_or_else(|| fault(&["flows", name, key], missing()))
    };
    let from = find("from", &flow.from)?;
    if let Some(members) = groups.get(flow.to.as_str()) {
        return to_group(name, flow, from, members);
    }
    let to = find("to", &flow.to)?;
    let Some(count) = pairs(from, to) else {
        let message = format!(
            "expected the same count at both ends, got {} {} and {} {}",
            from.len(),
            flow.from,
            to.len(),
            flow.to
        );
        return Err(fault(&["flows", name, "to"], message));
    };
    let count = match (flow.count, count) {
        (Some(_), Some(_)) => {
            let message =
                "expected none: the hosts of one of its ends have a count, and make a flow each";
            return Err(fault(&["flows", name, "count"], message));
        }
        (Some(several), None) => {
            let fitting = limits::count_of("flows", several, MAX_FLOWS_OF_TABLE, limits::FEWER);
            Some(fitting.map_err(|message| fault(&["flows", name, "count"], message))?)
        }
        (None, count) => count,
    };
    if (0..count.unwrap_or(1)).any(|n| from.nth(n) == to.nth(n)) {
        let message = format!("expected another host than from, got {}", quoted(&flow.to));
        return Err(fault(&["flows", name, "to"], message));
    }
    let to = Destination::Hosts(to);
    Ok(FlowEnds { from, to, count })
}

/// Creates the ends of a flow to a group: one host sends, and each member counts as a flow.
fn to_group<'a>(
    name: &str,
    flow: &FlowFile,
    from: Members,
    members: &'a [usize],
) -> Result<FlowEnds<'a>, Fault> {
    let refuse = |key: &str, message: String| Err(fault(&["flows", name, key], message));
    let group = quoted(&flow.to);
    if from.count.is_some() {
        let message = format!(
            "expected one host, such as {}-1: {group} is a group",
            flow.from
        );
        return refuse("from", message);
    }
    if members.contains(&from.first) {
        let message = format!(
            "expected a group of other hosts: {} is in {group}",
            flow.from
        );
        return refuse("to", message);
    }
    if flow.count.is_some() {
        return refuse("count", format!("expected none: {group} is a group"));
    }
    if flow
        .spacing
        .constant()
        .is_none_or(|Length(spacing)| spacing > Span::ZERO)
    {
        let message = format!("has no effect: all members of {group} receive at once");
        return refuse("spacing", message);
    }
    Ok(FlowEnds {
        from,
        to: Destination::Group(members),
        count: Some(members.len()),
    })
}
