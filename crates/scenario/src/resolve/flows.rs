//! Flows, and the check that a route joins their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bentpipe_types::{Span, Time};

use super::app::Datagrams;
use super::directory::{Directory, Members, member_name, pairs};
use super::groups::Groups;
use super::limits::{self, MAX_FLOWS};
use super::mixes::{self, Mixes};
use super::{app, fault};
use crate::document::Fault;
use crate::error::quoted;
use crate::quantity::Length;
use crate::schema::hints;
use crate::schema::{AppKind, FlowFile, Named};
use crate::{App, Flow, Link, Node, NodeKind};

/// Returns the number of flows of each table.
pub(super) fn count<'a>(
    flows: &'a Named<FlowFile>,
    nodes: &Directory<'_>,
    groups: &Groups<'_>,
) -> Result<Vec<(&'a str, Option<usize>)>, Fault> {
    if flows.0.is_empty() {
        return Err(fault(&["flows"], "expected at least one flow"));
    }
    flows
        .iter()
        .map(|(name, flow)| Ok((name, ends_of(name, flow, nodes, groups)?.count)))
        .collect()
}

/// Destination of the flows of a `[flows.NAME]` table.
enum Destination<'a> {
    /// One host, or each host of a name with a `count`.
    Hosts(Members),
    /// All hosts of a group.
    Group(&'a [usize]),
}

/// Both ends of the flows of a `[flows.NAME]` table, and their number.
struct FlowEnds<'a> {
    from: Members,
    to: Destination<'a>,
    count: Option<usize>,
}

impl FlowEnds<'_> {
    /// Returns the ends of the n-th flow.
    fn nth(&self, n: usize) -> (usize, usize) {
        let to = match &self.to {
            Destination::Hosts(members) => members.nth(n),
            Destination::Group(members) => members[n],
        };
        (self.from.nth(n), to)
    }

    fn made(&self) -> usize {
        self.count.unwrap_or(1)
    }
}

fn ends_of<'a>(
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
            let fitting = limits::count_of("flows", several, MAX_FLOWS, limits::FEWER);
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

/// Returns the flows in the order of the file.
pub(super) fn resolve(
    flows: &Named<FlowFile>,
    nodes: &Directory<'_>,
    groups: &Groups<'_>,
    mixes: &Mixes,
    datagrams: Datagrams<'_>,
    duration: Span,
) -> Result<Vec<Flow>, Fault> {
    let mut resolved = Vec::new();
    let mut channels = 0..;
    for (name, flow) in flows.iter() {
        let table: Arc<str> = Arc::from(name);
        let ends = ends_of(name, flow, nodes, groups)?;
        let count = ends.count;
        let (start, late) = match flow.start.constant() {
            Some(Length(start)) => (start, None),
            None => (Span::ZERO, Some(flow.start.0)),
        };
        let (spacing, wait) = match flow.spacing.constant() {
            Some(Length(spacing)) => (spacing, None),
            None => (Span::ZERO, Some(flow.spacing.0)),
        };
        if (spacing > Span::ZERO || wait.is_some()) && count.is_none() {
            let message =
                "has no effect: there is one flow, as neither it nor one of its ends has a count";
            return Err(fault(&["flows", name, "spacing"], message));
        }
        let after = |n: usize| start + spacing * n as u64;
        if flow.start.0.mean() >= duration.as_secs_f64() {
            let message = format!(
                r#"expected before the end (duration = "{}"), got "{}""#,
                Length(duration),
                flow.start
            );
            return Err(fault(&["flows", name, "start"], message));
        }
        let last = after(count.unwrap_or(1).saturating_sub(1));
        if last >= duration {
            let message = format!(
                r#"expected the last of them to start before the end (duration = "{}"), not at "{}""#,
                Length(duration),
                Length(last)
            );
            return Err(fault(&["flows", name, "spacing"], message));
        }
        let app = match (&flow.app, &flow.mix) {
            (Some(app), None) => app::resolve(app, datagrams)
                .map_err(|(key, message)| fault(&["flows", name, "app", key], message))?,
            (None, Some(mix)) => {
                let traffic = mixes::find(mixes, mix)
                    .map_err(|message| fault(&["flows", name, "mix"], message))?;
                App::Mix(Arc::from(mix.as_str()), traffic)
            }
            (Some(_), Some(_)) => {
                let message = "has no effect: `app` sets the application of the flow";
                return Err(fault(&["flows", name, "mix"], message));
            }
            (None, None) => {
                let expected = hints::expected("app").unwrap_or_default();
                let message = format!("missing; expected {expected}");
                return Err(fault(&["flows", name, "app"], message));
            }
        };
        let channel = match &ends.to {
            Destination::Hosts(_) => None,
            Destination::Group(_) => {
                check_multicast(name, flow, &app)?;
                channels.next()
            }
        };
        resolved.extend((0..ends.made()).map(|n| Flow {
            name: member_name(name, count, n),
            from: ends.nth(n).0,
            to: ends.nth(n).1,
            channel,
            start: Time::ZERO + after(n),
            late,
            wait,
            table: Arc::clone(&table),
            app: app.clone(),
        }));
    }
    Ok(resolved)
}

