//! What hangs at a network by one link only, and so needs no search for paths.
//!
//! A host with an access link, and a router with such hosts behind it, can be reached and left one way
//! only. Taken off one after the other, they form trees; what is left is the core. A path between two
//! nodes goes up one tree, through the core and down another, and only the core is searched: ten
//! thousand users cost what one does, and a step for each.

use bentpipe_types::{Port, Span};

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) delay: Span,
}

/// Where a node hangs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hangs {
    /// On which node.
    pub(super) on: u16,
    /// Its port that leads there.
    pub(super) up: Port,
    /// That node's port that leads to it.
    pub(super) down: Port,
}

/// The trees of a network: `hangs[node]` is `None` in the core.
#[derive(Debug)]
pub(super) struct Trees {
    hangs: Vec<Option<Hangs>>,
}

impl Trees {
    /// Takes off what hangs by one link with two directions at a node that forwards, as long as there
    /// is such a node.
    pub(super) fn new(ports: &[Vec<u16>], edges: &[Edge], forwards: &[bool]) -> Self {
        let nodes = ports.len();
        let mut leaving = vec![Vec::new(); nodes];
        let mut arriving = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            leaving[usize::from(edge.from)].push(index as u16);
            arriving[usize::from(edge.to)].push(index as u16);
        }
        let ports = ports_before(ports, edges.len());
        let mut hangs: Vec<Option<Hangs>> = vec![None; nodes];
        let mut gone = vec![false; edges.len()];
        // How many directions of a node are not gone: (leaving, arriving).
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
            // A search through the node's directions, once in its life.
            let left = |of: &[u16]| of.iter().copied().find(|edge| !gone[usize::from(*edge)]);
            let (Some(out), Some(back)) = (left(&leaving[place]), left(&arriving[place])) else {
                continue;
            };
            let on = edges[usize::from(out)].to;
            if on == node || edges[usize::from(back)].from != on || !forwards[usize::from(on)] {
                continue;
            }
            let (up, down) = (ports[usize::from(out)], ports[usize::from(back)]);
            hangs[place] = Some(Hangs { on, up, down });
            gone[usize::from(out)] = true;
            gone[usize::from(back)] = true;
            degrees[place] = (0, 0);
            let (out, back) = &mut degrees[usize::from(on)];
            (*out, *back) = (*out - 1, *back - 1);
            candidates.push(on);
        }
        Self { hangs }
    }

    /// Nothing hangs anywhere: all of the network is searched.
    #[cfg(test)]
    pub(super) fn none(nodes: usize) -> Self {
        Self {
            hangs: vec![None; nodes],
        }
    }

    /// Where the node hangs; `None` in the core.
    pub(super) fn hangs(&self, node: u16) -> Option<Hangs> {
        self.hangs[usize::from(node)]
    }

    pub(super) fn is_hanging(&self, node: u16) -> bool {
        self.hangs(node).is_some()
    }

    /// The way up from `node` to the core.
    pub(super) fn way_up(&self, node: u16) -> impl Iterator<Item = Hangs> + '_ {
        std::iter::successors(self.hangs(node), |below| self.hangs(below.on))
    }

    /// The node of the core at which `node` hangs, directly or not; itself, in the core.
    pub(super) fn root(&self, node: u16) -> u16 {
        self.way_up(node).last().map_or(node, |top| top.on)
    }
}

/// Each direction's port.
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
