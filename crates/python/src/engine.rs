//! Calls `bentpipe-scenario`, with plain Rust types as arguments and results.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Instant;

use bentpipe_scenario::{
    AcksKind, AppKind, AvoidanceKind, CaptureRequest, Compression, CustomControls, FilterMode,
    GatewayKind, IdleRestart, KeyPath, OrbitReport, Progress, QueueKind, RecoveryKind, RtoRule,
    Run, RunError, RunOptions, Scenario, SlowStart, WindowRule,
};

/// A scenario that has not been parsed.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The file; with `text`, only its name in messages.
    pub(crate) path: PathBuf,
    /// The file's content, if it does not come from `path`.
    pub(crate) text: Option<String>,
    /// Overrides such as `("hosts.server.tcp.mss", "1448 B")`, applied in order after the file.
    pub(crate) overrides: Vec<(String, String)>,
}

/// A run that Python requested.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) source: Source,
    pub(crate) seed: Option<u64>,
    /// Captures: link name and file.
    pub(crate) pcap: Vec<(String, PathBuf)>,
    /// Most bytes that captures keep of each packet.
    pub(crate) snap_length: Option<u32>,
    /// Whether a scenario without probes gets the default ones.
    pub(crate) default_probes: bool,
    /// Whether probes need not be recorded.
    pub(crate) no_series: bool,
    /// Congestion controls in Python.
    pub(crate) controls: CustomControls,
    /// Most cores to use, or `None` for all if the network is large.
    pub(crate) cores: Option<usize>,
}

/// Returns the number of cores that this process may use.
fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

impl Request {
    /// Returns the options of the run.
    pub(crate) fn options(self) -> RunOptions {
        let captures = self.pcap.into_iter();
        RunOptions {
            captures_begin_ns: 0,
            snap_length: self.snap_length,
            seed: self.seed,
            captures: captures
                .map(|(place, path)| CaptureRequest { place, path })
                .collect(),
            default_probes: self.default_probes,
            no_series: self.no_series,
            most_records: None,
            workbench_probes: false,
            packet_log: None,
            custom_controls: self.controls,
            cores: self.cores.unwrap_or_else(available_cores),
            divide_only_large: self.cores.is_none(),
            measure_windows: None,
        }
    }
}

/// The samples of one probe, as two columns of equal length.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) times_s: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) unit: String,
}

/// Results of a completed run.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) summary_json: String,
    pub(crate) cores: usize,
    /// Why one core was used although more were requested.
    pub(crate) undivided: Option<String>,
    pub(crate) series: Vec<Series>,
}

/// Why there is no result, in one line.
#[derive(Debug)]
pub(crate) enum RunFailure {
    /// The scenario or the request is invalid.
    Invalid(String),
    /// The run failed.
    Failed(String),
}

impl From<RunError> for RunFailure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Request(message) => Self::Invalid(message),
            RunError::Failed(message) => Self::Failed(message),
        }
    }
}

/// A run in progress, executed in slices so that Python's signals can be checked in between.
pub(crate) struct RunInProgress {
    run: Run,
    duration_s: f64,
    started: Instant,
}

/// Events in a slice: some tens of milliseconds.
const EVENTS_PER_SLICE: u64 = 500_000;

impl RunInProgress {
    /// Reads the scenario and builds its network.
    #[expect(
        clippy::disallowed_methods,
        reason = "the run's wall time, which it never sees"
    )]
    pub(crate) fn start(request: Request) -> Result<Self, RunFailure> {
        let started = Instant::now();
        let scenario = resolve(&request.source, &request.controls).map_err(RunFailure::Invalid)?;
        let options = request.options();
        let run = Run::new(&scenario, &options)?;
        Ok(Self {
            run,
            duration_s: scenario.duration.as_secs_f64(),
            started,
        })
    }

    /// Runs one slice. Returns true when the run has ended.
    pub(crate) fn advance(&mut self) -> Result<bool, RunFailure> {
        Ok(self.run.advance(EVENTS_PER_SLICE)? == Progress::Ended)
    }

    /// Returns and removes the recorded samples if there are `many` or more.
    pub(crate) fn take_records(&mut self, many: u64) -> Vec<Series> {
        if self.run.records() < many {
            return Vec::new();
        }
        self.run.take_records().into_iter().map(columns).collect()
    }

    /// Returns the simulated time so far and the duration, in seconds.
    pub(crate) fn simulated_s(&self) -> (f64, f64) {
        (self.run.share_done() * self.duration_s, self.duration_s)
    }

    /// Returns the results.
    pub(crate) fn finish(self) -> Result<FinishedRun, RunFailure> {
        let cores = self.run.cores();
        let mut output = self.run.finish()?;
        output.summary.wall_s = self.started.elapsed().as_secs_f64();
        let summary_json = serde_json::to_string(&output.summary)
            .map_err(|error| RunFailure::Failed(error.to_string()))?;
        Ok(FinishedRun {
            summary_json,
            cores: cores.used,
            undivided: cores.undivided.map(|reason| reason.to_string()),
            series: output.series.into_iter().map(columns).collect(),
        })
    }
}

