//! The result of a run for Python.

use std::sync::{Mutex, PoisonError};

use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use bentpipe_scenario::{OrbitColumn, OrbitTable, Segment};

use crate::engine::{self, FinishedRun, Series};

/// The result of a run: the summary as JSON, and the probes as numpy columns.
#[pyclass(frozen, module = "bentpipe._native")]
pub(crate) struct RunOutput {
    #[pyo3(get)]
    summary_json: String,
    /// Number of cores that the run used.
    #[pyo3(get)]
    cores: usize,
    /// Why it used one core although more were requested.
    #[pyo3(get)]
    undivided: Option<String>,
    /// Series that have not been read. The first read of `series` moves them, so that they are
    /// never copied, and numpy is not imported for a caller that needs only the summary.
    pending: Mutex<Vec<Series>>,
    converted: PyOnceLock<Py<PyDict>>,
}

impl From<FinishedRun> for RunOutput {
    fn from(finished: FinishedRun) -> Self {
        Self {
            summary_json: finished.summary_json,
            cores: finished.cores,
            undivided: finished.undivided,
            pending: Mutex::new(finished.series),
            converted: PyOnceLock::new(),
        }
    }
}

/// Returns probe name -> (times in seconds, values, unit).
pub(crate) fn columns(py: Python<'_>, series: Vec<Series>) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for series in series {
        let columns = (
            series.times_s.into_pyarray(py),
            series.values.into_pyarray(py),
            series.unit,
        );
        dict.set_item(series.name, columns)?;
    }
    Ok(dict.unbind())
}

/// Returns path of keys and indices -> line; None if the text is not TOML.
pub(crate) fn key_lines<'py>(py: Python<'py>, text: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(found) = engine::key_lines(text) else {
        return Ok(None);
    };
    let lines = PyDict::new(py);
    for (path, line) in found {
        let steps = path.into_iter().map(|segment| match segment {
            Segment::Key(key) => key.into_bound_py_any(py),
            Segment::Index(index) => index.into_bound_py_any(py),
        });
        let steps = steps.collect::<PyResult<Vec<_>>>()?;
        lines.set_item(PyTuple::new(py, steps)?, line)?;
    }
    Ok(Some(lines))
}

/// Returns table name -> column name -> numpy array, or list of text.
pub(crate) fn tables(py: Python<'_>, tables: Vec<OrbitTable>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for table in tables {
        let columns = PyDict::new(py);
        for (name, column) in table.columns {
            match column {
                OrbitColumn::Numbers(numbers) => {
                    columns.set_item(name, numbers.into_pyarray(py))?
                }
                OrbitColumn::Text(text) => columns.set_item(name, text)?,
            }
        }
        all.set_item(table.name, columns)?;
    }
    Ok(all)
}

#[pymethods]
impl RunOutput {
    /// Probe name -> (times in seconds, values, unit).
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let dict = self.converted.get_or_try_init(py, || {
            let pending = {
                let mut guard = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *guard)
            };
            columns(py, pending)
        })?;
        Ok(dict.clone_ref(py))
    }
}
