//! Gateways whose processor takes its time, whatever their kind: against a closed form.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::Value;

const NETWORK: &str = r#"
name = "served"
duration = "20 s"
seed = 1
[hosts.server]
[hosts.client]
[gateways.hub]
processing = { time = "2 ms", queue = "10 packets" }
[links.lan]
between = ["server", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "client"]
rate = "100 Mbit/s"
delay = "100 ms"
[flows.stream]
from = "server"
to = "client"
app = { kind = "packets", size = "1000 B", interval = "1 ms" }
[probes]
series = ["hub.processing"]
interval = "100 ms"
"#;

fn run(settings: &[(&str, &str)]) -> Value {
    let scenario = Scenario::parse(NETWORK, "served.toml", settings).expect("it is right");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    let queue = output.series[0]
        .values
        .iter()
        .fold(0.0, |a: f64, b| a.max(*b));
    // The one that is being processed is there, too.
    assert!((10.0..=11.0).contains(&queue), "{queue}");
    serde_json::to_value(&output.summary).expect("it is JSON")
}

/// A thousand packets a second come, five hundred are served, the rest are dropped.
#[test]
fn every_kind_serves_so_many_packets_a_second() {
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
    }
}
