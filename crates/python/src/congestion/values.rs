//! The objects that a congestion control in Python receives.

use bentpipe_scenario::congestion::{AckSample, Span, Window};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The congestion window that a rule changes, in bytes.
///
/// The numbers are floating point, so that fractions of a byte are kept between callbacks.
#[pyclass(name = "Window", module = "bentpipe._native")]
pub(crate) struct PythonWindow {
    congestion_window: f64,
    slow_start_threshold: f64,
    #[pyo3(get)]
    segment: u32,
}

impl From<&Window> for PythonWindow {
    fn from(window: &Window) -> Self {
        Self {
            congestion_window: window.congestion_window as f64,
            slow_start_threshold: threshold(window),
            segment: window.segment,
        }
    }
}

/// Returns the slow start threshold; infinite if there is none.
fn threshold(window: &Window) -> f64 {
    match window.slow_start_threshold {
        u64::MAX => f64::INFINITY,
        bytes => bytes as f64,
    }
}

impl PythonWindow {
    /// Takes over changes that others have made to the window.
    pub(super) fn update_from(&mut self, window: &Window) {
        if self.congestion_window as u64 != window.congestion_window {
            self.congestion_window = window.congestion_window as f64;
        }
        if self.slow_start_threshold as u64 != window.slow_start_threshold {
            self.slow_start_threshold = threshold(window);
        }
    }

    /// Stores the whole bytes. Infinity becomes the largest number, which means no threshold.
    pub(super) fn store(&self, window: &mut Window) {
        window.congestion_window = self.congestion_window as u64;
        window.slow_start_threshold = self.slow_start_threshold as u64;
    }
}

#[pymethods]
impl PythonWindow {
    #[getter]
    fn congestion_window(&self) -> f64 {
        self.congestion_window
    }

    #[setter]
    fn set_congestion_window(&mut self, bytes: f64) -> PyResult<()> {
        if !(bytes.is_finite() && bytes >= 0.0) {
            return Err(invalid_number("congestion_window", bytes));
        }
        self.congestion_window = bytes;
        Ok(())
    }

    #[getter]
    fn slow_start_threshold(&self) -> f64 {
        self.slow_start_threshold
    }

    #[setter]
    fn set_slow_start_threshold(&mut self, bytes: f64) -> PyResult<()> {
        if bytes.is_nan() || bytes < 0.0 {
            return Err(invalid_number("slow_start_threshold", bytes));
        }
        self.slow_start_threshold = bytes;
        Ok(())
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.congestion_window < self.slow_start_threshold
    }

    fn __repr__(&self) -> String {
        format!(
            "Window(congestion_window={}, slow_start_threshold={}, segment={})",
            self.congestion_window, self.slow_start_threshold, self.segment
        )
    }
}

fn invalid_number(what: &str, bytes: f64) -> PyErr {
    PyValueError::new_err(format!("{what}: expected bytes from 0 on, got {bytes}"))
}

/// An acknowledgment.
#[pyclass(frozen, get_all, module = "bentpipe._native")]
pub(crate) struct Ack {
    now_s: f64,
    acknowledged: u64,
    delivered: u64,
    in_flight: u64,
    rtt_s: Option<f64>,
    smoothed_rtt_s: Option<f64>,
    minimum_rtt_s: Option<f64>,
}

impl Ack {
    /// Creates an acknowledgment of which `acknowledged` bytes count.
    pub(super) fn new(acknowledged: u64, sample: &AckSample) -> Self {
        let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
        Self {
            now_s: sample.now.as_secs_f64(),
            acknowledged,
            delivered: sample.delivered,
            in_flight: sample.in_flight,
            rtt_s: seconds(sample.rtt),
            smoothed_rtt_s: seconds(sample.smoothed_rtt),
            minimum_rtt_s: seconds(sample.minimum_rtt),
        }
    }
}
