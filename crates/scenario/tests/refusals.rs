//! Wrong files, and exactly what is said about each: one line with the place, the key, what was
//! expected and what stood there.

use bentpipe_scenario::Scenario;

/// A scenario that loads. The tests change one thing.
const GEO: &str = r#"name = "geo"
duration = "20 s"
seed = 7

[hosts.server.tcp]
congestion_control = "reno"
recovery = "newreno"
mss = "1448 B"
[hosts.client]
count = 3
tcp = { receive_buffer = "1 MiB", delayed_ack = "40 ms" }
[gateways.hub]
kind = "router"

[links.satellite]
between = ["server", "hub"]
forward = { rate = "10 Mbit/s", delay = "280 ms", queue = { limit = "500 packets" } }
return = { rate = "64 kbit/s", delay = "200 ms" }
[links.access]
between = ["hub", "client"]
rate = "100 Mbit/s"
delay = "1 ms"
errors = { packet_loss_rate = 0.001 }

[flows.download]
from = "server"
to = "client"
start = "1 s"
app = { kind = "bulk", size = "50 MB" }

[probes]
series = [
    "download.congestion_window",
    "satellite.forward.queue",
]
interval = "100 ms"
"#;

fn refusal(text: &str, overrides: &[(&str, &str)]) -> String {
    match Scenario::parse(text, "geo.toml", overrides) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n'), "{line}");
            line
        }
    }
}

/// `GEO` with the one place where `from` stands changed into `to`.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(GEO.matches(from).count(), 1, "{from:?}");
    GEO.replace(from, to)
}

fn check(cases: &[(&str, &str, &str)]) {
    for (from, to, expected) in cases {
        assert_eq!(
            &refusal(&changed(from, to), &[]),
            expected,
            "{from} -> {to}"
        );
    }
}

#[test]
fn what_is_right_is_accepted() {
    assert_eq!(refusal(GEO, &[]), "accepted");
}

#[test]
fn quantities() {
    check(&[
        (
            r#""100 Mbit/s""#,
            "10",
            r#"geo.toml:21: links.access.rate: expected a rate such as "10 Mbit/s", got 10"#,
        ),
        (
            r#"rate = "10 Mbit/s""#,
            "rate = 10_000_000",
            r#"geo.toml:17: links.satellite.forward.rate: expected a rate such as "10 Mbit/s", got 10000000"#,
        ),
        (
            "100 Mbit/s",
            "100 Mbps",
            r#"geo.toml:21: links.access.rate: expected a rate such as "10 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s), got "100 Mbps""#,
        ),
        (
            "64 kbit/s",
            "0 kbit/s",
            r#"geo.toml:18: links.satellite.return.rate: expected a rate from 1 bit/s to 1000 Gbit/s, got "0 kbit/s""#,
        ),
        (
            "280 ms",
            "-280 ms",
            r#"geo.toml:17: links.satellite.forward.delay: expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "-280 ms""#,
        ),
        (
            "280 ms",
            "nan ms",
            r#"geo.toml:17: links.satellite.forward.delay: expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "nan ms""#,
        ),
        (
            "280 ms",
            "2 h",
            r#"geo.toml:17: links.satellite.forward.delay: expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "2 h""#,
        ),
        (
            "280 ms",
            "73 h",
            r#"geo.toml:17: links.satellite.forward.delay: expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "73 h""#,
        ),
        (
            r#"rate = "64 kbit/s", "#,
            "",
            r#"geo.toml:18: links.satellite.return.rate: missing; expected a rate such as "10 Mbit/s""#,
        ),
        (
            r#""20 s""#,
            "1e308",
            r#"geo.toml:2: duration: expected a length of time such as "250 ms", got 1e308"#,
        ),
        (
            r#""20 s""#,
            "20.5",
            r#"geo.toml:2: duration: expected a length of time such as "250 ms", got 20.5"#,
        ),
        (
            "20 s",
            "0 s",
            "geo.toml:2: duration: expected more than 0 s",
        ),
        (
            "20 s",
            "73 h",
            r#"geo.toml:2: duration: expected a length of time up to 72 h, got "73 h""#,
        ),
        (
            r#""20 s""#,
            "2024-01-01",
            r#"geo.toml:2: duration: expected a length of time such as "250 ms", got a date or time of day"#,
        ),
        (
            "1448 B",
            "1448 bytes",
            r#"geo.toml:8: hosts.server.tcp.mss: expected a size such as "64 KiB" (units: B, kB, KiB, MB, MiB, GB, GiB), got "1448 bytes""#,
        ),
        (
            "500 packets",
            "500 segments",
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a limit such as "100 packets" or "64 KiB", got "500 segments""#,
        ),
        (
            r#""500 packets""#,
            "500",
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a limit such as "100 packets" or "64 KiB", got 500"#,
        ),
        (
            "500 packets",
            "0 packets",
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a whole number of packets from 1 to 1000000000, got "0 packets""#,
        ),
        (
            r#""40 ms""#,
            "true",
            r#"geo.toml:11: hosts.client.tcp.delayed_ack: expected a delay such as "40 ms", or "off", got true"#,
        ),
        (
            "0.001",
            "1.5",
            "geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got 1.5",
        ),
        (
            "0.001",
            "nan",
            "geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got NaN",
        ),
        (
            "0.001",
            r#""1 %""#,
            r#"geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got "1 %""#,
        ),
        (
            "50 MB",
            "0 B",
            r#"geo.toml:29: flows.download.app.size: expected at least "1 B""#,
        ),
        (
            r#"interval = "100 ms""#,
            r#"interval = "always""#,
            r#"geo.toml:36: probes.interval: expected an interval of 1 us or more such as "100 ms", or "every-change", got "always""#,
        ),
        (
            "delay = \"1 ms\"",
            "delay = \"1 ms\"\nredundancy = 0.9",
            r#"geo.toml:23: links.access.redundancy: expected a fraction from 1 to 100 such as "16/15" or 1.0667, got 0.9"#,
        ),
    ]);
}

