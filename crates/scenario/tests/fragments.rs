//! Links that fragment packets, and Ethernet framing, against closed forms.

use bentpipe_scenario::Scenario;
use serde_json::Value;

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "narrow"
duration = "60 s"
seed = 1
[hosts.server.tcp]
timestamps = false
mss = "1460 B"
[hosts.client.tcp]
timestamps = false
mss = "1460 B"
[gateways.hub]
[gateways.terminal]
[links]
lan = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "1 ms" }
narrow = { between = ["hub", "terminal"], rate = "1 Mbit/s", delay = "20 ms", queue = { kind = "drop-tail", limit = "1000 packets" } }
home = { between = ["terminal", "client"], rate = "100 Mbit/s", delay = "1 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"#;

fn run(settings: &[(&str, &str)]) -> Value {
    let output = run_text(NETWORK, settings);
    serde_json::to_value(&output.summary).expect("it is JSON")
}

fn goodput(results: &Value) -> f64 {
    results["flows"][0]["goodput_bps"]
        .as_f64()
        .expect("a number")
}

/// Returns a counter of a link: `narrow` fragments, and the end of the path is at `home`.
fn count(results: &Value, link: &str, name: &str) -> u64 {
    let links = results["links"].as_array().expect("links");
    let link = (links.iter())
        .find(|summary| summary["name"] == link)
        .expect("the link");
    link["counters"]["total"][name].as_u64().expect("counted")
}

/// Goodput is the link's rate times the payload per byte of fragments.
#[test]
fn each_fragment_has_a_header() {
    let fragment = ("links.narrow.fragment", "true");
    for (settings, bytes) in [
        // 1480 bytes after the header: 552 + 552 + 376.
        (vec![("links.narrow.mtu", "x.25"), fragment], 1480 + 3 * 20),
        // Five times 272, and 120.
        (
            vec![("links.narrow.mtu", "point-to-point"), fragment],
            1480 + 6 * 20,
        ),
        (vec![("links.narrow.mtu", "ethernet"), fragment], 1500),
        // With the tunnel's header 1500 bytes after the outer one: 1480 + 20.
        (
            vec![
                ("links.narrow.mtu", "ethernet"),
                fragment,
                ("links.narrow.tunnel", "true"),
            ],
            1500 + 2 * 20,
        ),
        // 14 + 4 + 20 bytes around a frame.
        (vec![("links.narrow.framing", "ethernet")], 1538),
    ] {
        let results = run(&settings);
        let expected = 1e6 * 1460.0 / f64::from(bytes);
        let goodput = goodput(&results);
        // Slow start takes a small part of the minute.
        assert!(
            (0.99..=1.0).contains(&(goodput / expected)),
            "{settings:?}: {goodput} of {expected}"
        );
    }
}

/// If a share p of fragments is lost, (1 - p)^n of the datagrams with n fragments arrive.
#[test]
fn one_fragment_lost_loses_the_datagram() {
    let results = run(&[
        ("links.narrow.mtu", "x.25"),
        ("links.narrow.fragment", "true"),
        ("links.narrow.errors.packet_loss_rate", "0.05"),
        (
            "flows.download.app",
            r#"{ kind = "packets", size = "1400 B", interval = "20 ms" }"#,
        ),
    ]);
    let sent = count(&results, "narrow.forward", "fragmented");
    assert_eq!(count(&results, "narrow.forward", "fragments"), 3 * sent);
    assert!(sent >= 2999, "{sent}");
    let arrived = count(&results, "home.forward", "reassembled");
    let share = arrived as f64 / sent as f64;
    // 0.857; three standard deviations are 0.019.
    assert!((share - 0.95_f64.powi(3)).abs() < 0.02, "{share}");
    // Reassembly times out 30 s after their arrival, if the run lasts until then.
    let late = count(&results, "home.forward", "reassembly_timeouts");
    assert!(late > (sent - arrived) / 3, "{late}");
}

/// If a share c of packets is corrupted on each of two links, (1 - c)^(n + n) of the datagrams with
/// n fragments arrive intact. No node on the path checks them; the receiver discards the others.
#[test]
fn one_corrupted_fragment_invalidates_the_datagram() {
    let results = run(&[
        ("links.narrow.mtu", "x.25"),
        ("links.narrow.fragment", "true"),
        ("links.narrow.corruption", "0.03"),
        ("links.home.corruption", "0.03"),
        (
            "flows.download.app",
            r#"{ kind = "packets", size = "1400 B", interval = "20 ms" }"#,
        ),
    ]);
    let whole = count(&results, "home.forward", "reassembled");
    assert!(whole >= 2990, "{whole}");
    let sound = &results["flows"][0]["messages"]["received"];
    let share = sound.as_u64().expect("counted") as f64 / whole as f64;
    // 0.833; three standard deviations are 0.02.
    assert!((share - 0.97_f64.powi(6)).abs() < 0.021, "{share}");
}

/// Duplicate fragments make one datagram, or two if all of its fragments are duplicated. Fragments
/// of a datagram may arrive in any order.
#[test]
fn duplicate_and_reordered_fragments_are_reassembled() {
    let narrow = [
        ("links.narrow.mtu", "x.25"),
        ("links.narrow.fragment", "true"),
        ("links.narrow.duplication", "0.3"),
        (
            "links.narrow.reordering",
            r#"{ probability = 0.1, late_by = "uniform(1 ms, 20 ms)" }"#,
        ),
    ];
    let datagrams = (
        "flows.download.app",
        r#"{ kind = "packets", size = "1400 B", interval = "100 ms", lasts = "20 s" }"#,
    );
    let results = run(&[&narrow[..], &[datagrams]].concat());
    let received = results["flows"][0]["messages"]["received"].as_u64();
    let whole = count(&results, "home.forward", "reassembled");
    let sent = count(&results, "narrow.forward", "fragmented");
    assert!(sent >= 199, "{sent}");
    // All three fragments twice: 0.027 of 200.
    assert!((sent..=sent + 20).contains(&whole), "{whole}");
    assert_eq!(received, Some(whole));
    // TCP delivers the bytes as sent, in order, exactly once: a debug build compares them.
    let wrong = ("links.narrow.corruption", "0.002");
    let transfer = (
        "flows.download.app",
        r#"{ kind = "bulk", size = "500 kB" }"#,
    );
    let results = run(&[&narrow[..], &[wrong, transfer]].concat());
    assert_eq!(results["flows"][0]["outcome"], "finished", "{results}");
    assert_eq!(results["flows"][0]["bytes_delivered"], 500_000);
}

#[test]
fn fragments_of_outer_packets_are_reassembled_at_the_tunnel_exit() {
    let results = run(&[
        ("links.narrow.mtu", "x.25"),
        ("links.narrow.fragment", "true"),
        ("links.narrow.tunnel", "true"),
        ("hosts.server.tcp.mss", "536 B"),
        ("flows.download.app", r#"{ kind = "bulk", size = "1 MB" }"#),
    ]);
    // 576 bytes, and 20 more in the tunnel.
    let cut = count(&results, "narrow.forward", "fragmented");
    // All segments but the last, which is shorter.
    assert_eq!(cut, 1_000_000 / 536);
    assert_eq!(count(&results, "narrow.forward", "fragments"), 2 * cut);
    let joined = count(&results, "narrow.forward", "reassembled");
    assert_eq!(joined, cut);
    assert_eq!(count(&results, "home.forward", "reassembled"), 0);
    assert!(count(&results, "narrow.forward", "decapsulated") >= joined);
}

/// A hybrid gateway reassembles fragmented segments, and acknowledges for its host as if they were
/// whole.
#[test]
fn a_hybrid_gateway_reassembles_fragments() {
    let settings = [
        ("gateways.hub.kind", "\"hybrid\""),
        ("gateways.hub.facing", "\"narrow\""),
        ("gateways.hub.adaptive_timeout", "true"),
        ("links.lan.mtu", "x.25"),
        ("links.lan.fragment", "true"),
        ("flows.download.app", r#"{ kind = "bulk", size = "1 MB" }"#),
    ];
    let results = run(&settings);
    assert_eq!(results["flows"][0]["outcome"], "finished");
    assert!(count(&results, "lan.forward", "reassembled") > 600);
    let gateway = &results["gateways"][0];
    assert_eq!(gateway["to_host"]["segments"], 1_000_000_u64.div_ceil(1460));
    assert_eq!(gateway["packets_passed"], 0);
}

#[test]
fn inconsistent_settings_are_refused() {
    for (settings, message) in [
        (
            ("links.narrow.fragment", "true"),
            "has no effect: the link has no mtu",
        ),
        (("links.narrow.mtu", "ehternet"), "point-to-point"),
    ] {
        let error = Scenario::parse(NETWORK, "narrow.toml", &[settings])
            .map(drop)
            .expect_err("it is wrong");
        assert!(error.to_string().contains(message), "{error}");
    }
}
