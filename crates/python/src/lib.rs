//! `bentpipe._native`: the simulator as a Python module. It only converts values and errors.
//!
//! `python/bentpipe/_native.pyi` is the stub for Python's type checkers and must match this file.

#[cfg(target_os = "linux")]
mod background_work;
mod capture;
mod congestion;
#[cfg(target_os = "linux")]
mod emulation;
mod engine;
mod errors;
#[cfg(target_os = "linux")]
mod gateway;
mod output;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use bentpipe_scenario::{CustomControls, MANY_RECORDS};
use congestion::{Ack, Failure, PythonWindow};
use engine::{Request, RunFailure, RunInProgress, Source};
use errors::{RunError, ScenarioError};
use output::RunOutput;

impl From<RunFailure> for PyErr {
    fn from(stopped: RunFailure) -> Self {
        match stopped {
            RunFailure::Invalid(message) => ScenarioError::new_err(message),
            RunFailure::Failed(message) => RunError::new_err(message),
        }
    }
}

fn scenario_error(message: String) -> PyErr {
    ScenarioError::new_err(message)
}

/// Simulate a scenario file, or `text` in its place. The GIL is released except during callbacks of
/// `controls`, the caller's own congestion controls by name. `progress` is called between slices
/// with the simulated time and the duration, in seconds.
#[pyfunction]
#[pyo3(signature = (
    path, *, text = None, seed = None, overrides = Vec::new(), pcap = Vec::new(),
    snap_length = None, default_probes = false, controls = Vec::new(), progress = None, no_series = false,
    take_records = None, cores = None
))]
#[expect(
    clippy::too_many_arguments,
    reason = "keywords of Python's, each with its name"
)]
fn run<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    seed: Option<u64>,
    overrides: Vec<(String, String)>,
    pcap: Vec<(String, PathBuf)>,
    snap_length: Option<u32>,
    default_probes: bool,
    controls: Vec<(String, Bound<'py, PyType>)>,
    progress: Option<Bound<'py, PyAny>>,
    no_series: bool,
    take_records: Option<Bound<'py, PyAny>>,
    cores: Option<usize>,
) -> PyResult<RunOutput> {
    let failure = Failure::default();
    let request = Request {
        source: Source {
            path,
            text,
            overrides,
        },
        seed,
        pcap,
        snap_length,
        default_probes,
        no_series,
        controls: congestion::controls(controls, &failure)?,
        cores,
    };
    let mut running = py.detach(|| RunInProgress::start(request))?;
    loop {
        let ended = py.detach(|| running.advance())?;
        failure.check(py)?;
        if let Some(take) = &take_records {
            // All samples at the end, so that the result holds none.
            let many = if ended { 0 } else { MANY_RECORDS };
            let records = py.detach(|| running.take_records(many));
            if !records.is_empty() {
                take.call1((output::columns(py, records)?,))?;
            }
        }
        if ended {
            break;
        }
        // Ctrl-C interrupts the run.
        py.check_signals()?;
        if let Some(progress) = &progress {
            progress.call1(running.simulated_s())?;
        }
    }
    Ok(py.detach(|| running.finish())?.into())
}

/// Run a scenario in real time between Linux TCP connections. With `commands` (host, words, whether
/// the run waits for it), run the user's own commands instead of the flows. The hosts named by
/// `ours` have our own TCP. `rules` has the names of the window rules loaded into the kernel, by
/// host, and `rule_obstacles` why one was not, by its name in the scenario. Return the output, and
/// the exit status of the command that was waited for.
#[cfg(target_os = "linux")]
#[pyfunction]
#[pyo3(signature = (
    path, *, text = None, seed = None, overrides = Vec::new(), pcap = Vec::new(),
    snap_length = None, default_probes = false, commands = Vec::new(), ours = Vec::new(),
    rules = BTreeMap::new(), rule_obstacles = BTreeMap::new(), controls = Vec::new(),
    progress = None, delivered = None
))]
#[expect(
    clippy::too_many_arguments,
    reason = "keywords of Python's, each with its name"
)]
fn emulate<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    seed: Option<u64>,
    overrides: Vec<(String, String)>,
    pcap: Vec<(String, PathBuf)>,
    snap_length: Option<u32>,
    default_probes: bool,
    commands: Vec<emulation::Command>,
    ours: Vec<String>,
    rules: BTreeMap<String, String>,
    rule_obstacles: BTreeMap<String, String>,
    controls: Vec<(String, Bound<'py, PyType>)>,
    progress: Option<Bound<'py, PyAny>>,
    delivered: Option<Bound<'py, PyAny>>,
) -> PyResult<(RunOutput, Option<i32>)> {
    let failure = Failure::default();
    let request = Request {
        source: Source {
            path,
            text,
            overrides,
        },
        seed,
        pcap,
        snap_length,
        default_probes,
        controls: congestion::controls(controls, &failure)?,
        ..Request::default()
    };
    let live = emulation::LiveOptions {
        commands,
        ours,
        rules: emulation::KernelRules {
            names: rules,
            obstacles: rule_obstacles,
        },
    };
    let (progress, delivered) = (progress.as_ref(), delivered.as_ref());
    let ended = emulation::run(py, request, live, &failure, progress, delivered);
    failure.check(py)?;
    let (finished, status) = ended?;
    Ok((finished.into(), status))
}

