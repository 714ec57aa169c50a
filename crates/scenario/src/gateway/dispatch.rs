//! Gateways of any kind.

use std::sync::Arc;

use bentpipe_sim::NetworkBuilder;
use bentpipe_types::Gauge;
use serde_json::Value;

use crate::fault::{Fault, fault};
use crate::gateway::hybrid::HybridGateway;
use crate::gateway::kinds::gateways;
use crate::gateway::nat::NatGateway;
use crate::gateway::parts::GatewayContext;
use crate::gateway::router::RouterGateway;
use crate::gateway::schema::{GatewayFile, GatewayKind};
use crate::gateway::settings::{GatewayFacts, GatewaySettings, Names, Place, RealLinks};
use crate::gateway::split::SplitGateway;
use crate::run::error::RunError;
use crate::station_error::StationError;

/// Defines the gateways of any kind.
macro_rules! dispatch {
    (
        keys $keys:tt
        kinds {
            $($(#[$doc:meta])* $kind:ident = $name:literal: $settings:ident, keys $own:tt;)+
        }
    ) => {
        /// A gateway: how it treats the packets that it forwards. Gateways of one `count` that face
        /// one link share settings.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Gateway {
            $(
                #[doc = concat!("A scenario file's `", $name, "`.")]
                $kind(Arc<$settings>),
            )+
        }

        impl Gateway {
            /// Returns its kind.
            #[must_use]
            pub fn kind(&self) -> GatewayKind {
                match self {
                    $(Self::$kind(_) => GatewayKind::$kind,)+
                }
            }

            /// Returns the gateway of this name, which is the node with this index.
            pub(crate) fn resolve(
                name: &str,
                file: &GatewayFile,
                node: usize,
                around: &GatewayContext<'_>,
            ) -> Result<Self, Fault> {
                let keys = file.kind.keys();
                if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
                    let message = format!("has no effect: the gateway's kind is \"{}\"", file.kind);
                    return Err(fault(&["gateways", name, foreign], message));
                }
                Ok(match file.kind {
                    $(GatewayKind::$kind => {
                        let settings = <$settings>::resolve(name, file, node, around)?;
                        Self::$kind(Arc::new(settings))
                    })+
                })
            }

            /// Returns its settings as results give them: an object.
            pub(crate) fn measured(&self, names: &Names<'_>) -> Value {
                match self {
                    $(Self::$kind(settings) => settings.measured(names),)+
                }
            }

            /// Puts it into the network, at the place of a router.
            pub(crate) fn put(
                &self,
                place: &Place<'_>,
                builder: &mut NetworkBuilder,
            ) -> Result<(), RunError> {
                match self {
                    $(Self::$kind(settings) => settings.put(place, builder),)+
                }
            }

            /// Converts it to a gateway between two real links.
            pub(crate) fn between_real_links(
                &self,
                station: &mut RealLinks<'_>,
            ) -> Result<Self, StationError> {
                Ok(match self {
                    $(Self::$kind(settings) => {
                        Self::$kind(Arc::new(settings.between_real_links(station)?))
                    })+
                })
            }

            /// Returns the quantities that probes can record.
            #[must_use]
            pub fn gauges(&self) -> &'static [Gauge] {
                match self {
                    $(Self::$kind(settings) => settings.gauges(),)+
                }
            }

            /// Whether both directions of every connection have to pass it.
            pub(crate) fn needs_both_directions(&self) -> bool {
                match self {
                    $(Self::$kind(settings) => settings.needs_both_directions(),)+
                }
            }
        }

        impl GatewayKind {
            /// Returns the properties of a kind for closed forms and advice.
            #[must_use]
            pub fn facts(self) -> GatewayFacts {
                match self {
                    $(Self::$kind => <$settings as GatewaySettings>::FACTS,)+
                }
            }

            /// Returns the quantities that probes can record of a kind, for the reference, and the
            /// connections that they are about.
            pub(crate) fn probes(self) -> Option<(&'static str, &'static [Gauge])> {
                match self {
                    $(Self::$kind => <$settings as GatewaySettings>::PROBES,)+
                }
            }
        }
    };
}

gateways!(dispatch);
