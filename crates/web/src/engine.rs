//! Requests of a page, and the runs that they start.

use std::collections::BTreeMap;
use std::path::Path;

use bentpipe_scenario::{
    CustomControls, PacketLog, Progress, RecordedSeries, Run, RunError, RunOptions, Scenario,
    ScenarioError, Segment, json_schema, key_lines, results_schema,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::edit;
use crate::packets::Names;
use crate::reduce::{NUMBERS, average, reduce, value_at};

/// Most runs that are held at once.
const MOST_RUNS: usize = 64;

/// Most nodes, links and flows of a network that a page draws one by one. A larger one is described
/// by its numbers only.
const MOST_DRAWN: usize = 4_000;

/// Most packets in a log: 100 MB.
const MOST_LOGGED: usize = 1 << 20;

/// Most bytes of trace files that are held.
const MOST_FILE_BYTES: usize = 128 << 20;

/// A scenario: its text, and settings that override it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The text of the scenario file.
    pub text: String,
    /// Name of the file in messages.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Dotted keys and their values, as in `--set KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<(String, String)>,
}

fn unnamed() -> String {
    "scenario.toml".to_owned()
}

/// A request: an object with the key `do`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// JSON schemas of the scenario file and of results.
    Schema,
    /// Whether a scenario is valid; the network that it describes.
    Check {
        /// The scenario.
        source: Source,
    },
    /// The line of every key in a text.
    Lines {
        /// TOML.
        text: String,
    },
    /// Changes one value of a text.
    Edit {
        /// TOML.
        text: String,
        /// The path of the key.
        key: Vec<String>,
        /// A value in TOML; without it, the key is removed.
        value: Option<String>,
    },
    /// Starts a run.
    Start {
        /// The scenario.
        source: Source,
        /// A seed in place of the scenario's.
        #[serde(default)]
        seed: Option<u64>,
        /// Whether to record series.
        #[serde(default = "yes")]
        series: bool,
        /// Whether to log packets.
        #[serde(default)]
        packets: bool,
    },
    /// Advances a run.
    Advance {
        /// Number of the run.
        run: u32,
        /// Events to process.
        events: u64,
    },
    /// Ends a run that has reached its end, and returns its results.
    Finish {
        /// Number of the run.
        run: u32,
    },
    /// Samples of series, reduced to the columns of a plot. They are in the reply's values: three
    /// numbers per sample.
    Series {
        /// Number of the run.
        run: u32,
        /// Indices of the series.
        indices: Vec<usize>,
        /// Start and end of the plot in seconds.
        range_s: [f64; 2],
        /// Columns of the plot.
        columns: usize,
        /// Whether to return the average of each column, for rates, in place of its extremes.
        #[serde(default)]
        averages: bool,
    },
    /// The value of every series at an instant.
    At {
        /// Number of the run.
        run: u32,
        /// The instant.
        time_s: f64,
    },
    /// Logged packets from an instant on.
    Packets {
        /// Number of the run.
        run: u32,
        /// The instant.
        from_s: f64,
        /// Most packets in the reply.
        most: usize,
    },
    /// Drops a run and what it holds.
    Close {
        /// Number of the run.
        run: u32,
    },
}

/// A function that appends a series at the resolution of a plot.
type Reduction = fn(&RecordedSeries, [u64; 2], usize, &mut Vec<f64>);

fn yes() -> bool {
    true
}

