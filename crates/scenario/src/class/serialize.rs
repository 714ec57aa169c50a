//! Traffic classes as data.

use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::scenario::settings::Scenario;

pub(crate) fn class_data(class: &PacketClass, scenario: &Scenario) -> Value {
    let flows = class.flows.as_ref().map(|flows| {
        let names = flows.iter().map(|flow| scenario.flows[*flow].name.as_str());
        names.collect::<Vec<_>>()
    });
    let hosts = class.hosts.as_ref().map(|hosts| {
        let names = hosts.iter().map(|host| scenario.nodes[*host].name.as_str());
        names.collect::<Vec<_>>()
    });
    json!({
        "name": &*class.name,
        "flows": flows,
        "applications": class.applications,
        "hosts": hosts,
        "ports": (class.ports.as_ref())
            .map(|ports| ports.iter().map(ToString::to_string).collect::<Vec<_>>()),
    })
}