/// Refuses connections to a group: only datagrams can be sent by multicast.
fn check_multicast(name: &str, flow: &FlowFile, app: &App) -> Result<(), Fault> {
    let message = match app {
        App::Other(_, traffic) if traffic.is_one_way() => return Ok(()),
        App::Other(AppKind::Packets, _) => {
            let message = format!(
                "expected \"udp\": {} is a group, and a TCP connection has two ends",
                quoted(&flow.to)
            );
            return Err(fault(&["flows", name, "app", "transport"], message));
        }
        App::Mix(..) => {
            let message = format!("expected one host: {} is a group", quoted(&flow.to));
            return Err(fault(&["flows", name, "to"], message));
        }
        App::Bulk { .. } | App::Other(..) => format!(
            "expected \"carousel\" or \"packets\": {} is a group, to which only datagrams can be sent",
            quoted(&flow.to)
        ),
    };
    Err(fault(&["flows", name, "app", "kind"], message))
}

/// Checks that a route joins the two hosts of every flow. Only gateways forward.
pub(super) fn check_routes(
    flows: &Named<FlowFile>,
    names: &Directory<'_>,
    groups: &Groups<'_>,
    nodes: &[Node],
    links: &[Link],
) -> Result<(), Fault> {
    let reach = Reachability::of(nodes, links);
    let mut directed = (links.iter().any(|link| link.backward.is_none()))
        .then(|| OneWayReachability::of(nodes, links));
    let mut checked = BTreeSet::new();
    for (name, flow) in flows.iter() {
        let joined = ends_of(name, flow, names, groups)?;
        let to_group = matches!(joined.to, Destination::Group(_));
        let to_gateway = (0..joined.made())
            .map(|n| joined.nth(n).1)
            .find(|to| reach.forwards(*to));
        for (key, end, gateway) in [
            ("from", &flow.from, reach.forwards(joined.from.first)),
            ("to", &flow.to, to_gateway.is_some()),
        ] {
            if gateway {
                let got = match to_gateway.filter(|_| to_group && key == "to") {
                    Some(member) => format!("{} in {}", quoted(&nodes[member].name), quoted(end)),
                    None => quoted(end),
                };
                let message =
                    format!("expected a host, got {got}, a gateway: flows begin and end at hosts");
                return Err(fault(&["flows", name, key], message));
            }
        }
        for n in 0..joined.made() {
            let ends = joined.nth(n);
            if !checked.insert(ends) {
                continue;
            }
            let cut_off = if !reach.joins(ends.0, ends.1) {
                Some(ends)
            } else {
                // Acknowledgments need the reverse direction; a group sends nothing back.
                let ways = [ends, (ends.1, ends.0)];
                let ways = ways.into_iter().take(if to_group { 1 } else { 2 });
                directed.as_mut().and_then(|directed| {
                    ways.into_iter()
                        .find(|(from, to)| !directed.leads(*from, *to))
                })
            };
            if let Some((from, to)) = cut_off {
                let name_of = |node: usize| quoted(&nodes[node].name);
                let message = format!(
                    "no route from {} to {}: links and gateways do not join them",
                    name_of(from),
                    name_of(to)
                );
                return Err(fault(&["flows", name, "to"], message));
            }
        }
    }
    Ok(())
}

