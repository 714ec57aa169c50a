//! Hybrid gateways in whole runs.

use bentpipe_scenario::{RunOptions, RunOutput, Scenario};

use crate::runs::run_text;

const HYBRID: &str = r#"
name = "hybrid"
duration = "300 s"
[hosts.server]
tcp = { mss = "1024 B" }
[hosts.host]
tcp = { mss = "1024 B", receive_buffer = "4096 B" }
[gateways.hub]
kind = "hybrid"
facing = "satellite"
[links]
lan = { between = ["server", "hub"], rate = "10 Mbit/s", delay = "1 ms" }
satellite = { between = ["hub", "host"], forward = { rate = "10 Mbit/s", delay = "250 ms" }, return = { rate = "29.9 kbit/s", delay = "20 ms", tunnel = true } }
[flows.download]
from = "server"
to = "host"
app = { kind = "bulk", size = "1 MB" }
[probes]
series = ["hub.buffered", "hub.connections", "hub.host_window", "hub.eligible", "hub.smoothed_rtt"]
"#;

fn run(overrides: &[(&str, &str)]) -> RunOutput {
    run_of(HYBRID, overrides)
}

fn run_of(network: &str, overrides: &[(&str, &str)]) -> RunOutput {
    run_text(network, overrides)
}

/// Returns the summary of a run of another network.
fn summary_of(network: &str, overrides: &[(&str, &str)]) -> serde_json::Value {
    let summary = run_of(network, overrides).summary;
    serde_json::to_value(&summary).expect("it is JSON")
}

fn finish(overrides: &[(&str, &str)]) -> f64 {
    run(overrides).summary.flows[0]
        .finish_s
        .expect("it finishes")
}

