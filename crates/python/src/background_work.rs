//! Runs work of `bentpipe-live` in a thread while Python's signals are checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bentpipe_live::emulate::EmulateError;
use pyo3::prelude::*;

use crate::engine::RunFailure;

impl From<EmulateError> for RunFailure {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Request(message) => Self::Invalid(message),
            EmulateError::Failed(message) => Self::Failed(message),
        }
    }
}

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` in a thread of its own, since waiting for the GIL would delay packets. Meanwhile,
/// checks Python's signals and calls `check` periodically. If `check` returns true, or either
/// raises, `stop` is set to end the work. `what` names the work in errors.
pub(crate) fn run_beside_python<T: Send>(
    py: Python<'_>,
    what: &str,
    stop: &AtomicBool,
    work: impl FnOnce() -> Result<T, EmulateError> + Send,
    mut check: impl FnMut() -> PyResult<bool>,
) -> PyResult<T> {
    let mut interrupted = None;
    let ended = thread::scope(|scope| {
        let running = scope.spawn(work);
        while !running.is_finished() {
            py.detach(wait);
            match py.check_signals().and_then(|()| check()) {
                Ok(false) => {}
                Ok(true) => stop.store(true, Ordering::Relaxed),
                Err(error) => {
                    interrupted.get_or_insert(error);
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        running.join()
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    let panicked = |_| RunFailure::Failed(format!("internal error: the {what} panicked"));
    Ok(ended.map_err(panicked)?.map_err(RunFailure::from)?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "Python's signals are looked at now and then"
)]
fn wait() {
    thread::sleep(CHECK_INTERVAL);
}
