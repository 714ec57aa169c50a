//! Runs a scenario as a whole process, for benchmarks: `whole-run FILE`.
//!
//! Prints one line of key-value pairs: the data segments delivered in order, and what was dropped
//! and sent again.

use std::process::ExitCode;

use bentpipe_scenario::{RunOptions, Scenario};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: whole-run FILE");
        return ExitCode::from(2);
    };
    match run(&path) {
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

fn run(path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let scenario = Scenario::load(path, &[])?;
    let mss = scenario
        .flows
        .first()
        .and_then(|flow| scenario.tcp_of(flow.from))
        .map_or(1448, |tcp| tcp.mss.get());
    let summary = scenario.run(&RunOptions::default())?.summary;
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
