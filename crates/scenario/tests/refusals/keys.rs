//! Unknown and missing keys.

use bentpipe_scenario::Scenario;

use super::check;

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
            "geo.toml:17: links.satellite.forward.queue.length: unknown key; did you mean \"limit\"?",
        ),
        (
            "queue = { limit",
            "queue = { sojourn_target",
            "geo.toml:17: links.satellite.forward.queue.sojourn_target: unknown key; known here: target, kind, limit, minimum_threshold, maximum_threshold, maximum_probability, weight, gentle, mean_packet, drop_level, drop_probability, update_interval, burst_allowance, classes, weights, interval, ecn, quantum, flows",
        ),
        (
            r#"delay = "200 ms""#,
            r#"delay = "200 ms", ack_timeout = "1 s""#,
            "geo.toml:18: links.satellite.return.ack_timeout: unknown key; known here: rate, delay, queue, errors, redundancy, framing, access, acks, compression, tunnel, schedule, schedule_every, traces, acm, outages, fading, duplication, corruption, reordering, in_order",
        ),
        (
            r#"kind = "router""#,
            r#""strange key\n" = 1"#,
            r#"geo.toml:13: gateways.hub."strange key\n": unknown key; closest: store, ack_every, facing, crashes, retransmission_timeout, close, processing, source_connections, receive_buffer, give_up, rate_limits, tcp, ... (29 in all: bentpipe explain gateways.hub)"#,
        ),
        (
            "congestion_control",
            "window",
            "geo.toml:6: hosts.server.tcp.window: unknown key; closest: window_validation, initial_window, window_scaling, window_scale, ... (50 in all: bentpipe explain hosts.server.tcp)",
        ),
        (
            "congestion_control",
            "slow-start-ssthresh",
            "geo.toml:6: hosts.server.tcp.slow-start-ssthresh: unknown key; closest: slow_start, slow_start_limit, initial_slow_start_threshold, ... (50 in all: bentpipe explain hosts.server.tcp)",
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
            r#"geo.toml:17: links.satellite.forward.queue: expected a table such as { kind = "fq-codel" }, got an array"#,
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

/// The message about a missing key names its place, and its table.
#[test]
fn missing_keys_are_reported_for_their_table() {
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
