//! QUIC over simulated networks: results, equality with TCP, determinism, saved paths, refusals.

use bentpipe_scenario::{Cores, FlowSummary, Progress, Run, RunOptions, Scenario};
use serde_json::{Value, json};

const NETWORK: &str = r#"
name = "geo"
duration = "600 s"
[hosts.client]
[hosts.server]
[links.satellite]
between = ["server", "client"]
rate = "20 Mbit/s"
delay = "300 ms"
forward = { queue = { limit = "3000 packets" } }
[flows.load]
from = "client"
to = "server"
app = { kind = "bulk", size = "5 MB", direction = "download", transport = "quic" }
"#;

const WIDE: [(&str, &str); 2] = [
    ("hosts.client.quic.stream_window", "64 MiB"),
    ("hosts.server.quic.send_window", "64 MiB"),
];

fn parsed(settings: &[&[(&str, &str)]]) -> Result<Scenario, String> {
    let settings = settings.concat();
    Scenario::parse(NETWORK, "geo.toml", &settings).map_err(|error| error.to_string())
}

fn run(settings: &[&[(&str, &str)]]) -> FlowSummary {
    let scenario = parsed(settings).expect("it is right");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    output.summary.flows.into_iter().next().expect("a flow")
}

fn quic(flow: &FlowSummary) -> Value {
    json!(flow.application.quic)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Returns the finish time; the flow must have finished.
fn finish(flow: &FlowSummary) -> f64 {
    assert_eq!(flow.outcome, "finished");
    flow.finish_s.expect("a time")
}

#[test]
fn a_download_finishes_and_its_connection_is_reported() {
    let flow = run(&[&WIDE]);
    assert_eq!(flow.bytes_delivered, 5_000_000);
    finish(&flow);
    let quic = quic(&flow);
    assert_eq!(
        (&quic["connections"], &quic["established"]),
        (&json!(1), &json!(1))
    );
    // One round trip, and the transmission of the handshake.
    let handshake = number(&quic["handshake_ms"]);
    assert!((600.0..612.0).contains(&handshake), "{handshake}");
    // The request and the first packet of the answer take another one.
    let first_byte = number(&quic["first_byte_ms"]) - handshake;
    assert!((600.0..605.0).contains(&first_byte), "{first_byte}");
    let server = &quic["server"];
    assert!(number(&server["packets_sent"]) > 5e6 / 1452.0);
    assert_eq!(server["mtu_bytes"], json!(1452));
    assert_eq!(server["failure"], Value::Null);
    let rtt = number(&server["minimum_rtt_ms"]);
    assert!((600.0..603.0).contains(&rtt), "{rtt}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let lossy = [("links.satellite.errors", "{ packet_loss_rate = 0.002 }")];
    let result = |seed: &str| {
        let flow = run(&[&WIDE, &lossy, &[("seed", seed)]]);
        assert_eq!(flow.outcome, "finished");
        json!(flow).to_string()
    };
    let first = result("1");
    assert!(!first.contains(r#""packets_lost":0,"congestion_events":0,"mtu_probes":0"#));
    assert_eq!(first, result("1"));
    assert_ne!(first, result("2"));
}

#[test]
fn cubic_is_as_fast_over_quic_as_over_tcp() {
    let ours = [
        ("hosts.server.quic.congestion_control", "cubic"),
        ("flows.load.app.size", "30 MB"),
        ("links.satellite.forward.queue.limit", "30000 packets"),
        // TCP begins with ten segments of full size, too.
        ("hosts.server.quic.mtu", "1452 B"),
        ("hosts.server.quic.initial_window", "14480 B"),
    ];
    let over_quic = run(&[&WIDE, &ours]);
    let tcp = [
        ("flows.load.app.transport", "tcp"),
        ("hosts.server.tcp.pacing", "on"),
    ];
    let over_tcp = run(&[&WIDE, &ours, &tcp]);
    assert_eq!(quic(&over_quic)["server"]["packets_lost"], json!(0));
    assert_eq!(over_tcp.segments_retransmitted, 0);
    // Headers: IPv4, UDP, a short header, a tag and a STREAM frame; IPv4 and TCP with timestamps.
    let share = [(1452.0 - 34.0) / 1480.0, 1448.0 / 1500.0];
    let [quic, tcp] = [&over_quic, &over_tcp].map(finish);
    println!("{quic} {tcp}");
    let ratio = (quic * share[0]) / (tcp * share[1]);
    assert!((ratio - 1.0).abs() < 0.01, "{quic} s and {tcp} s: {ratio}");
}

#[test]
fn the_stream_window_limits_a_download() {
    let fast = [
        ("links.satellite.rate", "250 Mbit/s"),
        ("flows.load.app.size", "20 MB"),
    ];
    let narrow = run(&[&fast]);
    let wide = run(&[&WIDE, &fast]);
    // 1.25 MB per round trip.
    assert!(finish(&narrow) > 20.0 / 1.25 * 0.6);
    assert!(finish(&wide) < 0.7 * finish(&narrow));
    let limited = &quic(&narrow)["server"]["limited_s"];
    assert!(number(&limited["receive_window"]) > number(&limited["slow_start"]));
}

#[test]
fn pages_and_requests_save_a_round_trip_of_the_handshake() {
    let page =
        r#"page = "fixed", objects = 10, object_size = "5 kB", document = "10 kB", pages = 1"#;
    let load = |transport: &str| {
        let app = format!(r#"{{ kind = "web", {page}, transport = "{transport}" }}"#);
        let flow = run(&[&[("flows.load.app", &app)]]);
        assert_eq!(flow.outcome, "finished");
        number(&json!(flow)["pages"][0]["load_s"])
    };
    // TCP and TLS take two round trips, QUIC one.
    let (tcp, quic) = (load("tcp"), load("quic"));
    assert!((tcp - quic - 0.6).abs() < 0.1, "{tcp} {quic}");
    let app =
        r#"{ kind = "request-response", response = "5 kB", requests = 4, transport = "quic" }"#;
    let flow = run(&[&[("flows.load.app", app)]]);
    let responses = &json!(flow)["responses"];
    assert_eq!(responses["count"], json!(4));
    assert!((number(&responses["time_ms"]["max"]) - 604.0).abs() < 8.0);
}

#[test]
fn a_saved_path_saves_round_trips_over_both_transports() {
    let fast = [
        ("links.satellite.rate", "250 Mbit/s"),
        ("links.satellite.forward.queue.limit", "15000 packets"),
        ("flows.load.app.size", "20 MB"),
        ("hosts.server.quic.congestion_control", "cubic"),
        ("hosts.server.tcp.send_buffer", "64 MiB"),
        ("hosts.client.tcp.receive_buffer", "64 MiB"),
    ];
    for transport in ["quic", "tcp"] {
        let over = [("flows.load.app.transport", transport)];
        let resume = [(
            "hosts.server.resume",
            r#"{ window = "18 MB", rtt = "600 ms" }"#,
        )];
        let fresh = run(&[&WIDE, &fast, &over]);
        let resumed = run(&[&WIDE, &fast, &over, &resume]);
        let (fresh, resumed) = (finish(&fresh), finish(&resumed));
        println!("{transport}: {fresh} {resumed}");
        assert!(
            resumed < fresh - 4.0 * 0.6,
            "{transport}: {fresh} s, {resumed} s"
        );
    }
}

#[test]
fn settings_without_effect_are_refused() {
    for (key, value, message) in [
        (
            "flows.load.app.transport",
            "udp",
            "expected \"tcp\" or \"quic\"",
        ),
        ("flows.load.app.http", "3", "has no effect"),
        ("hosts.server.quic.mtu", "500 B", "1200 B"),
        ("hosts.server.quic.congestion_control", "cubik", "cubic"),
        ("hosts.server.quic.ack_delay", "5 ms", "ack_threshold"),
        (
            "hosts.server.resume",
            r#"{ window = "1 MB", rtt = "0 s" }"#,
            "more than",
        ),
    ] {
        let refused = parsed(&[&[(key, value)]]).err().unwrap_or_default();
        assert!(refused.contains(message), "{key} = {value}: {refused}");
    }
    for app in [
        r#"{ kind = "web", transport = "quic", tls = "1.2" }"#,
        r#"{ kind = "web", http = "3" }"#,
        r#"{ kind = "web", transport = "quic", http = "2" }"#,
    ] {
        assert!(parsed(&[&[("flows.load.app", app)]]).is_err(), "{app}");
    }
}

#[test]
fn probes_show_the_connection_of_the_sender() {
    let probes = [(
        "probes",
        r#"{ interval = "100 ms", series = ["load.congestion_window", "load.in_flight", "load.smoothed_rtt", "load.goodput", "load.limited_by"] }"#,
    )];
    let scenario = parsed(&[&WIDE, &probes]).expect("it is right");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    let values = |name: &str| {
        let series = output.series.iter().find(|series| series.name == name);
        series.expect("a series").values.clone()
    };
    let window = values("load.congestion_window");
    // It doubles each round trip without losses.
    assert!(window.last() > Some(&(20.0 * window[0])), "{window:?}");
    for (in_flight, window) in values("load.in_flight").iter().zip(&window) {
        assert!(in_flight <= window, "{in_flight} {window}");
    }
    let rtt = values("load.smoothed_rtt");
    assert!((0.6..0.61).contains(&rtt[0]), "{rtt:?}");
    assert!(values("load.goodput").iter().any(|rate| *rate > 15e6));
    assert!(values("load.limited_by").contains(&1.0));
}

/// Runs on at most two processors. Returns how many were used and the summary as text.
fn run_on_two(text: &str, cores: usize) -> (Cores, String) {
    let scenario = Scenario::parse(text, "two.toml", &[]).expect("it is right");
    let options = RunOptions {
        cores,
        no_series: true,
        ..RunOptions::default()
    };
    let mut run = Run::new(&scenario, &options).expect("it starts");
    while run.advance(u64::MAX).expect("it runs") == Progress::Running {}
    let cores = run.cores();
    let mut summary = json!(run.finish().expect("it ends").summary);
    summary["wall_s"] = Value::Null;
    (cores, summary.to_string())
}

#[test]
fn a_network_is_not_divided_between_the_ends_of_a_flow_over_quic() {
    let over = |transport: &str| NETWORK.replace("\"quic\"", &format!("\"{transport}\""));
    let (cores, _) = run_on_two(&over("tcp"), 2);
    assert_eq!((cores.used, cores.undivided), (2, None));
    let (cores, _) = run_on_two(&over("quic"), 2);
    let reason = cores.undivided.expect("a reason").to_string();
    assert!(
        cores.used == 1 && reason.contains("divides its flows"),
        "{reason}"
    );
}

#[test]
fn datagrams_of_quic_pass_other_parts_of_a_divided_network() {
    // The relay belongs to the part of the download over TCP, the ends of QUIC to the other part.
    let text = r#"
        name = "two"
        duration = "60 s"
        [hosts.client]
        [hosts.server]
        [hosts.near]
        [hosts.nearer]
        [gateways.relay]
        kind = "router"
        [links.first]
        between = ["server", "relay"]
        rate = "20 Mbit/s"
        delay = "100 ms"
        errors = { packet_loss_rate = 0.01 }
        [links.second]
        between = ["relay", "client"]
        rate = "10 Mbit/s"
        delay = "100 ms"
        [links.third]
        between = ["near", "relay"]
        rate = "100 Mbit/s"
        delay = "0.1 ms"
        [links.fourth]
        between = ["nearer", "relay"]
        rate = "5 Mbit/s"
        delay = "0.1 ms"
        [flows.load]
        from = "client"
        to = "server"
        app = { kind = "bulk", size = "2 MB", direction = "download", transport = "quic" }
        [flows.local]
        from = "near"
        to = "nearer"
        app = { kind = "bulk", size = "2 MB" }
    "#;
    let (alone, undivided) = run_on_two(text, 1);
    let (divided, results) = run_on_two(text, 2);
    assert_eq!((alone.used, divided.used), (1, 2));
    assert!(undivided.contains(r#""outcome":"finished""#), "{undivided}");
    assert_eq!(results, undivided);
}

#[test]
fn datagrams_over_ipv6_have_the_longer_header() {
    for (version, header) in [("v4", 28), ("v6", 48)] {
        let scenario = parsed(&[&WIDE, &[("ip", version)]]).expect("it is right");
        let summary = scenario
            .run(&RunOptions::default())
            .expect("it runs")
            .summary;
        finish(&summary.flows[0]);
        let server = &quic(&summary.flows[0])["server"];
        // A packet of full size fills the link's MTU of 1500 bytes with IPv6, and not with IPv4.
        assert_eq!(server["mtu_bytes"], json!(1452), "{version}");
        let sent = |key: &str| server[key].as_u64().expect("a number");
        let forward = (summary.links.iter()).find(|link| link.name == "satellite.forward");
        let delivered = forward.expect("a direction").bytes_delivered;
        assert_eq!(
            delivered,
            sent("bytes_sent") + header * sent("packets_sent"),
            "{version}"
        );
    }
}

#[test]
fn many_clients_have_a_connection_each() {
    let many = [
        ("hosts.client.count", "100"),
        ("flows.load.app.size", "200 kB"),
        ("links.satellite.errors", "{ packet_loss_rate = 0.001 }"),
        ("links.satellite.rate", "100 Mbit/s"),
    ];
    let scenario = parsed(&[&WIDE, &many]).expect("it is right");
    let summary = scenario
        .run(&RunOptions::default())
        .expect("it runs")
        .summary;
    assert_eq!(summary.flows.len(), 100);
    for flow in &summary.flows {
        finish(flow);
        assert_eq!(flow.bytes_delivered, 200_000);
        let quic = quic(flow);
        assert_eq!(
            (&quic["connections"], &quic["established"]),
            (&json!(1), &json!(1)),
            "{}",
            flow.name
        );
    }
}

/// The window jumps to half of the saved one. If the path holds much less, the window is, a round
/// trip after the first loss, at most half of what the path delivered meanwhile (RFC 9959 section
/// 4.5).
#[test]
fn the_window_retreats_within_a_round_trip_if_the_path_is_much_slower() {
    const SAVED: f64 = 18e6;
    let probes = [(
        "probes",
        r#"{ interval = "20 ms", series = ["load.congestion_window"] }"#,
    )];
    let wide = [
        ("hosts.server.quic.congestion_control", "cubic"),
        ("hosts.server.tcp.send_buffer", "64 MiB"),
        ("hosts.client.tcp.receive_buffer", "64 MiB"),
        ("flows.load.app.size", "20 MB"),
        (
            "hosts.server.resume",
            r#"{ window = "18 MB", rtt = "600 ms" }"#,
        ),
    ];
    for transport in ["quic", "tcp"] {
        for megabits in [10.0, 25.0, 50.0] {
            for queue in [300.0, 1_000.0] {
                let case = format!("{transport}, {megabits} Mbit/s, {queue} packets");
                let (rate, limit) = (format!("{megabits} Mbit/s"), format!("{queue} packets"));
                let path = [
                    ("links.satellite.rate", rate.as_str()),
                    ("links.satellite.forward.queue.limit", limit.as_str()),
                    ("flows.load.app.transport", transport),
                ];
                let scenario = parsed(&[&WIDE, &wide, &path, &probes]).expect("it is right");
                let output = scenario.run(&RunOptions::default()).expect("it runs");
                finish(&output.summary.flows[0]);
                let series = &output.series[0];
                let jump = series
                    .values
                    .iter()
                    .position(|window| *window == SAVED / 2.0);
                let jump = jump.unwrap_or_else(|| panic!("{case}: no jump"));
                // The jump is paced over 600 ms and fills the queue; a round trip through the full
                // queue later, the loss is detected.
                let bytes_per_s = megabits * 1e6 / 8.0;
                let queued = queue * 1_500.0;
                let fills = queued / (SAVED / 2.0 / 0.6 - bytes_per_s);
                let trip = fills + 0.6 + queued / bytes_per_s + 0.1;
                let after = jump + (trip / 0.02) as usize;
                let until = &series.values[..after];
                let most = until.iter().copied().fold(0.0, f64::max);
                assert!(most <= SAVED / 2.0, "{case}: {most}");
                let delivered = bytes_per_s * trip;
                let window = series.values[after];
                assert!(window <= delivered / 2.0, "{case}: {window} of {delivered}");
            }
        }
    }
}

/// The operator's NAT gets another address in the middle of a download (a handover to another
/// gateway). Over TCP the download ends; over QUIC it goes on.
#[test]
fn a_download_over_quic_survives_a_change_of_address() {
    let text = |transport: &str| {
        format!(
            r#"name = "addresses"
            duration = "240 s"
            constellations.leo.preset = "starlink-shell-1"
            sites.office = {{ latitude = "52.5 deg", longitude = "13.4 deg" }}
            sites.west = {{ latitude = "51 deg", longitude = "4 deg" }}
            sites.east = {{ latitude = "51 deg", longitude = "23 deg" }}
            hosts = {{ server = {{}}, client = {{}} }}
            gateways.pop = {{ kind = "nat", facing = "satellite" }}
            links.backbone = {{ between = ["server", "pop"], rate = "1 Gbit/s", delay = "2 ms" }}
            [links.satellite]
            between = ["pop", "client"]
            rate = "20 Mbit/s"
            path = {{ constellation = "leo", from = "office", to = ["west", "east"] }}
            [flows.load]
            from = "client"
            to = "server"
            app = {{ kind = "bulk", size = "400 MB", direction = "download", transport = "{transport}" }}
            "#
        )
    };
    let run = |transport: &str| {
        let text = text(transport);
        let scenario = Scenario::parse(&text, "addresses.toml", &[]).expect("it is right");
        let summary = scenario
            .run(&RunOptions::default())
            .expect("it runs")
            .summary;
        let changes = json!(summary.gateways)[0]["addresses"]["changes"].clone();
        assert!(number(&changes) >= 1.0, "{changes}");
        summary.flows.into_iter().next().expect("a flow")
    };
    let over_quic = run("quic");
    finish(&over_quic);
    let quic = quic(&over_quic);
    assert_eq!(quic["connections"], json!(1));
    assert_eq!(quic["server"]["failure"], Value::Null);
    assert_ne!(run("tcp").outcome, "finished");
}
