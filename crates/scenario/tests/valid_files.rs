//! Meaning of valid files: defaults, inheritance, counts, and the ready-made scenarios.

use std::path::PathBuf;

use bentpipe_scenario::{
    App, Direction, FlowQuantity, Interval, Link, LinkQuantity, NodeKind, QueueLimit, RandomErrors,
    Scenario, Series, Way,
};
use bentpipe_tcp::BufferSizes;
use bentpipe_types::{Bytes, Span, Time};

const MINIMAL: &str = r#"
name = "minimal"
duration = "10 s"
hosts = { a = {}, b = {} }
links.wire = { between = ["a", "b"], rate = "1 Mbit/s", delay = "10 ms" }
flows.f = { from = "a", to = "b", app = { kind = "bulk" } }
"#;

fn back(link: &Link) -> &Direction {
    link.direction(Way::Return)
        .expect("a link of two directions")
}

fn load(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn defaults() {
    let scenario = load(MINIMAL, &[]);
    assert_eq!((scenario.seed, scenario.duration), (1, Span::from_secs(10)));
    let flow = &scenario.flows[0];
    assert_eq!((flow.from, flow.to, flow.start), (0, 1, Time::ZERO));
    assert_eq!(flow.app, App::Bulk { size: None });
    assert!(scenario.probes.series.is_empty());
    assert_eq!(
        scenario.probes.interval,
        Interval::Every(Span::from_millis(100))
    );
    let wire = &scenario.links[0];
    assert_eq!(Some(&wire.forward), wire.backward.as_ref());
    assert_eq!(wire.forward.errors.random, RandomErrors::None);
    // 1 Mbit/s x 20 ms is less than two packets: 100 packets instead.
    assert_eq!(wire.forward.queue.limit, QueueLimit::Packets(100));
    assert!(wire.forward.queue.limit_is_default);
    let tcp = &scenario.tcp_of(0).unwrap().config;
    assert_eq!(
        (tcp.mss, tcp.receive_buffer),
        // 1448 of the 2304 bytes of memory per segment, of 32 MiB, as the kernel rounds it.
        (1448, (32 << 20) * 160 / 256)
    );
    assert_eq!(tcp.receive_sizes, Some(BufferSizes::RECEIVE));
    assert_eq!(tcp.send_sizes, Some(BufferSizes::SEND));
    assert_eq!(tcp.initial_window, 10);
    assert_eq!(tcp.delayed_ack, Some(Span::from_millis(40)));
}

#[test]
fn a_default_queue_is_a_bandwidth_delay_product() {
    let overrides = [
        ("links.wire.rate", "100 Mbit/s"),
        ("links.wire.return", "{ delay = \"290 ms\" }"),
    ];
    let wire = &load(MINIMAL, &overrides).links[0];
    assert_eq!(
        wire.forward.queue.limit,
        QueueLimit::Bytes(Bytes::new(3_750_000))
    );
    assert_eq!(wire.forward.delay, Span::from_millis(10));
    assert_eq!(back(wire).delay, Span::from_millis(290));
}

#[test]
fn defaults_that_follow_from_other_settings() {
    let overrides = [
        ("hosts.a.tcp.timestamps", "false"),
        ("hosts.a.tcp.window_scaling", "false"),
        ("hosts.a.tcp.delayed_ack", "off"),
        ("hosts.a.tcp.initial_slow_start_threshold", "5000 segments"),
    ];
    let scenario = load(MINIMAL, &overrides);
    let tcp = &scenario.tcp_of(0).unwrap().config;
    assert_eq!((tcp.mss, tcp.receive_buffer), (1460, 65_535));
    assert_eq!(tcp.delayed_ack, None);
    assert_eq!(tcp.initial_slow_start_threshold, Some(5000 * 1460));
}

#[test]
fn a_direction_inherits_keys_from_its_link() {
    let text = r#"
        name = "asymmetric"
        duration = "10 s"
        hosts = { a = {}, b = {} }
        flows.f = { from = "a", to = "b", app = { kind = "bulk", size = "1 MB" } }
        [links.sky]
        between = ["a", "b"]
        delay = "250 ms"
        redundancy = "16/15"
        errors = { packet_loss_rate = 0.01 }
        queue = { limit = "64 KiB" }
        forward = { rate = "2 Mbit/s", errors = { lost_packets = [21, 20, 21], bit_error_rate = 1e-6 } }
        return = { rate = "64 kbit/s", delay = "25 ms", redundancy = 1, queue = { kind = "drop-tail" } }
    "#;
    let sky = load(text, &[]).links.remove(0);
    assert_eq!(sky.forward.delay, Span::from_millis(250));
    assert_eq!(sky.forward.redundancy.numerator(), 16);
    assert_eq!(*sky.forward.errors.lost_packets, [20, 21]);
    assert_eq!(sky.forward.errors.random, RandomErrors::BitErrorRate(1e-6));
    assert_eq!(
        sky.forward.queue.limit,
        QueueLimit::Bytes(Bytes::new(65_536))
    );
    assert_eq!(back(&sky).delay, Span::from_millis(25));
    assert_eq!(back(&sky).redundancy.get(), 1.0);
    assert_eq!(back(&sky).errors.random, RandomErrors::PacketLossRate(0.01));
    assert_eq!(back(&sky).queue.limit, QueueLimit::Packets(100));
}

#[test]
fn a_queue_limit_in_time_depends_on_each_directions_rate() {
    let overrides = [
        ("links.wire.queue", r#"{ limit = "100 ms" }"#),
        ("links.wire.rate", "2 Mbit/s"),
        ("links.wire.return", r#"{ rate = "64 kbit/s" }"#),
    ];
    let wire = &load(MINIMAL, &overrides).links[0];
    let bytes = |bytes| QueueLimit::Bytes(Bytes::new(bytes));
    assert_eq!(wire.forward.queue.limit, bytes(25_000));
    assert_eq!(back(wire).queue.limit, bytes(800));
    assert!(!wire.forward.queue.limit_is_default);
}

#[test]
fn a_count_makes_hosts_links_flows_and_series() {
    let text = r#"
        name = "fleet"
        duration = "10 s"
        hosts = { server = {}, client = { count = 3 }, peer = { count = 3 } }
        gateways.hub = {}
        links.core = { between = ["server", "hub"], rate = "1 Gbit/s", delay = "1 ms" }
        links.access = { between = ["hub", "client"], rate = "1 Mbit/s", delay = "1 ms" }
        links.direct = { between = ["client", "peer"], rate = "1 Mbit/s", delay = "1 ms" }
        flows.download = { from = "server", to = "client", spacing = "1 s", app = { kind = "bulk" } }
        flows.swap = { from = "client", to = "peer", app = { kind = "bulk" } }
        flows.one = { from = "client-2", to = "server", app = { kind = "bulk" } }
        probes.series = ["download.goodput", "access-3.return.queue", "one.sent"]
    "#;
    let scenario = load(text, &[]);
    let names: Vec<_> = scenario
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "server", "client-1", "client-2", "client-3", "peer-1", "peer-2", "peer-3", "hub"
        ]
    );
    assert!(matches!(scenario.nodes[7].kind, NodeKind::Gateway(_)));
    let starts: Vec<_> = scenario.flows[..4]
        .iter()
        .map(|flow| flow.start.as_secs_f64())
        .collect();
    assert_eq!(starts, [0.0, 1.0, 2.0, 0.0]);
    let links: Vec<_> = scenario
        .links
        .iter()
        .map(|link| (link.name.as_str(), link.between))
        .collect();
    assert_eq!(
        links[..3],
        [("core", [0, 7]), ("access-1", [7, 1]), ("access-2", [7, 2])]
    );
    assert_eq!(
        links[4..],
        [
            ("direct-1", [1, 4]),
            ("direct-2", [2, 5]),
            ("direct-3", [3, 6])
        ]
    );
    let flows: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.from, flow.to))
        .collect();
    assert_eq!(flows[..2], [("download-1", 0, 1), ("download-2", 0, 2)]);
    assert_eq!(flows[5..], [("swap-3", 3, 6), ("one", 2, 0)]);
    let series: Vec<_> = scenario
        .probes
        .series
        .iter()
        .map(|probe| (probe.name.as_str(), probe.of))
        .collect();
    assert_eq!(
        series,
        [
            ("download-1.goodput", Series::Flow(0, FlowQuantity::Goodput)),
            ("download-2.goodput", Series::Flow(1, FlowQuantity::Goodput)),
            ("download-3.goodput", Series::Flow(2, FlowQuantity::Goodput)),
            (
                "access-3.return.queue",
                Series::Link(3, Way::Return, LinkQuantity::Queue)
            ),
            ("one.sent", Series::Flow(6, FlowQuantity::Sent)),
        ]
    );
}

