//! Traffic classes in the engine's type.

use bentpipe_link::{FlowEnd, TrafficClass};
use bentpipe_sim::{Traffic, local_ports};
use bentpipe_types::Address;

use crate::application::schema::AppKind;
use crate::class::settings::PacketClass;
use crate::flow::build::traffic_of;
use crate::scenario::settings::Scenario;

/// Returns the scenario's classes. Hosts in `outside` are real: the ports from which they open
/// connections are unknown.
pub(crate) fn engine_classes(scenario: &Scenario, outside: &[usize]) -> Vec<TrafficClass> {
    if scenario.classes.is_empty() {
        return Vec::new();
    }
    let traffic: Vec<Traffic> = scenario.flows.iter().map(traffic_of).collect();
    let openers = scenario.flows.iter().map(|flow| Address(flow.from as u16));
    let ports = local_ports(openers.zip(&traffic));
    let ends = |index: usize, class: &PacketClass| {
        let flow = &scenario.flows[index];
        let is_real = outside.contains(&flow.from);
        let known = ports[index].map(|ports| ports.bounds());
        let of = |node: usize| Address(node as u16);
        Some(FlowEnd {
            opener: of(flow.from),
            opener_ports: known.filter(|_| !is_real),
            server: flow
                .channel
                .and_then(Address::of_channel)
                .unwrap_or(of(flow.to)),
            server_ports: server_ports(&traffic[index], class, is_real)?,
        })
    };
    let class = |class: &PacketClass| TrafficClass {
        flows: (class.flows.is_some() || class.applications.is_some()).then(|| {
            let named = |index: &usize| {
                let flows = class.flows.as_ref();
                flows.is_none_or(|flows| flows.binary_search(index).is_ok())
            };
            let all = (0..scenario.flows.len()).filter(named);
            all.filter_map(|index| ends(index, class)).collect()
        }),
        hosts: (class.hosts.as_ref())
            .map(|hosts| hosts.iter().map(|host| Address(*host as u16)).collect()),
        ports: (class.ports.as_ref()).map(|ports| {
            ports
                .iter()
                .map(|range| (range.first, range.last))
                .collect()
        }),
    };
    scenario.classes.iter().map(class).collect()
}

/// Returns the server's ports at which a flow belongs to a class: `Some(None)` for all, and `None`
/// for none.
#[expect(
    clippy::option_option,
    reason = "whether at all, and whether at all ports"
)]
fn server_ports(traffic: &Traffic, class: &PacketClass, is_real: bool) -> Option<Option<Vec<u16>>> {
    let ports = |traffic: &Traffic| {
        let mut ports = traffic.ports();
        ports.extend(traffic.calls_back_from());
        ports
    };
    let wanted = |traffic: &Traffic| {
        let kinds = class.applications.as_ref();
        kinds.is_none_or(|kinds| kinds.iter().any(|kind| AppKind::of(traffic) == Some(*kind)))
    };
    match traffic {
        Traffic::Mix(mix) if class.applications.is_some() => {
            let shares = mix.shares.iter().map(|share| &share.traffic);
            let found: Vec<u16> = shares
                .filter(|share| wanted(share))
                .flat_map(ports)
                .collect();
            (!found.is_empty()).then_some(Some(found))
        }
        // Flows of a real host are distinguished by their destination.
        _ if is_real => wanted(traffic).then(|| Some(ports(traffic))),
        _ => wanted(traffic).then_some(None),
    }
}
