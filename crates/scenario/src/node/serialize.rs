//! Nodes as data.

use serde_json::{Value, json};

use crate::gateway::serialize::{hybrid_gateway_data, split_gateway_data};
use crate::gateway::settings::Gateway;
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
        NodeKind::Gateway(Gateway::Router {
            icmp,
            processing: time,
        }) => {
            let processing = processing_data(*time);
            json!({ "name": node.name, "kind": "router", "icmp": icmp, "processing": processing })
        }
        NodeKind::Gateway(Gateway::Split(split)) => {
            let mut data = split_gateway_data(split, scenario);
            data["name"] = node.name.clone().into();
            data
        }
        NodeKind::Gateway(Gateway::Hybrid(hybrid)) => {
            let mut data = hybrid_gateway_data(hybrid, scenario);
            data["name"] = node.name.clone().into();
            data
        }
    }
}
