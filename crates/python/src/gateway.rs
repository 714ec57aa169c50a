//! A part of a scenario between a machine's own interfaces: the one place that calls
//! `bentpipe_live::gateway`.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bentpipe_live::gateway::{self, Control, Part, Plan, Request as Machine};
use bentpipe_scenario::quantity::Length;
use bentpipe_scenario::{CaptureRequest, RunOptions};
use pyo3::prelude::*;
use serde_json::json;

use crate::engine::{self, Request, Stopped};

/// What a machine is to play, as Python says it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) part: Part,
    /// The links or nodes of the file, each with an interface.
    pub(crate) interfaces: Vec<(String, String)>,
    /// A quantity of time.
    pub(crate) duration: Option<String>,
    /// Say what would be done, and do nothing.
    pub(crate) check: bool,
}

/// How often Python is told the news, and asked whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Plays it in a thread of its own: waiting for the GIL would make packets late. `tell` is called with
/// lines of news now and then, and ends it by returning true. Returns a JSON object.
pub(crate) fn run(
    py: Python<'_>,
    request: Request,
    wanted: Wanted,
    tell: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let scenario = engine::resolve(&request.source, &request.controls).map_err(Stopped::Wrong)?;
    let duration = match &wanted.duration {
        None => None,
        Some(text) => Some(length(text).map_err(Stopped::Wrong)?.0),
    };
    let captures = request.pcap.into_iter();
    let machine = Machine {
        scenario,
        options: RunOptions {
            seed: request.seed,
            captures: captures
                .map(|(place, path)| CaptureRequest { place, path })
                .collect(),
            ..RunOptions::default()
        },
        part: wanted.part,
        interfaces: wanted.interfaces,
        duration,
        source: request.source.path.display().to_string(),
        text: match request.source.text {
            Some(text) => text,
            None => std::fs::read_to_string(&request.source.path).unwrap_or_default(),
        },
    };
    let plan = gateway::plan(&machine).map_err(Stopped::from)?;
    if wanted.check {
        return Ok(json!({ "would": plan.lines(), "notes": plan.notes }).to_string());
    }
    if let Some(obstacle) = gateway::obstacle() {
        let message = format!("this machine can be no gateway: {obstacle}");
        return Err(Stopped::Failed(message).into());
    }
    tell.call1((plan.notes.clone(),))?;
    play(py, &machine, plan, tell)
}

fn play(
    py: Python<'_>,
    machine: &Machine,
    plan: Plan,
    tell: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let control = Control::default();
    let mut interrupted = None;
    let ended = thread::scope(|scope| {
        let control = &control;
        let running = scope.spawn(move || plan.run(machine, control));
        while !running.is_finished() {
            py.detach(pause);
            let news = control
                .lines
                .lock()
                .map(|mut lines| std::mem::take(&mut *lines));
            let seen = py.check_signals().and_then(|()| {
                let stop = tell.call1((news.unwrap_or_default(),))?;
                stop.is_truthy()
            });
            match seen {
                Ok(false) => {}
                Ok(true) => control.stop.store(true, Ordering::Relaxed),
                Err(error) => {
                    interrupted.get_or_insert(error);
                    control.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        running.join()
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    let panicked = |_| Stopped::Failed("internal error: the gateway panicked".to_owned());
    let summary = ended.map_err(panicked)?.map_err(Stopped::from)?;
    Ok(summary.to_string())
}

fn length(text: &str) -> Result<Length, String> {
    let expected = || format!("--duration {text}: expected a time such as \"60 s\"");
    let length: Length = text.parse().map_err(|_| expected())?;
    if length.0.as_nanos() == 0 {
        return Err(expected());
    }
    Ok(length)
}

/// A line that says why this machine can be no gateway; none if it can.
pub(crate) fn obstacle() -> Option<String> {
    gateway::obstacle()
}

/// Removes what killed gateways have left behind: rules, and groups of interfaces.
pub(crate) fn remove_leftovers() -> PyResult<(usize, usize)> {
    let left = gateway::remove_leftovers()?;
    Ok((left.rules, left.groups))
}

#[expect(
    clippy::disallowed_methods,
    reason = "Python's signals are looked at now and then"
)]
fn pause() {
    thread::sleep(LOOK);
}