#[test]
fn keys() {
    check(&[
        (
            "congestion_control",
            "congestion_controll",
            r#"geo.toml:6: hosts.server.tcp.congestion_controll: unknown key; did you mean "congestion_control"?"#,
        ),
        (
            "[flows.download]",
            "[flow.download]",
            r#"geo.toml:25: flow: unknown key; did you mean "flows"?"#,
        ),
        (
            "size = ",
            "sise = ",
            r#"geo.toml:29: flows.download.app.sise: unknown key; did you mean "size"?"#,
        ),
        (
            "queue = { limit",
            "queue = { length",
            "geo.toml:17: links.satellite.forward.queue.length: unknown key; known here: kind, limit, minimum_threshold, maximum_threshold, maximum_probability, weight, gentle, ecn, mean_packet, drop_level, drop_probability, quantum, flows",
        ),
        (
            r#"delay = "200 ms""#,
            r#"delay = "200 ms", ack_timeout = "1 s""#,
            "geo.toml:18: links.satellite.return.ack_timeout: unknown key; known here: rate, delay, queue, errors, redundancy, acks, compression, tunnel, schedule, schedule_every, traces, outages, fading, duplication, corruption, reordering, in_order",
        ),
        (
            r#"kind = "router""#,
            r#""strange key\n" = 1"#,
            r#"geo.toml:13: gateways.hub."strange key\n": unknown key; known here: kind, icmp, facing, tcp, host_tcp, set_up, close, memory, only, except, processing, warm_path, idle_timeout, receive_buffer, store, ack_timeout, ack_every, anticipation, window_factor, retransmission_timeout, adaptive_timeout, congestion_window, give_up, connections"#,
        ),
        (
            "name = \"geo\"\n",
            "",
            r#"geo.toml:1: name: missing; expected a name such as "geo-download""#,
        ),
        (
            "between = [\"server\", \"hub\"]\n",
            "",
            r#"geo.toml:15: links.satellite.between: missing; expected two nodes such as ["server", "client"]"#,
        ),
        (
            "from = \"server\"\n",
            "",
            "geo.toml:25: flows.download.from: missing; expected the name of the host that sends",
        ),
        (
            "delay = \"1 ms\"\n",
            "",
            r#"geo.toml:19: links.access.delay: missing; expected a length of time such as "250 ms""#,
        ),
        (
            r#"rate = "64 kbit/s", "#,
            "",
            r#"geo.toml:18: links.satellite.return.rate: missing; expected a rate such as "10 Mbit/s""#,
        ),
        (
            r#"kind = "bulk", "#,
            "",
            r#"geo.toml:29: flows.download.app.kind: missing; expected an application such as "bulk""#,
        ),
        (
            r#"queue = { limit = "500 packets" }"#,
            r#"queue = ["drop-tail", "500 packets"]"#,
            "geo.toml:17: links.satellite.forward.queue: expected a table, got an array",
        ),
        (
            "[hosts.client]\ncount = 3",
            "[[hosts.client]]\ncount = 3",
            "geo.toml:9: hosts.client: expected a table, got an array",
        ),
        (
            "[gateways.hub]",
            "[gateways.\"hub 1\"]",
            r#"geo.toml:12: gateways."hub 1": expected a name of letters, digits, "-" and "_" (at most 64), got "hub 1""#,
        ),
        (
            "seed = 7",
            "seed = -7",
            "geo.toml:3: seed: expected a whole number from 0 on, got -7",
        ),
        (
            "seed = 7",
            "seed = 1.0",
            "geo.toml:3: seed: expected a whole number from 0 on, got 1.0",
        ),
        (
            "seed = 7",
            "seed = 99999999999999999999999999",
            "geo.toml:3: seed: expected a whole number from 0 on, got a huge number",
        ),
        (
            "recovery = \"newreno\"",
            "nagle = \"no\"",
            r#"geo.toml:7: hosts.server.tcp.nagle: expected true or false, got "no""#,
        ),
    ]);
}