/// Which hosts reach each other through gateways.
struct Reachability {
    /// For each gateway: the connected component of gateways.
    group: BTreeMap<usize, usize>,
    /// For each host: the components and the hosts to which it is linked.
    groups: BTreeMap<usize, BTreeSet<usize>>,
    hosts: BTreeSet<(usize, usize)>,
}

impl Reachability {
    fn of(nodes: &[Node], links: &[Link]) -> Self {
        let is_gateway = |node: usize| matches!(nodes[node].kind, NodeKind::Gateway(_));
        let mut parents: Vec<usize> = (0..nodes.len()).collect();
        for [a, b] in pairs_of(links) {
            if is_gateway(a) && is_gateway(b) {
                let (a, b) = (root(&mut parents, a), root(&mut parents, b));
                parents[a] = b;
            }
        }
        let mut reach = Self {
            group: (0..nodes.len())
                .filter(|node| is_gateway(*node))
                .map(|node| (node, root(&mut parents, node)))
                .collect(),
            groups: BTreeMap::new(),
            hosts: BTreeSet::new(),
        };
        for [a, b] in pairs_of(links) {
            for (host, other) in [(a, b), (b, a)] {
                if is_gateway(host) {
                    continue;
                }
                match reach.group.get(&other) {
                    Some(group) => {
                        reach.groups.entry(host).or_default().insert(*group);
                    }
                    None => {
                        reach.hosts.insert((host, other));
                    }
                }
            }
        }
        reach
    }

    fn forwards(&self, node: usize) -> bool {
        self.group.contains_key(&node)
    }

    fn joins(&self, from: usize, to: usize) -> bool {
        if self.hosts.contains(&(from, to)) {
            return true;
        }
        match (self.groups.get(&from), self.groups.get(&to)) {
            (Some(a), Some(b)) if a.len() <= b.len() => a.iter().any(|group| b.contains(group)),
            (Some(a), Some(b)) => b.iter().any(|group| a.contains(group)),
            _ => false,
        }
    }
}

/// Returns every pair of nodes that a link joins.
fn pairs_of(links: &[Link]) -> impl Iterator<Item = [usize; 2]> {
    let pairs = |link: &'_ Link| -> Vec<[usize; 2]> {
        link.far_ends().map(|end| [link.between[0], end]).collect()
    };
    links.iter().flat_map(pairs)
}

/// Reachability of nodes in a network with one-way links.
struct OneWayReachability {
    forwards: Vec<bool>,
    next: Vec<Vec<usize>>,
    /// Nodes that are reachable from a node, for as many nodes as the memory allows.
    found: BTreeMap<usize, Vec<bool>>,
    /// Remaining search steps. Without any left, the engine checks the routes.
    budget: usize,
}

/// Limit on the steps of all reachability searches of a scenario together: about a second.
const SEARCH_STEPS: usize = 1 << 26;

impl OneWayReachability {
    fn of(nodes: &[Node], links: &[Link]) -> Self {
        let mut next = vec![Vec::new(); nodes.len()];
        for link in links {
            let [a, b] = link.between;
            next[a].extend(link.far_ends());
            if link.backward.is_some() {
                next[b].push(a);
            }
        }
        let is_gateway = |node: &Node| matches!(node.kind, NodeKind::Gateway(_));
        Self {
            forwards: nodes.iter().map(is_gateway).collect(),
            next,
            found: BTreeMap::new(),
            budget: SEARCH_STEPS,
        }
    }

    /// Whether packets get from one node to the other. Assumed to be true once the steps are used
    /// up.
    fn leads(&mut self, from: usize, to: usize) -> bool {
        if !self.found.contains_key(&from) {
            if self.budget == 0 {
                return true;
            }
            let reached = self.search(from);
            self.found.insert(from, reached);
        }
        self.found[&from][to]
    }

    fn search(&mut self, from: usize) -> Vec<bool> {
        let mut reached = vec![false; self.next.len()];
        reached[from] = true;
        let mut waiting = vec![from];
        let mut steps = self.next.len();
        while let Some(node) = waiting.pop() {
            steps += self.next[node].len();
            for &next in &self.next[node] {
                if !reached[next] {
                    reached[next] = true;
                    if self.forwards[next] {
                        waiting.push(next);
                    }
                }
            }
        }
        self.budget = self.budget.saturating_sub(steps);
        reached
    }
}

/// Returns the representative of a node's set, and halves the path to it.
fn root(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}
