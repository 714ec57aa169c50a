//! Runs a scenario as a whole process, for benchmarks:
//! `whole-run [--cores N] FILE [KEY=VALUE ...]`, with overrides as for `bentpipe run --set`.
//!
//! Prints one line of key-value pairs: the data segments delivered in order, drops, and
//! retransmissions.

use std::process::ExitCode;

use bentpipe_scenario::{RunOptions, Scenario};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut cores = Some(1);
    if arguments.first().is_some_and(|first| first == "--cores") && arguments.len() > 1 {
        cores = arguments[1].parse().ok();
        arguments.drain(..2);
    }
    let overrides: Option<Vec<_>> = arguments
        .iter()
        .skip(1)
        .map(|each| each.split_once('='))
        .collect();
    let (Some(path), Some(overrides), Some(cores)) = (arguments.first(), overrides, cores) else {
        eprintln!("usage: whole-run [--cores N] FILE [KEY=VALUE ...]");
        return ExitCode::from(2);
    };
    match run(path, &overrides, cores) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(
    path: &str,
    overrides: &[(&str, &str)],
    cores: usize,
) -> Result<String, Box<dyn std::error::Error>> {
    let scenario = Scenario::load(path, overrides)?;
    let mss = scenario
        .flows
        .first()
        .and_then(|flow| scenario.tcp_of(flow.from))
        .map_or(1448, |tcp| u64::from(tcp.config.mss));
    let options = RunOptions {
        cores,
        ..RunOptions::default()
    };
    let summary = scenario.run(&options)?.summary;
    let flows = &summary.flows;
    let delivered: u64 = flows.iter().map(|flow| flow.bytes_delivered / mss).sum();
    let drops: u64 = summary.links.iter().map(|link| link.packets_dropped).sum();
    let retransmissions: u64 = flows.iter().map(|flow| flow.segments_retransmitted).sum();
    let timeouts: u64 = flows.iter().map(|flow| flow.timeouts).sum();
    Ok(format!(
        "delivered {delivered} drops {drops} retransmissions {retransmissions} timeouts {timeouts} \
         packet_hops {}",
        summary.packet_hops
    ))
}
