//! Terminals on carriers, for directions with capacity on demand.

use std::collections::BTreeMap;

use bentpipe_link::{Access, Carrier, CarrierSettings, TerminalSettings};

use crate::access::settings::OnDemand;
use crate::link::settings::Way;
use crate::scenario::settings::Scenario;

/// A direction: the index of its link, and its way.
type Of = (usize, Way);

/// The directions that share a carrier.
type CarrierMembers = Vec<(Of, TerminalSettings)>;

/// Returns the terminal of each direction with capacity on demand. Those that share a carrier are
/// in the order of the file.
pub(crate) fn access_terminals(scenario: &Scenario) -> BTreeMap<Of, Access> {
    let links = scenario.links.iter().enumerate();
    let on_demand = links.flat_map(|(index, link)| {
        let directions = link.directions();
        directions
            .filter_map(move |(way, direction)| Some(((index, way), direction.access.as_ref()?)))
    });
    let mut shared: BTreeMap<&str, (CarrierSettings, CarrierMembers)> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (of, access) in on_demand {
        let terminal = access.terminal;
        let carrier = settings(access);
        match access.carrier.name.as_deref() {
            Some(name) => {
                let (_, members) = shared.entry(name).or_insert((carrier, Vec::new()));
                members.push((of, terminal));
            }
            None => places.extend(std::iter::once(of).zip(Carrier::shared(carrier, &[terminal]))),
        }
    }
    for (carrier, members) in shared.into_values() {
        let (of, terminals): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        places.extend(of.into_iter().zip(Carrier::shared(carrier, &terminals)));
    }
    places
}

fn settings(access: &OnDemand) -> CarrierSettings {
    CarrierSettings {
        rate: access.carrier.rate,
        frame: access.carrier.frame,
        processing: access.carrier.processing,
    }
}
