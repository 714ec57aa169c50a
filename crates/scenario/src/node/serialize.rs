//! Nodes as data.

use bentpipe_types::Time;
use serde_json::{Value, json};

use crate::gateway::settings::Names;
use crate::node::processing::processing_data;
use crate::node::settings::{Node, NodeKind};
use crate::quic::settings::quic_data;
use crate::scenario::settings::Scenario;
use crate::tcp::settings::tcp_data;

pub(crate) fn node_data(node: &Node, scenario: &Scenario) -> Value {
    match &node.kind {
        NodeKind::Host(settings) => {
            let mut data = json!({
                "name": node.name,
                "kind": "host",
                "tcp": tcp_data(&settings.tcp),
                "processing": processing_data(settings.processing),
            });
            if let Some(quic) = &settings.quic {
                data["quic"] = quic_data(quic);
            }
            if let Some(resume) = settings.resume {
                data["resume"] = json!({
                    "window_bytes": resume.window,
                    "rtt_s": resume.rtt.as_secs_f64(),
                    "expires_s": (resume.expires < Time::NEVER)
                        .then(|| resume.expires.as_secs_f64()),
                });
            }
            data
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
