//! The command line.

mod emulate;
mod interop;
mod outcome;
mod witness;

use std::process::ExitCode;

use lexopt::prelude::*;

use outcome::Outcome;

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("bentpipe-live: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Outcome {
    let mut arguments = lexopt::Parser::from_env();
    match arguments.next()? {
        Some(Value(name)) if name == "emulate" => emulate::run(arguments),
        Some(Value(name)) if name == "interop" => interop::run(arguments),
        Some(Value(name)) if name == "witness" => witness::run(arguments),
        Some(Long("help")) => {
            print!(
                "usage: {}\n       {}\n       {}",
                emulate::USAGE,
                interop::USAGE,
                witness::USAGE
            );
            Ok(true)
        }
        _ => Err("emulate, interop or witness; --help says more".into()),
    }
}
