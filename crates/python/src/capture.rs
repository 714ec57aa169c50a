//! The connections of a capture for Python.

use std::path::PathBuf;

use bentpipe_capture::{CaptureError, Columns, Connection, Handshake};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The reason why a capture was not read.
enum Failure {
    Capture(CaptureError),
    /// An exception of the progress function, or a signal.
    Python(PyErr),
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Capture(CaptureError::Io(error)) => PyOSError::new_err(error),
            Failure::Capture(error) => PyValueError::new_err(error.to_string()),
            Failure::Python(error) => error,
        }
    }
}

/// Returns a function that hands the bytes read so far to Python's `progress`.
fn reported(progress: Option<Py<PyAny>>) -> impl FnMut(u64) -> Result<(), Failure> + Send {
    move |read| {
        Python::attach(|py| {
            // Ctrl-C interrupts the reading.
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1(py, (read,))?;
            }
            Ok(())
        })
        .map_err(Failure::Python)
    }
}

/// List the TCP connections of a capture (pcap or pcapng). `progress` is called with the bytes read
/// so far.
#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub(crate) fn capture_connections(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let listing = py.detach(|| bentpipe_capture::connections(&path, reported(progress)))?;
    let dict = PyDict::new(py);
    let connections = listing.connections.iter();
    let connections: PyResult<Vec<_>> = connections.map(|each| described(py, each)).collect();
    dict.set_item("connections", connections?)?;
    dict.set_item("packets", listing.packets)?;
    dict.set_item("others", listing.others)?;
    dict.set_item("other_bytes", listing.other_bytes)?;
    dict.set_item("cut", listing.cut)?;
    Ok(dict)
}

fn described<'py>(py: Python<'py>, connection: &Connection) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let ends = connection
        .ends
        .map(|end| (end.address.to_string(), end.port));
    dict.set_item("ends", ends)?;
    dict.set_item("payload", connection.payload)?;
    dict.set_item("segments", connection.segments)?;
    dict.set_item("times_ns", connection.times_ns)?;
    let options = |handshake: Handshake| {
        (
            handshake.mss,
            handshake.window_scale,
            handshake.sack_permitted,
        )
    };
    dict.set_item(
        "handshakes",
        connection.handshakes.map(|each| each.map(options)),
    )?;
    Ok(dict)
}

/// Return the first segments of a connection of a capture, at most `most`, as numpy columns.
/// `connection` is its index in the listing. `progress` is called with the bytes read so far.
#[pyfunction]
#[pyo3(signature = (path, connection, *, most, progress = None))]
pub(crate) fn capture_segments(
    py: Python<'_>,
    path: PathBuf,
    connection: usize,
    most: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let columns: Columns =
        py.detach(|| bentpipe_capture::segments(&path, connection, most, reported(progress)))?;
    let dict = PyDict::new(py);
    dict.set_item("time_ns", columns.time_ns.into_pyarray(py))?;
    dict.set_item("sender", columns.sender.into_pyarray(py))?;
    dict.set_item("length", columns.length.into_pyarray(py))?;
    dict.set_item("payload", columns.payload.into_pyarray(py))?;
    dict.set_item("sequence", columns.sequence.into_pyarray(py))?;
    dict.set_item("acknowledgment", columns.acknowledgment.into_pyarray(py))?;
    dict.set_item("flags", columns.flags.into_pyarray(py))?;
    dict.set_item("window", columns.window.into_pyarray(py))?;
    dict.set_item("timestamp", columns.timestamp.into_pyarray(py))?;
    dict.set_item("echo", columns.echo.into_pyarray(py))?;
    dict.set_item("sack_segment", columns.sack_segment.into_pyarray(py))?;
    dict.set_item("sack_from", columns.sack_from.into_pyarray(py))?;
    dict.set_item("sack_to", columns.sack_to.into_pyarray(py))?;
    dict.set_item("limited", columns.limited)?;
    Ok(dict)
}
