//! Invalid values: quantities, words.

use super::check;

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
            r#"geo.toml:21: links.access.rate: expected a rate such as "10 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s), got "100 Mbps"; did you mean "100 Mbit/s"?"#,
        ),
        (
            r#""20 s""#,
            r#""20 sec""#,
            r#"geo.toml:2: duration: expected a length of time such as "250 ms" (units: ns, us, ms, s, min, h), got "20 sec"; did you mean "20 s"?"#,
        ),
        (
            r#""500 packets""#,
            r#""2 mb""#,
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a limit such as "100 packets", "64 KiB" or "100 ms", got "2 mb"; did you mean "2 MB"?"#,
        ),
        (
            "packet_loss_rate = 0.001",
            r#"packet_loss_rate = "0.7%""#,
            r#"geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got "0.7%"; did you mean 0.007?"#,
        ),
        (
            "packet_loss_rate = 0.001",
            r#"packet_loss_rate = "few""#,
            r#"geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got "few""#,
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
        // A number above zero is not rounded to zero.
        (
            "280 ms",
            "0.4 ns",
            r#"geo.toml:17: links.satellite.forward.delay: expected 0 or at least 1 ns, got "0.4 ns""#,
        ),
        (
            r#""20 s""#,
            r#""1e-12 s""#,
            r#"geo.toml:2: duration: expected 0 or at least 1 ns, got "1e-12 s""#,
        ),
        (
            "50 MB",
            "0.4 B",
            r#"geo.toml:29: flows.download.app.size: expected 0 or at least 1 B, got "0.4 B""#,
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
            r#"geo.toml:8: hosts.server.tcp.mss: expected a size such as "64 KiB" (units: B, kB, KiB, MB, MiB, GB, GiB), got "1448 bytes"; did you mean "1448 B"?"#,
        ),
        (
            "500 packets",
            "500 segments",
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a limit such as "100 packets", "64 KiB" or "100 ms", got "500 segments""#,
        ),
        (
            r#""500 packets""#,
            "500",
            r#"geo.toml:17: links.satellite.forward.queue.limit: expected a limit such as "100 packets", "64 KiB" or "100 ms", got 500"#,
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
            r#"geo.toml:23: links.access.errors.packet_loss_rate: expected a probability from 0 to 1 such as 1e-6, got "1 %"; did you mean 0.01?"#,
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
fn words() {
    check(&[
        (
            r#""reno""#,
            r#""rino""#,
            r#"geo.toml:6: hosts.server.tcp.congestion_control: expected one of "reno", "westwood", "westwood-2001", "hybla", "enhanced-hybla", "cubic", "bbr", "bbr1", "bbr3", got "rino"; did you mean "reno"?"#,
        ),
        (
            r#""newreno""#,
            "3",
            r#"geo.toml:7: hosts.server.tcp.recovery: expected one of "reno", "newreno", "sack", "fack", got 3"#,
        ),
        (
            r#""router""#,
            r#""switch""#,
            r#"geo.toml:13: gateways.hub.kind: expected one of "router", "nat", "split", "hybrid", got "switch""#,
        ),
        (
            r#"{ limit ="#,
            r#"{ kind = "rde", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.kind: expected one of "drop-tail", "red", "early-random-drop", "fair", "codel", "fq-codel", "pie", "priority", "weighted", got "rde"; did you mean "red"?"#,
        ),
        (
            r#""bulk""#,
            r#""voices""#,
            r#"geo.toml:29: flows.download.app.kind: expected one of "bulk", "request-response", "web", "packets", "carousel", "ftp", "mail", "voice", "video", "video-call", "ping", got "voices"; did you mean "voice"?"#,
        ),
    ]);
}

#[test]
fn units_of_other_tools_get_a_suggestion() {
    check(&[
        (
            "seed = 7",
            "seed = 7\nip = \"ipv6\"",
            r#"geo.toml:4: ip: expected one of "v4", "v6", got "ipv6"; did you mean "v6"?"#,
        ),
        (
            r#"limit = "500 packets""#,
            r#"kind = "cake""#,
            r#"geo.toml:17: links.satellite.forward.queue.kind: expected one of "drop-tail", "red", "early-random-drop", "fair", "codel", "fq-codel", "pie", "priority", "weighted", got "cake"; "fq-codel" keeps flows apart and their delays short"#,
        ),
        (
            r#"limit = "500 packets""#,
            r#"kind = "fq_codel""#,
            r#"geo.toml:17: links.satellite.forward.queue.kind: expected one of "drop-tail", "red", "early-random-drop", "fair", "codel", "fq-codel", "pie", "priority", "weighted", got "fq_codel"; did you mean "fq-codel"?"#,
        ),
        (
            r#"limit = "500 packets""#,
            r#"kind = "pfifo""#,
            r#"geo.toml:17: links.satellite.forward.queue.kind: expected one of "drop-tail", "red", "early-random-drop", "fair", "codel", "fq-codel", "pie", "priority", "weighted", got "pfifo"; did you mean "drop-tail"?"#,
        ),
        (
            r#"rate = "100 Mbit/s""#,
            r#"bandwidth = "100 Mbit/s""#,
            r#"geo.toml:21: links.access.bandwidth: unknown key; did you mean "rate"?"#,
        ),
        (
            r#"delay = "1 ms""#,
            r#"latency = "1 ms""#,
            r#"geo.toml:22: links.access.latency: unknown key; did you mean "delay"?"#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            "packet_loss_rate = 0.001",
            r#"geo.toml:23: links.access.packet_loss_rate: unknown key; did you mean "errors.packet_loss_rate"?"#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            "loss = 0.001",
            r#"geo.toml:23: links.access.loss: unknown key; did you mean "errors.packet_loss_rate"?"#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            "errors = { loss = 0.001 }",
            r#"geo.toml:23: links.access.errors.loss: unknown key; did you mean "packet_loss_rate"?"#,
        ),
        (
            r#"mss = "1448 B""#,
            "cwnd = 10",
            r#"geo.toml:8: hosts.server.tcp.cwnd: unknown key; did you mean "initial_window"?"#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            r#"schedule = [{ rate = "1 Mbit/s" }]"#,
            r#"geo.toml:23: links.access.schedule.at: missing; expected when it happens, such as "10 s""#,
        ),
    ]);
}

/// The message about a value of the wrong type has an example of the right one.
#[test]
fn messages_about_wrong_types_give_an_example_of_the_right_one() {
    check(&[
        (
            r#"queue = { limit = "500 packets" }"#,
            r#"queue = "red""#,
            r#"geo.toml:17: links.satellite.forward.queue: expected a table such as { kind = "fq-codel" }, got "red""#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            "errors = 0.001",
            "geo.toml:23: links.access.errors: expected a table such as { packet_loss_rate = 0.01 }, got 0.001",
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            r#"outages = { at = "1 s", lasts = "1 s" }"#,
            r#"geo.toml:23: links.access.outages: expected an array such as [{ at = "60 s", lasts = "5 s" }], got a table"#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            r#"fading = { clear = "10 s" }"#,
            r#"geo.toml:23: links.access.fading.faded: missing; expected how long it is faded, such as "exponential(5 s)""#,
        ),
        (
            "errors = { packet_loss_rate = 0.001 }",
            "reordering = { probability = 0.1 }",
            r#"geo.toml:23: links.access.reordering.late_by: missing; expected how late they come, such as "uniform(1 ms, 30 ms)""#,
        ),
        (
            r#"app = { kind = "bulk", size = "50 MB" }"#,
            r#"app = "bulk""#,
            r#"geo.toml:29: flows.download.app: expected a table such as { kind = "bulk" }, got "bulk""#,
        ),
        (
            "interval = \"100 ms\"\n",
            "[groups.all]\n",
            r#"geo.toml:36: groups.all.members: missing; expected hosts such as ["terminal"]"#,
        ),
        (
            "interval = \"100 ms\"\n",
            "[carriers.c]\n",
            r#"geo.toml:36: carriers.c.rate: missing; expected a rate such as "10 Mbit/s""#,
        ),
        (
            "\"download.congestion_window\"",
            "\"download.cwnd\"",
            r#"geo.toml:33: probes.series: no series of a flow is "cwnd"; did you mean "congestion_window"?"#,
        ),
        (
            r#"rate = "100 Mbit/s""#,
            r#"rate = "0,5 Mbit/s""#,
            r#"geo.toml:21: links.access.rate: expected a rate such as "10 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s), got "0,5 Mbit/s"; did you mean "0.5 Mbit/s"?"#,
        ),
    ]);
}
