//! Graph of a network, and the paths of packets in it.

use std::collections::BTreeMap;

use bentpipe_types::{Address, Routes};

use super::routes::{Map, NoRoutes};
use super::trees::Edge;
use super::{BuildError, DirectionDraft, NetworkBuilder, NodeKind};
use crate::node::NodeId;
use crate::schedule::COMPONENTS;

/// Graph in which routes are computed.
pub(super) struct Plan {
    /// For every node, the edge behind each port, or `u16::MAX`.
    pub(super) ports: Vec<Vec<u16>>,
    /// Edges from node to node.
    pub(super) edges: Vec<Edge>,
    /// The direction of each edge and the number of its far end.
    pub(super) directions: Vec<u16>,
    pub(super) ends: Vec<u16>,
}

impl Plan {
    /// Returns the directions of the path between two nodes by these routes.
    pub(super) fn path(&self, tables: &[Routes], from: u16, to: u16) -> Vec<usize> {
        let mut path = Vec::new();
        let mut node = from;
        // A route with a loop would have more directions than there are.
        while node != to && path.len() < self.edges.len() {
            let port = tables[usize::from(node)].port_towards(Address(to));
            let edge = port.map_or(u16::MAX, |port| {
                self.ports[usize::from(node)][usize::from(port.0)]
            });
            let Some(direction) = self.directions.get(usize::from(edge)) else {
                break;
            };
            path.push(usize::from(*direction));
            node = self.edges[usize::from(edge)].to;
        }
        path
    }
}

impl NetworkBuilder {
    /// Returns the directions of the path between the nodes of each pair, numbered in the order in
    /// which links were added. These are the routes that the network will use.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a pair is not connected or the network is too large.
    pub fn paths(&self, pairs: &[(NodeId, NodeId)]) -> Result<Vec<Vec<usize>>, BuildError> {
        let plan = self.plan()?;
        let ends: Vec<(u16, u16)> = pairs.iter().map(|(from, to)| (from.0, to.0)).collect();
        let tables = self.routes(&plan.ports, &plan.edges, ends.iter().copied())?;
        let path = |&(from, to): &(u16, u16)| plan.path(&tables, from, to);
        Ok(ends.iter().map(path).collect())
    }

    /// Returns the graph: an edge for each direction, and for each further far end of a broadcast
    /// direction.
    pub(super) fn plan(&self) -> Result<Plan, BuildError> {
        let mut ports: Vec<Vec<u16>> = self.nodes.iter().map(|node| node.ports.clone()).collect();
        let step = |direction: &DirectionDraft, to: u16| Edge {
            from: direction.from,
            to,
            delay: direction.settings.delay,
        };
        let mut edges: Vec<Edge> = (self.directions.iter())
            .map(|direction| step(direction, direction.to))
            .collect();
        let mut directions: Vec<u16> = (0..edges.len()).map(|index| index as u16).collect();
        let mut ends = vec![0; edges.len()];
        for (index, direction) in self.directions.iter().enumerate() {
            let Some((first, receivers)) = &direction.broadcast else {
                continue;
            };
            for (number, receiver) in receivers.iter().enumerate().skip(1) {
                let port = usize::from(first.0) + number;
                ports[usize::from(direction.from)][port] = edges.len() as u16;
                edges.push(step(direction, receiver.node));
                directions.push(index as u16);
                ends.push(number as u16);
            }
        }
        if edges.len() >= COMPONENTS {
            return Err(BuildError::TooLarge);
        }
        Ok(Plan {
            ports,
            edges,
            directions,
            ends,
        })
    }

    /// Computes every node's routes to the destinations in use, and to all nodes that may be sent
    /// to without a flow. `ends` are pairs of sender and destination.
    pub(super) fn routes(
        &self,
        ports: &[Vec<u16>],
        edges: &[Edge],
        ends: impl Iterator<Item = (u16, u16)>,
    ) -> Result<Vec<Routes>, BuildError> {
        // Senders by destination.
        let mut destinations: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for (from, to) in ends {
            destinations.entry(to).or_default().push(from);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if matches!(node.kind, NodeKind::Custom(_) | NodeKind::Attached) {
                destinations.entry(index as u16).or_default();
            }
        }
        let forwards: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| !matches!(node.kind, NodeKind::Host | NodeKind::Attached))
            .collect();
        let tables = Map::new(ports, edges, &forwards).tables(&destinations);
        tables.map_err(|error| match error {
            NoRoutes::TooLarge => BuildError::TooLarge,
            NoRoutes::CutOff(one, other) => BuildError::NoRoute {
                flow: self.flow_between(one, other),
            },
        })
    }

    /// Returns the name of the first flow between two nodes in either direction.
    fn flow_between(&self, one: u16, other: u16) -> String {
        let ends = [(one, other), (other, one)];
        let mut flows = self.flows.iter();
        let flow = flows.find(|flow| ends.contains(&(flow.from.0, flow.to.0)));
        flow.map_or_else(String::new, |flow| flow.name.clone())
    }
}
