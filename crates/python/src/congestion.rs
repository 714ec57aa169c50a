//! Congestion controls written in Python.
//!
//! The class registered by `bentpipe.congestion_control` is called with the GIL held, during a run
//! that otherwise does not hold it. If it raises, it is not called again, and the run ends.

mod values;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_scenario::CustomControls;
use bentpipe_scenario::congestion::{
    AckSample, BitRate, Congestion, CongestionControl, CongestionSample, CustomFactory, Span, Time,
    Window,
};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::errors::RunError;

pub(crate) use values::{Ack, PythonWindow};

/// The first exception of a window rule, which ends the run.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<Raised>>>);

struct Raised {
    /// The rule and the callback.
    place: String,
    error: PyErr,
}

impl Failure {
    fn note(&self, place: String, error: PyErr) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(Raised { place, error });
    }

    fn is_noted(&self) -> bool {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.is_some()
    }

    /// Returns the error to raise from the run: one line, with the rule's exception as the cause.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Raised { place, error }) = slot.take() else {
            return Ok(());
        };
        // KeyboardInterrupt or SystemExit: not a failure of the rule.
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let line = line_of(py, &error).map_or_else(String::new, |line| format!(" ({line})"));
        let raised = RunError::new_err(format!("{place}: {error}{line}"));
        raised.set_cause(py, Some(error));
        Err(raised)
    }
}

/// Returns the line in the rule's own file at which an exception was raised: `reno.py:12`.
fn line_of(py: Python<'_>, error: &PyErr) -> Option<String> {
    let frames = py
        .import("traceback")
        .and_then(|module| module.call_method1("extract_tb", (error.traceback(py),)))
        .ok()?;
    let last = frames.get_item(-1).ok()?;
    let file: std::path::PathBuf = last.getattr("filename").ok()?.extract().ok()?;
    let line: u32 = last.getattr("lineno").ok()?.extract().ok()?;
    Some(format!("{}:{line}", file.file_name()?.to_string_lossy()))
}

/// Returns every registered class as a factory.
pub(crate) fn controls(
    registered: Vec<(String, Bound<'_, PyType>)>,
    failure: &Failure,
) -> PyResult<CustomControls> {
    let mut controls = CustomControls::default();
    for (name, class) in registered {
        let rule = Arc::new(Rule::new(&name, &class, failure.clone())?);
        let factory = CustomFactory::new(name.as_str(), move || {
            Box::new(PythonControl {
                rule: Arc::clone(&rule),
                object: None,
                window: None,
            })
        });
        controls.add(name, factory);
    }
    Ok(controls)
}

/// A registered class, and the optional callbacks it has.
struct Rule {
    name: String,
    class: Py<PyType>,
    failure: Failure,
    owns_slow_start: bool,
    has: Optional,
}

/// Whether a class has each optional callback.
#[derive(Clone, Copy)]
struct Optional {
    on_established: bool,
    on_delivery: bool,
    slow_start_growth: bool,
    on_application_limited: bool,
    on_recovery_exit: bool,
    on_spurious: bool,
    pacing_rate: bool,
}

impl Rule {
    fn new(name: &str, class: &Bound<'_, PyType>, failure: Failure) -> PyResult<Self> {
        let owns_slow_start = match class.getattr_opt("owns_slow_start")? {
            Some(value) => value.is_truthy()?,
            None => false,
        };
        Ok(Self {
            name: name.to_owned(),
            class: class.clone().unbind(),
            failure,
            owns_slow_start,
            has: Optional {
                on_established: class.hasattr("on_established")?,
                on_delivery: class.hasattr("on_delivery")?,
                slow_start_growth: class.hasattr("slow_start_growth")?,
                on_application_limited: class.hasattr("on_application_limited")?,
                on_recovery_exit: class.hasattr("on_recovery_exit")?,
                on_spurious: class.hasattr("on_spurious")?,
                pacing_rate: class.hasattr("pacing_rate")?,
            },
        })
    }

    fn fail(&self, method: &str, error: PyErr) {
        let place = format!("congestion control \"{}\": {method}", self.name);
        self.failure.note(place, error);
    }
}

/// The window rule of one connection.
struct PythonControl {
    rule: Arc<Rule>,
    /// The class's instance, once the connection is established and unless the rule has failed.
    object: Option<Py<PyAny>>,
    window: Option<Py<PythonWindow>>,
}

impl fmt::Debug for PythonControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PythonControl")
            .field(&self.rule.name)
            .finish()
    }
}

impl PythonControl {
    /// Creates the instance.
    fn begin(&mut self, window: &Window) {
        let made = Python::attach(|py| {
            let object = self.rule.class.bind(py).call0()?.unbind();
            Ok((object, Py::new(py, PythonWindow::from(window))?))
        });
        match made {
            Ok((object, own)) => {
                self.object = Some(object);
                self.window = Some(own);
            }
            Err(error) => self.rule.fail("cannot be created", error),
        }
    }

