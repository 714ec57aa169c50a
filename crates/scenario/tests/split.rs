//! Split gateways in whole runs.

use bentpipe_scenario::{RunOptions, RunOutput, Scenario};

use crate::runs::run_text;

const TWO: &str = r#"
name = "split"
duration = "300 s"
[hosts.server]
[hosts.client]
[gateways.hub]
kind = "split"
facing = "satellite"
[gateways.terminal]
kind = "split"
facing = "satellite"
[links]
lan = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "10 ms" }
satellite = { between = ["hub", "terminal"], rate = "10 Mbit/s", delay = "250 ms" }
home = { between = ["terminal", "client"], rate = "100 Mbit/s", delay = "1 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "10 MB" }
[probes]
series = ["hub.buffered", "hub.promised", "hub.connections", "hub.facing_window", "hub.host_window"]
"#;

fn run(overrides: &[(&str, &str)]) -> RunOutput {
    run_text(TWO, overrides)
}

#[test]
fn a_file_is_transferred_through_two_gateways() {
    let output = run(&[]);
    let flow = &output.summary.flows[0];
    assert_eq!(flow.bytes_delivered, 10_000_000);
    assert!(flow.finish_s.is_some());
    let hub = serde_json::to_value(&output.summary.gateways[0]).expect("JSON");
    assert_eq!(
        (hub["name"].as_str(), hub["kind"].as_str()),
        (Some("hub"), Some("split"))
    );
    assert_eq!(hub["connections"]["split"], 1);
    assert_eq!(hub["facing"]["bytes_delivered"], 10_000_000);
    assert!(hub["facing"]["goodput_bps"].as_f64() > Some(5e6));
    assert_eq!(hub["bytes_held"]["now"], 0);
    assert!(hub["bytes_held"]["max"].as_u64() > Some(100_000));
    // The server's round trip is that of the LAN, not of the satellite; its window is limited by
    // the gateway's memory.
    let rtt = flow.rtt_ms.max.expect("samples");
    assert!(
        (20.0..500.0).contains(&flow.rtt_ms.min.expect("samples")),
        "{rtt}"
    );
    let buffered = &output.series[0];
    assert_eq!(
        (buffered.name.as_str(), buffered.unit),
        ("hub.buffered", "B")
    );
    assert!(buffered.values.iter().any(|value| *value > 100_000.0));
}

/// The FIN of a sender beside a gateway waits for the far host's confirmation, longer than the
/// retransmission timeout. Nothing is lost, and no data times out.
#[test]
fn the_timeout_of_a_fin_is_no_timeout_of_data() {
    for (close, expected) in [("\"end-to-end\"", 1), ("\"early\"", 0)] {
        let output = run(&[
            ("links.lan.delay", "\"1 ms\""),
            ("links.satellite.rate", "\"1 Mbit/s\""),
            ("flows.download.app.size", "\"1 MB\""),
            ("gateways.hub.close", close),
            ("gateways.terminal.close", close),
        ]);
        let flow = &output.summary.flows[0];
        assert_eq!(
            (flow.timeouts > 0, flow.timeouts - flow.control_timeouts),
            (expected > 0, 0),
            "{close}"
        );
    }
}

/// All connections of readers share two persistent ones, with losses, beside a download.
#[test]
fn connections_are_multiplexed_over_persistent_ones() {
    let text = format!(
        "{TWO}\n[hosts.reader]\ncount = 10\n[links.readers]\nbetween = [\"terminal\", \"reader\"]\n\
         rate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n[flows.pages]\nfrom = \"reader\"\nto = \"server\"\n\
         app = {{ kind = \"web\", page = \"3gpp\", reading = \"exponential(10 s)\" }}\n"
    );
    let overrides = [
        ("duration", "60 s"),
        ("gateways.hub.multiplex", "2"),
        ("gateways.terminal.multiplex", "2"),
        ("links.satellite.errors.packet_loss_rate", "0.01"),
    ];
    let scenario = Scenario::parse(&text, "split.toml", &overrides).expect("it loads");
    let run = || {
        scenario
            .run(&RunOptions::default())
            .expect("it runs")
            .summary
    };
    let summary = run();
    for gateway in &summary.gateways {
        let gateway = serde_json::to_value(gateway).expect("JSON");
        assert_eq!(gateway["multiplex"]["connections"], 2);
        assert_eq!(gateway["multiplex"]["opened"], 2);
        assert_eq!(gateway["multiplex"]["failed"], 0);
        // The download's connection, and one of each reader.
        assert_eq!(gateway["connections"]["split"], 11);
        assert_eq!(gateway["connections"]["aborted"], 0);
        assert_eq!(gateway["packets"]["passed"], 0);
    }
    let pages = summary.groups.iter().find(|group| group.name == "pages");
    let pages = serde_json::to_value(pages.expect("a group")).expect("JSON");
    assert!(pages["pages_loaded"].as_u64() > Some(20), "{pages}");
    let again = serde_json::to_value(run().flows).expect("JSON");
    assert_eq!(serde_json::to_value(summary.flows).expect("JSON"), again);
}

/// Returns the seconds from the start to the last byte.
fn finish(overrides: &[(&str, &str)]) -> f64 {
    run(overrides).summary.flows[0]
        .finish_s
        .expect("it finishes")
}

#[test]
fn one_split_gateway_suffices_for_the_speed_up() {
    let router = ("gateways.terminal", r#"{ kind = "router" }"#);
    assert!(finish(&[router]) < 15.0);
    let output = run(&[router]);
    assert_eq!(output.summary.gateways.len(), 1);
}

#[test]
fn packets_of_no_class_pass() {
    for class in [
        ("gateways.hub.only", r#"{ ports = ["1-79"] }"#),
        ("gateways.hub.except", r#"{ hosts = ["client"] }"#),
    ] {
        let output = run(&[class]);
        let hub = serde_json::to_value(&output.summary.gateways[0]).expect("JSON");
        assert_eq!(hub["connections"]["split"], 0, "{class:?}");
        assert_eq!(hub["connections"]["passed"], 1);
        assert_eq!(hub["packets"]["split"], 0);
        let flow = &output.summary.flows[0];
        assert_eq!(flow.bytes_delivered, 10_000_000);
        // Only the other gateway splits it: the satellite is in the server's round trip.
        assert!(flow.rtt_ms.min.expect("samples") > 500.0);
    }
}

#[test]
fn a_slow_processor_is_the_bottleneck_and_drops_at_a_full_queue() {
    // 100 us per packet, and two ACKs for three packets.
    let slow = (
        "gateways.hub.processing",
        r#"{ time = "2 ms", queue = "20 packets" }"#,
    );
    let output = run(&[slow]);
    let hub = serde_json::to_value(&output.summary.gateways[0]).expect("JSON");
    assert!(hub["packets"]["dropped"].as_u64() > Some(0));
    // 500 packets per second, data and ACKs of both sides: at most half of them data.
    let goodput = output.summary.flows[0].goodput_bps;
    assert!(goodput < 250.0 * 1448.0 * 8.0 * 1.4, "{goodput}");
    assert_eq!(output.summary.flows[0].bytes_delivered, 10_000_000);
}

#[test]
fn many_connections_share_limited_memory_fairly() {
    let output = run(&[
        ("hosts.client.count", "8"),
        ("gateways.hub.memory", "1 MiB"),
        ("gateways.terminal.memory", "1 MiB"),
        ("flows.download.app.size", "2 MB"),
    ]);
    let rates: Vec<f64> = (output.summary.flows.iter())
        .map(|flow| {
            assert_eq!(flow.bytes_delivered, 2_000_000, "{}", flow.name);
            flow.goodput_bps
        })
        .collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let index = sum * sum / (rates.len() as f64 * squares);
    assert!(index > 0.9, "Jain's index {index:.3}: {rates:?}");
    let held = output.summary.gateways.iter().map(|gateway| {
        let gateway = serde_json::to_value(gateway).expect("JSON");
        assert_eq!(gateway["connections"]["split"], 8);
        gateway["bytes_held"]["max"].as_u64().expect("a number")
    });
    let state = 8 * bentpipe_gateway::split::Split::<bentpipe_tcp::Ranges>::state_bytes() as u64;
    let most = held.max().expect("two gateways") + state;
    assert!((1 << 18..=1 << 20).contains(&most), "{most}");
}

/// Download by satellite, return by modem: two one-way links through different nodes that both
/// begin or end at the hub. The gateway must send to a host on the link towards it, not on the link
/// from which its packets arrive.
const ONE_WAY: &str = r#"
name = "one-way"
duration = "300 s"
[hosts.server]
[hosts.client]
[gateways.hub]
[gateways.terminal]
[gateways.provider]
[links]
lan = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "10 ms" }
satellite = { between = ["hub", "terminal"], one_way = true, rate = "10 Mbit/s", delay = "250 ms" }
modem = { between = ["terminal", "provider"], one_way = true, rate = "128 kbit/s", delay = "30 ms" }
backbone = { between = ["provider", "hub"], rate = "100 Mbit/s", delay = "5 ms" }
home = { between = ["terminal", "client"], rate = "100 Mbit/s", delay = "1 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "3 MB" }
[flows.upload]
from = "client"
to = "server"
app = { kind = "bulk", size = "100 kB" }
"#;

#[test]
fn a_gateway_may_face_one_way_links() {
    let hub = |kind: &str| format!(r#"{{ kind = "{kind}", facing = "satellite" }}"#);
    let (split, hybrid) = (hub("split"), hub("hybrid"));
    let terminal = r#"{ kind = "split", facing = "modem" }"#;
    let run = |gateways: &[(&str, &str)]| run_text(ONE_WAY, gateways).summary;
    for (gateways, kind) in [
        (vec![("gateways.hub", split.as_str())], "split"),
        (
            vec![("gateways.hub", &split), ("gateways.terminal", terminal)],
            "split",
        ),
        (vec![("gateways.hub", &hybrid)], "tracked"),
    ] {
        let summary = run(&gateways);
        for flow in &summary.flows {
            assert!(flow.finish_s.is_some(), "{gateways:?}: {flow:?}");
        }
        for gateway in summary.gateways.iter().take(gateways.len()) {
            let gateway = serde_json::to_value(gateway).expect("JSON");
            assert_eq!(gateway["connections"][kind], 2, "{gateway}");
        }
        // Packets that a gateway sends over the satellite have the settings for that link.
        let hub = serde_json::to_value(&summary.gateways[0]).expect("JSON");
        if kind == "split" {
            assert_eq!(hub["facing"]["bytes_delivered"], 3_000_000);
            assert_eq!(hub["hosts"]["bytes_delivered"], 100_000);
        }
    }
    // A gateway cannot face a link on which it only receives.
    let wrong = [("gateways.terminal", split.as_str())];
    let error = Scenario::parse(ONE_WAY, "one-way.toml", &wrong).expect_err("it can't send there");
    let line = error.to_string();
    let why =
        "expected a link that \"terminal\" sends on: \"satellite\" is one_way, and leads to it";
    assert!(line.ends_with(why), "{line}");
}

/// RFC 3135 section 4.2: the download passes the gateway, and the return path does not.
#[test]
fn connections_with_one_direction_only_are_not_split() {
    let text = r#"
name = "dish"
duration = "300 s"
[hosts.server]
[hosts.client]
[gateways.hub]
kind = "split"
facing = "satellite"
[gateways.provider]
[links]
uplink = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "5 ms" }
satellite = { between = ["hub", "client"], one_way = true, rate = "10 Mbit/s", delay = "280 ms" }
modem = { between = ["client", "provider"], one_way = true, rate = "56 kbit/s", delay = "50 ms" }
backbone = { between = ["provider", "server"], rate = "100 Mbit/s", delay = "15 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "100 kB" }
"#;
    let refused = Scenario::parse(text, "dish.toml", &[]).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "dish.toml:7: gateways.hub.kind: expected both directions of a connection to pass, to be split: one of \
         flow \"download\" goes another way (to let it pass unsplit, name its hosts in gateways.hub.except)"
    );
    let outcome = |key: &str| {
        let class = [(key, r#"{ hosts = ["client"] }"#)];
        let output = run_text(text, &class);
        let flow = serde_json::to_value(&output.summary.flows[0]).expect("JSON");
        (flow["outcome"].clone(), flow["bytes_delivered"].as_u64())
    };
    assert_eq!(
        outcome("gateways.hub.except"),
        ("finished".into(), Some(100_000))
    );
    // If the file insists on splitting, no connection gets through, and the host gives up.
    assert_eq!(outcome("gateways.hub.only"), ("gave up".into(), Some(0)));
    // Other protocols than TCP always pass.
    let voice = [("flows.download.app", r#"{ kind = "voice" }"#)];
    assert!(Scenario::parse(text, "dish.toml", &voice).is_ok());
}

/// Runs with and without probes, and checks that the end and the results are the same.
fn ends_alike(overrides: &[(&str, &str)]) -> RunOutput {
    let run = |probes: &[(&str, &str)]| {
        let mut output = run(&[overrides, probes].concat());
        output.series.clear();
        output
    };
    let plain = run(&[("probes.series", "[]")]);
    for interval in ["7 ms", "100 ms", "every-change"] {
        let watched = run(&[
            ("probes.series", r#"["satellite.forward.queue"]"#),
            ("probes.interval", interval),
        ]);
        let json = |output: &RunOutput| serde_json::to_string(&output.summary).expect("JSON");
        assert_eq!(json(&watched), json(&plain), "{interval}");
    }
    plain
}

/// Memory promised to connections in TIME-WAIT is still promised at the end of the run, even if no
/// probe detects that nothing else is left.
#[test]
fn a_run_ends_before_time_wait_does() {
    let output = ends_alike(&[
        ("flows.download.app.size", "1000 B"),
        ("gateways.hub.tcp", r#"{ time_wait = "2 s" }"#),
        ("gateways.terminal.host_tcp", r#"{ time_wait = "2 s" }"#),
    ]);
    let hub = serde_json::to_value(&output.summary.gateways[0]).expect("JSON");
    assert!(hub["bytes_promised"]["now"].as_u64() > Some(0), "{hub}");
    assert!(output.summary.ended_s < 4.0, "{}", output.summary.ended_s);
}

/// Persistent connections send keep-alives every minute, which do not extend a run.
#[test]
fn keep_alives_do_not_extend_a_run() {
    let output = ends_alike(&[
        ("gateways.hub.multiplex", "2"),
        ("gateways.terminal.multiplex", "2"),
    ]);
    let flow = &output.summary.flows[0];
    let after = output.summary.ended_s - flow.finish_s.expect("it finishes");
    assert!((0.0..5.0).contains(&after), "{after}");
}

/// A flow may end by hanging up, for which no packet is sent.
#[test]
fn a_run_is_not_over_before_its_flows_are() {
    let output = ends_alike(&[(
        "flows.download.app",
        r#"{ kind = "voice", lasts = "10 s", jitter_buffer = "400 ms" }"#,
    )]);
    let flow = &output.summary.flows[0];
    assert_eq!(flow.ended_s, Some(output.summary.ended_s));
    assert!(flow.ended_s > Some(10.4), "{:?}", flow.ended_s);
}

/// A persistent connection stays open, and its last acknowledgment may be delayed: a run does not
/// end before it is sent, however often probes sample.
#[test]
fn a_run_ends_with_the_last_acknowledgment_of_a_persistent_connection() {
    let run = |interval: &str, series: &str| {
        let output = run(&[
            ("gateways.hub.multiplex", "2"),
            ("gateways.terminal.multiplex", "2"),
            ("flows.download.app.size", "1000 B"),
            ("probes.series", series),
            ("probes.interval", interval),
        ]);
        (output.summary.ended_s, output.summary.packet_hops)
    };
    let plain = run("100 ms", "[]");
    for interval in ["1 ms", "7 ms", "100 ms"] {
        assert_eq!(run(interval, r#"["hub.buffered"]"#), plain, "{interval}");
    }
}
