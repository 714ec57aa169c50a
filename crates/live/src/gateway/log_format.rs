//! Log lines with time, level and connection, as text or JSON.

use std::io;
use std::sync::Arc;

use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::MakeWriter;

use super::Control;

/// Format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogFormat {
    Text,
    Json,
}

/// Returns the receiver of all events of this level and above, which hands their lines to the
/// console.
pub(super) fn dispatch(format: LogFormat, level: Level, control: &Arc<Control>) -> Dispatch {
    let lines = Lines(Arc::clone(control));
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .with_max_level(level)
        .with_writer(lines);
    match format {
        LogFormat::Text => subscriber.into(),
        LogFormat::Json => subscriber.json().flatten_event(true).into(),
    }
}

/// Makes a writer for each event.
struct Lines(Arc<Control>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            control: &self.0,
            content: Vec::new(),
        }
    }
}

/// Collects the text of an event, and reports it at the end.
struct Line<'a> {
    control: &'a Control,
    content: Vec<u8>,
}

impl io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.content);
        self.control.report_formatted(text.trim_end().to_owned());
    }
}
