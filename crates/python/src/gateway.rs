//! Calls `bentpipe_live::gateway`.

use std::ffi::OsString;
use std::io;
use std::thread;
use std::time::Duration;

use bentpipe_live::gateway::command::{self, CommandError, Console, Wake};
use pyo3::prelude::*;

use crate::engine::RunFailure;

/// Interval of the checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The streams and signals of Python.
struct PythonConsole {
    /// Object with the methods `print`, `log`, `handle_signals` and `take_request`.
    console: Py<PyAny>,
    /// Exception that ends the command.
    raised: Option<PyErr>,
}

impl PythonConsole {
    fn call<T>(
        &mut self,
        called: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>,
    ) -> io::Result<T> {
        Python::attach(|py| called(py, &self.console)).map_err(|error| {
            self.raised.get_or_insert(error);
            io::Error::other("Python raised an exception")
        })
    }
}

impl Console for PythonConsole {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.call(|py, console| console.call_method1(py, "print", (text,)).map(drop))
    }

    fn log(&mut self, line: &str) {
        // The next wait ends the command if this raises something.
        let _ = self.call(|py, console| console.call_method1(py, "log", (line,)).map(drop));
    }

    fn check_interrupt(&mut self) -> io::Result<()> {
        self.call(|py, _| py.check_signals())
    }

    fn command(&self) -> Vec<OsString> {
        // In a virtual environment, /proc/self/exe is another interpreter, which lacks the package.
        let interpreter = Python::attach(|py| -> PyResult<OsString> {
            py.import("sys")?.getattr("executable")?.extract()
        });
        let Ok(interpreter) = interpreter else {
            return Vec::new();
        };
        let words = ["-m", "bentpipe", "gateway"].map(OsString::from);
        [interpreter].into_iter().chain(words).collect()
    }

    fn handle_signals(&mut self) -> io::Result<()> {
        self.call(|py, console| console.call_method0(py, "handle_signals").map(drop))
    }

    fn wait(&mut self) -> io::Result<Wake> {
        sleep();
        if self.raised.is_some() {
            return Err(io::Error::other("Python raised an exception"));
        }
        self.call(|py, console| {
            py.check_signals()?;
            let request: Option<String> = console.call_method0(py, "take_request")?.extract(py)?;
            Ok(match request.as_deref() {
                None => Wake::Nothing,
                Some("reload") => Wake::Reload,
                Some(_) => Wake::End,
            })
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "Python's signals are looked at now and then"
)]
fn sleep() {
    thread::sleep(CHECK_INTERVAL);
}

/// Runs the command with the words after its name. Returns the exit status.
pub(crate) fn run(py: Python<'_>, words: Vec<OsString>, console: Py<PyAny>) -> PyResult<u8> {
    let mut console = PythonConsole {
        console,
        raised: None,
    };
    // The GIL is released except in calls of the console, so that no packet waits for it.
    let ended = py.detach(|| command::run(words, &mut console));
    ended.map_err(|error| match error {
        CommandError::Request(message) => RunFailure::Invalid(message).into(),
        CommandError::Failed(message) => RunFailure::Failed(message).into(),
        CommandError::Console(error) => console.raised.take().unwrap_or_else(|| error.into()),
    })
}

/// Returns the parameters of the command: name, option, placeholder of the value, help, and whether
/// it may be repeated.
pub(crate) fn parameters() -> Vec<(String, String, String, String, bool)> {
    (command::parameters().into_iter())
        .map(|each| {
            (
                each.name,
                each.option,
                each.value_name,
                each.help,
                each.is_repeatable,
            )
        })
        .collect()
}

/// Returns an error message if this machine cannot run a gateway.
pub(crate) fn obstacle() -> Option<String> {
    bentpipe_live::gateway::obstacle()
}
