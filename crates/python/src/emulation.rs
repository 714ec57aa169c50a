//! Calls `bentpipe_live::emulate`.

use std::sync::atomic::Ordering;

use bentpipe_live::emulate::{self, Control, EmulationResult, Request as Emulation};
use pyo3::prelude::*;

pub(crate) use bentpipe_live::emulate::KernelRules;

use crate::background_work::run_beside_python;
use crate::congestion::Failure;
use crate::engine::{self, FinishedRun, Request, RunFailure, series};

/// A user command: host, words, and whether the run waits for it.
pub(crate) type Command = (String, Vec<String>, bool);

/// Returns an error message if this machine cannot emulate.
pub(crate) fn obstacle() -> Option<String> {
    emulate::obstacle()
}

/// Ends processes left behind by killed emulations.
pub(crate) fn remove_leftovers() -> usize {
    emulate::command::remove_leftovers()
}

/// Options of an emulation that a simulation does not have.
pub(crate) struct LiveOptions {
    pub(crate) commands: Vec<Command>,
    /// Names of hosts with our TCP.
    pub(crate) ours: Vec<String>,
    pub(crate) rules: KernelRules,
}

/// Runs a scenario in real time. A failure of a window rule written in Python ends it early.
pub(crate) fn run(
    py: Python<'_>,
    request: Request,
    live: LiveOptions,
    failure: &Failure,
    progress: Option<&Bound<'_, PyAny>>,
    delivered: Option<&Bound<'_, PyAny>>,
) -> PyResult<(FinishedRun, Option<i32>)> {
    let scenario =
        engine::resolve(&request.source, &request.controls).map_err(RunFailure::Invalid)?;
    let duration_s = scenario.duration.as_secs_f64();
    let emulation = Emulation {
        scenario,
        options: request.options(),
        commands: (live.commands)
            .into_iter()
            .map(|(host, words, waited_for)| emulate::command::Command {
                host,
                words,
                waited_for,
            })
            .collect(),
        ours: live.ours,
        rules: live.rules,
    };
    let control = Control::default();
    let check = || {
        failure.check(py)?;
        let elapsed_s = control.elapsed_ms.load(Ordering::Relaxed) as f64 / 1e3;
        if let Some(progress) = progress {
            progress.call1((elapsed_s, duration_s))?;
        }
        if let (Some(report), Some(counters)) = (delivered, control.delivered.get()) {
            let flows = emulation.scenario.flows.iter().zip(counters);
            let bytes = flows.map(|(flow, count)| (&flow.name, count.load(Ordering::Relaxed)));
            report.call1((elapsed_s, bytes.collect::<Vec<_>>()))?;
        }
        Ok(false)
    };
    let work = || emulate::emulate(&emulation, &control);
    let EmulationResult {
        summary,
        series: recorded,
        status,
    } = run_beside_python(py, "emulation", &control.stop, work, check)?;
    let finished = FinishedRun {
        cores: 1,
        undivided: None,
        summary_json: summary.to_string(),
        series: series(recorded),
    };
    Ok((finished, status))
}
