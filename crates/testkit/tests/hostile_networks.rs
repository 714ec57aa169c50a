//! Thousands of hostile networks and peers, each generated from a seed.
//!
//! `BENTPIPE_HOSTILE_CASES` is the number of cases (default 10,000; 2,000 through gateways). A
//! failing case is printed with the command that runs it alone, which also writes a capture.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bentpipe_testkit::hostile::{
    Capture, CaseOutcome, Counts, Failure, Kind, multiplexed, network, operations, restarting,
    split,
};

const DEFAULT_CASES: u64 = 10_000;
/// Default number of cases through gateways, which take longer.
const DEFAULT_CASES_THROUGH_GATEWAYS: u64 = 2_000;

type Run = fn(u64, Option<&mut Capture>) -> Result<Counts, Failure>;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}: not a number: {text}")))
}

/// Runs one case and returns its failure.
fn failure(run: Run, seed: u64, capture: Option<&mut Capture>) -> Result<Counts, String> {
    match catch_unwind(AssertUnwindSafe(|| run(seed, capture))) {
        Ok(result) => result.map_err(|failure| failure.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("of another kind")))
        }
    }
}

fn replay(test: &str, run: Run, seed: u64) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{test}-{seed}.pcapng"));
    let file = File::create(&path).expect("the capture can be made");
    let mut capture =
        Capture::new(Box::new(BufWriter::new(file))).expect("the capture can be written");
    let result = failure(run, seed, Some(&mut capture));
    capture.finish().expect("the capture can be written");
    println!("{test} {seed}: capture in {}", path.display());
    match result {
        Ok(counts) => println!("{test} {seed}: {counts:?}"),
        Err(what) => panic!("{test} {seed}: {what}"),
    }
}

/// Runs all seeds on all processors and returns their results.
fn run_all(test: &str, run: Run, by_default: u64) -> Vec<Counts> {
    if let Some(seed) = number("BENTPIPE_HOSTILE_SEED") {
        replay(test, run, seed);
        return Vec::new();
    }
    let cases = number("BENTPIPE_HOSTILE_CASES").unwrap_or(by_default);
    let next = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    let mut failures = BTreeMap::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= cases {
                            return done;
                        }
                        done.push((seed, failure(run, seed, None)));
                    }
                })
            })
            .collect();
        for worker in workers {
            for (seed, result) in worker.join().expect("a worker catches panics") {
                match result {
                    Ok(counts) => all.push(counts),
                    Err(what) => drop(failures.insert(seed, what)),
                }
            }
        }
    });
    for (seed, what) in failures.iter().take(10) {
        let what: String = what.chars().take(300).collect();
        println!("{test} {seed}: {what}");
        println!(
            "    BENTPIPE_HOSTILE_SEED={seed} cargo test --package bentpipe-testkit --test it \
             {test} -- --nocapture"
        );
    }
    let seeds: Vec<_> = failures.keys().take(30).collect();
    assert!(
        failures.is_empty(),
        "{} of {cases} cases failed: {seeds:?}",
        failures.len()
    );
    all
}

/// Split gateways: streams are exact at both ends, memory stays within its bound, and every
/// connection ends, at the gateways as well.
#[test]
fn any_network_through_gateways() {
    let all = run_all(
        "any_network_through_gateways",
        split,
        DEFAULT_CASES_THROUGH_GATEWAYS,
    );
    print_outcomes(&all);
    report(&all);
}

/// The same with persistent connections between the gateways.
#[test]
fn any_network_through_persistent_connections() {
    report(&run_all(
        "any_network_through_persistent_connections",
        multiplexed,
        DEFAULT_CASES_THROUGH_GATEWAYS,
    ));
}

/// The same with gateways that stop and restart: delivered data are a prefix of the written data,
/// and an end with outstanding data learns that its peer is gone.
#[test]
fn any_network_through_restarting_gateways() {
    let all = run_all(
        "any_network_through_restarting_gateways",
        restarting,
        DEFAULT_CASES_THROUGH_GATEWAYS,
    );
    print_outcomes(&all);
    report(&all);
}

