//! Calls `bentpipe_live::gateway`.

use bentpipe_live::gateway::{self, Control, Part, Plan, Request as Machine};
use bentpipe_scenario::Addresses;
use bentpipe_scenario::quantity::Length;
use pyo3::prelude::*;
use serde_json::json;

use crate::background_work::run_beside_python;
use crate::engine::{self, Request, RunFailure};

/// The part of a scenario that a machine is to run, as given by Python.
#[derive(Debug)]
pub(crate) struct GatewayOptions {
    pub(crate) part: Part,
    /// Links or nodes of the file, each with an interface.
    pub(crate) interfaces: Vec<(String, String)>,
    /// Addresses of persistent connections: this gateway's and the other's.
    pub(crate) addresses: [Option<String>; 2],
    /// A quantity of time.
    pub(crate) duration: Option<String>,
    /// Whether to return only what would be done.
    pub(crate) check: bool,
}

/// Runs the gateway or link. `tell` is called periodically with new messages, and ends the run by
/// returning true. Returns a JSON object.
pub(crate) fn run(
    py: Python<'_>,
    request: Request,
    options: GatewayOptions,
    tell: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let scenario =
        engine::resolve(&request.source, &request.controls).map_err(RunFailure::Invalid)?;
    let duration = match &options.duration {
        None => None,
        Some(text) => Some(length(text).map_err(RunFailure::Invalid)?.0),
    };
    let addresses = addresses(&options.addresses).map_err(RunFailure::Invalid)?;
    let source = request.source.path.display().to_string();
    let text = match &request.source.text {
        Some(text) => text.clone(),
        None => std::fs::read_to_string(&request.source.path).unwrap_or_default(),
    };
    let machine = Machine {
        scenario,
        options: request.options(),
        part: options.part,
        addresses,
        interfaces: options.interfaces,
        duration,
        source,
        text,
    };
    let plan = gateway::plan(&machine).map_err(RunFailure::from)?;
    if options.check {
        return Ok(json!({ "would": plan.lines(), "notes": plan.notes }).to_string());
    }
    if let Some(obstacle) = gateway::obstacle() {
        let message = format!("this machine cannot run a gateway: {obstacle}");
        return Err(RunFailure::Failed(message).into());
    }
    tell.call1((plan.notes.clone(),))?;
    run_plan(py, &machine, plan, tell)
}

fn run_plan(
    py: Python<'_>,
    machine: &Machine,
    plan: Plan,
    tell: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let control = Control::default();
    let check = || {
        let news = (control.lines.lock()).map(|mut lines| std::mem::take(&mut *lines));
        tell.call1((news.unwrap_or_default(),))?.is_truthy()
    };
    let work = || plan.run(machine, &control);
    let summary = run_beside_python(py, "gateway", &control.stop, work, check)?;
    Ok(summary.to_string())
}

fn addresses(texts: &[Option<String>; 2]) -> Result<Option<Addresses>, String> {
    let parse = |option: &str, text: &str| {
        (text.parse()).map_err(|_| format!("{option} {text}: expected an IP address"))
    };
    match texts {
        [None, None] => Ok(None),
        [Some(own), Some(peer)] => Ok(Some(Addresses {
            own: parse("--address", own)?,
            peer: parse("--peer", peer)?,
        })),
        _ => Err("--address and --peer go together: the two ends of persistent connections between gateways".to_owned()),
    }
}

fn length(text: &str) -> Result<Length, String> {
    let expected = || format!("--duration {text}: expected a time such as \"60 s\"");
    let length: Length = text.parse().map_err(|_| expected())?;
    if length.0.as_nanos() == 0 {
        return Err(expected());
    }
    Ok(length)
}

/// Returns an error message if this machine cannot run a gateway.
pub(crate) fn obstacle() -> Option<String> {
    gateway::obstacle()
}

/// Removes what killed gateways have left behind: rules and interface groups.
pub(crate) fn remove_leftovers() -> PyResult<(usize, usize)> {
    let left = gateway::remove_leftovers()?;
    Ok((left.rules, left.groups))
}