#[test]
fn hosts_do_not_forward() {
    let text = MINIMAL
        .replace("b = {} }", "b = {}, c = {} }")
        .replace("to = \"b\"", "to = \"c\"")
        + "links.next = { between = [\"b\", \"c\"], rate = \"1 Mbit/s\", delay = \"10 ms\" }";
    let error = Scenario::parse(&text, "test.toml", &[]).unwrap_err();
    assert!(
        error.message().starts_with("no route from \"a\" to \"c\""),
        "{error}"
    );
}

#[test]
fn a_large_network_loads() {
    let text = MINIMAL.replace("b = {} }", "b = { count = 19_999 } }");
    let scenario = load(&text, &[("links.wire.errors", "{}")]);
    assert_eq!(
        (scenario.nodes.len(), scenario.links.len()),
        (20_000, 19_999)
    );
}

#[test]
fn it_serializes_with_units_in_the_names() {
    let data = serde_json::to_value(load(MINIMAL, &[])).unwrap();
    assert_eq!(data["duration_s"], 10.0);
    assert_eq!(data["links"][0]["forward"]["rate_bps"], 1_000_000);
    assert_eq!(data["links"][0]["return"]["delay_s"], 0.01);
    assert_eq!(data["links"][0]["between"], serde_json::json!(["a", "b"]));
    assert_eq!(data["links"][0]["forward"]["queue"]["limit_packets"], 100);
    assert_eq!(data["nodes"][0]["tcp"]["mss_bytes"], 1448);
    assert_eq!(data["nodes"][0]["tcp"]["delayed_ack_s"], 0.04);
    assert_eq!(data["flows"][0]["from"], "a");
    assert_eq!(
        data["flows"][0]["app"],
        serde_json::json!({ "kind": "bulk", "size_bytes": null })
    );
}

