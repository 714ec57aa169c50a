//! Gateways with persistent connections between them.

use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::gateway::dispatch::Gateway;
use crate::link::settings::Link;
use crate::node::settings::{Node, NodeKind};

/// Refuses `multiplex` if the other gateway does not have it.
pub(crate) fn check_peers(nodes: &[Node], links: &[Link]) -> Result<(), Fault> {
    for node in nodes {
        let NodeKind::Gateway(Gateway::Split(split)) = &node.kind else {
            continue;
        };
        let Some(multiplex) = split.multiplex else {
            continue;
        };
        let peer = &nodes[multiplex.peer];
        let (there, link) = (quoted(&peer.name), quoted(&links[split.facing].name));
        let refuse = |what: String| {
            let message = format!("expected the same at the other end of {link}: {there} {what}");
            Err(fault(&["gateways", &node.name, "multiplex"], message))
        };
        match &peer.kind {
            NodeKind::Gateway(Gateway::Split(other)) if other.facing != split.facing => {
                return refuse("faces another link".to_owned());
            }
            NodeKind::Gateway(Gateway::Split(other)) => match other.multiplex {
                None => return refuse("has no multiplex".to_owned()),
                Some(its) if its.connections != multiplex.connections => {
                    return refuse(format!("has {}", its.connections));
                }
                Some(_) => {}
            },
            NodeKind::Gateway(other) => return refuse(format!("is a {}", other.kind())),
            NodeKind::Host(_) => return refuse("is a host".to_owned()),
        }
    }
    Ok(())
}
