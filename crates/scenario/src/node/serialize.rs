//! Nodes as data.

use serde_json::{Value, json};

use crate::gateway::settings::Names;
use crate::node::processing::processing_data;
use crate::node::settings::{Node, NodeKind};
use crate::scenario::settings::Scenario;
use crate::tcp::settings::tcp_data;

pub(crate) fn node_data(node: &Node, scenario: &Scenario) -> Value {
    match &node.kind {
        NodeKind::Host(settings) => {
            json!({
                "name": node.name,
                "kind": "host",
                "tcp": tcp_data(&settings.tcp),
                "processing": processing_data(settings.processing),
            })
        }
        NodeKind::Gateway(gateway) => {
            let mut data = gateway.measured(&Names {
                node: &|index| scenario.nodes[index].name.as_str(),
                link: &|index| scenario.links[index].name.as_str(),
            });
            data["name"] = node.name.clone().into();
            data
        }
    }
}
