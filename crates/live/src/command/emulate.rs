//! `bentpipe-live emulate`: runs a scenario in real time without Python. `bentpipe emulate` does
//! the same from Python.

use std::path::PathBuf;

use bentpipe_live::emulate::{self, Control, EmulateError, KernelRules, Request};
use bentpipe_scenario::{RunOptions, Scenario};
use lexopt::prelude::*;

use super::Outcome;

pub(super) const USAGE: &str = "\
bentpipe-live emulate FILE [--set KEY=VALUE]... [--seed N] [--our HOST]...

  The scenario in real time, between TCP connections of the kernel's. Writes a JSON object.
";

pub(super) fn run(mut arguments: lexopt::Parser) -> Outcome {
    let mut file: Option<PathBuf> = None;
    let mut overrides: Vec<(String, String)> = Vec::new();
    let mut options = RunOptions::default();
    let mut ours = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(path) if file.is_none() => file = Some(path.into()),
            Long("set") => {
                let text = arguments.value()?.string()?;
                let (key, value) = text.split_once('=').ok_or("--set: KEY=VALUE")?;
                overrides.push((key.to_owned(), value.to_owned()));
            }
            Long("our") => ours.push(arguments.value()?.string()?),
            Long("seed") => options.seed = Some(arguments.value()?.parse()?),
            Long("help") => {
                print!("usage: {USAGE}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let file = file.ok_or("which scenario?")?;
    let overrides: Vec<(&str, &str)> = overrides
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let scenario = Scenario::load(&file, &overrides)?;
    if let Some(obstacle) = emulate::obstacle() {
        return Err(obstacle.into());
    }
    let request = Request {
        scenario,
        options,
        commands: Vec::new(),
        ours,
        rules: KernelRules::default(),
    };
    match emulate::emulate(&request, &Control::default()) {
        Ok(emulated) => {
            println!("{}", emulated.summary);
            Ok(true)
        }
        Err(EmulateError::Request(message)) => Err(message.into()),
        Err(EmulateError::Failed(message)) => {
            eprintln!("bentpipe-live: {message}");
            Ok(false)
        }
    }
}
