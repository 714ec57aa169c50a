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
            // From a group nothing comes back.
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

/// A direction that does nothing but lead somewhere.
fn settings(direction: &Direction) -> Settings {
    Settings {
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
        access: None,
    }
}

/// A link that does nothing but lead somewhere.
fn bare(link: &Link) -> LinkSettings {
    LinkSettings {
        name: String::new(),
        forward: Some(settings(&link.forward)),
        backward: link.backward.as_ref().map(settings),
    }
}
