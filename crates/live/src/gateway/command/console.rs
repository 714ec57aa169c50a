//! The process around the command: its streams and signals, and how it fails.

use std::ffi::OsString;
use std::io;

use serde_json::Value;

use crate::emulate::EmulateError;

/// Standard streams and signals of the process that runs the command.
pub trait Console {
    /// Writes text to standard output.
    ///
    /// # Errors
    /// If it cannot be written. The command ends with this error.
    fn print(&mut self, text: &str) -> io::Result<()>;

    /// Writes a line to standard error. Errors are ignored: a reader that is gone, or a full disk,
    /// must not end a gateway.
    fn log(&mut self, line: &str);

    /// Checks for signals after a signal has interrupted a system call.
    ///
    /// # Errors
    /// If the command is to end. It ends with this error.
    fn check_interrupt(&mut self) -> io::Result<()>;

    /// Returns the program and first words that run this command in another process.
    fn command(&self) -> Vec<OsString> {
        vec!["/proc/self/exe".into()]
    }

    /// From now on, has [`Console::wait`] report SIGINT, SIGTERM and SIGHUP. An ignored SIGHUP, as
    /// under nohup, stays ignored.
    ///
    /// # Errors
    /// If the system refuses it.
    fn handle_signals(&mut self) -> io::Result<()>;

    /// Whether the threads of the process drop the privileges that they do not need, after the
    /// set-up.
    fn drops_privileges(&self) -> bool {
        false
    }

    /// Waits for a fraction of a second. Returns what a signal has requested.
    ///
    /// # Errors
    /// If the command is to end with this error.
    fn wait(&mut self) -> io::Result<Wake>;
}

/// Prints a JSON value, indented.
pub(super) fn print_pretty(console: &mut dyn Console, value: &Value) -> io::Result<()> {
    console.print(&format!("{value:#}\n"))
}

/// Request of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// No signal has arrived.
    Nothing,
    /// SIGHUP: read the scenario file again.
    Reload,
    /// SIGINT or SIGTERM: end.
    End,
}

/// The reason why the command failed.
#[derive(Debug)]
pub enum CommandError {
    /// The request is wrong: one line. Exit status 2.
    Request(String),
    /// The request is valid and the work failed: one line. Exit status 1.
    Failed(String),
    /// An error of the console.
    Console(io::Error),
}

impl From<EmulateError> for CommandError {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Request(message) => Self::Request(message),
            EmulateError::Failed(message) => Self::Failed(message),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Console(error)
    }
}
