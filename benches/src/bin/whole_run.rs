//! Runs a scenario as a whole process, for benchmarks:
//! `whole-run [--cores N | --critical-path N] FILE [KEY=VALUE ...]`, with overrides as for
//! `bentpipe run --set`.
//!
//! Prints one line of key-value pairs: the data segments delivered in order, drops, and
//! retransmissions. With `--critical-path N`, the network is divided for N processors, and one part
//! runs at a time. The line then has the time of all windows and that of the slowest part in each.

use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bentpipe_scenario::{Progress, Run, RunOptions, Scenario};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Some(RunOptions::default());
    if let [option, number, ..] = &arguments[..]
        && ["--cores", "--critical-path"].contains(&option.as_str())
    {
        options = number.parse().ok().map(|cores| RunOptions {
            cores,
            measure_windows: (option == "--critical-path").then_some(wall_time),
            ..RunOptions::default()
        });
        arguments.drain(..2);
    }
    let overrides: Option<Vec<_>> = arguments
        .iter()
        .skip(1)
        .map(|each| each.split_once('='))
        .collect();
    let (Some(path), Some(overrides), Some(options)) = (arguments.first(), overrides, options)
    else {
        eprintln!("usage: whole-run [--cores N | --critical-path N] FILE [KEY=VALUE ...]");
        return ExitCode::from(2);
    };
    match run(path, &overrides, &options) {
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

/// Returns the time since the first call.
#[expect(clippy::disallowed_methods, reason = "measures the program")]
fn wall_time() -> Duration {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed()
}

fn run(
    path: &str,
    overrides: &[(&str, &str)],
    options: &RunOptions,
) -> Result<String, Box<dyn std::error::Error>> {
    let scenario = Scenario::load(path, overrides)?;
    let mss = scenario
        .flows
        .first()
        .and_then(|flow| scenario.tcp_of(flow.from))
        .map_or(1448, |tcp| u64::from(tcp.config.mss));
    let mut run = Run::new(&scenario, options)?;
    while run.advance(u64::MAX)? == Progress::Running {}
    let times = run.window_times().map_or_else(String::new, |times| {
        format!(
            " parts {} windows {} total_s {:.6} critical_path_s {:.6}",
            run.cores().used,
            times.windows,
            times.total.as_secs_f64(),
            times.critical_path.as_secs_f64()
        )
    });
    let summary = run.finish()?.summary;
    let flows = &summary.flows;
    let delivered: u64 = flows.iter().map(|flow| flow.bytes_delivered / mss).sum();
    let drops: u64 = summary.links.iter().map(|link| link.packets_dropped).sum();
    let retransmissions: u64 = flows.iter().map(|flow| flow.segments_retransmitted).sum();
    let timeouts: u64 = flows.iter().map(|flow| flow.timeouts).sum();
    Ok(format!(
        "delivered {delivered} drops {drops} retransmissions {retransmissions} timeouts {timeouts} \
         packet_hops {}{times}",
        summary.packet_hops
    ))
}