/// Run `bentpipe-gateway` with these words, and return its exit status. `console` has the methods
/// `print`, `log`, `handle_signals` and `is_stopped`.
#[cfg(target_os = "linux")]
#[pyfunction]
#[pyo3(name = "gateway")]
fn run_gateway(py: Python<'_>, words: Vec<OsString>, console: Py<PyAny>) -> PyResult<u8> {
    gateway::run(py, words, console)
}

/// Return the parameters of `bentpipe-gateway`: name, option, placeholder of the value, help, and
/// whether it may be repeated.
#[pyfunction]
fn gateway_parameters() -> Vec<(String, String, String, String, bool)> {
    #[cfg(target_os = "linux")]
    return gateway::parameters();
    #[cfg(not(target_os = "linux"))]
    return Vec::new();
}

/// Return an error message if this machine cannot run a gateway, or None if it can.
#[pyfunction]
fn gateway_obstacle() -> Option<String> {
    #[cfg(target_os = "linux")]
    return gateway::obstacle();
    #[cfg(not(target_os = "linux"))]
    return Some("a gateway needs Linux".to_owned());
}

/// Return an error message if this machine cannot emulate, or None if it can.
#[pyfunction]
fn emulation_obstacle() -> Option<String> {
    #[cfg(target_os = "linux")]
    return emulation::obstacle();
    #[cfg(not(target_os = "linux"))]
    return Some("emulation needs Linux".to_owned());
}

/// End processes left behind by killed emulations. Return their number.
#[pyfunction]
fn emulation_leftovers() -> usize {
    #[cfg(target_os = "linux")]
    return emulation::remove_leftovers();
    #[cfg(not(target_os = "linux"))]
    return 0;
}

/// Returns the answer to a question about a scenario.
fn ask<'py, T: Send>(
    py: Python<'py>,
    source: Source,
    controls: Vec<(String, Bound<'py, PyType>)>,
    question: impl FnOnce(&Source, &CustomControls) -> Result<T, String> + Send,
) -> PyResult<T> {
    let controls = congestion::controls(controls, &Failure::default())?;
    py.detach(|| question(&source, &controls))
        .map_err(scenario_error)
}

/// Resolve a scenario (defaults filled in, overrides applied) and return it as JSON.
#[pyfunction]
#[pyo3(signature = (path, *, text = None, overrides = Vec::new(), controls = Vec::new()))]
fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    overrides: Vec<(String, String)>,
    controls: Vec<(String, Bound<'py, PyType>)>,
) -> PyResult<String> {
    ask(
        py,
        Source {
            path,
            text,
            overrides,
        },
        controls,
        engine::load,
    )
}

/// Return the geometry of a scenario's constellations, sites and paths: a summary as JSON, and
/// tables by name. The satellites and ground tracks are those at `at_s`.
#[pyfunction]
#[pyo3(signature = (
    path, *, text = None, overrides = Vec::new(), controls = Vec::new(), at_s = 0.0
))]
fn orbit<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    overrides: Vec<(String, String)>,
    controls: Vec<(String, Bound<'py, PyType>)>,
    at_s: f64,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let controls = congestion::controls(controls, &Failure::default())?;
    let source = Source {
        path,
        text,
        overrides,
    };
    let report = py
        .detach(|| engine::orbit(&source, &controls, at_s))
        .map_err(scenario_error)?;
    Ok((
        report.summary.to_string(),
        output::tables(py, report.tables)?,
    ))
}

