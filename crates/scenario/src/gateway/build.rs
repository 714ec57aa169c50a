//! Gateways that do more than route.

use bentpipe_gateway::hybrid::{self, Hybrid};
use bentpipe_gateway::split::{self, Split};
use bentpipe_gateway::{ConnectionClass, CrashingAgent, VolatileAgent};
use bentpipe_sim::{NetworkBuilder, NodeId};
use bentpipe_tcp::{Ranges, Rings};
use bentpipe_types::{Agent, Port, Time};

use crate::custom::CustomControls;
use crate::gateway::schema::{Close, SetUp};
use crate::gateway::settings::{
    Anticipation, Crash, Gateway, HybridGateway, SplitGateway, TrafficClass,
};
use crate::node::processing::engine_processing;
use crate::node::settings::NodeKind;
use crate::run::error::RunError;
use crate::scenario::settings::Scenario;
use crate::tcp::build::{tcp_config, within_mtu};
use crate::tcp::settings::TcpSettings;

/// Puts each gateway that does more than route into the network. `ports` has the ports of each link
/// at its two ends. With `bytes`, gateways store the contents of the streams.
pub(crate) fn put_gateways(
    scenario: &Scenario,
    nodes: &[NodeId],
    ports: &[[Vec<Port>; 2]],
    custom: &CustomControls,
    bytes: bool,
    builder: &mut NetworkBuilder,
) -> Result<(), RunError> {
    for (index, node) in scenario.nodes.iter().enumerate() {
        match &node.kind {
            NodeKind::Host(_) | NodeKind::Gateway(Gateway::Router { .. }) => {}
            NodeKind::Gateway(Gateway::Split(split)) => {
                let end = usize::from(scenario.links[split.facing].between[1] == index);
                let Some(facing) = ports[split.facing][end].first().copied() else {
                    debug_assert!(false, "a link has two ends");
                    continue;
                };
                let mut settings = settings(split, facing, nodes, custom)?;
                let mtu = |faces| mtu(scenario, index, split.facing, faces);
                settings.facing_tcp = within_mtu(settings.facing_tcp, mtu(true));
                settings.host_tcp = within_mtu(settings.host_tcp, mtu(false));
                let agent = if bytes {
                    with_crashes(Split::<Rings>::new(settings), &split.crashes)
                } else {
                    with_crashes(Split::<Ranges>::new(settings), &split.crashes)
                };
                builder.replace(nodes[index], agent);
            }
            NodeKind::Gateway(Gateway::Hybrid(gateway)) => {
                let end = usize::from(scenario.links[gateway.facing].between[1] == index);
                let facing = ports[gateway.facing][end].clone();
                let settings = hybrid::Settings {
                    facing_mtu: mtu(scenario, index, gateway.facing, true),
                    ..hybrid_settings(gateway, facing, custom)?
                };
                let agent = with_crashes(Hybrid::new(settings), &gateway.crashes);
                builder.replace(nodes[index], agent);
            }
        }
    }
    Ok(())
}

/// Boxes the gateway, with its crashes if it has any.
fn with_crashes<A: VolatileAgent + Send + 'static>(
    agent: A,
    crashes: &[Crash],
) -> Box<dyn Agent + Send> {
    if crashes.is_empty() {
        return Box::new(agent);
    }
    let each = |crash: &Crash| bentpipe_gateway::Crash {
        at: Time::ZERO + crash.at,
        duration: crash.lasts,
    };
    Box::new(CrashingAgent::new(agent, crashes.iter().map(each)))
}

/// Returns the longest packet that all links of a node take, counting only the facing link if
/// `faces` is true, and only the others if it is false.
fn mtu(scenario: &Scenario, node: usize, facing: usize, faces: bool) -> Option<u32> {
    let links = scenario.links.iter().enumerate();
    let own =
        links.filter(|(at, link)| link.ends().any(|end| end == node) && (*at == facing) == faces);
    own.filter_map(|(_, link)| link.whole_mtu()).min()
}

fn settings(
    gateway: &SplitGateway,
    facing: Port,
    nodes: &[NodeId],
    custom: &CustomControls,
) -> Result<split::Settings, RunError> {
    let tcp = |tcp: &TcpSettings| -> Result<_, RunError> { tcp_config(tcp, custom) };
    let class = |class: &Option<TrafficClass>| class.as_ref().map(|class| class_of(class, nodes));
    Ok(split::Settings {
        facing,
        facing_tcp: tcp(&gateway.tcp)?,
        host_tcp: tcp(&gateway.host_tcp)?,
        set_up: match gateway.set_up {
            SetUp::EndToEnd => split::Confirmation::EndToEnd,
            SetUp::Early => split::Confirmation::Early,
        },
        close: match gateway.close {
            Close::EndToEnd => split::Confirmation::EndToEnd,
            Close::Early => split::Confirmation::Early,
        },
        memory: gateway.memory.get(),
        only: class(&gateway.only),
        except: class(&gateway.except),
        processing: gateway.processing.map(engine_processing),
        warm_path: gateway.warm_path,
        idle_timeout: gateway.idle_timeout,
        suspend_after: split::SUSPEND_AFTER,
        multiplex: gateway.multiplex.map(|with| split::Multiplexing {
            peer: nodes[with.peer].address(),
            connections: with.connections as usize,
            real: with.real.map(|real| split::RealAddresses {
                hosts: nodes[real.hosts].address(),
                own: real.addresses.own,
                peer: real.addresses.peer,
            }),
        }),
    })
}

fn hybrid_settings(
    gateway: &HybridGateway,
    facing: Vec<Port>,
    custom: &CustomControls,
) -> Result<hybrid::Settings, RunError> {
    Ok(hybrid::Settings {
        facing,
        receive_buffer: gateway.receive_buffer.get(),
        store: Some(gateway.store.get()),
        memory: gateway.memory.get(),
        connections: gateway.connections as usize,
        ack_timeout: gateway.ack_timeout,
        ack_every: gateway.ack_every,
        anticipation: match gateway.anticipation {
            Anticipation::Unlimited => hybrid::Anticipation::Unlimited,
            Anticipation::Strict => hybrid::Anticipation::Strict,
            Anticipation::Factor(factor) => hybrid::Anticipation::Factor(factor),
        },
        recovery: match &gateway.tcp {
            None => hybrid::Recovery::Timer,
            Some(tcp) => hybrid::Recovery::Tcp {
                config: Box::new(tcp_config(tcp, custom)?),
                congestion_window: gateway.congestion_window,
            },
        },
        retransmission_timeout: gateway.retransmission_timeout,
        give_up: gateway.give_up,
        idle: gateway.idle_timeout,
        processing: gateway.processing.map(engine_processing),
        ..hybrid::Settings::default()
    })
}

fn class_of(class: &TrafficClass, nodes: &[NodeId]) -> ConnectionClass {
    ConnectionClass {
        ports: (class.ports.as_ref()).map(|ports| {
            ports
                .iter()
                .map(|range| (range.first, range.last))
                .collect()
        }),
        hosts: class.hosts.as_ref().map(|hosts| {
            let address = |index: &usize| nodes[*index].address().into();
            hosts.iter().map(address).collect()
        }),
    }
}
