//! Whether a route joins the ends of each flow.

use std::collections::{BTreeMap, BTreeSet};

use crate::directory::Directory;
use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::flow::ends::{Destination, flow_ends};
use crate::flow::schema::FlowFile;
use crate::group::resolve::Groups;
use crate::link::settings::Link;
use crate::named::Named;
use crate::node::settings::{Node, NodeKind};

/// Checks that a route joins the two hosts of every flow. Only gateways forward.
pub(crate) fn check_routes(
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
        let joined = flow_ends(name, flow, names, groups)?;
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
