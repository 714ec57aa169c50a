//! Gateways in the engine.

use bentpipe_sim::{NetworkBuilder, NodeId};
use bentpipe_types::Port;

use crate::custom::CustomControls;
use crate::gateway::settings::Place;
use crate::node::settings::NodeKind;
use crate::run::error::RunError;
use crate::scenario::settings::Scenario;

/// Puts the gateways into the network, at the places of routers. `ports` has the ports of each link
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
        let NodeKind::Gateway(gateway) = &node.kind else {
            continue;
        };
        let place = Place {
            node: nodes[index],
            nodes,
            ports: &|link| {
                let end = usize::from(scenario.links[link].between[1] == index);
                ports[link][end].clone()
            },
            mtu: &|facing, faces| mtu(scenario, index, facing, faces),
            custom,
            bytes,
        };
        gateway.put(&place, builder)?;
    }
    Ok(())
}

/// Returns the longest packet that all links of a node take, counting only the facing link if
/// `faces` is true, and only the others if it is false.
fn mtu(scenario: &Scenario, node: usize, facing: usize, faces: bool) -> Option<u32> {
    let links = scenario.links.iter().enumerate();
    let own =
        links.filter(|(at, link)| link.ends().any(|end| end == node) && (*at == facing) == faces);
    own.filter_map(|(_, link)| link.whole_mtu()).min()
}