#[test]
fn the_host_receives_all_data_faster_than_its_window_allows() {
    let output = run(&[]);
    let flow = &output.summary.flows[0];
    assert_eq!(flow.bytes_delivered, 1_000_000);
    let hub = serde_json::to_value(&output.summary.gateways[0]).expect("JSON");
    assert_eq!(
        (hub["name"].as_str(), hub["kind"].as_str()),
        (Some("hub"), Some("hybrid"))
    );
    assert_eq!(hub["connections"]["tracked"], 1);
    assert_eq!(hub["bytes_held"]["now"], 0);
    assert!(hub["bytes_held"]["max"].as_u64() <= Some(64_000));
    assert!(hub["to_host"]["beyond_window"].as_u64() > Some(0));
    // Except for the handshake, the server's round trip is that to the gateway.
    let rtt = flow.rtt_ms.p95.expect("samples");
    let through_router = [
        ("gateways.hub", r#"{ kind = "router" }"#),
        ("probes.series", "[]"),
    ];
    let plain = run(&through_router);
    assert!(
        rtt < plain.summary.flows[0].rtt_ms.min.expect("samples"),
        "{rtt}"
    );
    let seconds = flow.finish_s.expect("finished");
    // At most 4,096 bytes per 0.25 s.
    assert!(finish(&through_router) > 1e6 / 16_384.0);
    assert!(seconds < 40.0, "{seconds}");
    let held: Vec<_> = output.series.iter().map(|series| series.unit).collect();
    assert_eq!(held, ["B", "connections", "B", "B", "s"]);
}

#[test]
fn settings_have_their_effect() {
    let usual = finish(&[]);
    assert!(finish(&[("gateways.hub.anticipation", "strict")]) > usual);
    assert!(finish(&[("gateways.hub.window_factor", "2.0")]) > usual);
    assert!(finish(&[("gateways.hub.ack_timeout", "10 ms")]) < usual);
    assert!(finish(&[("gateways.hub.receive_buffer", "4 kB")]) > usual);
    let lossy = (
        "links.satellite.forward.errors",
        "{ packet_loss_rate = 0.01 }",
    );
    let buffer = ("hosts.host.tcp.receive_buffer", "64 KiB");
    let timer = finish(&[lossy, buffer]);
    let sack = finish(&[
        lossy,
        buffer,
        ("gateways.hub.tcp", r#"{ recovery = "sack" }"#),
    ]);
    assert!(sack < timer, "{sack} {timer}");
}

#[test]
fn invalid_hybrid_settings_are_named_in_the_message() {
    for (key, value, expected) in [
        (
            "gateways.hub.receive_buffer",
            "1 kB",
            r#"expected "2 kB" to "1 GB""#,
        ),
        (
            "gateways.hub.ack_timeout",
            "1 s",
            r#"expected at most "500 ms""#,
        ),
        ("gateways.hub.ack_every", "0", "expected 1 at least"),
        ("gateways.hub.window_factor", "0.5", "expected 1 to 1000000"),
        (
            "gateways.hub.retransmission_timeout",
            "1 ms",
            r#"expected "10 ms" to "60 s""#,
        ),
        (
            "gateways.hub.congestion_window",
            "false",
            "has no effect without `tcp`",
        ),
        (
            "gateways.hub.give_up",
            "10 ms",
            r#"expected at least "1 s""#,
        ),
        ("gateways.hub.connections", "0", "expected 1 to 1000000"),
        ("gateways.hub.warm_path", "true", "has no effect"),
        ("gateways.hub.facing", "lan-2", "lan-2"),
    ] {
        let error = Scenario::parse(HYBRID, "hybrid.toml", &[(key, value)])
            .expect_err(key)
            .to_string();
        assert!(error.contains(expected), "{key} = {value}: {error}");
    }
    let both = [
        ("gateways.hub.anticipation", "strict"),
        ("gateways.hub.window_factor", "2.0"),
    ];
    assert!(Scenario::parse(HYBRID, "hybrid.toml", &both).is_err());
}

/// The host's packets return by another path, so that the gateway sees one direction only, whoever
/// opens the connection, and never considers both ends established (gaid1998, section 4.3). It then
/// acknowledges and stores nothing, and is a router: the same packets at the same times.
#[test]
fn with_one_direction_only_it_acts_as_a_router() {
    const ASYMMETRIC: &str = r#"
name = "asymmetric"
duration = "60 s"
[hosts.server]
[hosts.host]
[gateways.hub]
[gateways.isp]
[links]
lan = { between = ["server", "hub"], rate = "10 Mbit/s", delay = "1 ms", one_way = true }
satellite = { between = ["hub", "host"], rate = "10 Mbit/s", delay = "250 ms", one_way = true }
modem = { between = ["host", "isp"], rate = "64 kbit/s", delay = "20 ms", one_way = true }
internet = { between = ["isp", "server"], rate = "10 Mbit/s", delay = "20 ms", one_way = true }
[flows.download]
from = "server"
to = "host"
app = { kind = "bulk", size = "1 MB" }
[flows.asks]
from = "host"
to = "server"
start = "5 s"
app = { kind = "request-response", request = "200 B", response = "20 kB", requests = 5 }
"#;
    let router = summary_of(ASYMMETRIC, &[]);
    let hybrid = [
        ("gateways.hub.kind", "hybrid"),
        ("gateways.hub.facing", "satellite"),
    ];
    let hybrid = summary_of(ASYMMETRIC, &hybrid);
    assert_eq!(router["flows"][0]["outcome"], "finished");
    for part in ["flows", "links", "packet_hops"] {
        assert_eq!(router[part], hybrid[part], "{part}");
    }
    let hub = &hybrid["gateways"][0];
    assert_eq!(hub["connections"]["tracked"], 0);
    assert_eq!(hub["bytes_held"]["max"], 0);
}

/// If a hybrid gateway has acknowledged data, the server no longer reduces their segments after an
/// ICMP error. So no segments longer than the link to the host takes may arrive.
#[test]
fn servers_send_no_segments_longer_than_the_host_link_takes() {
    for ip in ["v4", "v6"] {
        let quoted = format!("\"{ip}\"");
        let output = run(&[("ip", &quoted), ("links.satellite.mtu", "\"576 B\"")]);
        assert_eq!(output.summary.flows[0].bytes_delivered, 1_000_000);
        for link in &output.summary.links {
            let most = 576 * link.packets_delivered;
            assert!(link.bytes_delivered <= most, "{ip} {}", link.name);
        }
    }
}

/// A smaller MTU beyond the gateway's own link: the gateway cuts the data that it has acknowledged
/// into shorter segments after an ICMP error. The server gets an error for its next segment, and
/// sends shorter ones from then on.
#[test]
fn stored_segments_are_cut_for_a_smaller_mtu_beyond_the_gateway() {
    const FURTHER_ON: &str = r#"
name = "further-on"
duration = "300 s"
[hosts.server]
[hosts.host]
tcp = { receive_buffer = "16 kB" }
[gateways.hub]
kind = "hybrid"
facing = "satellite"
[gateways.dish]
[gateways.house]
[links]
lan = { between = ["server", "hub"], rate = "10 Mbit/s", delay = "1 ms" }
satellite = { between = ["hub", "dish"], rate = "2 Mbit/s", delay = "250 ms" }
street = { between = ["dish", "house"], rate = "10 Mbit/s", delay = "1 ms" }
home = { between = ["house", "host"], rate = "10 Mbit/s", delay = "1 ms" }
[flows.download]
from = "server"
to = "host"
app = { kind = "bulk", size = "1 MB" }
"#;
    for (how, settings) in [
        ("the timer", vec![]),
        ("adaptive", vec![("gateways.hub.adaptive_timeout", "true")]),
        (
            "SACK",
            vec![("gateways.hub.tcp", r#"{ recovery = "sack" }"#)],
        ),
        (
            "NewReno",
            vec![("gateways.hub.tcp", r#"{ recovery = "newreno" }"#)],
        ),
        (
            "a server that hears nothing",
            vec![("hosts.server.tcp.path_mtu_discovery", "off")],
        ),
        ("IPv6", vec![("ip", "\"v6\"")]),
    ] {
        let run = |mtu: &str| {
            let mut all = settings.clone();
            all.push(("links.street.mtu", mtu));
            summary_of(FURTHER_ON, &all)
        };
        let (wide, narrow) = (run("\"1500 B\""), run("\"1300 B\""));
        let [wide, flow] = [&wide, &narrow].map(|summary| &summary["flows"][0]);
        let hub = &narrow["gateways"][0];
        assert_eq!(flow["bytes_delivered"], 1_000_000, "{how}: {hub}");
        assert_eq!(hub["connections"]["given_up"], 0, "{how}");
        assert!(
            hub["to_host"]["icmp_errors"].as_u64() > Some(0),
            "{how}: {hub}"
        );
        let seconds = |flow: &serde_json::Value| flow["finish_s"].as_f64().expect("finished");
        // Stored data are retransmitted a round trip later: half a second, or the timeouts in that
        // time.
        let longer = seconds(flow) - seconds(wide);
        assert!((0.5..2.0).contains(&longer), "{how}: {longer} s longer");
        let parts = hub["to_host"]["parts"].as_u64().expect("a number");
        if how == "a server that hears nothing" {
            // Each of its segments is forwarded as two, and each reduction is reported to it.
            assert!(parts > 2 * 600, "{how}: {parts}");
            assert_eq!(flow["path_mtu"]["reductions"], 0);
            assert!(flow["path_mtu"]["icmp_errors"].as_u64() < Some(12), "{how}");
        } else {
            assert!(parts < 300, "{how}: {parts}");
            assert_eq!(flow["path_mtu"]["reductions"], 1, "{how}");
        }
    }
}

/// A gateway gives up a host that receives a mail's replies too slowly, and resets its connection.
/// Data that the host had sent before still arrive at the server, on a connection whose client no
/// longer exists.
#[test]
fn data_of_a_host_that_was_given_up_reach_the_server() {
    let text = r#"
name = "lost-client"
duration = "8 s"
[hosts]
server = {}
client = {}
[gateways.hub]
kind = "hybrid"
facing = "satellite"
give_up = "1 s"
[links.lan]
between = ["server", "hub"]
rate = "1 Mbit/s"
delay = "50 ms"
[links.satellite]
between = ["hub", "client"]
forward = { rate = "512 kbit/s", delay = "250 ms" }
return = { rate = "9.6 kbit/s", delay = "250 ms" }
[flows.files]
from = "server"
to = "client"
count = 2
app = { kind = "bulk" }
[flows.mails]
from = "server"
to = "client"
app = { kind = "mail", size = "75 kB" }
"#;
    let scenario = Scenario::parse(text, "lost-client.toml", &[]).expect("it is right");
    let summary = scenario
        .run(&RunOptions::default())
        .expect("it runs")
        .summary;
    let hub = serde_json::to_value(&summary.gateways[0]).expect("JSON");
    assert!(hub["connections"]["given_up"].as_u64() > Some(0), "{hub}");
}