    /// Calls a method with the window and the `arguments`, then applies the method's changes to the
    /// window.
    fn call<A>(
        &mut self,
        window: &mut Window,
        method: &str,
        arguments: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PythonWindow>) -> PyResult<A>,
    ) -> Option<Py<PyAny>>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let (object, own) = (self.object.as_ref()?, self.window.as_ref()?);
        let called = Python::attach(|py| {
            let own = own.bind(py);
            own.borrow_mut().update_from(window);
            let returned = object.bind(py).call_method1(method, arguments(py, own)?)?;
            own.borrow().store(window);
            Ok(returned.unbind())
        });
        match called {
            Ok(returned) => Some(returned),
            Err(error) => {
                self.rule.fail(method, error);
                self.object = None;
                None
            }
        }
    }

    /// Calls a method that returns a number of the kind wanted, or None.
    fn number(
        &mut self,
        window: &mut Window,
        method: &str,
        kind: NumberKind,
        sample: Option<(u64, &AckSample)>,
    ) -> Option<f64> {
        let returned = match sample {
            Some((counted, sample)) => self.call(window, method, |py, own| {
                Ok((
                    own.clone().unbind(),
                    counted,
                    Py::new(py, Ack::new(counted, sample))?,
                ))
            }),
            None => self.call(window, method, |_, own| Ok((own.clone().unbind(),))),
        }?;
        let number = Python::attach(|py| {
            let returned = returned.bind(py);
            let number: Option<Option<f64>> = returned.extract().ok();
            match number {
                Some(None) => Ok(None),
                Some(Some(number)) if kind.is_valid(number) => Ok(Some(number)),
                _ => {
                    let value = returned
                        .repr()
                        .map_or_else(|_| "something else".to_owned(), |text| text.to_string());
                    let message = format!("expected {}, got {value}", kind.description());
                    Err(PyValueError::new_err(message))
                }
            }
        });
        number.unwrap_or_else(|error| {
            self.rule.fail(method, error);
            self.object = None;
            None
        })
    }
}

/// Kind of number that a method may return.
#[derive(Clone, Copy)]
enum NumberKind {
    Bytes,
    Rate,
}

impl NumberKind {
    fn is_valid(self, number: f64) -> bool {
        number.is_finite()
            && match self {
                Self::Bytes => number >= 0.0,
                Self::Rate => number > 0.0,
            }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Bytes => "bytes from 0 on, or None",
            Self::Rate => "bit/s above 0, or None",
        }
    }
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

impl CongestionControl for PythonControl {
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, now: Time) {
        self.begin(window);
        if self.rule.has.on_established {
            self.call(window, "on_established", |_, own| {
                Ok((own.clone().unbind(), rtt.map(seconds), now.as_secs_f64()))
            });
        }
    }

    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        self.call(window, "on_ack", |py, own| {
            Ok((
                own.clone().unbind(),
                Py::new(py, Ack::new(acknowledged, sample))?,
            ))
        });
    }

    fn on_delivery(&mut self, window: &mut Window, sample: &AckSample) {
        self.call(window, "on_delivery", |py, own| {
            Ok((
                own.clone().unbind(),
                Py::new(py, Ack::new(sample.acknowledged, sample))?,
            ))
        });
    }

    fn slow_start_growth(&mut self, window: &mut Window, counted: u64, sample: &AckSample) -> u64 {
        if !self.rule.has.slow_start_growth {
            return counted;
        }
        let growth = self.number(
            window,
            "slow_start_growth",
            NumberKind::Bytes,
            Some((counted, sample)),
        );
        growth.map_or(0, |growth| growth as u64)
    }

    fn on_application_limited(&mut self) {
        if !self.rule.has.on_application_limited {
            return;
        }
        let Some(object) = &self.object else { return };
        let called = Python::attach(|py| {
            object
                .bind(py)
                .call_method0("on_application_limited")
                .map(drop)
        });
        if let Err(error) = called {
            self.rule.fail("on_application_limited", error);
            self.object = None;
        }
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        let word = match sample.event {
            Congestion::Loss => "loss",
            Congestion::Ecn => "ecn",
            Congestion::Timeout => "timeout",
        };
        self.call(window, "on_congestion", |_, own| {
            Ok((
                own.clone().unbind(),
                word,
                sample.flight_size,
                sample.now.as_secs_f64(),
            ))
        });
    }

    fn on_recovery_exit(&mut self, window: &mut Window, now: Time) {
        if self.rule.has.on_recovery_exit {
            self.call(window, "on_recovery_exit", |_, own| {
                Ok((own.clone().unbind(), now.as_secs_f64()))
            });
        }
    }

    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        if self.rule.has.on_spurious {
            self.call(window, "on_spurious", |py, own| {
                let before = Py::new(py, PythonWindow::from(&before))?;
                Ok((own.clone().unbind(), before))
            });
            return;
        }
        window.congestion_window = window.congestion_window.max(before.congestion_window);
        window.slow_start_threshold = window.slow_start_threshold.max(before.slow_start_threshold);
    }

    fn owns_slow_start(&self) -> bool {
        self.rule.owns_slow_start
    }

    fn sees_every_ack(&self) -> bool {
        self.rule.has.on_delivery
    }

    fn paces(&self) -> bool {
        self.rule.has.pacing_rate
    }

    fn pacing_rate(&self, window: &Window) -> Option<BitRate> {
        if !self.rule.has.pacing_rate || self.rule.failure.is_noted() {
            return None;
        }
        // Works on a copy, so that changes of the window here have no effect.
        let mut other = Self {
            rule: Arc::clone(&self.rule),
            object: Python::attach(|py| self.object.as_ref().map(|object| object.clone_ref(py))),
            window: Python::attach(|py| self.window.as_ref().map(|own| own.clone_ref(py))),
        };
        let rate = other.number(&mut window.clone(), "pacing_rate", NumberKind::Rate, None)?;
        // A positive rate below 1 bit/s counts as 1 bit/s.
        BitRate::new((rate as u64).max(1))
    }
}
