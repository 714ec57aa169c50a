//! Properties of random networks of every kind: recording does not change the result of a run, nor
//! does the number of processors, nor an unrelated part of the file.
//!
//! `BENTPIPE_RANDOM_NETWORKS` is the number of networks (default 300), `BENTPIPE_FIRST_NETWORK` the
//! first one's seed (default 0). The test prints the seeds of networks that fail.
//! `BENTPIPE_FIRST_NETWORK=SEED BENTPIPE_RANDOM_NETWORKS=1` runs one of them alone, and prints its
//! file.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::networks::{Dice, network};
use bentpipe_scenario::{CaptureRequest, Progress, Run, RunOptions, RunOutput, Scenario};
use serde_json::Value;

const CASES: u64 = 300;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}: not a number: {text}")))
}

fn run(text: &str, settings: &[(&str, &str)], options: &RunOptions) -> Result<RunOutput, String> {
    let scenario = Scenario::parse(text, "random.toml", settings);
    let scenario = scenario.map_err(|error| error.to_string())?;
    scenario.run(options).map_err(|error| error.to_string())
}

fn json(output: &RunOutput) -> Value {
    serde_json::to_value(&output.summary).expect("it is JSON")
}

/// Returns the first few paths at which two values differ.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for (name, value) in one {
                differences(&format!("{path}.{name}"), value, &other[name], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}[{index}]"), one, other, found);
            }
        }
        _ if one != other && found.len() < 8 => {
            found.push(format!("{path}: {one} becomes {other}"));
        }
        _ => {}
    }
}

fn expect_same(what: &str, plain: &Value, other: &Value) -> Result<(), String> {
    let mut found = Vec::new();
    differences("", plain, other, &mut found);
    match found.is_empty() {
        true => Ok(()),
        false => Err(format!("{what}: {}", found.join("; "))),
    }
}

/// Returns every series of this network, as an override.
fn all_series(recorded: &RunOutput) -> String {
    let names = recorded.series.iter().map(|series| &series.name);
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

/// Checks for each link direction that every packet offered is accounted for.
fn packets_are_accounted_for(result: &Value) -> Result<(), String> {
    for link in result["links"].as_array().expect("an array") {
        let of = |name: &str| link[format!("packets_{name}")].as_u64().unwrap_or(0);
        let came = of("offered") + of("duplicated") + of("copied");
        let gone = of("delivered") + of("lost") + of("dropped") + of("removed") + of("undecodable");
        if came != gone + of("in_flight") {
            return Err(format!("not every packet is accounted for: {link}"));
        }
    }
    Ok(())
}

/// Runs one network on one and on several processors. Returns whether it was divided.
fn check_processors_keep_results(text: &str) -> Result<bool, String> {
    let scenario = Scenario::parse(text, "random.toml", &[]).map_err(|error| error.to_string())?;
    let mut results = Vec::new();
    let mut divided = false;
    for cores in [1, 2, 3, 16] {
        let options = RunOptions {
            no_series: true,
            cores,
            ..RunOptions::default()
        };
        let mut run = Run::new(&scenario, &options).map_err(|error| error.to_string())?;
        divided |= run.cores().used > 1;
        let mut advance = || run.advance(10_000).map_err(|error| error.to_string());
        while advance()? == Progress::Running {}
        let output = run.finish().map_err(|error| error.to_string())?;
        results.push(json(&output));
    }
    for other in &results[1..] {
        expect_same("processors", &results[0], other)?;
    }
    Ok(divided)
}

/// Runs one network without recording, and with each kind of recording.
fn check_recording_keeps_results(seed: u64, text: &str) -> Result<(), String> {
    let silent = RunOptions {
        no_series: true,
        ..RunOptions::default()
    };
    let usual = RunOptions {
        default_probes: true,
        ..RunOptions::default()
    };
    let plain = json(&run(text, &[], &silent)?);
    packets_are_accounted_for(&plain)?;
    // The default probes, as for `--out`, `--flent` and Python.
    let recorded = run(text, &[], &usual)?;
    expect_same("the usual probes", &plain, &json(&recorded))?;
    let all = all_series(&recorded);
    let mut dice = Dice::new(seed, "probes");
    let random = format!("\"{} us\"", 1 + dice.below(300_000));
    for interval in ["\"1 ms\"", "\"every-change\"", &random] {
        let probes = [
            ("probes.series", all.as_str()),
            ("probes.interval", interval),
        ];
        match run(text, &probes, &usual) {
            Ok(output) => {
                expect_same(&format!("probes, {interval}"), &plain, &json(&output))?;
            }
            Err(error) if error.contains("record") => {}
            Err(error) => return Err(error),
        }
    }
    let scenario = Scenario::parse(text, "random.toml", &[]).map_err(|error| error.to_string())?;
    let link = &scenario.links[dice.below(scenario.links.len() as u64) as usize];
    let end = link.between[dice.below(2) as usize];
    let node = &scenario.nodes[end].name;
    let name = format!("recording-{seed}-{:?}.pcapng", thread::current().id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let captured = RunOptions {
        captures: vec![CaptureRequest {
            place: format!("{}@{node}", link.name),
            path: path.clone(),
        }],
        ..silent
    };
    let output = run(text, &[], &captured);
    let _ = std::fs::remove_file(path);
    expect_same("a capture", &plain, &json(&output?))
}

/// Two hosts with a link and a flow, unrelated to all other flows of the file.
const UNRELATED: &str = r#"
[hosts.unrelated-a]
[hosts.unrelated-b]
[links.unrelated]
between = ["unrelated-a", "unrelated-b"]
rate = "10 Mbit/s"
delay = "3 ms"
errors = { packet_loss_rate = 0.01 }
[flows.unrelated]
from = "unrelated-a"
to = "unrelated-b"
app = { kind = "bulk", size = "20 kB" }
"#;

/// Adds an unrelated pair of hosts, and compares everything else.
fn unrelated_flows_change_nothing(text: &str) -> Result<(), String> {
    let silent = RunOptions {
        no_series: true,
        ..RunOptions::default()
    };
    let alone = json(&run(text, &[], &silent)?);
    let mut beside = json(&run(&format!("{text}{UNRELATED}"), &[], &silent)?);
    // If the pair determines the end of the run, values "until the end of the run" differ.
    if alone["ended_s"] != beside["ended_s"] {
        return Ok(());
    }
    for part in ["flows", "links", "groups"] {
        let all = beside[part].as_array_mut().expect("an array");
        all.retain(|each| {
            !each["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("unrelated"))
        });
        expect_same(
            &format!("something unrelated: {part}"),
            &alone[part],
            &beside[part],
        )?;
    }
    expect_same(
        "something unrelated",
        &alone["gateways"],
        &beside["gateways"],
    )
}

fn caught(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("of another kind")))
    })
}

