//! Directions of links: queues, acknowledgments, losses.

use bentpipe_scenario::Scenario;

use super::{changed, check, refusal};

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
        (
            "{ limit =",
            r#"{ kind = "codel", target = "1 us", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.target: expected "10 us" to "10 s", got "1 us""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "fq-codel", target = "100 ms", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.target: expected less than interval, "100 ms" by default, got "100 ms""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "codel", target = "30 ms", interval = "30 ms", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.interval: expected more than target ("30 ms"), got "30 ms""#,
        ),
        (
            "{ limit =",
            r#"{ kind = "pie", interval = "600 ms", limit ="#,
            "geo.toml:17: links.satellite.forward.queue.interval: has no effect: a \"pie\" queue has limit, update_interval, burst_allowance, target, ecn",
        ),
        (
            "{ limit =",
            r#"{ kind = "pie", update_interval = "0 s", limit ="#,
            r#"geo.toml:17: links.satellite.forward.queue.update_interval: expected "1 ms" to "10 s", got "0 s""#,
        ),
    ]);
}

#[test]
fn classes_of_queues() {
    let classes = "[classes.calls]\nports = [5004]\n[links.satellite]";
    let with = |queue: &str| {
        let text = changed("[links.satellite]", classes);
        refusal(
            &text.replacen("{ limit =", &format!("{{ {queue}, limit ="), 1),
            &[],
        )
    };
    for (queue, expected) in [
        (
            r#"kind = "priority""#,
            r#"classes: missing; expected classes, the first first, such as ["calls", "web"]"#,
        ),
        (
            r#"kind = "priority", classes = []"#,
            "classes: expected at least one class",
        ),
        (
            r#"kind = "priority", classes = ["call"]"#,
            r#"classes: no class is named "call"; known: "calls", and "others" for the rest"#,
        ),
        (
            r#"kind = "priority", classes = ["others", "calls", "others"]"#,
            r#"classes: expected "others" once"#,
        ),
        (
            r#"kind = "priority", classes = ["calls"], weights = { calls = 1 }"#,
            r#"weights: has no effect: a "priority" queue has limit, classes"#,
        ),
        (
            r#"kind = "weighted""#,
            "weights: missing; expected classes and their weights, such as { calls = 4, web = 2 }",
        ),
        (
            r#"kind = "weighted", weights = { calls = 0 }"#,
            r#"weights: expected 0.001 to 1000000 for "calls", got 0.0"#,
        ),
    ] {
        let expected = format!("geo.toml:19: links.satellite.forward.queue.{expected}");
        assert_eq!(with(queue), expected);
    }
    for (class, expected) in [
        (
            "[classes.others]\nports = [1]",
            r#"geo.toml:15: classes.others: expected another name: "others" stands for packets of no class"#,
        ),
        (
            "[classes.calls]",
            "geo.toml:15: classes.calls: expected one of flows, applications, hosts, ports: they select the packets of the class",
        ),
        (
            "[classes.calls]\nports = []",
            "geo.toml:16: classes.calls.ports: expected at least one: nothing belongs to an empty list",
        ),
        (
            "[classes.calls]\nflows = [\"downlaod\"]",
            r#"geo.toml:16: classes.calls.flows: no flow is named "downlaod"; did you mean "download"?"#,
        ),
    ] {
        let text = changed("[links.satellite]", &format!("{class}\n[links.satellite]"));
        assert_eq!(refusal(&text, &[]), expected);
    }
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
            "mean_burst_packets: expected packet_loss_rate with it: the total loss rate",
        ),
        (
            "bit_error_rate = 1e-6, packet_loss_rate = 0.1, mean_burst_packets = 3",
            "mean_burst_packets: expected packet_loss_rate with it: the total loss rate",
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

/// The outer header counts in a packet's 65,535 bytes, too.
#[test]
fn packets_too_long_for_a_tunnel() {
    check(&[
        (
            "delay = \"1 ms\"",
            "delay = \"1 ms\"\nmtu = \"65516 B\"\ntunnel = true",
            r#"geo.toml:23: links.access.mtu: expected at most "65515 B" in a tunnel, whose header is in the packet, too, got "65516 B""#,
        ),
        (
            "delay = \"1 ms\"",
            "delay = \"1 ms\"\nmtu = \"65515 B\"\ntunnel = true",
            "accepted",
        ),
        (
            "delay = \"1 ms\"\nerrors = { packet_loss_rate = 0.001 }\n\n[flows.download]\nfrom = \"server\"\nto = \"client\"\nstart = \"1 s\"\napp = { kind = \"bulk\", size = \"50 MB\" }",
            "delay = \"1 ms\"\ntunnel = true\n[flows.download]\nfrom = \"server\"\nto = \"client\"\napp = { kind = \"ping\", size = \"65488 B\" }",
            r#"geo.toml:27: flows.download.app.size: expected at most "65487 B", the size of a datagram in the tunnel of link "access-1", got "65488 B""#,
        ),
    ]);
}
