//! The one place that calls `bentpipe-scenario`: plain Rust types in, plain Rust types out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use bentpipe_scenario::{
    AcksKind, AppKind, AvoidanceKind, CaptureRequest, Compression, CustomControls, FilterMode,
    GatewayKind, IdleRestart, KeyPath, Progress, QueueKind, RecoveryKind, RtoRule, Run, RunError,
    RunOptions, Scenario, SlowStart, WindowRule,
};

/// A scenario, before it is read.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The file; only its name in messages where `text` is given.
    pub(crate) path: PathBuf,
    /// The file's content, when it doesn't come from `path`.
    pub(crate) text: Option<String>,
    /// `("hosts.server.tcp.mss", "1448 B")`: applied in order, after the file.
    pub(crate) overrides: Vec<(String, String)>,
}

/// A run that Python asked for.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) source: Source,
    pub(crate) seed: Option<u64>,
    /// Link name and where its capture goes.
    pub(crate) pcap: Vec<(String, PathBuf)>,
    /// Most bytes that captures keep of each packet.
    pub(crate) snap_length: Option<u32>,
    /// Whether a scenario that names no probes gets the default ones.
    pub(crate) default_probes: bool,
    /// Whether nobody will look at the probes.
    pub(crate) no_series: bool,
    /// Congestion controls in Python.
    pub(crate) controls: CustomControls,
}

impl Request {
    /// How the scenario is run, once it is resolved.
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
            custom_controls: self.controls,
        }
    }
}

/// One probe's samples, as two columns of equal length.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) times_s: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) unit: String,
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) summary_json: String,
    pub(crate) series: Vec<Series>,
}

/// Why there is no result; one line each.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The scenario or the request is wrong.
    Wrong(String),
    /// The run failed.
    Failed(String),
}

impl From<RunError> for Stopped {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Request(message) => Self::Wrong(message),
            RunError::Failed(message) => Self::Failed(message),
        }
    }
}

/// A run in progress, driven in slices so that Python can look at its signals in between.
pub(crate) struct Running {
    run: Run,
    duration_s: f64,
    started: Instant,
}

/// Events in a slice: some tens of milliseconds.
const SLICE: u64 = 500_000;

impl Running {
    /// Read the scenario and build its network.
    #[expect(
        clippy::disallowed_methods,
        reason = "the run's wall time, which it never sees"
    )]
    pub(crate) fn start(request: Request) -> Result<Self, Stopped> {
        let started = Instant::now();
        let scenario = resolve(&request.source, &request.controls).map_err(Stopped::Wrong)?;
        let options = request.options();
        let run = Run::new(&scenario, &options)?;
        Ok(Self {
            run,
            duration_s: scenario.duration.as_secs_f64(),
            started,
        })
    }

    /// Run one slice; true when the run has ended.
    pub(crate) fn advance(&mut self) -> Result<bool, Stopped> {
        Ok(self.run.advance(SLICE)? == Progress::Ended)
    }

    /// Takes what the probes recorded since this was last asked, where it is `many` or more.
    pub(crate) fn take_records(&mut self, many: u64) -> Vec<Series> {
        if self.run.records() < many {
            return Vec::new();
        }
        self.run.take_records().into_iter().map(columns).collect()
    }

    /// The simulated time so far and the duration, in seconds.
    pub(crate) fn simulated_s(&self) -> (f64, f64) {
        (self.run.share_done() * self.duration_s, self.duration_s)
    }

    /// Sum up.
    pub(crate) fn finish(self) -> Result<Finished, Stopped> {
        let mut output = self.run.finish()?;
        output.summary.wall_s = self.started.elapsed().as_secs_f64();
        let summary_json = serde_json::to_string(&output.summary)
            .map_err(|error| Stopped::Failed(error.to_string()))?;
        Ok(Finished {
            summary_json,
            series: output.series.into_iter().map(columns).collect(),
        })
    }
}

/// The series as columns.
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

/// Resolve the scenario and return it as JSON.
pub(crate) fn load(source: &Source, controls: &CustomControls) -> Result<String, String> {
    let scenario = resolve(source, controls)?;
    serde_json::to_string(&scenario).map_err(|error| error.to_string())
}

/// May a packet of this scenario's run be lost to errors?
pub(crate) fn may_meet_errors(source: &Source, controls: &CustomControls) -> Result<bool, String> {
    Ok(resolve(source, controls)?.may_meet_errors())
}

/// The JSON Schema of the scenario file.
pub(crate) fn json_schema() -> String {
    format!("{:#}", bentpipe_scenario::json_schema())
}

/// The JSON Schema of a run's results.
pub(crate) fn results_schema() -> String {
    format!("{:#}", bentpipe_scenario::results_schema())
}

/// Names a scenario file may use, by kind.
pub(crate) fn lists() -> BTreeMap<String, Vec<String>> {
    macro_rules! names {
        ($($kind:literal: $words:ident,)+) => {
            BTreeMap::from([$(
                ($kind.to_owned(), $words::ALL.iter().map(ToString::to_string).collect()),
            )+])
        };
    }
    names! {
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
    }
}

/// Of a window rule: its kind, whether it has a say in how slow start grows the window, and whether
/// it must be told the rate of the channel.
pub(crate) type RuleFacts = (&'static str, bool, bool);

/// The built-in window rules, by name.
pub(crate) fn window_rules() -> BTreeMap<&'static str, RuleFacts> {
    let rules = WindowRule::ALL.iter();
    rules
        .map(|rule| {
            let facts = (
                rule.kind(),
                rule.has_own_slow_start(),
                rule.needs_capacity(),
            );
            (rule.name(), facts)
        })
        .collect()
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

/// Every unit of quantities: name, base unit, worth of that as a fraction, whether it is counted.
pub(crate) fn units() -> Vec<(&'static str, &'static str, u64, u64, bool)> {
    let units = bentpipe_scenario::quantity::units();
    units
        .map(|unit| (unit.name, unit.base, unit.worth, unit.per, unit.whole))
        .collect()
}

/// A quantity's number, as it is written, and its unit's name.
pub(crate) fn number_and_unit(text: &str) -> Option<(&str, &'static str)> {
    let (number, unit) = bentpipe_scenario::quantity::number_and_unit(text)?;
    Some((number, unit.name))
}

/// The line of every key of a TOML text.
pub(crate) fn key_lines(text: &str) -> Option<Vec<(KeyPath, usize)>> {
    bentpipe_scenario::key_lines(text)
}
