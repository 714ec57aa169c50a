//! Processing time of all kinds of gateway, against a closed form.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::{Value, json};

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "served"
duration = "20 s"
seed = 1
[hosts.server]
[hosts.client]
[gateways.hub]
processing = { time = "2 ms", queue = "10 packets" }
[links]
lan = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "1 ms" }
satellite = { between = ["hub", "client"], rate = "100 Mbit/s", delay = "100 ms" }
[flows.stream]
from = "server"
to = "client"
app = { kind = "packets", size = "1000 B", interval = "1 ms" }
[probes]
series = ["hub.processing"]
interval = "100 ms"
"#;

fn run(settings: &[(&str, &str)]) -> Value {
    let output = run_text(NETWORK, settings);
    let queue = output.series[0]
        .values
        .iter()
        .fold(0.0, |a: f64, b| a.max(*b));
    // The packet in processing is included.
    assert!((10.0..=11.0).contains(&queue), "{queue}");
    serde_json::to_value(&output.summary).expect("it is JSON")
}

/// A thousand packets per second arrive, five hundred are processed, and the rest are dropped.
#[test]
fn gateway_processing_limits_the_packet_rate() {
    let facing = ("gateways.hub.facing", "\"satellite\"");
    for (kind, settings) in [
        ("router", vec![]),
        ("hybrid", vec![("gateways.hub.kind", "\"hybrid\""), facing]),
        ("split", vec![("gateways.hub.kind", "\"split\""), facing]),
    ] {
        let results = run(&settings);
        let hub = &results["gateways"][0];
        assert_eq!(hub["kind"], kind);
        let dropped = match kind {
            "hybrid" => &hub["packets_dropped"],
            _ => &hub["packets"]["dropped"],
        };
        let dropped = dropped.as_u64().expect("counted");
        assert!(dropped.abs_diff(10_000) < 100, "{kind}: {dropped}");
        let arrived = results["flows"][0]["bytes_delivered"]
            .as_u64()
            .expect("counted")
            / 1000;
        assert!(arrived.abs_diff(10_000) < 100, "{kind}: {arrived}");
        assert_eq!(results["packets_discarded"], dropped);
        assert_eq!(results["discards"], json!({ "processor_busy": dropped }));
    }
}

/// A host's processor handles sent and received packets one at a time.
#[test]
fn host_processing_limits_the_packet_rate() {
    let plain = [("gateways.hub.processing.time", "\"1 ns\"")];
    for host in ["server", "client"] {
        let key = format!("hosts.{host}.processing");
        let slow = (&*key, r#"{ time = "2 ms", queue = "10 packets" }"#);
        let probe = format!(r#"["{host}.processing"]"#);
        let settings = [plain[0], slow, ("probes.series", &probe)];
        let results = run(&settings);
        let dropped = results["packets_discarded"].as_u64().expect("counted");
        assert!(dropped.abs_diff(10_000) < 100, "{host}: {dropped}");
        let arrived = results["flows"][0]["bytes_delivered"]
            .as_u64()
            .expect("counted")
            / 1000;
        assert!(arrived.abs_diff(10_000) < 100, "{host}: {arrived}");
    }
}

/// Requests and responses, one at a time: each of four packets at a host is processed once, and
/// nothing else changes. The round trip takes 101 ms, and each packet has its transmission time on
/// two links.
#[test]
fn host_processing_adds_its_time_to_each_packet() {
    let times: Vec<f64> = ["server", "client"]
        .map(|host| {
            let key = format!("hosts.{host}.processing");
            let scenario = Scenario::parse(
                NETWORK,
                "served.toml",
                &[
                    ("gateways.hub.processing.time", "\"1 ns\""),
                    (
                        "flows.stream.app",
                        r#"{ kind = "ping", size = "100 B", requests = 3, interval = "1 s" }"#,
                    ),
                    (
                        "probes",
                        r#"{ series = ["stream.response_time"], interval = "every-change" }"#,
                    ),
                    (&key, r#"{ time = "3 ms" }"#),
                ],
            )
            .expect("it is right");
            scenario
                .run(&RunOptions::default())
                .expect("it runs")
                .series[0]
                .values[0]
        })
        .to_vec();
    // Two packets at each host: 3 ms twice.
    assert!(
        times.iter().all(|time| (0.208..0.2081).contains(time)),
        "{times:?}"
    );
    assert_eq!(times[0], times[1]);
}

/// A run ends when no events are left, and not while a packet waits for a processor. The interval
/// of probes, at which the end of a run is detected, has no effect.
#[test]
fn a_run_does_not_end_while_a_packet_is_processed() {
    // Datagrams are not answered, so that the last one is the last event.
    let datagrams = r#"{ kind = "packets", size = "1000 B", interval = "200 ms", lasts = "1 s" }"#;
    for kind in ["router", "split", "hybrid"] {
        let quoted = format!("{kind:?}");
        let mut settings = vec![
            ("gateways.hub.kind", quoted.as_str()),
            ("flows.stream.app", datagrams),
            ("gateways.hub.processing.time", "300 ms"),
        ];
        if kind != "router" {
            settings.push(("gateways.hub.facing", "satellite"));
        }
        let run = |interval: &str, series: &str| {
            let mut settings = settings.clone();
            settings.push(("probes.series", series));
            settings.push(("probes.interval", interval));
            let scenario = Scenario::parse(NETWORK, "served.toml", &settings);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            let output = scenario.run(&RunOptions::default()).expect("it runs");
            let bytes = output.summary.flows[0].bytes_delivered;
            (output.summary.ended_s, output.summary.packet_hops, bytes)
        };
        let looked_at = r#"["lan.forward.utilization"]"#;
        let plain = run("100 ms", "[]");
        // Four packets from 0.2 s: the first is at the hub 1 ms later. The last is processed 1.2 s
        // after that, and takes 100 ms more to the client, and 0.16 ms on two links of 100 Mbit/s.
        assert_eq!(plain.2, 4_000, "{kind}");
        assert!((plain.0 - 1.501_164).abs() < 1e-5, "{kind}: {}", plain.0);
        for interval in ["1 ms", "7 ms", "100 ms"] {
            assert_eq!(run(interval, looked_at), plain, "{kind} {interval}");
        }
    }
}