/// Returns the paths of the ready-made scenarios.
fn ready_made() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_ready_made_scenarios_load() {
    let files = ready_made();
    assert!(files.len() >= 6);
    for file in files {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            Some(scenario.name.as_str()),
            file.file_stem().and_then(|stem| stem.to_str())
        );
        assert!(scenario.description.is_some_and(|text| text.len() > 20));
        assert!(!scenario.probes.series.is_empty());
    }
}

#[test]
fn overrides_in_comments_of_ready_made_scenarios_are_valid() {
    for file in ready_made() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut tried = 0;
        for line in text.lines().filter(|line| line.starts_with('#')) {
            let overrides: Vec<(&str, &str)> = line
                .split("--set ")
                .skip(1)
                .map(|setting| {
                    // The setting is in single quotes, as for a shell.
                    let whole = setting.strip_prefix('\'').and_then(|s| s.split_once('\''));
                    if let Some((whole, _)) = whole {
                        return whole.split_once('=').unwrap();
                    }
                    let (key, value) = setting.split_once('=').unwrap();
                    match value.strip_prefix('"') {
                        Some(quoted) => (key, quoted.split('"').next().unwrap()),
                        None => (key, value.split(' ').next().unwrap()),
                    }
                })
                .collect();
            if !overrides.is_empty() {
                Scenario::load(&file, &overrides).unwrap_or_else(|error| panic!("{line}\n{error}"));
                tried += 1;
            }
        }
        assert!(tried > 0, "{}", file.display());
    }
}
