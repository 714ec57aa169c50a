//! The ways of packets that one sends to many: a tree for each channel.

use std::collections::{BTreeMap, BTreeSet};

use bentpipe_types::{Address, Port, Routes};

use super::plan::Plan;

/// The trees of a network's channels.
#[derive(Debug, Default)]
pub(super) struct ChannelTrees {
    /// By direction and by channel: which of its far ends lead to members.
    takers: Vec<(usize, Address, u16)>,
    /// The nodes at which ways part, each with the directions that a packet goes to.
    branches: Vec<(u16, Box<[u16]>)>,
    /// How many branches a node has got so far.
    at: BTreeMap<u16, u16>,
}

impl ChannelTrees {
    /// Finds a channel's tree, and enters it into the tables of its nodes. Each member is reached by the
    /// rest of its shortest path from where that leaves the tree so far, so that no node is reached twice.
    pub(super) fn grow(
        &mut self,
        plan: &Plan,
        tables: &mut [Routes],
        channel: Address,
        source: u16,
        members: &[u16],
    ) {
        let mut reached = BTreeSet::from([source]);
        // By node: the steps that leave it.
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

    /// Which far ends of which directions take what is sent to which channel.
    pub(super) fn takers(&self) -> impl Iterator<Item = (usize, Address, u16)> + '_ {
        self.takers.iter().copied()
    }

    /// The places where ways part. `directions` is how many the network has.
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
    /// Of each: where a packet goes.
    pub(super) directions: Vec<Box<[u16]>>,
    /// Further ports, in the order in which their nodes get them: the node, and what is behind, a number
    /// beyond those of the network's directions.
    pub(super) ports: Vec<(u16, u16)>,
}

/// The steps of the shortest path between two nodes.
fn path(plan: &Plan, tables: &[Routes], from: u16, to: u16) -> Vec<u16> {
    let mut path = Vec::new();
    let mut node = from;
    // A route that goes in circles is longer than there are steps.
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
