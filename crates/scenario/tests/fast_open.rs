//! TCP Fast Open (RFC 7413) between hosts: data in the SYN.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::Value;

use crate::runs::run_text;

/// A page with a document and six objects, each on its own connection.
const NETWORK: &str = r#"
name = "fast"
duration = "60 s"
[hosts.server]
[hosts.client]
[gateways.hub]
[links.lan]
between = ["server", "hub"]
rate = "1 Gbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "client"]
rate = "100 Mbit/s"
delay = "250 ms"
[flows.pages]
from = "client"
to = "server"
app = { kind = "web", page = "fixed", document = "4 kB", objects = 6, object_size = "4 kB", levels = 1, tls = "off", http = "1.1", reading = "5 s", pages = 2 }
"#;

const BOTH: [(&str, &str); 2] = [
    ("hosts.server.tcp.fast_open", "true"),
    ("hosts.client.tcp.fast_open", "true"),
];

fn pages(settings: &[(&str, &str)]) -> (Vec<f64>, Value) {
    let output = run_text(NETWORK, settings);
    let summary = serde_json::to_value(&output.summary).expect("it is JSON");
    let pages = summary["flows"][0]["pages"].as_array().expect("pages");
    let loads = pages.iter().map(|page| {
        let load = page["load_s"].as_f64();
        1e3 * load.expect("a number")
    });
    (loads.collect(), summary)
}

/// The first connection requests a cookie. Those for the objects have one, and need no round trip
/// for the handshake. The second page reuses connections.
#[test]
fn connections_after_the_first_take_a_round_trip_less() {
    let (plain, _) = pages(&[]);
    let (fast, summary) = pages(&BOTH);
    let round_trip_ms = 502.0;
    assert!((plain[0] - 4.0 * round_trip_ms).abs() < 10.0, "{plain:?}");
    assert!((fast[0] - 3.0 * round_trip_ms).abs() < 10.0, "{fast:?}");
    assert!((fast[1] - plain[1]).abs() < 1.0, "{plain:?} {fast:?}");
    assert_eq!(summary["flows"][0]["outcome"], "finished");
    // If only one end supports it, nothing changes except an option of the SYN.
    for one in BOTH {
        let (loads, _) = pages(&[one]);
        assert!((loads[0] - plain[0]).abs() < 0.1, "{one:?} {loads:?}");
    }
}

/// Data of a lost SYN are retransmitted without the cookie, and delivered once.
#[test]
fn data_of_a_lost_syn_are_retransmitted() {
    let losses = |seed: u32| {
        let seed = seed.to_string();
        let mut settings = BOTH.to_vec();
        settings.push(("seed", &seed));
        settings.push(("duration", "30 min"));
        settings.push(("links.satellite.errors.packet_loss_rate", "0.2"));
        let (loads, summary) = pages(&settings);
        assert_eq!(summary["flows"][0]["outcome"], "finished", "seed {seed}");
        assert_eq!(loads.len(), 2);
        summary["flows"][0]["bytes_delivered"]
            .as_u64()
            .expect("a number")
    };
    let bytes = losses(1);
    assert_eq!(bytes, 2 * 7 * 4000);
    for seed in 2..40 {
        assert_eq!(losses(seed), bytes, "seed {seed}");
    }
}

/// Split gateways forward data and cookies; hybrid gateways do not change them.
#[test]
fn gateways_forward_fast_open() {
    for kind in ["split", "hybrid"] {
        let mut settings = BOTH.to_vec();
        settings.push(("gateways.hub.kind", kind));
        settings.push(("gateways.hub.facing", "satellite"));
        let (fast, summary) = pages(&settings);
        assert_eq!(summary["flows"][0]["outcome"], "finished", "{kind}");
        let (plain, _) = pages(&settings[2..]);
        assert!(fast[0] < plain[0] - 450.0, "{kind} {fast:?} {plain:?}");
    }
}

/// The first segment of a transfer is sent with the SYN, too, to a host that has issued a cookie.
#[test]
fn uploads_send_their_first_data_with_the_syn() {
    let bulk = |settings: &[(&str, &str)]| {
        let text = NETWORK.split("[flows.pages]").next().expect("a head");
        let flows = "[flows.pages]\nfrom = \"client\"\nto = \"server\"\ncount = 2\nspacing = \"10 s\"\napp = { kind = \"bulk\", size = \"1000 B\" }\n";
        let scenario = Scenario::parse(&format!("{text}{flows}"), "fast.toml", settings);
        let scenario = scenario.expect("it is right");
        let output = scenario.run(&RunOptions::default()).expect("it runs");
        let flows = &output.summary.flows;
        let times = flows
            .iter()
            .map(|flow| flow.finish_s.expect("it ended") - flow.start_s);
        times.collect::<Vec<f64>>()
    };
    let (plain, fast) = (bulk(&[]), bulk(&BOTH));
    assert!((plain[0] - fast[0]).abs() < 0.01, "{plain:?} {fast:?}");
    assert!(
        (plain[1] - fast[1] - 0.502).abs() < 0.01,
        "{plain:?} {fast:?}"
    );
}
