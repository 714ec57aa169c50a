//! Address resolution (`arp`): delays against a closed form, and packets without a reply.

use bentpipe_scenario::{RunOutput, Scenario};

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "lan"
duration = "20 s"
seed = 1
[hosts.server]
[hosts.client]
[gateways.hub]
[links]
lan = { between = ["server", "hub"], rate = "10 Mbit/s", delay = "1 ms", framing = "ethernet", arp = {} }
satellite = { between = ["hub", "client"], rate = "10 Mbit/s", delay = "100 ms" }
[flows.stream]
from = "server"
to = "client"
app = { kind = "packets", size = "962 B", interval = "5 s", lasts = "20 s" }
[probes]
series = ["stream.response_time"]
interval = "every-change"
"#;

fn run(settings: &[(&str, &str)]) -> RunOutput {
    run_text(NETWORK, settings)
}

/// Returns the delay of each packet that arrived, in nanoseconds.
fn delays(output: &RunOutput) -> Vec<u64> {
    let values = &output.series[0].values;
    values.iter().map(|s| (s * 1e9).round() as u64).collect()
}

fn delivered(output: &RunOutput, link: &str) -> u64 {
    let found = output.summary.links.iter().find(|of| of.name == link);
    found.expect("it is there").packets_delivered
}

/// Delay without resolution: 990 bytes of IP packet are 1028 on the cable, 822.4 us; on the
/// satellite 792 us.
const PLAIN: u64 = 1_000_000 + 822_400 + 100_000_000 + 792_000;
/// Delay of request and reply: 84 bytes on the cable, there and back.
const EXCHANGE: u64 = 2 * (1_000_000 + 67_200);

#[test]
fn a_resolved_address_is_used_until_it_expires() {
    // Packets at 5, 10 and 15 s: requests for the first and, with a lifetime of 8 s, at 15 s.
    let output = run(&[("links.lan.arp.timeout", "\"8 s\"")]);
    assert_eq!(delays(&output), [PLAIN + EXCHANGE, PLAIN, PLAIN + EXCHANGE]);
    assert_eq!(delivered(&output, "lan.forward"), 3 + 2);
    assert_eq!(delivered(&output, "lan.return"), 2);
    // One request with the default of a minute, and none if addresses are known from the topology.
    let output = run(&[]);
    assert_eq!(delays(&output), [PLAIN + EXCHANGE, PLAIN]);
    assert_eq!(delivered(&output, "lan.return"), 1);
}

/// Neighbour discovery: 72 bytes of IPv6 packet, 110 on the cable; the packet's header is 20 bytes
/// longer.
#[test]
fn ipv6_resolves_addresses_by_neighbour_discovery() {
    let output = run(&[("ip", "\"v6\"")]);
    let plain = PLAIN + 2 * 16_000;
    assert_eq!(delays(&output), [plain + 2 * (1_000_000 + 88_000), plain]);
}

#[test]
fn a_request_also_resolves_its_sender() {
    // Data in both directions: the hub learns the server's address from its request, and sends
    // none.
    let output = run(&[(
        "flows.stream.app",
        "{ kind = \"request-response\", request = \"100 B\", response = \"1000 B\", requests = 3 }",
    )]);
    let (there, back) = (
        delivered(&output, "lan.forward"),
        delivered(&output, "lan.return"),
    );
    assert_eq!(there, delivered(&output, "satellite.forward") + 1);
    assert_eq!(back, delivered(&output, "satellite.return") + 1);
}

/// A lost request is repeated after a second, up to three times; then the waiting packets are
/// dropped.
#[test]
fn a_request_is_repeated_up_to_three_times() {
    let lost = |list: &str| run(&[("links.lan.forward.errors.lost_packets", list)]);
    assert_eq!(delays(&lost("[1]"))[0], PLAIN + EXCHANGE + 1_000_000_000);
    assert_eq!(delays(&lost("[1, 2]"))[0], PLAIN + EXCHANGE + 2_000_000_000);
    let output = lost("[1, 2, 3]");
    assert_eq!(output.summary.packets_discarded, 1);
    // The next packet causes a new request.
    assert_eq!(delays(&output), [PLAIN + EXCHANGE, PLAIN]);
}

#[test]
fn a_full_queue_drops_its_oldest_packet() {
    let output = run(&[
        ("links.lan.forward.errors.lost_packets", "[1]"),
        ("links.lan.arp.queue", "\"3 packets\""),
        ("flows.stream.app.interval", "\"100 ms\""),
        ("flows.stream.app.lasts", "\"990 ms\""),
    ]);
    // Nine packets wait for the second request, 1 s after the first of them.
    assert_eq!(output.summary.packets_discarded, 6);
    assert_eq!(output.summary.flows[0].bytes_delivered, 3 * 962);
}

#[test]
fn arp_without_link_addresses_is_refused() {
    for (settings, expected) in [
        (
            vec![("links.lan.framing", "\"none\"")],
            r#"links.lan.arp: has no effect: only framing = "ethernet" has link addresses"#,
        ),
        (
            vec![("links.lan.tunnel", "true")],
            "links.lan.arp: expected no tunnel on the link",
        ),
        (
            vec![("links.lan.arp.timeout", "\"10 ms\"")],
            r#"expected "1 s" to "24 h", got "10 ms""#,
        ),
        (
            vec![("links.lan.arp.queue", "\"9 kB\"")],
            r#"expected packets such as "3 packets", got "9 kB""#,
        ),
        (
            vec![("links.lan.one_way", "true")],
            "links.lan.arp: expected both directions",
        ),
    ] {
        let error = Scenario::parse(NETWORK, "lan.toml", &settings).expect_err("it is refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