/// Streams are exact, or the connection ends with an error. No panic, endless loop, endless sleep
/// or unbounded memory.
#[test]
fn any_network_and_any_peer() {
    let all = run_all("any_network_and_any_peer", network, DEFAULT_CASES);
    let outcomes = print_outcomes(&all);
    report(&all);
    // Detectable lies do not prevent an orderly end.
    assert!(all.is_empty() || outcomes[&(Kind::Lies, CaseOutcome::Exact)] > 0);
}

/// The window is finite and at least one segment, the pacing rate is finite, and a connection with
/// data to send always has a deadline.
#[test]
fn any_operations() {
    report(&run_all("any_operations", operations, DEFAULT_CASES));
}

/// Regression: a record written behind a full segment while a fast path without support for records
/// applied.
#[test]
fn a_record_written_behind_a_full_segment_is_preserved() {
    operations(2514, None).expect("it passes");
}

/// Regression: a path that permits longer packets again, none of which fits the congestion window
/// left from shorter segments.
#[test]
fn transfers_continue_after_the_path_mtu_grows() {
    for seed in [5_246, 10_998, 73_860, 84_959, 96_357, 98_626] {
        operations(seed, None).expect("it passes");
    }
}

/// Regression: a SYN forged from another segment, between the ends of a connection that one gateway
/// had forgotten while the other had not finished it.
#[test]
fn a_forged_syn_during_an_unfinished_connection_is_harmless() {
    for seed in [40_744, 45_720, 72_604] {
        multiplexed(seed, None).expect("it passes");
    }
}

/// Regression: simultaneous open where one gateway has a stream for the connection after the other
/// has stopped waiting and opened an unmultiplexed connection.
#[test]
fn simultaneous_open_with_a_stream_at_one_gateway_completes() {
    for seed in [2_299, 3_948, 18_006] {
        multiplexed(seed, None).expect("it passes");
    }
}

/// Replay: a seed gives the same case each time, and its capture contains every packet.
#[test]
fn a_seed_reproduces_its_case_and_its_capture_is_complete() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile.pcapng");
    let mut blocks = 0;
    let mut packets = 0;
    for seed in 0..20 {
        let file = File::create(&path).expect("the capture can be made");
        let mut capture =
            Capture::new(Box::new(BufWriter::new(file))).expect("the capture can be written");
        let with = network(seed, Some(&mut capture)).expect("it passes");
        assert_eq!(capture.left_out, 0, "packets that cannot be written");
        capture.finish().expect("the capture can be written");
        let without = network(seed, None).expect("it passes");
        assert_eq!(format!("{with:?}"), format!("{without:?}"));
        let bytes = std::fs::read(&path).expect("the capture is there");
        packets += with.packets;
        blocks += count_packets(&bytes);
    }
    // Each packet once where it left, and most of them where they arrived.
    assert!(blocks > packets, "{blocks} blocks, {packets} packets");
}

/// Counts the enhanced packet blocks of a capture: draft-ietf-opsawg-pcapng section 3.1.
fn count_packets(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((head, _)) = bytes.split_first_chunk::<8>() {
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        count += u64::from(word(0) == 6);
        bytes = bytes.get(word(4) as usize..).unwrap_or_default();
    }
    count
}

/// Counts cases by kind and outcome, and prints them.
fn print_outcomes(all: &[Counts]) -> BTreeMap<(Kind, CaseOutcome), u64> {
    let mut outcomes: BTreeMap<(Kind, CaseOutcome), u64> = BTreeMap::new();
    for counts in all {
        if let Some(ending) = counts.ending {
            *outcomes.entry(ending).or_default() += 1;
        }
    }
    for ((kind, ending), count) in &outcomes {
        println!("{kind:?}: {ending:?}: {count}");
    }
    outcomes
}

fn report(all: &[Counts]) {
    let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
    println!(
        "{} cases: {} events, {} packets sent, {} changed headers that no checksum told of",
        all.len(),
        sum(|counts| counts.events),
        sum(|counts| counts.packets),
        sum(|counts| counts.undetected),
    );
}