#[test]
fn recoveries() {
    check(&[
        (
            "recovery = \"newreno\"",
            "recovery = \"fack\"\nsack = false",
            "geo.toml:7: hosts.server.tcp.recovery: needs selective acknowledgments, and sack is false",
        ),
        (
            "recovery = \"newreno\"",
            "recovery = \"newreno\"\nrack = true",
            r#"geo.toml:8: hosts.server.tcp.rack: has no effect: recovery is not "sack""#,
        ),
        (
            "recovery = \"newreno\"",
            "recovery = \"fack\"\nproportional_rate_reduction = true",
            r#"geo.toml:8: hosts.server.tcp.proportional_rate_reduction: has no effect: recovery is not "sack""#,
        ),
        (
            "recovery = \"newreno\"",
            "rack = false\ntail_loss_probe = true",
            "geo.toml:8: hosts.server.tcp.tail_loss_probe: has no effect: rack is false",
        ),
        (
            "recovery = \"newreno\"",
            "sack = false\nundo = true",
            r#"geo.toml:8: hosts.server.tcp.undo: has no effect: recovery is neither "sack" nor "fack""#,
        ),
    ]);
}

#[test]
fn split_gateways() {
    let gateway = r#"kind = "router""#;
    let line = |keys: &str| format!("kind = \"split\"\n{keys}");
    for (keys, message) in [
        (
            "",
            r#"geo.toml:12: gateways.hub.facing: missing; expected the name of a link such as "satellite""#,
        ),
        (
            r#"facing = "satelite""#,
            r#"geo.toml:14: gateways.hub.facing: no link is named "satelite"; did you mean "satellite"?"#,
        ),
        (
            r#"facing = "access""#,
            "geo.toml:14: gateways.hub.facing: expected one link: access is access-1 to access-3",
        ),
        (
            "facing = \"satellite\"\ntcp = { mss = \"1 B\" }",
            r#"geo.toml:15: gateways.hub.tcp.mss: expected "64 B" to "65000 B", got "1 B""#,
        ),
        (
            "facing = \"satellite\"\nhost_tcp = { recovery = \"fack\", sack = false }",
            "geo.toml:15: gateways.hub.host_tcp.recovery: needs selective acknowledgments, and sack is false",
        ),
        (
            "facing = \"satellite\"\nmemory = \"1 kB\"",
            r#"geo.toml:15: gateways.hub.memory: expected "256 KiB" to "1024 GiB", got "1 kB""#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [0] }",
            r#"geo.toml:15: gateways.hub.only.ports: expected a port such as 80, or ports such as "8000-8999", got 0"#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [\"90-80\"] }",
            r#"geo.toml:15: gateways.hub.only.ports: expected a port such as 80, or ports such as "8000-8999", got "90-80""#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [] }",
            "geo.toml:15: gateways.hub.only.ports: has no effect: no ports stands in it",
        ),
        (
            "facing = \"satellite\"\nexcept = { hosts = [\"sever\"] }",
            r#"geo.toml:15: gateways.hub.except.hosts: no node is named "sever"; did you mean "server"?"#,
        ),
        (
            "facing = \"satellite\"\nprocessing = { time = \"0 s\" }",
            r#"geo.toml:15: gateways.hub.processing.time: expected more than "0 s" and at most "1 s", got "0 s""#,
        ),
        (
            "facing = \"satellite\"\nprocessing = { time = \"1 ms\", queue = \"9 kB\" }",
            r#"geo.toml:15: gateways.hub.processing.queue: expected packets such as "100 packets", got "9 kB""#,
        ),
        (
            "facing = \"satellite\"\nidle_timeout = \"1 ms\"",
            r#"geo.toml:15: gateways.hub.idle_timeout: expected at least "1 s", got "1 ms""#,
        ),
        (
            "facing = \"satellite\"\nset_up = \"late\"",
            r#"geo.toml:15: gateways.hub.set_up: expected one of "end-to-end", "early", got "late""#,
        ),
    ] {
        assert_eq!(refusal(&changed(gateway, &line(keys)), &[]), message);
    }
    // What is a split gateway's is not a router's; what is not there has no series.
    assert_eq!(
        refusal(&changed(gateway, "facing = \"satellite\""), &[]),
        r#"geo.toml:13: gateways.hub.facing: has no effect: the gateway's kind is "router""#
    );
    let series = |name: &str| changed("\"satellite.forward.queue\"", &format!("\"{name}\""));
    assert_eq!(
        refusal(&series("hub.buffered"), &[]),
        r#"geo.toml:34: probes.series: "hub" is a gateway of kind "router": it has no series"#
    );
    let split = [
        ("gateways.hub.kind", "\"split\""),
        ("gateways.hub.facing", "\"satellite\""),
    ];
    assert_eq!(
        refusal(&series("hub.bufered"), &split),
        r#"geo.toml:34: probes.series: no series of a "split" gateway is "bufered"; did you mean "buffered"?"#
    );
    assert_eq!(refusal(&series("hub.buffered"), &split), "accepted");
    // A link that ends elsewhere.
    let elsewhere = GEO.replace(
        "[links.access]",
        "[links.side]\nbetween = [\"server\", \"client-1\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[links.access]",
    );
    let split = [
        ("gateways.hub.kind", "\"split\""),
        ("gateways.hub.facing", "\"side\""),
    ];
    assert_eq!(
        refusal(&elsewhere, &split),
        r#"--set gateways.hub.facing="side": expected a link that ends at "hub", got "side""#
    );
}

