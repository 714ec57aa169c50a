//! A scenario in real time: the one place that calls `bentpipe-live`.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bentpipe_live::emulate::{self, Control, EmulateError, Emulated, Request as Emulation};
use bentpipe_scenario::{CaptureRequest, RunOptions};
use pyo3::prelude::*;

use crate::engine::{self, Finished, Request, Stopped, series};

/// A command of the user's own: host, words, whether it is what is waited for.
pub(crate) type Command = (String, Vec<String>, bool);

impl From<EmulateError> for Stopped {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Request(message) => Self::Wrong(message),
            EmulateError::Failed(message) => Self::Failed(message),
        }
    }
}

/// A line that says why nothing can be emulated here; none if it can.
pub(crate) fn obstacle() -> Option<String> {
    emulate::obstacle()
}

/// Ends what killed emulations have left behind.
pub(crate) fn remove_leftovers() -> usize {
    emulate::command::remove_leftovers()
}

/// How often Python's signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs in real time, in a thread of its own: waiting for the GIL would make packets late.
pub(crate) fn run(
    py: Python<'_>,
    request: Request,
    commands: Vec<Command>,
    ours: Vec<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Finished, Option<i32>)> {
    let scenario = engine::resolve(&request.source, &request.controls).map_err(Stopped::Wrong)?;
    let duration_s = scenario.duration.as_secs_f64();
    let captures = request.pcap.into_iter();
    let emulation = Emulation {
        scenario,
        options: RunOptions {
            seed: request.seed,
            captures: captures
                .map(|(place, path)| CaptureRequest { place, path })
                .collect(),
            default_probes: request.default_probes,
            ..RunOptions::default()
        },
        commands: commands
            .into_iter()
            .map(|(host, words, waited_for)| emulate::command::Command {
                host,
                words,
                waited_for,
            })
            .collect(),
        ours,
    };
    let control = Control::default();
    let mut interrupted = None;
    let emulated = thread::scope(|scope| {
        let (emulation, control) = (&emulation, &control);
        let running = scope.spawn(move || emulate::emulate(emulation, control));
        while !running.is_finished() {
            py.detach(pause);
            let mut seen = py.check_signals();
            if let (Ok(()), Some(progress)) = (&seen, progress) {
                let elapsed_s = control.elapsed_ms.load(Ordering::Relaxed) as f64 / 1e3;
                seen = progress.call1((elapsed_s, duration_s)).map(drop);
            }
            if let Err(error) = seen {
                interrupted.get_or_insert(error);
                control.stop.store(true, Ordering::Relaxed);
            }
        }
        running.join()
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    let panicked = |_| Stopped::Failed("internal error: the emulation panicked".to_owned());
    let Emulated {
        summary,
        series: recorded,
        status,
    } = emulated.map_err(panicked)?.map_err(Stopped::from)?;
    let finished = Finished {
        summary_json: summary.to_string(),
        series: series(recorded),
    };
    Ok((finished, status))
}

#[expect(
    clippy::disallowed_methods,
    reason = "Python's signals are looked at now and then"
)]
fn pause() {
    thread::sleep(LOOK);
}
