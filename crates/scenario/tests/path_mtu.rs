//! Links with an MTU, routers with and without ICMP errors, and path MTU discovery of connections.

use bentpipe_scenario::{FlowSummary, RunOptions, Scenario};

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "narrow"
duration = "60 s"
[hosts.server.tcp]
[hosts.client.tcp]
[gateways.hub]
[gateways.terminal]
[links]
lan = { between = ["server", "hub"], rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "1000 packets" } }
satellite = { between = ["hub", "terminal"], rate = "10 Mbit/s", delay = "250 ms", mtu = "1000 B" }
home = { between = ["terminal", "client"], rate = "10 Mbit/s", delay = "1 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "1 MB" }
"#;

fn run(settings: &[(&str, &str)]) -> FlowSummary {
    let output = run_text(NETWORK, settings);
    output.summary.flows[0].clone()
}

#[test]
fn path_mtu_discovery_works_with_and_without_icmp_errors() {
    let silent = ("gateways.hub.icmp", "false");
    let discovery = |how| ("hosts.server.tcp.path_mtu_discovery", how);
    let told = run(&[]);
    assert_eq!((told.bytes_delivered, told.timeouts), (1_000_000, 0));
    // The initial window of ten is retransmitted, each segment as two; later segments have 948
    // bytes.
    let after = (1_000_000_u64 - 10 * 1448).div_ceil(948);
    assert_eq!(told.segments_sent, 10 + 20 + after);
    assert_eq!(told.segments_retransmitted, 20);
    for (settings, delivered) in [
        (vec![silent], 0),
        (vec![discovery("off")], 0),
        (vec![silent, discovery("icmp")], 0),
        (
            vec![
                silent,
                discovery("black-hole"),
                ("hosts.server.tcp.base_mss", "900 B"),
            ],
            1_000_000,
        ),
        (
            vec![
                silent,
                discovery("search"),
                ("hosts.server.tcp.base_mss", "512 B"),
            ],
            1_000_000,
        ),
        // An interface's MTU needs no discovery.
        (vec![silent, ("links.lan.mtu", "1000 B")], 1_000_000),
        (
            vec![discovery("off"), ("links.home.mtu", "1000 B")],
            1_000_000,
        ),
        (vec![silent, ("links.satellite.mtu", "1500 B")], 1_000_000),
    ] {
        let flow = run(&settings);
        assert_eq!(flow.bytes_delivered, delivered, "{settings:?}");
    }
}

/// An ICMP error to one connection also reduces the path MTU of others to the same host: existing
/// ones, and those that start within ten minutes. A path MTU found by probing applies to that
/// connection only, as in Linux.
#[test]
fn a_host_caches_the_path_mtu_from_icmp_errors() {
    let flow = |name: &str, start: &str, size: &str| {
        format!(
            "[flows.{name}]\nfrom = \"server\"\nto = \"client\"\nstart = \"{start} s\"\n\
             app = {{ kind = \"bulk\", size = \"{size}\" }}\n"
        )
    };
    let network = NETWORK.replace("60 s", "1000 s")
        + &flow("beside", "0.3", "1 MB")
        + &flow("next", "100", "1 MB")
        + &flow("late", "700", "1 MB")
        + &flow("last", "800", "1 MB");
    let run = |settings: &[(&str, &str)]| {
        let scenario = Scenario::parse(&network, "narrow.toml", settings).expect("it is right");
        let output = scenario.run(&RunOptions::default()).expect("it runs");
        let flows = output.summary.flows;
        assert!(flows.iter().all(|flow| flow.bytes_delivered == 1_000_000));
        let told = flows.iter().map(|flow| flow.path_mtu.icmp_errors);
        let again = flows.iter().map(|flow| flow.segments_retransmitted);
        (told.collect::<Vec<_>>(), again.collect::<Vec<_>>())
    };
    // Of two simultaneous connections, the second had its handshake when the first got the error.
    // After ten minutes there is a new error.
    let (told, again) = run(&[]);
    assert_eq!(told, [10, 0, 0, 10, 0]);
    assert_eq!(again, [20, 0, 0, 20, 0]);
    let (told, again) = run(&[
        ("gateways.hub.icmp", "false"),
        ("hosts.server.tcp.path_mtu_discovery", "black-hole"),
        ("hosts.server.tcp.base_mss", "900 B"),
    ]);
    assert_eq!(told, [0; 5]);
    assert!(again.iter().all(|again| *again > 0), "{again:?}");
}

#[test]
fn invalid_keep_alive_is_refused() {
    for (value, message) in [
        (r#"{ idle = "0 s" }"#, "keep_alive.idle"),
        ("{ probes = 0 }", "keep_alive.probes"),
        ("{ probes = 2000 }", "keep_alive.probes"),
        ("{ wait = 3 }", "unknown key"),
    ] {
        let settings = [("hosts.server.tcp.keep_alive", value)];
        let error = Scenario::parse(NETWORK, "narrow.toml", &settings).expect_err(value);
        assert!(error.to_string().contains(message), "{error}");
    }
    let settings = [("hosts.server.tcp.keep_alive", "{}")];
    assert!(Scenario::parse(NETWORK, "narrow.toml", &settings).is_ok());
}

#[test]
fn invalid_packet_lengths_are_refused() {
    for (key, value, message) in [
        ("links.lan.mtu", "100 B", r#"expected "128 B" to "65535 B""#),
        (
            "links.lan.mtu",
            "65536 B",
            r#"expected "128 B" to "65535 B""#,
        ),
        ("hosts.server.tcp.base_mss", "10 B", r#"expected "64 B""#),
        ("hosts.server.tcp.path_mtu_discovery", "on", "black-hole"),
        ("links.lan.forward.mtu", "1000 B", "unknown key"),
    ] {
        let error = Scenario::parse(NETWORK, "narrow.toml", &[(key, value)]).expect_err(key);
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// A path that is narrower than a gateway's own links: an ICMP error reaches the gateway's
/// connection whose segment it quotes, or the persistent connection, and not the host with the
/// quoted address.
#[test]
fn icmp_errors_reach_the_gateway_connection_they_quote() {
    let network = NETWORK
        .replace(
            "[gateways.hub]\n[gateways.terminal]\n",
            "[gateways.hub]\nkind = \"split\"\nfacing = \"satellite\"\n[gateways.sky]\n[gateways.terminal]\n",
        )
        .replace(", mtu = \"1000 B\"", "")
        .replace(
            "between = [\"hub\", \"terminal\"]",
            "between = [\"hub\", \"sky\"]",
        )
        + "[links.ground]\nbetween = [\"sky\", \"terminal\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\
           mtu = \"1000 B\"\n";
    for speaks in ["true", "false"] {
        let settings = [("gateways.sky.icmp", speaks)];
        let scenario = Scenario::parse(&network, "narrow.toml", &settings).expect("it is right");
        let summary = scenario
            .run(&RunOptions::default())
            .expect("it runs")
            .summary;
        let flow = &summary.flows[0];
        let hub = serde_json::to_value(&summary.gateways[0]).expect("JSON");
        // The host receives no error.
        assert_eq!(flow.path_mtu.icmp_errors, 0);
        if speaks == "true" {
            assert_eq!(flow.bytes_delivered, 1_000_000);
            assert_eq!(hub["packets"]["icmp_errors"], 10, "the initial window");
            assert_eq!(hub["facing"]["timeouts"], 0);
            assert_eq!(hub["facing"]["segments_retransmitted"], 20);
        } else {
            assert_eq!(flow.bytes_delivered, 0);
            assert_eq!(hub["packets"]["icmp_errors"], 0);
        }
    }
}