#[test]
fn words() {
    check(&[
        (
            r#""reno""#,
            r#""rino""#,
            r#"geo.toml:6: hosts.server.tcp.congestion_control: expected one of "reno", "westwood", "hybla", "enhanced-hybla", "cubic", "bbr", "bbr1", "bbr3", got "rino"; did you mean "reno"?"#,
        ),
        (
            r#""newreno""#,
            "3",
            r#"geo.toml:7: hosts.server.tcp.recovery: expected one of "reno", "newreno", "sack", "fack", got 3"#,
        ),
        (
            r#""router""#,
            r#""switch""#,
            r#"geo.toml:13: gateways.hub.kind: expected one of "router", "split", "hybrid", got "switch""#,
        ),
        (
            r#"{ limit ="#,
            r#"{ kind = "rde", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.kind: expected one of "drop-tail", "red", "early-random-drop", "fair", got "rde"; did you mean "red"?"#,
        ),
        (
            r#""bulk""#,
            r#""voices""#,
            r#"geo.toml:29: flows.download.app.kind: expected one of "bulk", "request-response", "web", "packets", "ftp", "mail", "voice", "video", "ping", got "voices"; did you mean "voice"?"#,
        ),
    ]);
}

#[test]
fn queues() {
    check(&[
        (
            "{ limit =",
            "{ weight = 0.1, limit =",
            r#"geo.toml:17: links.satellite.forward.queue.weight: has no effect: a "drop-tail" queue has only a limit"#,
        ),
        (
            "{ limit =",
            r#"{ kind = "fair", drop_probability = 0.1, limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.drop_probability: has no effect: a "fair" queue has limit, quantum, flows"#,
        ),
        (
            "{ limit =",
            r#"{ kind = "fair", quantum = "10 B", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.quantum: expected "64 B" to "16 MiB", got "10 B""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "fair", flows = 0, limit ="#,
            "geo.toml:17: links.satellite.forward.queue.flows: expected 1 to 65536, got 0",
        ),
        (
            "{ limit =",
            r#"{ kind = "red", minimum_threshold = "9 packets", maximum_threshold = "9 packets", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.maximum_threshold: expected more than minimum_threshold ("9 packets"), got "9 packets""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "red", minimum_threshold = "9 kB", maximum_threshold = "9 packets", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.minimum_threshold: expected the unit of maximum_threshold ("9 packets"), got "9 kB""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "red", weight = 0, limit ="#,
            "geo.toml:17: links.satellite.forward.queue.weight: expected a weight above 0, or the average never moves",
        ),
    ]);
}

