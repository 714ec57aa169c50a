//! Reads the scenario file again for a running gateway.

use std::path::PathBuf;

use bentpipe_scenario::{CustomControls, Outside, RunOptions, Scenario, Station};
use bentpipe_sim::Network;

use super::{GatewayError, Part, Plan, Request, SideName, station};

/// Request and settings of the running gateway, by which a changed file is read and checked.
#[derive(Debug)]
pub(super) struct Reloader {
    request: Request,
    /// The file, and the settings on top of it; `None` if the scenario came from a stream.
    file: Option<(PathBuf, Vec<(String, String)>)>,
    names: [SideName; 2],
    mtus: [u32; 2],
    /// The part that runs.
    scenario: Scenario,
}

impl Reloader {
    pub(super) fn new(
        plan: &Plan,
        request: &Request,
        file: Option<(PathBuf, Vec<(String, String)>)>,
    ) -> Self {
        Self {
            request: request.clone(),
            file,
            names: plan.names.clone(),
            mtus: plan.mtus(),
            scenario: plan.station.scenario.clone(),
        }
    }

    /// Reads the file again. Returns a network with the new settings, which the running gateways
    /// take over, and notes for the user.
    ///
    /// # Errors
    /// One line, if the file is invalid or changes what cannot change while the gateway runs.
    pub(super) fn read(&self) -> Result<(Box<Network>, Vec<String>), String> {
        let Some((path, settings)) = &self.file else {
            return Err("only a scenario that is a file can be read again".to_owned());
        };
        if !matches!(self.request.part, Part::Gateway { .. }) {
            return Err("a --link takes another file after a restart".to_owned());
        }
        let settings: Vec<(&str, &str)> = (settings.iter())
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let scenario = Scenario::load_with(path, &settings, &CustomControls::default())
            .map_err(|error| error.to_string())?;
        let request = Request {
            scenario,
            text: std::fs::read_to_string(path).unwrap_or_default(),
            ..self.request.clone()
        };
        let Station {
            scenario, notes, ..
        } = station(&request, &self.names, self.mtus).map_err(message)?;
        for (new, old) in scenario.links.iter().zip(&self.scenario.links) {
            if new != old {
                let name = &old.name;
                return Err(format!(
                    "links.{name}: a change takes effect after a restart; nothing was changed"
                ));
            }
        }
        let options = RunOptions {
            no_series: true,
            seed: request.options.seed,
            ..RunOptions::default()
        };
        let outside = Outside::new(&scenario, &options, &Station::ENDS, |_, _, _| None)
            .map_err(|error| message(error.into()))?;
        Ok((Box::new(outside.network), notes))
    }
}

fn message(error: GatewayError) -> String {
    match error {
        GatewayError::Request(message) | GatewayError::Failed(message) => message,
    }
}
