//! Network address translation at the operator's point of presence.

use bentpipe_gateway::{AddressChanger, AddressChangerSettings};
use bentpipe_sim::NetworkBuilder;
use bentpipe_types::{Span, Time};
use serde_json::{Value, json};

use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::gateway::parts::{GatewayContext, facing};
use crate::gateway::schema::{GatewayFile, GatewayKind};
use crate::gateway::settings::{GatewayFacts, GatewaySettings, Names, Place, RealLinks};
use crate::run::error::RunError;
use crate::station_error::StationError;

/// A translator whose outside address changes with the satellite gateway of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatGateway {
    /// Index of the link to its hosts, whose path over satellites changes the gateway.
    pub facing: usize,
    /// Times at which the outside address changes.
    pub changes: Vec<Span>,
}

impl GatewaySettings for NatGateway {
    const FACTS: GatewayFacts = GatewayFacts {
        ends_connections: false,
        acknowledges: false,
    };

    fn resolve(
        name: &str,
        file: &GatewayFile,
        node: usize,
        around: &GatewayContext<'_>,
    ) -> Result<Self, Fault> {
        let facing = facing(name, file, node, around)?;
        let link = &around.links[facing];
        let Some(path) = &link.path else {
            let message = format!(
                "expected a link with a path over satellites: {} has none",
                quoted(&link.name)
            );
            return Err(fault(&["gateways", name, "facing"], message));
        };
        Ok(Self {
            facing,
            changes: path.gateway_changes(),
        })
    }

    fn measured(&self, names: &Names<'_>) -> Value {
        let changes = self.changes.iter().copied().map(Span::as_secs_f64);
        json!({
            "kind": GatewayKind::Nat,
            "facing": (names.link)(self.facing),
            "changes_s": changes.collect::<Vec<_>>(),
        })
    }

    fn put(&self, place: &Place<'_>, builder: &mut NetworkBuilder) -> Result<(), RunError> {
        let agent = AddressChanger::new(AddressChangerSettings {
            inside: (place.ports)(self.facing),
            changes: self.changes.iter().map(|at| Time::ZERO + *at).collect(),
        });
        builder.replace(place.node, Box::new(agent));
        Ok(())
    }

    fn between_real_links(&self, station: &mut RealLinks<'_>) -> Result<Self, StationError> {
        let mut nat = self.clone();
        nat.facing = station.facing(self.facing)?;
        Ok(nat)
    }

    fn needs_both_directions(&self) -> bool {
        true
    }
}