#[test]
fn recording_and_unrelated_flows_change_no_result() {
    let first = number("BENTPIPE_FIRST_NETWORK").unwrap_or(0);
    let cases = number("BENTPIPE_RANDOM_NETWORKS").unwrap_or(CASES);
    let (next, failures) = (AtomicU64::new(first), Mutex::new(BTreeMap::new()));
    let refused = Mutex::new(BTreeMap::<String, u64>::new());
    let divided = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases {
                        return;
                    }
                    let made = network(seed);
                    for reason in made.refused {
                        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                        *refused.entry(reason).or_default() += 1;
                    }
                    let text = made.text;
                    if cases == 1 {
                        println!("{text}");
                    }
                    let result = caught(|| {
                        check_recording_keeps_results(seed, &text)?;
                        if check_processors_keep_results(&text)? {
                            divided.fetch_add(1, Ordering::Relaxed);
                        }
                        unrelated_flows_change_nothing(&text)
                    });
                    if let Err(what) = result {
                        println!("network {seed}: {what}");
                        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                        failures.insert(seed, what);
                    }
                }
            });
        }
    });
    let divided = divided.into_inner();
    println!("{divided} of {cases} networks ran on several processors");
    assert!(
        cases < CASES || divided > cases / 20,
        "too few networks are divided"
    );
    if number("BENTPIPE_SHOW_REFUSED").is_some() {
        println!("{:#?}", refused.into_inner());
    }
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    assert!(
        failures.is_empty(),
        "{} of {cases}: {failures:#?}",
        failures.len()
    );
}

/// Returns the results of a file without recording, and with the default probes.
fn plain_and_recorded(text: &str) -> [Value; 2] {
    let options = |default_probes| RunOptions {
        default_probes,
        no_series: !default_probes,
        ..RunOptions::default()
    };
    [false, true].map(|record| json(&run(text, &[], &options(record)).expect("it runs")))
}

/// A sample falls in the 100 us for which the application of a Linux host sleeps after the
/// handshake.
#[test]
fn a_run_continues_while_an_application_wakes_up() {
    let text = r#"
        name = "early"
        duration = "10 s"
        hosts = { client = {}, server = { tcp = { profile = "linux" } } }
        links.l = { between = ["client", "server"], rate = "1 Gbit/s", delay = "9983 us" }
        flows.f = { from = "client", to = "server", app = { kind = "bulk", direction = "download", size = "10 MB" } }
    "#;
    let [plain, recorded] = plain_and_recorded(text);
    assert_eq!(recorded["flows"][0]["bytes_delivered"], 10_000_000);
    assert_eq!(expect_same("probes", &plain, &recorded), Ok(()));
}

/// Each message has its own connection, so that applications wake up again and again.
#[test]
fn a_run_continues_while_mail_waits_for_a_greeting() {
    let text = r#"
        name = "mail"
        duration = "60 s"
        hosts = { a = { tcp = { profile = "linux" } }, b = { tcp = { profile = "linux" } } }
        links.l = { between = ["a", "b"], rate = "5 Mbit/s", delay = "5 ms" }
        flows.mail = { from = "a", to = "b", app = { kind = "mail", pause = "exponential(1 s)" } }
    "#;
    let [plain, recorded] = plain_and_recorded(text);
    assert!(recorded["ended_s"].as_f64() > Some(50.0));
    assert_eq!(expect_same("probes", &plain, &recorded), Ok(()));
}

/// The last request of a terminal is granted after the last packet has arrived.
#[test]
fn a_run_continues_until_all_requests_are_granted() {
    let text = r#"
        name = "granted"
        duration = "20 s"
        hosts = { a = {}, b = {} }
        [links.sat]
        between = ["a", "b"]
        delay = "5 ms"
        forward = { rate = "1 Mbit/s" }
        return = { rate = "64 kbit/s", access = { kind = "on-demand", constant = "16 kbit/s", volume_based = true } }
        [flows.f]
        from = "b"
        to = "a"
        app = { kind = "bulk", size = "10 kB" }
    "#;
    let [plain, recorded] = plain_and_recorded(text);
    let access = &recorded["links"][1]["access"];
    assert_eq!(
        access["asked_volume_based_bytes"],
        access["granted_volume_based_bytes"]
    );
    assert_eq!(expect_same("probes", &plain, &recorded), Ok(()));
}