/// A request that has no result.
#[derive(Debug)]
enum Failure {
    /// The scenario is invalid.
    Refused(ScenarioError),
    /// One line.
    Other(String),
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::Refused(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl Failure {
    fn reply(&self) -> Value {
        match self {
            Self::Refused(error) => json!({ "refusal": {
                "line": error.line(),
                "column": error.column(),
                "key": error.key(),
                "message": error.message(),
                "text": error.to_string(),
            }}),
            Self::Other(message) => json!({ "error": message }),
        }
    }
}

/// A run that is held until it is closed.
struct Held {
    names: Names,
    state: State,
}

enum State {
    Running(Box<Run>),
    Ended {
        series: Vec<RecordedSeries>,
        packets: PacketLog,
    },
}

/// Answers requests.
#[derive(Default)]
pub struct Engine {
    runs: BTreeMap<u32, Held>,
    started: u32,
    values: Vec<f64>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Engine {
    /// Answers a request in JSON with an object in JSON. One that has no result has the key
    /// `refusal` (the scenario is invalid: line, column, key, message, and all in one line of
    /// `text`) or `error`.
    pub fn answer(&mut self, request: &[u8]) -> String {
        self.values.clear();
        let reply = match serde_json::from_slice(request) {
            Ok(request) => self.reply(request),
            Err(error) => Err(Failure::Other(format!("not a request: {error}"))),
        };
        reply.unwrap_or_else(|failure| failure.reply()).to_string()
    }

    /// Holds the contents of a trace file, in place of a file with that name. A scenario's path is
    /// found by its last component. Returns an object in JSON, as [`answer`](Self::answer) does.
    pub fn provide(&mut self, name: String, content: Vec<u8>) -> String {
        self.values.clear();
        self.files.remove(&name);
        let held: usize = self.files.values().map(Vec::len).sum();
        if held + content.len() > MOST_FILE_BYTES {
            let message = "more than 128 MiB of trace files".to_owned();
            return Failure::Other(message).reply().to_string();
        }
        self.files.insert(name, content);
        json!({ "files": self.files.len() }).to_string()
    }

    /// Returns the samples of the last reply.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn reply(&mut self, request: Request) -> Result<Value, Failure> {
        Ok(match request {
            Request::Schema => json!({ "scenario": json_schema(), "results": results_schema() }),
            Request::Check { source } => network(&self.load(&source)?)?,
            Request::Lines { text } => json!({ "lines": lines(&text) }),
            Request::Edit { text, key, value } => {
                json!({ "text": edit::set(&text, &key, value.as_deref())? })
            }
            Request::Start {
                source,
                seed,
                series,
                packets,
            } => self.start(&source, seed, series, packets)?,
            Request::Advance { run, events } => self.advance(run, events)?,
            Request::Finish { run } => self.finish(run)?,
            Request::Series {
                run,
                indices,
                range_s,
                columns,
                averages,
            } => {
                let how = if averages { average } else { reduce };
                self.series(run, &indices, range_s, columns, how)?
            }
            Request::At { run, time_s } => {
                let at_ns = nanoseconds(time_s);
                let (_, series, _) = self.ended(run)?;
                json!({ "values": series.iter().map(|one| value_at(one, at_ns)).collect::<Vec<_>>() })
            }
            Request::Packets { run, from_s, most } => {
                let (names, _, packets) = self.ended(run)?;
                names.rows(packets, nanoseconds(from_s), most.min(10_000))
            }
            Request::Close { run } => json!({ "closed": self.runs.remove(&run).is_some() }),
        })
    }

    fn load(&self, source: &Source) -> Result<Scenario, ScenarioError> {
        let set: Vec<(&str, &str)> = source
            .set
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let read = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let content = name.and_then(|name| self.files.get(name));
            content
                .cloned()
                .ok_or_else(|| "no such file: choose it, or drop it on the page".to_owned())
        };
        let custom = CustomControls::default();
        Scenario::parse_with_files(&source.text, &source.name, &set, &custom, &read)
    }

    fn start(
        &mut self,
        source: &Source,
        seed: Option<u64>,
        series: bool,
        packets: bool,
    ) -> Result<Value, Failure> {
        if self.runs.len() >= MOST_RUNS {
            return Err(Failure::Other(format!(
                "more than {MOST_RUNS} runs are held"
            )));
        }
        let scenario = self.load(source)?;
        let options = RunOptions {
            seed,
            workbench_probes: series,
            no_series: !series,
            packet_log: packets.then_some(MOST_LOGGED),
            ..RunOptions::default()
        };
        let run = Run::new(&scenario, &options)?;
        let held = Held {
            names: Names::of(&scenario),
            state: State::Running(Box::new(run)),
        };
        let number = self.started;
        self.started += 1;
        self.runs.insert(number, held);
        Ok(json!({
            "run": number,
            "duration_s": scenario.duration.as_secs_f64(),
            "seed": seed.unwrap_or(scenario.seed),
        }))
    }

    fn advance(&mut self, number: u32, events: u64) -> Result<Value, Failure> {
        let Some(Held {
            state: State::Running(run),
            ..
        }) = self.runs.get_mut(&number)
        else {
            return Err(Failure::Other(format!("no run {number} is in progress")));
        };
        let ended = run
            .advance(events)
            .map(|progress| progress == Progress::Ended);
        match ended {
            Ok(ended) => Ok(json!({ "share": run.share_done(), "ended": ended })),
            Err(error) => {
                self.runs.remove(&number);
                Err(error.into())
            }
        }
    }

    fn finish(&mut self, number: u32) -> Result<Value, Failure> {
        let missing = || Failure::Other(format!("no run {number} is in progress"));
        let Held { names, state } = self.runs.remove(&number).ok_or_else(missing)?;
        let State::Running(run) = state else {
            self.runs.insert(number, Held { names, state });
            return Err(missing());
        };
        let output = run.finish()?;
        let series = output.series.iter();
        let described = series.map(|one| {
            json!({
                "name": one.name,
                "unit": one.unit,
                "samples": one.values.len(),
                "last_s": one.times_ns.last().map(|at| *at as f64 / 1e9),
            })
        });
        let reply = json!({
            "summary_json": serde_json::to_string(&output.summary).map_err(|error| error.to_string())?,
            "series": described.collect::<Vec<_>>(),
        });
        let state = State::Ended {
            series: output.series,
            packets: output.packets,
        };
        self.runs.insert(number, Held { names, state });
        Ok(reply)
    }

    fn series(
        &mut self,
        run: u32,
        indices: &[usize],
        range_s: [f64; 2],
        columns: usize,
        how: Reduction,
    ) -> Result<Value, Failure> {
        let mut values = std::mem::take(&mut self.values);
        let (_, series, _) = self.ended(run)?;
        let range_ns = range_s.map(nanoseconds);
        let range_ns = [range_ns[0], range_ns[1].max(range_ns[0])];
        let mut lengths = Vec::with_capacity(indices.len());
        for index in indices {
            let Some(one) = series.get(*index) else {
                return Err(Failure::Other(format!("run {run} has no series {index}")));
            };
            let before = values.len();
            how(one, range_ns, columns.clamp(1, 1 << 14), &mut values);
            lengths.push((values.len() - before) / NUMBERS);
        }
        self.values = values;
        Ok(json!({ "lengths": lengths }))
    }

    fn ended(&self, run: u32) -> Result<(&Names, &[RecordedSeries], &PacketLog), Failure> {
        match self.runs.get(&run) {
            Some(Held {
                names,
                state: State::Ended { series, packets },
            }) => Ok((names, series, packets)),
            _ => Err(Failure::Other(format!("no run {run} has ended"))),
        }
    }
}

/// Returns the resolved scenario, or its numbers if it is large.
fn network(scenario: &Scenario) -> Result<Value, Failure> {
    let counts = json!({
        "nodes": scenario.nodes.len(),
        "links": scenario.links.len(),
        "flows": scenario.flows.len(),
    });
    let all = scenario.nodes.len() + scenario.links.len() + scenario.flows.len();
    let whole = if all <= MOST_DRAWN {
        serde_json::to_value(scenario).map_err(|error| error.to_string())?
    } else {
        Value::Null
    };
    Ok(json!({
        "counts": counts,
        "name": scenario.name,
        "duration_s": scenario.duration.as_secs_f64(),
        "seed": scenario.seed,
        "has_random_losses": scenario.may_meet_errors(),
        "network": whole,
    }))
}

/// Returns the paths of keys and their lines; null if the text is not TOML.
fn lines(text: &str) -> Value {
    let Some(found) = key_lines(text) else {
        return Value::Null;
    };
    let entry = |(path, line): (Vec<Segment>, usize)| {
        let steps = path.into_iter().map(|step| match step {
            Segment::Key(key) => Value::from(key),
            Segment::Index(index) => Value::from(index),
        });
        json!([steps.collect::<Vec<_>>(), line])
    };
    found.into_iter().map(entry).collect()
}

/// Converts seconds of a page to nanoseconds: never negative, and a number beyond the range is the
/// largest.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests;
