//! The one place that calls `bentpipe-scenario`: plain Rust types in, plain Rust types out.
#![expect(dead_code, reason = "until the simulator is wired in")]

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A scenario, before it is read.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file; only its name in messages where `text` is given.
    pub(crate) path: PathBuf,
    /// The file's content, when it doesn't come from `path`.
    pub(crate) text: Option<String>,
    /// `("hosts.server.tcp.mss", "1448 B")`: applied in order, after the file.
    pub(crate) overrides: Vec<(String, String)>,
}

/// A run that Python asked for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) source: Source,
    pub(crate) seed: Option<u64>,
    /// Link name and where its capture goes.
    pub(crate) pcap: Vec<(String, PathBuf)>,
    /// Whether a scenario that names no probes gets the default ones.
    pub(crate) default_probes: bool,
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

const NOT_WIRED: &str = "this build has no simulator yet";

/// Run the scenario; the error is one line.
pub(crate) fn run(request: &Request) -> Result<Finished, String> {
    Err(format!("{}: {NOT_WIRED}", request.source.path.display()))
}

/// Resolve the scenario and return it as JSON.
pub(crate) fn load(source: &Source) -> Result<String, String> {
    Err(format!("{}: {NOT_WIRED}", source.path.display()))
}

/// The JSON Schema of the scenario file.
pub(crate) fn json_schema() -> String {
    "{}".to_owned()
}

/// Names a scenario file may use, by kind.
pub(crate) fn lists() -> BTreeMap<String, Vec<String>> {
    BTreeMap::new()
}
