//! Routes of flows, as the engine computes them.

use std::collections::BTreeMap;

use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{LinkSettings, NetworkBuilder};

use crate::link::settings::{Direction, Link};
use crate::node::settings::NodeKind;
use crate::scenario::settings::Scenario;

/// The directions that a flow's packets pass, there and back, as
/// [`direction_index`](Scenario::direction_index) numbers them.
pub type Route = [Vec<usize>; 2];

impl Scenario {
    /// Returns the route of each flow, or `None` for a network that the engine refuses.
    #[must_use]
    pub fn routes(&self) -> Option<Vec<Route>> {
        // The same nodes, links and delays in the same order as in a run, and nothing else.
        let mut builder = NetworkBuilder::new(0);
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| match node.kind {
                NodeKind::Host(_) => builder.host(&node.name),
                NodeKind::Gateway(_) => builder.router(&node.name),
            })
            .collect();
        for link in &self.links {
            let [first, second] = link.between.map(|end| nodes[end]);
            if link.broadcast {
                let hearers = link.far_ends().map(|end| (nodes[end], Vec::new()));
                builder.broadcast(first, hearers.collect(), "", settings(&link.forward));
            } else {
                builder.link(first, second, bare(link));
            }
        }
        let mut of_pair = BTreeMap::new();
        for flow in &self.flows {
            of_pair.insert((flow.from, flow.to), Vec::new());
            // A group sends nothing back.
            if flow.channel.is_none() {
                of_pair.insert((flow.to, flow.from), Vec::new());
            }
        }
        let pairs: Vec<_> = of_pair
            .keys()
            .map(|&(from, to)| (nodes[from], nodes[to]))
            .collect();
        let paths = builder.paths(&pairs).ok()?;
        for (place, path) in of_pair.values_mut().zip(paths) {
            *place = path;
        }
        let route = |from, to| of_pair.get(&(from, to)).cloned().unwrap_or_default();
        let flows = self.flows.iter();
        Some(
            flows
                .map(|flow| {
                    let back = match flow.channel {
                        None => route(flow.to, flow.from),
                        Some(_) => Vec::new(),
                    };
                    [route(flow.from, flow.to), back]
                })
                .collect(),
        )
    }
}

/// Returns a direction with nothing but its delay.
fn settings(direction: &Direction) -> Settings {
    Settings::new(
        direction.rate,
        direction.delay,
        DropTail {
            limit: Limit::Packets(1),
        },
    )
}

/// Returns a link with nothing but its ends.
fn bare(link: &Link) -> LinkSettings {
    LinkSettings {
        name: String::new(),
        forward: Some(settings(&link.forward)),
        backward: link.backward.as_ref().map(settings),
    }
}
