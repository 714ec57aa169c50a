//! Shortest paths.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bentpipe_types::{Address, Port, Routes, Span};

use super::trees::{Edge, Trees, ports_before};

/// Fewest hops, then least propagation delay, then the link named first: what an interior gateway
/// protocol with equal costs would choose, made deterministic.
type Distance = (u32, Span);

/// Maximum number of entries of all routing tables: 128 MiB.
const ROUTE_ENTRIES: usize = 1 << 26;
/// Maximum number of directions examined to fill them: a few seconds.
const ROUTE_STEPS: usize = 1 << 28;

/// Reason why there are no routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoRoutes {
    /// They would take too much time or memory.
    TooLarge,
    /// No path from the first node to the second.
    CutOff(u16, u16),
}

/// The nodes and directions of a network.
pub(super) struct Map<'a> {
    ports: &'a [Vec<u16>],
    edges: &'a [Edge],
    /// Whether each node forwards packets. Hosts do not.
    forwards: &'a [bool],
    trees: Trees,
    /// Directions of the core that arrive at each of its nodes.
    arriving: Vec<Vec<u16>>,
    /// Port of each direction.
    before: Vec<Port>,
}

impl<'a> Map<'a> {
    /// Creates a map. `ports[node][port]` is the direction behind that port, or `u16::MAX` for a
    /// port that only receives.
    pub(super) fn new(ports: &'a [Vec<u16>], edges: &'a [Edge], forwards: &'a [bool]) -> Self {
        let trees = Trees::new(ports, edges, forwards);
        let mut arriving: Vec<Vec<u16>> = vec![Vec::new(); ports.len()];
        for (index, edge) in edges.iter().enumerate() {
            if !trees.is_hanging(edge.from) && !trees.is_hanging(edge.to) {
                arriving[usize::from(edge.to)].push(index as u16);
            }
        }
        Self {
            ports,
            edges,
            forwards,
            trees,
            arriving,
            before: ports_before(ports, edges.len()),
        }
    }

    /// Computes every node's routes to destinations, each with its senders. Nodes of trees send
    /// unknown destinations upwards.
    ///
    /// # Errors
    /// [`NoRoutes`] if a sender's packets would not arrive or the tables would be too large.
    pub(super) fn tables(
        &self,
        destinations: &BTreeMap<u16, Vec<u16>>,
    ) -> Result<Vec<Routes>, NoRoutes> {
        let mut by_root: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for destination in destinations.keys() {
            let root = self.trees.root(*destination);
            by_root.entry(root).or_default().push(*destination);
        }
        let core: Vec<u16> = (0..self.ports.len() as u16)
            .filter(|node| !self.trees.is_hanging(*node))
            .collect();
        let branching = core.iter().filter(|node| self.branches(**node)).count();
        let steps: usize = core
            .iter()
            .map(|n| self.arriving[usize::from(*n)].len())
            .sum();
        if branching * self.ports.len() > ROUTE_ENTRIES || by_root.len() * steps > ROUTE_STEPS {
            return Err(NoRoutes::TooLarge);
        }
        let mut tables = self.empty_tables();
        let mut entries = branching * self.ports.len();
        for (root, below) in by_root {
            let towards = self.ports_towards(root);
            for destination in below {
                for sender in &destinations[&destination] {
                    self.check(*sender, destination, root, &towards)?;
                }
                for node in &core {
                    if let Some(port) = towards[usize::from(*node)] {
                        tables[usize::from(*node)].add(Address(destination), port);
                    }
                }
                for above in self.trees.way_up(destination) {
                    tables[usize::from(above.on)].add(Address(destination), above.down);
                    entries += 1;
                    if entries > ROUTE_ENTRIES {
                        return Err(NoRoutes::TooLarge);
                    }
                }
            }
        }
        Ok(tables)
    }

    fn branches(&self, node: u16) -> bool {
        self.ports[usize::from(node)].len() > 1
    }

    fn empty_tables(&self) -> Vec<Routes> {
        let nodes = self.ports.len();
        let table = |node: u16| {
            let here = Address(node);
            match self.trees.hangs(node) {
                Some(hangs) if self.branches(node) => Routes::upwards(here, hangs.up),
                Some(hangs) => Routes::by_default(here, hangs.up),
                None => Routes::new(here, self.ports[usize::from(node)].len(), nodes),
            }
        };
        (0..nodes as u16).map(table).collect()
    }

    /// Checks that packets of `sender` arrive at `destination`, below `root`.
    fn check(
        &self,
        sender: u16,
        destination: u16,
        root: u16,
        towards: &[Option<Port>],
    ) -> Result<(), NoRoutes> {
        let from = self.trees.root(sender);
        let path = from == root || towards[usize::from(from)].is_some();
        if sender == destination || !path {
            return Err(NoRoutes::CutOff(sender, destination));
        }
        Ok(())
    }

    /// Returns the port towards `destination`, a core node, for every node of the core, by
    /// Dijkstra's algorithm.
    fn ports_towards(&self, destination: u16) -> Vec<Option<Port>> {
        let destination = usize::from(destination);
        let mut next = vec![None; self.ports.len()];
        let mut best: Vec<Option<Distance>> = vec![None; self.ports.len()];
        let mut frontier = BinaryHeap::from([Reverse(((0, Span::ZERO), destination))]);
        best[destination] = Some((0, Span::ZERO));
        while let Some(Reverse((distance, node))) = frontier.pop() {
            if best[node].is_some_and(|known| known < distance) {
                continue;
            }
            if node != destination && !self.forwards[node] {
                continue;
            }
            for &index in &self.arriving[node] {
                let edge = self.edges[usize::from(index)];
                let from = usize::from(edge.from);
                let reached = (distance.0 + 1, distance.1 + edge.delay);
                if best[from].is_some_and(|known| known <= reached) {
                    continue;
                }
                best[from] = Some(reached);
                next[from] = Some(self.before[usize::from(index)]);
                frontier.push(Reverse((reached, from)));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests;
