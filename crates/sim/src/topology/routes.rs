//! Shortest paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{Port, Span};

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) delay: Span,
}

/// Fewest hops first, then least propagation delay, then the link named first: what an interior
/// gateway protocol with equal costs would choose, made deterministic.
type Distance = (u32, Span);

/// The nodes and directions of a network, to find paths in with Dijkstra's algorithm.
pub(super) struct Map<'a> {
    ports: &'a [Vec<u16>],
    edges: &'a [Edge],
    /// Which nodes send on what is not for them. A host doesn't.
    forwards: &'a [bool],
    arriving: Vec<Vec<u16>>,
}

impl<'a> Map<'a> {
    /// `ports[node][port]` is the direction behind that port, or `u16::MAX` for a port that only
    /// receives.
    pub(super) fn new(ports: &'a [Vec<u16>], edges: &'a [Edge], forwards: &'a [bool]) -> Self {
        let mut arriving: Vec<Vec<u16>> = vec![Vec::new(); ports.len()];
        for (index, edge) in edges.iter().enumerate() {
            arriving[usize::from(edge.to)].push(index as u16);
        }
        Self {
            ports,
            edges,
            forwards,
            arriving,
        }
    }

    /// For every node, the port that leads to `destination`.
    pub(super) fn ports_towards(&self, destination: u16) -> Vec<Option<Port>> {
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
                let ports = &self.ports[from];
                next[from] = ports
                    .iter()
                    .position(|behind| *behind == index)
                    .map(|p| Port(p as u16));
                frontier.push(Reverse((reached, from)));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u16, to: u16, milliseconds: u64) -> Edge {
        Edge {
            from,
            to,
            delay: Span::from_millis(milliseconds),
        }
    }

    #[test]
    fn one_way_links_carry_one_way() {
        // Satellite 0 -> 1, modem 1 -> 2 -> 0.
        let edges = [edge(0, 1, 250), edge(1, 2, 20), edge(2, 0, 20)];
        let ports = [vec![0, u16::MAX], vec![u16::MAX, 1], vec![u16::MAX, 2]];
        let map = Map::new(&ports, &edges, &[true; 4]);
        assert_eq!(map.ports_towards(1), [Some(Port(0)), None, Some(Port(1))]);
        assert_eq!(map.ports_towards(0), [None, Some(Port(1)), Some(Port(1))]);
    }

    #[test]
    fn equal_hops_go_by_delay_and_what_cannot_be_reached_is_not() {
        let edges = [
            edge(0, 1, 250),
            edge(0, 2, 10),
            edge(1, 3, 10),
            edge(2, 3, 10),
        ];
        let ports = [
            vec![0, 1],
            vec![u16::MAX, 2],
            vec![u16::MAX, 3],
            vec![u16::MAX, u16::MAX],
        ];
        let map = Map::new(&ports, &edges, &[true; 4]);
        assert_eq!(
            map.ports_towards(3),
            [Some(Port(1)), Some(Port(1)), Some(Port(1)), None]
        );
    }

    #[test]
    fn no_path_leads_through_a_host() {
        // 0 - 1 - 2 over the host 1; 0 - 3 - 4 - 2 over the routers 3 and 4.
        let edges = [
            edge(0, 1, 1),
            edge(1, 2, 1),
            edge(0, 3, 1),
            edge(3, 4, 1),
            edge(4, 2, 1),
        ];
        let ports = [
            vec![0, 2],
            vec![u16::MAX, 1],
            vec![],
            vec![u16::MAX, 3],
            vec![u16::MAX, 4],
        ];
        let map = Map::new(&ports, &edges, &[false, false, false, true, true]);
        assert_eq!(map.ports_towards(2)[0], Some(Port(1)));
    }
}
