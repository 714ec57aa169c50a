//! Multicast trees.

use std::collections::{BTreeMap, BTreeSet};

use bentpipe_types::{Address, Port, Routes};

use super::plan::Plan;

/// The multicast trees of a network.
#[derive(Debug, Default)]
pub(super) struct ChannelTrees {
    /// Far ends that lead to members, by direction and channel.
    takers: Vec<(usize, Address, u16)>,
    /// Branch points: a node and the directions that a packet is copied to.
    branches: Vec<(u16, Box<[u16]>)>,
    /// Number of branch points per node.
    at: BTreeMap<u16, u16>,
}

impl ChannelTrees {
    /// Computes a channel's tree and enters it into its nodes' tables. Each member is reached by
    /// the rest of its shortest path from where that leaves the tree so far, so that no node is
    /// reached twice.
    pub(super) fn grow(
        &mut self,
        plan: &Plan,
        tables: &mut [Routes],
        channel: Address,
        source: u16,
        members: &[u16],
    ) {
        let mut reached = BTreeSet::from([source]);
        // Steps that leave each node.
        let mut leaving: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for member in members {
            let path = path(plan, tables, source, *member);
            let known = |step: &u16| reached.contains(&plan.edges[usize::from(*step)].from);
            let Some(grafted) = path.iter().rposition(known) else {
                continue;
            };
            for step in &path[grafted..] {
                let edge = plan.edges[usize::from(*step)];
                if reached.insert(edge.to) {
                    leaving.entry(edge.from).or_default().push(*step);
                }
            }
        }
        for (node, steps) in leaving {
            let mut directions: Vec<u16> = Vec::new();
            for step in &steps {
                let direction = plan.directions[usize::from(*step)];
                if !directions.contains(&direction) {
                    directions.push(direction);
                }
                let end = plan.ends[usize::from(*step)];
                self.takers.push((usize::from(direction), channel, end));
            }
            let ports = &plan.ports[usize::from(node)];
            let port = if directions.len() == 1 {
                ports.iter().position(|behind| *behind == steps[0])
            } else {
                let branch = self.at.entry(node).or_default();
                let port = ports.len() + usize::from(*branch);
                *branch += 1;
                self.branches.push((node, directions.into()));
                Some(port)
            };
            if let Some(port) = port {
                tables[usize::from(node)].add(channel, Port(port as u16));
            }
        }
    }

    /// Returns the far ends that lead to members, by direction and channel.
    pub(super) fn takers(&self) -> impl Iterator<Item = (usize, Address, u16)> + '_ {
        self.takers.iter().copied()
    }

    /// Returns the branch points. `directions` is the number of directions in the network.
    pub(super) fn branches(self, directions: usize) -> Branches {
        let mut branches = Branches::default();
        for ((node, branch), number) in self.branches.into_iter().zip(directions..) {
            branches.directions.push(branch);
            branches.ports.push((node, number as u16));
        }
        branches
    }
}

/// Places where ways part.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// Directions of each branch point.
    pub(super) directions: Vec<Box<[u16]>>,
    /// Additional ports in the order in which nodes get them: the node, and the number behind the
    /// port, which is beyond those of directions.
    pub(super) ports: Vec<(u16, u16)>,
}

/// Returns the steps of the shortest path between two nodes.
fn path(plan: &Plan, tables: &[Routes], from: u16, to: u16) -> Vec<u16> {
    let mut path = Vec::new();
    let mut node = from;
    // A route with a loop would have more steps than there are.
    while node != to && path.len() < plan.edges.len() {
        let port = tables[usize::from(node)].port_towards(Address(to));
        let step = port.and_then(|port| plan.ports[usize::from(node)].get(usize::from(port.0)));
        let Some((step, edge)) =
            step.and_then(|step| Some((*step, plan.edges.get(usize::from(*step))?)))
        else {
            return Vec::new();
        };
        path.push(step);
        node = edge.to;
    }
    path
}