/// Return published variations of paths over satellites: name, description and source.
#[pyfunction]
fn variations() -> Vec<(&'static str, &'static str, &'static str)> {
    bentpipe_scenario::variations()
}

/// Return published constellations: name, description and source.
#[pyfunction]
fn constellations() -> Vec<(&'static str, &'static str, &'static str)> {
    bentpipe_scenario::constellations()
}

/// Return whether a packet may be lost to errors. The answer is False if the first bit error, as
/// drawn with the scenario's seed, comes after all that the links can carry.
#[pyfunction]
#[pyo3(signature = (path, *, text = None, overrides = Vec::new(), controls = Vec::new()))]
fn may_meet_errors<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    overrides: Vec<(String, String)>,
    controls: Vec<(String, Bound<'py, PyType>)>,
) -> PyResult<bool> {
    ask(
        py,
        Source {
            path,
            text,
            overrides,
        },
        controls,
        engine::may_meet_errors,
    )
}

/// Return the JSON Schema of the scenario file.
#[pyfunction]
fn json_schema() -> String {
    engine::json_schema()
}

/// Return the JSON Schema of a run's summary.
#[pyfunction]
fn results_schema() -> String {
    engine::results_schema()
}

/// Return the names that a scenario file may use, by kind ("congestion-controls", "queues", ...).
#[pyfunction]
fn lists() -> BTreeMap<String, Vec<String>> {
    engine::lists()
}

/// Return the properties of window rules, queues, applications and gateways, as a JSON object.
#[pyfunction]
fn kinds() -> String {
    engine::kinds()
}

/// Return every unit of quantities: name, base unit, its value in base units as a fraction, and
/// whether only whole numbers are valid.
#[pyfunction]
fn units() -> Vec<(&'static str, &'static str, u64, u64, bool)> {
    engine::units()
}

/// Split a quantity into its number as written and the name of its unit. Return None if it is not a
/// quantity.
#[pyfunction]
fn number_and_unit(text: &str) -> Option<(&str, &'static str)> {
    engine::number_and_unit(text)
}

/// Return the line of every key, table and array item of a TOML text by its path. Return None if
/// the text is not TOML.
#[pyfunction]
fn key_lines<'py>(py: Python<'py>, text: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    output::key_lines(py, text)
}

/// Returns a Parquet file's table as text, read with pyarrow.
fn parquet_as_csv(content: &[u8]) -> Result<String, String> {
    Python::attach(|py| {
        let read = || -> PyResult<String> {
            let reader = py.import("bentpipe.parquet_table")?;
            let content = pyo3::types::PyBytes::new(py, content);
            reader.call_method1("parquet_as_csv", (content,))?.extract()
        };
        read().map_err(|error| error.value(py).to_string())
    })
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bentpipe_scenario::read_parquet_with(parquet_as_csv);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__commit__", env!("BENTPIPE_COMMIT"))?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add("RunError", module.py().get_type::<RunError>())?;
    module.add_class::<RunOutput>()?;
    module.add_class::<PythonWindow>()?;
    module.add_class::<Ack>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    #[cfg(target_os = "linux")]
    module.add_function(wrap_pyfunction!(emulate, module)?)?;
    #[cfg(target_os = "linux")]
    module.add_function(wrap_pyfunction!(run_gateway, module)?)?;
    module.add_function(wrap_pyfunction!(gateway_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(gateway_obstacle, module)?)?;
    module.add_function(wrap_pyfunction!(emulation_obstacle, module)?)?;
    module.add_function(wrap_pyfunction!(emulation_leftovers, module)?)?;
    module.add_function(wrap_pyfunction!(capture::capture_connections, module)?)?;
    module.add_function(wrap_pyfunction!(capture::capture_segments, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(orbit, module)?)?;
    module.add_function(wrap_pyfunction!(constellations, module)?)?;
    module.add_function(wrap_pyfunction!(variations, module)?)?;
    module.add_function(wrap_pyfunction!(may_meet_errors, module)?)?;
    module.add_function(wrap_pyfunction!(json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(results_schema, module)?)?;
    module.add_function(wrap_pyfunction!(lists, module)?)?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(units, module)?)?;
    module.add_function(wrap_pyfunction!(number_and_unit, module)?)?;
    module.add_function(wrap_pyfunction!(key_lines, module)?)?;
    Ok(())
}
