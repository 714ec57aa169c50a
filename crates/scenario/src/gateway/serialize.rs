//! Gateways as data.

use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::gateway::schema::GatewayKind;
use crate::gateway::settings::{Anticipation, Crash, HybridGateway, SplitGateway, TrafficClass};
use crate::node::processing::processing_data;
use crate::scenario::settings::Scenario;
use crate::tcp::settings::tcp_data;

pub(crate) fn split_gateway_data(split: &SplitGateway, scenario: &Scenario) -> Value {
    let class = |class: &Option<TrafficClass>| {
        class.as_ref().map(|class| {
            let name = |index: &usize| scenario.nodes[*index].name.as_str();
            json!({
                "ports": class.ports.as_ref().map(|ports| {
                    ports.iter().map(|range| [range.first, range.last]).collect::<Vec<_>>()
                }),
                "hosts": class.hosts.as_ref()
                    .map(|hosts| hosts.iter().map(name).collect::<Vec<_>>()),
            })
        })
    };
    json!({
        "kind": GatewayKind::Split,
        "facing": scenario.links[split.facing].name,
        "tcp": tcp_data(&split.tcp),
        "host_tcp": tcp_data(&split.host_tcp),
        "set_up": split.set_up,
        "close": split.close,
        "memory_bytes": split.memory.get(),
        "only": class(&split.only),
        "except": class(&split.except),
        "processing": processing_data(split.processing),
        "warm_path": split.warm_path,
        "multiplex": split.multiplex.map(|with| with.connections),
        "idle_timeout_s": split.idle_timeout.as_secs_f64(),
        "crashes": crashes_data(&split.crashes),
    })
}

pub(crate) fn hybrid_gateway_data(hybrid: &HybridGateway, scenario: &Scenario) -> Value {
    json!({
        "kind": GatewayKind::Hybrid,
        "facing": scenario.links[hybrid.facing].name,
        "receive_buffer_bytes": hybrid.receive_buffer.get(),
        "store_bytes": hybrid.store.get(),
        "memory_bytes": hybrid.memory.get(),
        "connections": hybrid.connections,
        "ack_timeout_s": hybrid.ack_timeout.as_secs_f64(),
        "ack_every": hybrid.ack_every,
        "anticipation": match hybrid.anticipation {
            Anticipation::Unlimited => json!("unlimited"),
            Anticipation::Strict => json!("strict"),
            Anticipation::Factor(factor) => json!(factor),
        },
        "tcp": hybrid.tcp.as_ref().map(tcp_data),
        "congestion_window": hybrid.tcp.is_some() && hybrid.congestion_window,
        "retransmission_timeout_s": hybrid.retransmission_timeout.map(Span::as_secs_f64),
        "give_up_s": hybrid.give_up.as_secs_f64(),
        "idle_timeout_s": hybrid.idle_timeout.as_secs_f64(),
        "processing": processing_data(hybrid.processing),
        "crashes": crashes_data(&hybrid.crashes),
    })
}

fn crashes_data(crashes: &[Crash]) -> Value {
    let each = |crash: &Crash| json!({ "at_s": crash.at.as_secs_f64(), "lasts_s": crash.lasts.as_secs_f64() });
    crashes.iter().map(each).collect()
}
