//! Work in real time, while Python looks on: the one loop for all that calls `bentpipe-live`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bentpipe_live::emulate::EmulateError;
use pyo3::prelude::*;

use crate::engine::Stopped;

impl From<EmulateError> for Stopped {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Request(message) => Self::Wrong(message),
            EmulateError::Failed(message) => Self::Failed(message),
        }
    }
}

/// How often Python's signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Does the work in a thread of its own: waiting for the GIL would make packets late. Now and then
/// Python's signals are looked at, and `look` is called, which ends the work by returning true, as
/// errors of either do; `stop` is how the work is told. `what` it is, an error says.
pub(crate) fn beside_python<T: Send>(
    py: Python<'_>,
    what: &str,
    stop: &AtomicBool,
    work: impl FnOnce() -> Result<T, EmulateError> + Send,
    mut look: impl FnMut() -> PyResult<bool>,
) -> PyResult<T> {
    let mut interrupted = None;
    let ended = thread::scope(|scope| {
        let running = scope.spawn(work);
        while !running.is_finished() {
            py.detach(pause);
            match py.check_signals().and_then(|()| look()) {
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
    let panicked = |_| Stopped::Failed(format!("internal error: the {what} panicked"));
    Ok(ended.map_err(panicked)?.map_err(Stopped::from)?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "Python's signals are looked at now and then"
)]
fn pause() {
    thread::sleep(LOOK);
}