#[test]
fn acknowledgments() {
    let cases = [
        (
            r#"acks = { kind = "supression" }"#,
            r#"acks.kind: expected one of "none", "suppression", "compaction", "filter", "reconstruction", got "supression"; did you mean "suppression"?"#,
        ),
        ("acks = { low = 4 }", "acks.kind: missing"),
        (
            r#"acks = { kind = "none", low = 4 }"#,
            r#"acks.low: has no effect with "none""#,
        ),
        (
            r#"acks = { kind = "filter", high = 4 }"#,
            r#"acks.high: has no effect: "filter" has mode"#,
        ),
        (
            r#"acks = { kind = "suppression", spacing = true }"#,
            r#"acks.spacing: has no effect: "suppression" has low, high, duplicates"#,
        ),
        (
            r#"acks = { kind = "compaction", spacing = "per flow" }"#,
            r#"acks.spacing: expected true, false or "per-flow", got "per flow""#,
        ),
        (
            r#"acks = { kind = "suppression", low = 0 }"#,
            "acks.low: expected 1 to 1000, got 0",
        ),
        (
            r#"acks = { kind = "suppression", duplicates = 2 }"#,
            "acks.duplicates: expected 3 or more, which mark a loss, got 2",
        ),
        (
            r#"acks = { kind = "suppression", low = 61, high = 60 }"#,
            "acks.high: expected low (61) to 1000, got 60",
        ),
        (
            r#"acks = { kind = "compaction", high = 256 }"#,
            "acks.high: expected low (4) to 255, got 256",
        ),
        (
            r#"acks = { kind = "compaction", low = 300 }"#,
            "acks.high: expected low to be at most 255, got low = 300",
        ),
        (
            r#"acks = { kind = "filter" }, queue = { kind = "fair" }"#,
            r#"acks.kind: "filter" removes from the queue itself: expected queue.kind = "drop-tail", got "fair""#,
        ),
        (
            r#"acks = { kind = "reconstruction", threshold = "0 B" }"#,
            r#"acks.threshold: expected "1 B" to "1 MiB", got "0 B""#,
        ),
        (
            r#"compression = "lzw""#,
            r#"compression: expected one of "none", "rfc1144", "v42bis", got "lzw""#,
        ),
        (
            r#"acks = { kind = "compaction" }, compression = "rfc1144""#,
            r#"compression: "rfc1144" compresses TCP/IP headers, and a tunnel hides them: expected "none" or "v42bis" in a tunnel"#,
        ),
        (
            r#"acks = { kind = "compaction" }, tunnel = false"#,
            "tunnel: expected true: compacted acknowledgments are no IP packets, and travel in a tunnel",
        ),
    ];
    for (added, expected) in cases {
        let text = changed(
            r#"delay = "200 ms""#,
            &format!(r#"delay = "200 ms", {added}"#),
        );
        let expected = format!("geo.toml:18: links.satellite.return.{expected}");
        let refused = refusal(&text, &[]);
        assert!(refused.starts_with(&expected), "{added}: {refused}");
    }
}

#[test]
fn names() {
    check(&[
        (
            r#"["server", "hub"]"#,
            r#"["sever", "hub"]"#,
            r#"geo.toml:16: links.satellite.between: no node is named "sever"; did you mean "server"?"#,
        ),
        (
            r#"["server", "hub"]"#,
            "[\n  \"server\",\n  \"moon\",\n]",
            r#"geo.toml:18: links.satellite.between: no node is named "moon"; known: server, client, hub"#,
        ),
        (
            r#"["server", "hub"]"#,
            r#"["server"]"#,
            r#"geo.toml:16: links.satellite.between: expected two nodes such as ["server", "client"], got an array of 1"#,
        ),
        (
            r#"["server", "hub"]"#,
            r#"["hub", "hub"]"#,
            r#"geo.toml:16: links.satellite.between: expected two different nodes, got "hub" twice"#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["hub", "client-4"]"#,
            r#"geo.toml:20: links.access.between: no node is named "client-4": there are client-1 to client-3"#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["client-1", "client"]"#,
            r#"geo.toml:20: links.access.between: expected two different nodes, got "client-1" twice"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "cleint""#,
            r#"geo.toml:27: flows.download.to: no node is named "cleint"; did you mean "client"?"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "hub""#,
            r#"geo.toml:27: flows.download.to: expected a host, got "hub", a gateway: flows begin and end at hosts"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "server""#,
            r#"geo.toml:27: flows.download.to: expected another host than from, got "server""#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["hub", "client-1"]"#,
            r#"geo.toml:27: flows.download.to: no route from "server" to "client-2": links and gateways do not join them"#,
        ),
        (
            "[gateways.hub]",
            "[gateways.server]\n[gateways.hub]",
            "geo.toml:12: gateways.server: expected another name: a host is called this, too",
        ),
        (
            "[gateways.hub]",
            "[gateways.client-2]\n[gateways.hub]",
            "geo.toml:12: gateways.client-2: expected another name: count = 3 makes client-1 to client-3",
        ),
        (
            "[hosts.client]",
            "[hosts.other]\ncount = 2\n[links.odd]\nbetween = [\"other\", \"client\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n[hosts.client]",
            "geo.toml:12: links.odd.between: expected the same count at both ends, got 2 other and 3 client",
        ),
        (
            "satellite.forward.queue",
            "satelite.forward.queue",
            r#"geo.toml:34: probes.series: no link is named "satelite"; did you mean "satellite"?"#,
        ),
        (
            "satellite.forward.queue",
            "satellite.foward.queue",
            r#"geo.toml:34: probes.series: no direction of a link is "foward"; did you mean "forward"?"#,
        ),
        (
            "satellite.forward.queue",
            "satellite.queue",
            r#"geo.toml:34: probes.series: "satellite" is a link: expected "satellite.forward.queue", got "satellite.queue""#,
        ),
        (
            "download.congestion_window",
            "download.congestion-windw",
            r#"geo.toml:33: probes.series: no series of a flow is "congestion-windw"; did you mean "congestion_window"?"#,
        ),
        (
            "download.congestion_window",
            "everything",
            r#"geo.toml:33: probes.series: expected a series such as "download.goodput" or "satellite.forward.queue", got "everything""#,
        ),
        (
            "\"download.congestion_window\",",
            "\"download.goodput\", \"download-2.goodput\",",
            r#"geo.toml:33: probes.series: "download-2.goodput" stands twice in the array"#,
        ),
    ]);
}

#[test]
fn sense() {
    check(&[
        (
            r#"start = "1 s""#,
            r#"start = "20 s""#,
            r#"geo.toml:28: flows.download.start: expected before the end (duration = "20 s"), got "20 s""#,
        ),
        (
            r#"start = "1 s""#,
            r#"spacing = "10 s""#,
            r#"geo.toml:28: flows.download.spacing: expected the last of them to start before the end (duration = "20 s"), not at "20 s""#,
        ),
        (
            "count = 3",
            "count = 0",
            "geo.toml:10: hosts.client.count: expected 1 to 60000 hosts, got 0",
        ),
        (
            "count = 3",
            "count = 4294967295",
            "geo.toml:10: hosts.client.count: expected 1 to 60000 hosts, got 4294967295",
        ),
        (
            "count = 3",
            "count = 59_000",
            "geo.toml:15: links: expected at most 60000 nodes and link directions together, got 177004",
        ),
        (
            "{ packet_loss_rate = 0.001 }",
            "{ packet_loss_rate = 0.001, bit_error_rate = 1e-7 }",
            "geo.toml:23: links.access.errors.packet_loss_rate: expected bit_error_rate or packet_loss_rate, got both",
        ),
        (
            "{ packet_loss_rate = 0.001 }",
            "{ lost_packets = [20, 21] }",
            "geo.toml:23: links.access.errors.lost_packets: expected in forward or return: each direction counts its own packets",
        ),
        (
            "queue = {",
            "errors = { lost_packets = [0] }, queue = {",
            "geo.toml:17: links.satellite.forward.errors.lost_packets: expected numbers from 1: the first packet is 1",
        ),
        (
            "[links.access]",
            "rate = \"1 Mbit/s\"\n[links.access]",
            "geo.toml:19: links.satellite.rate: has no effect: forward.rate and return.rate overrule it",
        ),
        (
            "1448 B",
            "66000 B",
            r#"geo.toml:8: hosts.server.tcp.mss: expected "64 B" to "65000 B", got "66 kB""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_memory = { initial = \"1 MiB\", maximum = \"64 KiB\" }",
            r#"geo.toml:8: hosts.server.tcp.send_memory.maximum: expected at least "1 MiB", got "64 KiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "receive_buffer = \"1 MiB\"\nreceive_memory = { maximum = \"64 KiB\" }",
            r#"geo.toml:9: hosts.server.tcp.receive_memory.maximum: has no effect: the buffer is "1 MiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "receive_memory = { initial = \"1 B\" }",
            r#"geo.toml:8: hosts.server.tcp.receive_memory.initial: expected at least "2304 B", got "1 B""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_memory = { maximum = \"2 GiB\" }",
            r#"geo.toml:8: hosts.server.tcp.send_memory.maximum: expected at most "1 GiB", got "2 GiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_buffer = \"1 kB\"",
            r#"geo.toml:8: hosts.server.tcp.send_buffer: expected at least one segment ("1448 B"), got "1 kB""#,
        ),
        (
            "mss = \"1448 B\"",
            "window_scaling = false\nreceive_buffer = \"64 KiB\"",
            r#"geo.toml:9: hosts.server.tcp.receive_buffer: expected at most "65535 B" without window_scaling, got "64 KiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "initial_rto = \"3 min\"",
            r#"geo.toml:8: hosts.server.tcp.initial_rto: expected at most maximum_rto ("2 min"), got "3 min""#,
        ),
        (
            "mss = \"1448 B\"",
            "minimum_rto = \"0 s\"",
            r#"geo.toml:8: hosts.server.tcp.minimum_rto: expected at least "1 ms", got "0 s""#,
        ),
        (
            r#"interval = "100 ms""#,
            r#"interval = "1 us""#,
            r#"geo.toml:36: probes.interval: expected a longer time between records: 4 series every "1 us" are 80000004 records, above 20000000"#,
        ),
    ]);
}

#[test]
fn syntax() {
    check(&[
        (
            "[gateways.hub]",
            "[gateways.hub",
            "geo.toml:12: not TOML: unclosed table, expected `]`",
        ),
        (
            r#""100 Mbit/s""#,
            "100 Mbit/s",
            "geo.toml:21: expected a value: a string in quotes, a number, true or false, an array or a table",
        ),
        (
            "[links.access]",
            "[links.satellite]",
            "geo.toml:19: this key or table stands twice in the file",
        ),
    ]);
    assert_eq!(
        refusal("", &[]),
        r#"geo.toml:1: name: missing; expected a name such as "geo-download""#
    );
    let deep = format!("{} = 1", vec!["a"; 200_000].join("."));
    assert_eq!(refusal(&deep, &[]), "geo.toml:1: not TOML: recursion limit");
    let long = "#".repeat((1 << 20) + 1);
    assert_eq!(
        refusal(&long, &[]),
        "geo.toml: longer than 1 MiB: not a scenario file"
    );
}

#[test]
fn overrides() {
    let cases: &[(&str, &str, &str)] = &[
        ("hosts.server.tcp.congestion_control", "reno", "accepted"),
        ("hosts.server.tcp.congestion_control", "hybla", "accepted"),
        ("hosts.server.tcp.slow_start", "hystart++", "accepted"),
        (
            "hosts.server.tcp.hybla",
            "{ reference_rtt = \"25 ms\" }",
            "accepted",
        ),
        (
            "hosts.server.tcp.congestion_control",
            "enhanced-hybla",
            r#"geo.toml:5: hosts.server.tcp.channel_capacity: missing; expected a rate such as "100 Mbit/s" for "enhanced-hybla""#,
        ),
        (
            "hosts.server.tcp.hybla.reference_rtt",
            "0 s",
            r#"--set hosts.server.tcp.hybla.reference_rtt=0 s: expected "1 ms" to "10 s", got "0 s""#,
        ),
        ("hosts.server.tcp.nagle", "false", "accepted"),
        ("links.satellite.forward.rate", "2 Mbit/s", "accepted"),
        (
            "links.satellite.forward.errors.bit_error_rate",
            "1e-7",
            "accepted",
        ),
        ("flows.download.app", "{ kind = \"bulk\" }", "accepted"),
        (
            "hosts.server.tcp.congestion_controll",
            "reno",
            r#"--set hosts.server.tcp.congestion_controll=reno: unknown key; did you mean "congestion_control"?"#,
        ),
        (
            "hosts.server.tpc.nagle",
            "true",
            r#"--set hosts.server.tpc.nagle=true: hosts.server.tpc: unknown key; did you mean "tcp"?"#,
        ),
        (
            "hosts.server.tcp.congestion_control",
            "cubik",
            r#"--set hosts.server.tcp.congestion_control=cubik: expected one of "reno", "westwood", "hybla", "enhanced-hybla", "cubic", "bbr", "bbr1", "bbr3", got "cubik"; did you mean "cubic"?"#,
        ),
        (
            "links.satellite.forward.rate",
            "2",
            r#"--set links.satellite.forward.rate=2: expected a rate such as "10 Mbit/s", got 2"#,
        ),
        (
            "links.satellite.rate",
            "2 Mbit/s",
            "--set links.satellite.rate=2 Mbit/s: has no effect: forward.rate and return.rate overrule it",
        ),
        (
            "duration.seconds",
            "3",
            r#"--set duration.seconds=3: "duration" is not a table: it has no keys to set"#,
        ),
        (
            "links.extra.rate",
            "1 Mbit/s",
            r#"--set links.extra.rate=1 Mbit/s: links.extra.between: missing; expected two nodes such as ["server", "client"]"#,
        ),
        (
            "links.access.between",
            "[\"hub\", \"clinet\"]",
            r#"--set links.access.between=["hub", "clinet"]: no node is named "clinet"; did you mean "client"?"#,
        ),
        (
            "flows.download.app",
            "{ kind = \"bulk\", sise = \"1 MB\" }",
            r#"--set flows.download.app={ kind = "bulk", sise = "1 MB" }: flows.download.app.sise: unknown key; did you mean "size"?"#,
        ),
        (
            "hosts..tcp",
            "1",
            "--set hosts..tcp=1: expected a key such as hosts.server.tcp.congestion_control",
        ),
        (
            "",
            "1",
            "--set =1: expected a key such as hosts.server.tcp.congestion_control",
        ),
        (
            "name",
            "two\nlines",
            r#"--set name=two\nlines: expected a name of letters, digits, "-" and "_" (at most 64), got "two\nlines""#,
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(
            &refusal(GEO, &[(key, value)]),
            expected,
            "--set {key}={value}"
        );
    }
    // The last one counts, and an error in the file is still the file's.
    let twice = [("seed", "x"), ("seed", "9")];
    assert_eq!(Scenario::parse(GEO, "geo.toml", &twice).unwrap().seed, 9);
    assert_eq!(
        refusal(&changed("seed = 7", "sed = 7"), &twice),
        r#"geo.toml:3: sed: unknown key; did you mean "seed"?"#
    );
}

#[test]
fn files_that_cannot_be_read() {
    let error = Scenario::load("nowhere/geo.toml", &[]).unwrap_err();
    assert_eq!(error.to_string(), "nowhere/geo.toml: no such file");
    let directory = env!("CARGO_MANIFEST_DIR");
    let error = Scenario::load(directory, &[]).unwrap_err();
    assert_eq!(error.message(), "a directory, not a scenario file");
    let file = std::env::temp_dir().join(format!("bentpipe-{}.toml", std::process::id()));
    std::fs::write(&file, b"name = \"geo\"\nduration = \"\xff\"\n").unwrap();
    let error = Scenario::load(&file, &[]).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert_eq!((error.line(), error.message()), (Some(2), "not UTF-8 text"));
}

#[test]
fn an_error_has_parts() {
    let error = Scenario::parse(&changed("280 ms", "2 h"), "geo.toml", &[]).unwrap_err();
    assert_eq!(error.place(), "geo.toml");
    assert_eq!(error.line(), Some(17));
    assert_eq!(error.key(), "links.satellite.forward.delay");
    assert_eq!(
        error.message(),
        r#"expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "2 h""#
    );
}

/// A missing key is told where it is missed, and as what its table is about.
#[test]
fn what_is_missing_is_told_of_its_own_table() {
    let network = |link: &str, more: &str| {
        format!(
            "name = \"n\"\nduration = \"1 s\"\nhosts = {{ a = {{}}, b = {{}} }}\n{more}\n[links.l]\n\
             between = [\"a\", \"b\"]\n{link}\n[flows.f]\nfrom = \"a\"\nto = \"b\"\n\
             app = {{ kind = \"bulk\" }}\n"
        )
    };
    let refused = |link: &str, more: &str| {
        let error = Scenario::parse(&network(link, more), "n.toml", &[]).expect_err("refused");
        error.to_string()
    };
    let rate = r#"expected a rate such as "10 Mbit/s""#;
    assert_eq!(
        refused("delay = \"1 ms\"\nforward = { rate = \"1 Mbit/s\" }", ""),
        format!("n.toml:5: links.l.return.rate: missing; {rate}")
    );
    assert_eq!(
        refused("delay = \"1 ms\"", ""),
        format!("n.toml:5: links.l.rate: missing; {rate}")
    );
    assert_eq!(
        refused("rate = \"1 Mbit/s\"\nreturn = { delay = \"1 ms\" }", ""),
        r#"n.toml:5: links.l.forward.delay: missing; expected a length of time such as "250 ms""#
    );
    let whole = "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"";
    assert_eq!(
        refused(&format!("{whole}\nacks = {{ low = 4 }}"), ""),
        r#"n.toml:9: links.l.acks.kind: missing; expected a method such as "suppression""#
    );
    let other = refused(whole, "[gateways.g]\nkind = \"pep\"");
    assert!(other.contains("\"split\""), "{other}");
}

#[test]
fn losses_in_bursts() {
    let errors = "errors = { packet_loss_rate = 0.01 }";
    let text = |errors: &str| {
        format!(
            "name = \"n\"\nduration = \"1 s\"\nhosts = {{ a = {{}}, b = {{}} }}\n[links.l]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{errors}\n\
             [flows.f]\nfrom = \"a\"\nto = \"b\"\napp = {{ kind = \"bulk\" }}\n"
        )
    };
    assert!(Scenario::parse(&text(errors), "n.toml", &[]).is_ok());
    let refused = |keys: &str| {
        let errors = format!("errors = {{ {keys} }}");
        let error = Scenario::parse(&text(&errors), "n.toml", &[]).expect_err("refused");
        error.to_string().replace("n.toml:8: links.l.errors.", "")
    };
    for (keys, message) in [
        (
            "mean_burst_packets = 3",
            "mean_burst_packets: expected packet_loss_rate beside it: what the losses come to in all",
        ),
        (
            "bit_error_rate = 1e-6, packet_loss_rate = 0.1, mean_burst_packets = 3",
            "mean_burst_packets: expected packet_loss_rate beside it: what the losses come to in all",
        ),
        (
            "packet_loss_rate = 0.1, loss_in_burst = 0.5",
            "loss_in_burst: has no effect: there is no mean_burst_packets",
        ),
        (
            "packet_loss_rate = 0.1, mean_burst_packets = 0.5",
            "mean_burst_packets: expected a number of packets from 1 on, got 0.5",
        ),
        (
            "packet_loss_rate = 0.1, mean_burst_packets = nan",
            "mean_burst_packets: expected a number of packets from 1 on, got NaN",
        ),
        (
            "packet_loss_rate = 0.1, mean_burst_packets = 4, loss_in_burst = 0.05",
            "packet_loss_rate: expected a rate from loss_between_bursts to loss_in_burst, 0.0 to 0.05, got 0.1",
        ),
        (
            "packet_loss_rate = 0.1, mean_burst_packets = 4, loss_between_bursts = 1",
            "loss_between_bursts: expected less than loss_in_burst",
        ),
        (
            "packet_loss_rate = 0.9, mean_burst_packets = 4",
            "mean_burst_packets: expected longer bursts, got 4.0: a packet at least gets through between two, and 0.9 of all are to be lost",
        ),
    ] {
        assert_eq!(refused(keys), message, "{keys}");
    }
}
