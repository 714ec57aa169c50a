//! Which way packets go, as the engine finds it.

use std::collections::BTreeMap;

use bentpipe_link::{DropTail, Ends, Limit, Settings};
use bentpipe_sim::{LinkSettings, NetworkBuilder};

use crate::{Direction, Link, NodeKind, Scenario};

/// The directions over which a flow's packets go, by the numbers that
/// [`direction_index`](Scenario::direction_index) gives them: there, and back.
pub type Route = [Vec<usize>; 2];

impl Scenario {
    /// The route of each flow; `None` for a network that the engine refuses.
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
            builder.link(first, second, bare(link));
        }
        let mut of_pair = BTreeMap::new();
        for flow in &self.flows {
            for (from, to) in [(flow.from, flow.to), (flow.to, flow.from)] {
                of_pair.insert((from, to), Vec::new());
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
                .map(|flow| [route(flow.from, flow.to), route(flow.to, flow.from)])
                .collect(),
        )
    }
}

/// A link that does nothing but lead somewhere.
fn bare(link: &Link) -> LinkSettings {
    let settings = |direction: &Direction| Settings {
        rate: direction.rate,
        delay: direction.delay,
        queue: DropTail {
            limit: Limit::Packets(1),
        }
        .into(),
        errors: Vec::new(),
        redundancy: 1.0,
        ends: Ends::default(),
        changes: None,
    };
    LinkSettings {
        name: String::new(),
        forward: Some(settings(&link.forward)),
        backward: link.backward.as_ref().map(settings),
    }
}
