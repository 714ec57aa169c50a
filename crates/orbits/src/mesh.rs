//! Links between satellites of a shell, and shortest paths over them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::earth::EQUATORIAL_RADIUS;
use crate::shell::{Pattern, Shell};
use crate::vector::Vector;

/// Lowest point of a link between satellites, in metres above the equatorial radius: below, the
/// atmosphere attenuates it (Bhattacherjee and Singla 2019; Hypatia has 80 km, too).
const LOWEST: f64 = 80e3;

/// Links of each satellite to four neighbours ("+grid"): the next and the previous in its plane,
/// and one in each neighbouring plane.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    neighbours: Vec<[Option<u32>; 4]>,
    /// Longest link in metres: longer ones would pass through the atmosphere.
    longest: f64,
}

impl Mesh {
    /// Returns the mesh of a shell, or `None` if it has fewer than three planes or three satellites
    /// per plane.
    ///
    /// Links between planes join satellites of about the same phase: where the phasing has moved
    /// the satellites of a plane by a whole spacing, relative to those of the first plane, the link
    /// leads to the satellite before. A star pattern has no links across its seam.
    #[must_use]
    pub(crate) fn of_shell(shell: &Shell) -> Option<Self> {
        let (planes, places) = (shell.planes, shell.satellites_per_plane);
        if planes < 3 || places < 3 {
            return None;
        }
        // Whole spacings by which a plane is ahead of the first.
        let ahead = |plane: usize| plane * shell.phasing / planes;
        let index = |plane: usize, place: usize| (plane * places + place % places) as u32;
        let to_east = |plane: usize, place: usize| {
            if plane + 1 == planes && shell.pattern == Pattern::Star {
                return None;
            }
            let moved = ahead(plane + 1) - ahead(plane);
            if plane + 1 < planes {
                return Some(index(plane + 1, place + places - moved % places));
            }
            // The first plane seen again after a whole turn, in which it is `phasing` places ahead.
            let place = place + places - moved % places + shell.phasing % places;
            Some(index(0, place))
        };
        let mut neighbours = vec![[None; 4]; planes * places];
        for plane in 0..planes {
            for place in 0..places {
                let here = index(plane, place);
                let next = index(plane, place + 1);
                neighbours[here as usize][0] = Some(next);
                neighbours[next as usize][1] = Some(here);
                if let Some(east) = to_east(plane, place) {
                    neighbours[here as usize][2] = Some(east);
                    neighbours[east as usize][3] = Some(here);
                }
            }
        }
        let orbit = EQUATORIAL_RADIUS + shell.altitude;
        let lowest = EQUATORIAL_RADIUS + LOWEST;
        Some(Self {
            neighbours,
            longest: 2.0 * libm::sqrt((orbit * orbit - lowest * lowest).max(0.0)),
        })
    }

    /// Returns the satellites that a satellite is linked to.
    pub fn neighbours(&self, satellite: usize) -> impl Iterator<Item = usize> + '_ {
        self.neighbours[satellite]
            .iter()
            .filter_map(|each| each.map(|index| index as usize))
    }

    /// Returns the shortest path that begins with one of `entries` and ends with one of `exits`,
    /// each a satellite with the length of its link to the ground, and its length with both.
    ///
    /// Dijkstra's algorithm. Of two equal paths, the one with lower indices is taken.
    #[must_use]
    pub(crate) fn shortest(
        &self,
        positions: &[Option<Vector>],
        entries: &[(usize, f64)],
        exits: &[(usize, f64)],
    ) -> Option<(Vec<u32>, f64)> {
        let mut distance = vec![f64::INFINITY; positions.len()];
        let mut before = vec![u32::MAX; positions.len()];
        let mut exit = vec![f64::INFINITY; positions.len()];
        let mut best = (f64::INFINITY, usize::MAX);
        for (satellite, length) in exits {
            exit[*satellite] = exit[*satellite].min(*length);
        }
        let mut heap = BinaryHeap::new();
        for (satellite, length) in entries {
            if *length < distance[*satellite] {
                distance[*satellite] = *length;
                heap.push(Reverse(Entry(*length, *satellite as u32)));
            }
        }
        while let Some(Reverse(Entry(length, satellite))) = heap.pop() {
            let here = satellite as usize;
            if length > distance[here] {
                continue;
            }
            if length >= best.0 {
                break;
            }
            let whole = length + exit[here];
            if whole < best.0 {
                best = (whole, here);
            }
            let Some(from) = positions[here] else {
                continue;
            };
            for next in self.neighbours(here) {
                let Some(to) = positions[next] else {
                    continue;
                };
                let hop = from.distance(to);
                let there = length + hop;
                if hop <= self.longest && there < distance[next] {
                    distance[next] = there;
                    before[next] = satellite;
                    heap.push(Reverse(Entry(there, next as u32)));
                }
            }
        }
        let (length, mut at) = best;
        if at == usize::MAX {
            return None;
        }
        let mut path = vec![at as u32];
        while before[at] != u32::MAX {
            at = before[at] as usize;
            path.push(at as u32);
        }
        path.reverse();
        Some((path, length))
    }
}

/// A satellite with its distance; ordered by distance, then by satellite.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry(f64, u32);

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}
