//! Exceptions of the module.

use pyo3::exceptions::{PyRuntimeError, PyValueError};

pyo3::create_exception!(
    bentpipe._native,
    ScenarioError,
    PyValueError,
    "The scenario is invalid: one line with file, line, key and what was expected."
);

pyo3::create_exception!(
    bentpipe._native,
    RunError,
    PyRuntimeError,
    "The run failed: one line with the reason."
);
