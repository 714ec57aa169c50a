//! Whole runs on several processors: equal results, and which networks are divided.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bentpipe_scenario::{LARGE_NETWORK, Progress, Run, RunOptions, Scenario};
use serde_json::Value;

/// Runs a scenario on at most this many processors, with a number of events at a time. Returns the
/// results, the number of processors, and why the network is not divided.
fn run_on(text: &str, cores: usize, budget: u64) -> (Value, usize, Option<String>) {
    let scenario = Scenario::parse(text, "processors.toml", &[]).expect("a scenario");
    let options = RunOptions {
        no_series: true,
        cores,
        ..RunOptions::default()
    };
    let mut run = Run::new(&scenario, &options).expect("it fits together");
    let used = run.cores();
    while run.advance(budget).expect("it runs") == Progress::Running {}
    let output = run.finish().expect("it is finished");
    let result = serde_json::to_value(&output.summary).expect("it is JSON");
    (result, used.used, used.undivided.map(|why| why.to_string()))
}

/// Checks that the results are equal on 1 to 16 processors, and that this many are used.
fn expect_equal(text: &str, most: usize) {
    let (alone, used, reason) = run_on(text, 1, u64::MAX);
    assert_eq!((used, reason), (1, None));
    for cores in [2, 3, 16] {
        for budget in [1_000, u64::MAX] {
            let (result, used, _) = run_on(text, cores, budget);
            assert_eq!(used, cores.min(most), "{text}");
            assert_eq!(result, alone, "{cores} processors: {text}");
        }
    }
}

