//! Routers.

use bentpipe_sim::NetworkBuilder;
use bentpipe_types::{Gauge, WithProcessor};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::gateway::parts::GatewayContext;
use crate::gateway::schema::{GatewayFile, GatewayKind};
use crate::gateway::settings::{GatewayFacts, GatewaySettings, Names, Place, RealLinks};
use crate::node::processing::{Processing, engine_processing, processing_data, resolve_processing};
use crate::run::error::RunError;
use crate::station_error::StationError;

/// A router: it forwards packets unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterGateway {
    /// Whether it sends ICMP errors about packets that it cannot forward.
    pub icmp: bool,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
}

impl GatewaySettings for RouterGateway {
    const FACTS: GatewayFacts = GatewayFacts {
        ends_connections: false,
        acknowledges: false,
    };

    fn resolve(
        name: &str,
        file: &GatewayFile,
        _: usize,
        _: &GatewayContext<'_>,
    ) -> Result<Self, Fault> {
        Ok(Self {
            icmp: file.icmp.unwrap_or(true),
            processing: resolve_processing("gateways", name, file.processing.as_ref())?,
        })
    }

    fn measured(&self, _: &Names<'_>) -> Value {
        json!({
            "kind": GatewayKind::Router,
            "icmp": self.icmp,
            "processing": processing_data(self.processing),
        })
    }

    fn put(&self, place: &Place<'_>, builder: &mut NetworkBuilder) -> Result<(), RunError> {
        if !self.icmp {
            builder.silence(place.node);
        }
        if let Some(processing) = self.processing {
            builder.serve(place.node, engine_processing(processing));
        }
        Ok(())
    }

    fn between_real_links(&self, station: &mut RealLinks<'_>) -> Result<Self, StationError> {
        if self.processing.is_some() {
            station.note_processing();
        }
        Ok(Self {
            icmp: true,
            processing: None,
        })
    }

    fn gauges(&self) -> &'static [Gauge] {
        if self.processing.is_some() {
            WithProcessor::GAUGES
        } else {
            &[]
        }
    }
}
