//! Trees of nodes with a single link towards the rest, which need no path search.
//!
//! A host with an access link, and a router with such hosts, can be reached and left in one way
//! only. Removed one after another they form trees; what remains is the core. A path goes up one
//! tree, through the core, and down another, and only the core is searched. Ten thousand users cost
//! one step each.

use bentpipe_types::{Port, Span};

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) delay: Span,
}

/// Position of a node in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreePosition {
    /// Parent node.
    pub(super) on: u16,
    /// Its port towards the parent.
    pub(super) up: Port,
    /// The parent's port towards it.
    pub(super) down: Port,
}

/// The trees of a network: `hangs[node]` is `None` in the core.
#[derive(Debug)]
pub(super) struct Trees {
    hangs: Vec<Option<TreePosition>>,
}

impl Trees {
    /// Removes nodes with one bidirectional link to a forwarding node, as long as there are any.
    pub(super) fn new(ports: &[Vec<u16>], edges: &[Edge], forwards: &[bool]) -> Self {
        let nodes = ports.len();
        let mut leaving = vec![Vec::new(); nodes];
        let mut arriving = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            leaving[usize::from(edge.from)].push(index as u16);
            arriving[usize::from(edge.to)].push(index as u16);
        }
        let ports = ports_before(ports, edges.len());
        let mut hangs: Vec<Option<TreePosition>> = vec![None; nodes];
        let mut gone = vec![false; edges.len()];
        // Remaining directions per node: (leaving, arriving).
        let mut degrees: Vec<(usize, usize)> = leaving
            .iter()
            .zip(&arriving)
            .map(|(leaving, arriving)| (leaving.len(), arriving.len()))
            .collect();
        let mut candidates: Vec<u16> = (0..nodes as u16).rev().collect();
        while let Some(node) = candidates.pop() {
            let place = usize::from(node);
            if degrees[place] != (1, 1) {
                continue;
            }
            // One search through the node's directions in its life.
            let left = |of: &[u16]| of.iter().copied().find(|edge| !gone[usize::from(*edge)]);
            let (Some(out), Some(back)) = (left(&leaving[place]), left(&arriving[place])) else {
                continue;
            };
            let on = edges[usize::from(out)].to;
            if on == node || edges[usize::from(back)].from != on || !forwards[usize::from(on)] {
                continue;
            }
            let (up, down) = (ports[usize::from(out)], ports[usize::from(back)]);
            hangs[place] = Some(TreePosition { on, up, down });
            gone[usize::from(out)] = true;
            gone[usize::from(back)] = true;
            degrees[place] = (0, 0);
            let (out, back) = &mut degrees[usize::from(on)];
            (*out, *back) = (*out - 1, *back - 1);
            candidates.push(on);
        }
        Self { hangs }
    }

    /// No trees: the whole network is searched.
    #[cfg(test)]
    pub(super) fn none(nodes: usize) -> Self {
        Self {
            hangs: vec![None; nodes],
        }
    }

    /// Returns the node's position in a tree, or `None` in the core.
    pub(super) fn hangs(&self, node: u16) -> Option<TreePosition> {
        self.hangs[usize::from(node)]
    }

    pub(super) fn is_hanging(&self, node: u16) -> bool {
        self.hangs(node).is_some()
    }

    /// Iterates over the steps from `node` up to the core.
    pub(super) fn way_up(&self, node: u16) -> impl Iterator<Item = TreePosition> + '_ {
        std::iter::successors(self.hangs(node), |below| self.hangs(below.on))
    }

    /// Returns the core node below which `node` hangs, or itself.
    pub(super) fn root(&self, node: u16) -> u16 {
        self.way_up(node).last().map_or(node, |top| top.on)
    }
}

/// Returns the port of each direction.
pub(super) fn ports_before(ports: &[Vec<u16>], directions: usize) -> Vec<Port> {
    let mut before = vec![Port::default(); directions];
    for ports in ports {
        for (port, behind) in ports.iter().enumerate() {
            if let Some(before) = before.get_mut(usize::from(*behind)) {
                *before = Port(port as u16);
            }
        }
    }
    before
}
