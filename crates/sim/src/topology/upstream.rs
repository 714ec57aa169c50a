//! Directions that receive all their packets from one other direction.

use bentpipe_types::Routes;

use super::plan::Plan;
use super::{NetworkBuilder, NodeKind};

/// Source of a direction's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upstream {
    Nobody,
    /// One direction.
    One(u16),
    /// Several directions, or the node where it begins.
    Others,
}

impl Upstream {
    fn and(self, other: Self) -> Self {
        match self {
            Self::Nobody => other,
            same if same == other => same,
            _ => Self::Others,
        }
    }
}

impl NetworkBuilder {
    /// Returns the directions that receive all their packets from one other, each with that one.
    ///
    /// Hosts send only to the peers of their flows, and routers send nothing of their own unless a
    /// link has an MTU. Nothing is known of other nodes' packets: with such a node, or with
    /// multicast channels, the result is empty.
    pub(super) fn upstreams(&self, plan: &Plan, tables: &[Routes]) -> Vec<(u16, u16)> {
        let knows = self.nodes.iter().all(|node| {
            node.arp_settings.is_empty()
                && match node.kind {
                    NodeKind::Host => true,
                    NodeKind::Router => node.mtus.is_empty() && node.processing.is_none(),
                    NodeKind::Attached | NodeKind::Custom(_) => false,
                }
        });
        let is_broadcast = self.directions.iter().any(|each| each.broadcast.is_some());
        if !knows || is_broadcast || !self.channels.is_empty() || !self.external_channels.is_empty()
        {
            return Vec::new();
        }
        let mut upstream = vec![Upstream::Nobody; self.directions.len()];
        for flow in &self.flows {
            for (from, to) in [(flow.from.0, flow.to.0), (flow.to.0, flow.from.0)] {
                let mut before = Upstream::Others;
                for direction in plan.path(tables, from, to) {
                    upstream[direction] = upstream[direction].and(before);
                    before = Upstream::One(direction as u16);
                }
            }
        }
        (upstream.iter().zip(0..))
            .filter_map(|(upstream, direction)| match upstream {
                Upstream::One(before) => Some((direction, *before)),
                Upstream::Nobody | Upstream::Others => None,
            })
            .collect()
    }
}
