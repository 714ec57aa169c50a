//! Constellations, sites and paths with every default filled in.

use std::sync::Arc;

use bentpipe_link::{InFlight, Sending};
use bentpipe_orbits::{Constellation, Routing, Selection, Site, Timeline};
use bentpipe_types::Span;

use crate::orbit::variation::Variation;

/// The constellations and sites of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Orbits {
    /// Constellations in the order of the file. Paths refer to them by index.
    pub constellations: Vec<NamedConstellation>,
    /// Sites in the order of the file. Paths refer to them by index.
    pub sites: Vec<Site>,
}

/// A constellation with its name.
#[derive(Clone, Debug)]
pub struct NamedConstellation {
    /// Its name.
    pub name: String,
    /// Its satellites.
    pub satellites: Arc<Constellation>,
    /// Altitude of all its satellites in metres, if they have one in common.
    pub altitude: Option<f64>,
    /// Preset or file that it is from.
    pub origin: Option<String>,
}

impl PartialEq for Orbits {
    /// Compares sites, and the names of constellations and satellites.
    fn eq(&self, other: &Self) -> bool {
        let names = |of: &Self| -> Vec<(String, Vec<String>)> {
            let constellations = of.constellations.iter();
            constellations
                .map(|each| {
                    let satellites = each.satellites.satellites.iter();
                    let names = satellites.map(|satellite| satellite.name.clone());
                    (each.name.clone(), names.collect())
                })
                .collect()
        };
        self.sites == other.sites && names(self) == names(other)
    }
}

/// The path of a link over satellites.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkPath {
    /// Index of the constellation.
    pub constellation: usize,
    /// Index of the terminal's site.
    pub from: usize,
    /// Indices of the gateways' sites.
    pub to: Vec<usize>,
    /// How packets get to the gateway.
    pub routing: Routing,
    /// Rule for the terminal's satellite.
    pub selection: Selection,
    /// Time between two decisions.
    pub slot: Span,
    /// How much higher another satellite must be, in degrees.
    pub hysteresis: f64,
    /// Delay in each direction in addition to propagation.
    pub extra_delay: Span,
    /// Variation of delay and losses beyond the geometry.
    pub variation: Option<Variation>,
    /// Outage at a change of the satellite.
    pub handover: Span,
    /// Outage at a change of the gateway.
    pub gateway_handover: Span,
    /// Effect of outages on packets that would be sent.
    pub sending: Sending,
    /// Effect of outages on packets in transit.
    pub in_flight: InFlight,
    /// Distance in metres for which the Es/N0 of `acm` holds.
    pub es_n0_range: Option<f64>,
    /// Duration of the run.
    pub(crate) duration: Span,
    /// The satellites over time.
    pub timeline: Timeline,
}
