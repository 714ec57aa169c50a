//! `bentpipe-live interop`: tests our TCP against the kernel's.

use std::path::PathBuf;

use bentpipe_live::interop::{self, Cell};
use bentpipe_types::Span;
use lexopt::prelude::*;

use super::Outcome;

pub(super) const USAGE: &str = "\
bentpipe-live interop [--full] [--bytes N] [--only TEXT]... [--capture DIR] [--json FILE] [--list]

  --full          every combination, instead of the quick subset
  --bytes N       bytes each way of the full matrix's transfers (default 100000000)
  --only TEXT     only cells whose name has TEXT in it; may be repeated, all must be in it
  --capture DIR   a pcapng of each cell there (its first 5000 packets), for tshark to judge; kept
                  where something is wrong, and with --keep
  --packets N     of each cell, captured
  --json FILE     the results
  --list          name the cells, play none
";

/// Longest duration of one cell.
const CELL_TIME_LIMIT: Span = Span::from_secs(300);
/// Default number of packets captured per cell.
const DEFAULT_CAPTURED_PACKETS: u64 = 5_000;

#[derive(Default)]
struct Request {
    full: bool,
    list: bool,
    bytes: Option<u64>,
    only: Vec<String>,
    capture: Option<PathBuf>,
    packets: Option<u64>,
    keep: bool,
    json: Option<PathBuf>,
}

pub(super) fn run(mut arguments: lexopt::Parser) -> Outcome {
    let mut request = Request::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("full") => request.full = true,
            Long("list") => request.list = true,
            Long("bytes") => request.bytes = Some(arguments.value()?.parse()?),
            Long("only") => request.only.push(arguments.value()?.string()?),
            Long("capture") => request.capture = Some(arguments.value()?.into()),
            Long("packets") => request.packets = Some(arguments.value()?.parse()?),
            Long("keep") => request.keep = true,
            Long("json") => request.json = Some(arguments.value()?.into()),
            Long("help") => {
                print!("{USAGE}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    play_all(&request)
}

fn play_all(request: &Request) -> Outcome {
    if let Some(obstacle) = interop::obstacle() {
        return Err(obstacle.into());
    }
    let mut cells = if request.full {
        interop::full(request.bytes.unwrap_or(100_000_000))
    } else {
        interop::quick()
    };
    cells.retain(|cell| {
        let name = cell.to_string();
        request.only.iter().all(|text| name.contains(text))
    });
    if let Some(directory) = &request.capture {
        std::fs::create_dir_all(directory)?;
    }
    let mut results = Vec::new();
    let mut failures = 0;
    for (n, cell) in cells.iter().enumerate() {
        if request.list {
            println!("{cell}");
            continue;
        }
        let result = play(cell, n, request);
        failures += usize::from(result["passed"] == false);
        results.push(result);
        // Written after each cell, since the session may end before the whole matrix is complete.
        if let Some(path) = &request.json {
            std::fs::write(path, serde_json::to_string_pretty(&results)?)?;
        }
    }
    if !request.list {
        println!("{} cells, {failures} failed", results.len());
    }
    Ok(failures == 0)
}

fn play(cell: &Cell, number: usize, request: &Request) -> serde_json::Value {
    let capture = request
        .capture
        .as_ref()
        .map(|directory| directory.join(format!("{number:03}.pcapng")));
    let packets = request.packets.unwrap_or(DEFAULT_CAPTURED_PACKETS);
    let capture_to = capture.as_deref().map(|path| (path, packets));
    let mut result = match interop::play(cell, CELL_TIME_LIMIT, capture_to) {
        Ok(outcome) => {
            println!("passed  {:7.2} s  {cell}", outcome.seconds);
            serde_json::json!({ "cell": cell.to_string(), "passed": true, "outcome": outcome })
        }
        Err(failure) => {
            println!("FAILED           {cell}: {failure}");
            serde_json::json!({
                "cell": cell.to_string(), "passed": false, "failure": failure.to_string(),
            })
        }
    };
    let Some(path) = capture else {
        return result;
    };
    match interop::dissect(&path) {
        Ok(Some(dissection)) => {
            if dissection.malformed + dissection.bad_checksums > 0 {
                println!(
                    "FAILED           {cell}: {}: {dissection:?}",
                    path.display()
                );
                result["passed"] = false.into();
            }
            result["frames"] = dissection.frames.into();
            result["bad_checksums"] = dissection.bad_checksums.into();
            result["malformed"] = dissection.malformed.into();
        }
        Ok(None) => println!(
            "        tshark is not installed: {} is not checked",
            path.display()
        ),
        Err(error) => println!("        tshark: {error}"),
    }
    if result["passed"] == true && !request.keep {
        let _ = std::fs::remove_file(&path);
    }
    result
}
