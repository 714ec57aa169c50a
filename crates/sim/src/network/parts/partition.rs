//! Assignment of nodes to parts.
//!
//! Parts exchange packets only over directions with a constant delay. Their clocks may differ by
//! the smallest of these delays, which is the length of a window. Long windows cost little
//! synchronisation, and equal parts use all processors. A threshold is chosen: directions with at
//! least this delay may connect different parts. It is the largest one whose parts are nearly
//! equal, or otherwise the one with the most equal parts.

use bentpipe_types::Span;

use super::super::{MANY, Network};

/// Delays below this one do not separate parts: a window would contain too few events.
const SHORTEST_WINDOW: Span = Span::from_millis(1);

/// Longer than any delay, and than any run: the window of parts that nothing connects.
const NEVER: Span = Span::from_secs(1 << 30);

/// Number of different thresholds that are compared.
const THRESHOLDS: usize = 16;

/// Share of an equal division that is good enough to prefer a longer window.
const NEARLY_EQUAL: f64 = 0.85;

/// The part of each node, and what connects the parts.
#[derive(Debug)]
pub(super) struct Partition {
    /// Part of each node.
    pub(super) part_of: Vec<usize>,
    /// Number of parts.
    pub(super) parts: usize,
    /// Smallest delay between two parts.
    pub(super) window: Span,
}

/// Sets of nodes, as trees with a representative at the root.
struct Sets(Vec<u32>);

impl Sets {
    fn new(nodes: usize) -> Self {
        Self((0..nodes as u32).collect())
    }

    fn find(&mut self, node: u16) -> u32 {
        let mut at = u32::from(node);
        while self.0[at as usize] != at {
            let above = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = above;
            at = above;
        }
        at
    }

    fn join(&mut self, first: u16, second: u16) {
        let (first, second) = (self.find(first), self.find(second));
        self.0[first.max(second) as usize] = first.min(second);
    }
}

impl Network {
    /// Returns the sending node of each direction.
    pub(super) fn senders(&self) -> Vec<u16> {
        let mut senders = vec![u16::MAX; self.directions.len()];
        for (slot, node) in self.nodes.iter().zip(0..) {
            let ways = std::iter::once(&slot.ways.first).chain(&slot.ways.others);
            for direction in ways {
                if let Some(sender) = senders.get_mut(usize::from(*direction)) {
                    *sender = node;
                }
            }
        }
        senders
    }

    /// Divides the nodes into at most this many parts. Returns `None` if nothing separates them.
    pub(super) fn partition(&self, parts: usize) -> Option<Partition> {
        let senders = self.senders();
        let mut thresholds: Vec<Span> = (self.directions.iter())
            .filter_map(|slot| slot.direction.constant_delay())
            .filter(|delay| *delay >= SHORTEST_WINDOW)
            .collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        let step = thresholds.len().div_ceil(THRESHOLDS).max(1);
        let mut best: Option<(f64, Partition)> = None;
        // Parts that nothing connects need no packets of each other.
        let longest = thresholds.iter().rev().step_by(step).copied();
        for threshold in std::iter::once(NEVER).chain(longest) {
            let Some((share, found)) = self.partition_at(parts, threshold, &senders) else {
                continue;
            };
            if best.as_ref().is_none_or(|(most, _)| share > *most) {
                best = Some((share, found));
            }
            if share >= NEARLY_EQUAL {
                break;
            }
        }
        best.map(|(_, partition)| partition)
    }

    /// Divides the nodes where directions have at least this delay. Returns the partition and how
    /// nearly equal its parts are: the mean weight divided by the largest.
    fn partition_at(
        &self,
        parts: usize,
        threshold: Span,
        senders: &[u16],
    ) -> Option<(f64, Partition)> {
        let mut sets = Sets::new(self.nodes.len());
        // Directions with capacity on demand share a carrier with others.
        let mut on_demand = None;
        for (slot, from) in self.directions.iter().zip(senders) {
            let from = *from;
            if from == u16::MAX {
                continue;
            }
            if let Some(receivers) = &slot.rare.receivers {
                receivers.nodes().for_each(|node| sets.join(from, node));
            } else if slot.to != MANY
                && (slot.direction.constant_delay()).is_none_or(|delay| delay < threshold)
            {
                sets.join(from, slot.to);
            }
            if slot.direction.access(self.now).is_some() {
                sets.join(from, *on_demand.get_or_insert(from));
            }
        }
        for flow in self.flows.iter().filter(|flow| flow.shares_state) {
            sets.join(flow.opener.0, flow.server.0);
        }
        let mut weights = vec![0_u64; self.nodes.len()];
        for flow in &self.flows {
            for (node, _) in [flow.opener, flow.server] {
                weights[sets.find(node) as usize] += 1;
            }
        }
        let mut order: Vec<u32> = (0..self.nodes.len() as u32)
            .filter(|set| weights[*set as usize] > 0)
            .collect();
        // The heaviest set first, always into the lightest part.
        order.sort_by_key(|set| std::cmp::Reverse(weights[*set as usize]));
        let mut part_of_set = vec![0; self.nodes.len()];
        let mut loads = vec![0_u64; parts.min(order.len())];
        for set in order {
            let (part, load) = (loads.iter_mut().enumerate()).min_by_key(|(_, load)| **load)?;
            *load += weights[set as usize];
            part_of_set[set as usize] = part;
        }
        let part_of: Vec<usize> = (0..self.nodes.len())
            .map(|node| part_of_set[sets.find(node as u16) as usize])
            .collect();
        let windows = (self.directions.iter().zip(senders)).filter_map(|(slot, from)| {
            let connects = *from != u16::MAX
                && slot.to != MANY
                && part_of[usize::from(*from)] != part_of[usize::from(slot.to)];
            slot.direction.constant_delay().filter(|_| connects)
        });
        let window = windows.min().unwrap_or(NEVER);
        let (total, most) = (loads.iter().sum::<u64>(), *loads.iter().max()?);
        if loads.len() < 2 || most == total {
            return None;
        }
        let share = total as f64 / (most * parts as u64) as f64;
        let partition = Partition {
            parts: loads.len(),
            part_of,
            window,
        };
        Some((share, partition))
    }
}
