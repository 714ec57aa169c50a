//! Whole runs, and what tests read from their results.

use bentpipe_scenario::{AccessSummary, RunOptions, RunOutput, Scenario};

/// Runs a scenario file with these settings in place of its own.
pub(crate) fn run_text(text: &str, settings: &[(&str, &str)]) -> RunOutput {
    let scenario = Scenario::parse(text, "test.toml", settings);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let output = scenario.run(&RunOptions::default());
    output.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the samples of a series from `from` seconds: (seconds, value).
pub(crate) fn series(output: &RunOutput, name: &str, from: f64) -> Vec<(f64, f64)> {
    let mut all = output.series.iter();
    let series = all.find(|series| series.name.ends_with(name));
    let series = series.unwrap_or_else(|| panic!("{name}"));
    let times = series.times_ns.iter().map(|&ns| ns as f64 * 1e-9);
    let samples = times.zip(series.values.iter().copied());
    samples.filter(|(at, _)| *at >= from).collect()
}

/// Returns what a direction got on demand.
pub(crate) fn access<'a>(output: &'a RunOutput, direction: &str) -> &'a AccessSummary {
    let mut links = output.summary.links.iter();
    let found = links.find(|link| link.name == direction);
    let access = found.expect("it is there").access.as_ref();
    access.expect("it has capacity on demand")
}