/// Returns a network with this kind of gateway, and its flows.
fn behind(gateways: &str, flows: &str) -> String {
    format!(
        r#"
        name = "behind"
        duration = "120 s"
        {gateways}
        {flows}
        [hosts.server]
        [hosts.user]
        count = 5
        [links.feed]
        between = ["server", "hub"]
        rate = "1 Gbit/s"
        delay = "5 ms"
        [links.satellite]
        between = ["hub", "terminal"]
        forward = {{ rate = "20 Mbit/s", delay = "250 ms", queue = {{ kind = "fq-codel" }}, errors = {{ packet_loss_rate = 0.001 }} }}
        return = {{ rate = "2 Mbit/s", delay = "250 ms" }}
        [links.access]
        between = ["terminal", "user"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        "#
    )
}

const ROUTERS: &str =
    "gateways = { hub = { kind = \"router\" }, terminal = { kind = \"router\" } }";
const SPLIT: &str = r#"gateways = { hub = { kind = "split", facing = "satellite" }, terminal = { kind = "split", facing = "satellite" } }"#;
const ONE_HYBRID: &str = r#"gateways = { hub = { kind = "hybrid", facing = "satellite" }, terminal = { kind = "router" } }"#;

#[test]
fn networks_with_and_without_gateways_give_equal_results() {
    let downloads = r#"flows.download = { from = "server", to = "user", app = { kind = "bulk", size = "2 MB" } }"#;
    let endless = r#"flows.download = { from = "server", to = "user", app = { kind = "bulk" } }"#;
    // Long pauses, in which the gateways' timers are the only events.
    let requests = r#"flows.requests = { from = "user", to = "server", app = { kind = "request-response", requests = 3, response = "100 kB", think = "20 s" } }"#;
    let pings =
        r#"flows.pings = { from = "user", to = "server", app = { kind = "ping", requests = 20 } }"#;
    for gateways in [ROUTERS, SPLIT, ONE_HYBRID] {
        for flows in [downloads, endless, requests, pings] {
            // Users with their terminal, and the server with the hub.
            expect_equal(&behind(gateways, flows), 2);
        }
    }
}

#[test]
fn beams_with_servers_of_their_own_are_parts() {
    let mut text = "name = \"beams\"\nduration = \"20 s\"\n".to_owned();
    for beam in 0..3 {
        text += &format!(
            r#"
            [hosts.server{beam}]
            [hosts.user{beam}]
            count = 4
            [gateways.hub{beam}]
            kind = "router"
            [links.feed{beam}]
            between = ["server{beam}", "hub{beam}"]
            rate = "1 Gbit/s"
            delay = "5 ms"
            [links.beam{beam}]
            between = ["hub{beam}", "user{beam}"]
            rate = "10 Mbit/s"
            delay = "250 ms"
            [flows.pages{beam}]
            from = "user{beam}"
            to = "server{beam}"
            app = {{ kind = "web" }}
            "#
        );
    }
    expect_equal(&text, 3);
}

#[test]
fn networks_that_nothing_divides_run_on_one_processor() {
    let near = r#"
        name = "near"
        duration = "5 s"
        hosts = { a = {}, b = {} }
        links.l = { between = ["a", "b"], rate = "5 Mbit/s", delay = "0 ms" }
        flows.f = { from = "a", to = "b", app = { kind = "bulk" } }
    "#;
    let (_, used, why) = run_on(near, 2, u64::MAX);
    assert_eq!(used, 1);
    assert_eq!(
        why.as_deref(),
        Some("no link with a constant delay divides its flows")
    );
    // The ends of a web page share the content of requests.
    let (_, used, why) = run_on(
        &behind(
            ROUTERS,
            r#"flows.pages = { from = "user", to = "server", app = { kind = "web" } }"#,
        ),
        2,
        u64::MAX,
    );
    assert_eq!((used, why.is_some()), (1, true));
}

#[test]
fn a_network_that_is_recorded_is_not_divided() {
    let scenario = Scenario::parse(
        &behind(
            ROUTERS,
            "flows.f = { from = \"server\", to = \"user\", app = { kind = \"bulk\" } }",
        ),
        "processors.toml",
        &[],
    );
    let options = RunOptions {
        default_probes: true,
        cores: 2,
        ..RunOptions::default()
    };
    let run = Run::new(&scenario.expect("a scenario"), &options).expect("it fits together");
    let why = run.cores().undivided.map(|why| why.to_string());
    assert_eq!(why.as_deref(), Some("series or captures are recorded"));
}

#[test]
fn windows_are_measured_on_request() {
    let flows = r#"flows.download = { from = "server", to = "user", app = { kind = "bulk", size = "2 MB" } }"#;
    let text = behind(ROUTERS, flows);
    let scenario = Scenario::parse(&text, "processors.toml", &[]).expect("a scenario");
    // One more nanosecond with each call.
    let clock = || {
        static NOW: AtomicU64 = AtomicU64::new(0);
        Duration::from_nanos(NOW.fetch_add(1, Ordering::Relaxed))
    };
    let times = |measure_windows: Option<fn() -> Duration>| {
        let options = RunOptions {
            no_series: true,
            cores: 2,
            measure_windows,
            ..RunOptions::default()
        };
        let mut run = Run::new(&scenario, &options).expect("it fits together");
        while run.advance(1_000).expect("it runs") == Progress::Running {}
        run.window_times()
    };
    assert_eq!(times(None), None);
    let times = times(Some(clock)).expect("measured");
    assert!(times.windows > 10);
    // Each window of each part takes a nanosecond by this clock.
    assert_eq!(times.critical_path, Duration::from_nanos(times.windows));
    assert_eq!(times.total, 2 * times.critical_path);
}

#[test]
fn small_networks_stay_whole_unless_requested() {
    let flows = |count| {
        format!(
            r#"flows.download = {{ from = "server", to = "guest", count = {count}, app = {{ kind = "bulk", size = "1 kB" }} }}
            [hosts.guest]
            [links.guest]
            between = ["terminal", "guest"]
            rate = "1 Gbit/s"
            delay = "1 ms""#
        )
    };
    let used = |count, divide_only_large| {
        let text = behind(ROUTERS, &flows(count));
        let scenario = Scenario::parse(&text, "processors.toml", &[]).expect("a scenario");
        let options = RunOptions {
            cores: 2,
            divide_only_large,
            ..RunOptions::default()
        };
        Run::new(&scenario, &options)
            .expect("it fits together")
            .cores()
            .used
    };
    assert_eq!(used(LARGE_NETWORK - 1, true), 1);
    assert_eq!(used(LARGE_NETWORK, true), 2);
    assert_eq!(used(2, false), 2);
}