/// Converts series to columns.
#[cfg(target_os = "linux")]
pub(crate) fn series(recorded: Vec<bentpipe_scenario::RecordedSeries>) -> Vec<Series> {
    recorded.into_iter().map(columns).collect()
}

fn columns(series: bentpipe_scenario::RecordedSeries) -> Series {
    Series {
        name: series.name,
        times_s: series.times_ns.iter().map(|ns| *ns as f64 / 1e9).collect(),
        values: series.values,
        unit: series.unit.to_owned(),
    }
}

/// Resolves the scenario and returns it as JSON.
pub(crate) fn load(source: &Source, controls: &CustomControls) -> Result<String, String> {
    let scenario = resolve(source, controls)?;
    serde_json::to_string(&scenario).map_err(|error| error.to_string())
}

/// Whether a packet in a run of this scenario may be lost to errors.
pub(crate) fn may_meet_errors(source: &Source, controls: &CustomControls) -> Result<bool, String> {
    Ok(resolve(source, controls)?.may_meet_errors())
}

/// Returns the JSON Schema of the scenario file.
pub(crate) fn json_schema() -> String {
    format!("{:#}", bentpipe_scenario::json_schema())
}

/// Returns the JSON Schema of a run's results.
pub(crate) fn results_schema() -> String {
    format!("{:#}", bentpipe_scenario::results_schema())
}

/// Returns the names that a scenario file may use, by kind.
pub(crate) fn lists() -> BTreeMap<String, Vec<String>> {
    macro_rules! names {
        ($($kind:literal: $words:ident,)+) => {
            BTreeMap::from([$(
                ($kind.to_owned(), $words::ALL.iter().map(ToString::to_string).collect()),
            )+])
        };
    }
    let mut lists = names! {
        "ack-filter-modes": FilterMode,
        "ack-methods": AcksKind,
        "applications": AppKind,
        "compressions": Compression,
        "congestion-avoidances": AvoidanceKind,
        "congestion-controls": WindowRule,
        "gateways": GatewayKind,
        "idle-restarts": IdleRestart,
        "queues": QueueKind,
        "recoveries": RecoveryKind,
        "rto-rules": RtoRule,
        "slow-starts": SlowStart,
    };
    for (kind, presets) in [
        ("constellations", bentpipe_scenario::constellations()),
        ("variations", bentpipe_scenario::variations()),
    ] {
        let names = presets.into_iter().map(|(name, ..)| name.to_owned());
        lists.insert(kind.to_owned(), names.collect());
    }
    lists
}

/// Returns the geometry of a scenario, with the satellites at `at_s`.
pub(crate) fn orbit(
    source: &Source,
    controls: &CustomControls,
    at_s: f64,
) -> Result<OrbitReport, String> {
    Ok(resolve(source, controls)?.orbit_report(at_s))
}

/// Returns the properties of window rules, queues, applications and gateways, as JSON.
pub(crate) fn kinds() -> String {
    bentpipe_scenario::kinds().to_string()
}

pub(crate) fn resolve(source: &Source, controls: &CustomControls) -> Result<Scenario, String> {
    let overrides: Vec<(&str, &str)> = source
        .overrides
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let scenario = match &source.text {
        Some(text) => {
            let name = source.path.to_string_lossy();
            Scenario::parse_with(text, &name, &overrides, controls)
        }
        None => Scenario::load_with(&source.path, &overrides, controls),
    };
    scenario.map_err(|error| error.to_string())
}

/// Returns every unit of quantities: name, base unit, numerator and denominator of its value in
/// base units, and whether only whole numbers are valid.
pub(crate) fn units() -> Vec<(&'static str, &'static str, u64, u64, bool)> {
    let units = bentpipe_scenario::quantity::units();
    units
        .map(|unit| (unit.name, unit.base, unit.worth, unit.per, unit.whole))
        .collect()
}

/// Splits a quantity into its number as written and the name of its unit.
pub(crate) fn number_and_unit(text: &str) -> Option<(&str, &'static str)> {
    let (number, unit) = bentpipe_scenario::quantity::number_and_unit(text)?;
    Some((number, unit.name))
}

/// Returns the line of every key of a TOML text.
pub(crate) fn key_lines(text: &str) -> Option<Vec<(KeyPath, usize)>> {
    bentpipe_scenario::key_lines(text)
}
