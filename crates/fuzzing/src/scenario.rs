//! Fuzzes the scenario reader with any text and an override. Errors are one line. An accepted
//! scenario, written as a file, parses to the same.

use bentpipe_scenario::Scenario;

/// Reads a scenario.
///
/// # Panics
/// If an error is not one short line.
pub fn run(text: &str) {
    // A first line "#!KEY=VALUE" is an override.
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    let overrides: Vec<(&str, &str)> = first
        .and_then(|line| line.split_once('='))
        .into_iter()
        .collect();
    match Scenario::parse(text, "file.toml", &overrides) {
        Ok(scenario) => {
            let _ = format!("{scenario:?}");
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            assert!(line.len() < 2_000, "{line}");
        }
    }
}
