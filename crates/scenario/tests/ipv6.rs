//! `ip = "v6"`: a header of 40 bytes in every packet.

use bentpipe_scenario::{RunOptions, Scenario, Summary};

const TEXT: &str = r#"
name = "six"
duration = "60 s"
hosts = { server = {}, client = {} }
gateways.hub = {}
links.lan = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "5 ms" }
links.satellite = { between = ["hub", "client"], rate = "8 Mbit/s", delay = "50 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "5 MB" } }
"#;

fn run(settings: &[(&str, &str)]) -> Summary {
    let scenario = Scenario::parse(TEXT, "six.toml", settings);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let output = scenario.run(&RunOptions::default());
    output.unwrap_or_else(|error| panic!("{error}")).summary
}

/// Returns the bytes and packets on the satellite's forward direction.
fn carried(summary: &Summary) -> (u64, u64) {
    let link = summary
        .links
        .iter()
        .find(|link| link.name == "satellite.forward");
    let link = link.expect("it is there");
    (link.bytes_delivered, link.packets_delivered)
}

#[test]
fn full_packets_have_the_same_length_and_less_payload() {
    // The queue is long enough that nothing is dropped or retransmitted.
    let queue = ("links.satellite.queue.limit", "10 MB");
    let (four, six) = (run(&[queue]), run(&[queue, ("ip", "v6")]));
    // 5 MB in segments of 1448 and of 1428 bytes. The SYN-ACK goes in the other direction; the SYN
    // and the acknowledgments of the close are included.
    for (summary, payload, header) in [(&four, 1448, 52), (&six, 1428, 72)] {
        let segments = 5_000_000_u64.div_ceil(payload);
        let (bytes, packets) = carried(summary);
        assert_eq!(summary.flows[0].segments_retransmitted, 0);
        let bare = packets - segments;
        // SYN, handshake, FIN and its acknowledgment: the SYN has 8 more bytes of options.
        assert!((2..=4).contains(&bare), "{bare}");
        assert_eq!(bytes, 5_000_000 + packets * header + 8);
        assert_eq!(summary.flows[0].outcome, "finished");
    }
    let ratio = four.flows[0].goodput_bps / six.flows[0].goodput_bps;
    assert!((1.0..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn datagrams_have_the_longer_header() {
    let app = r#"{ kind = "packets", transport = "udp", size = "100 B", interval = "10 ms", lasts = "10 s" }"#;
    for (version, header) in [("v4", 28), ("v6", 48)] {
        let summary = run(&[("ip", version), ("flows.download.app", app)]);
        let (bytes, packets) = carried(&summary);
        assert!(packets > 990, "{packets}");
        assert_eq!(bytes, packets * (100 + header), "{version}");
    }
}

#[test]
fn gateways_and_return_links_support_ipv6() {
    let split = r#"{ kind = "split", facing = "satellite" }"#;
    let hybrid = r#"{ kind = "hybrid", facing = "satellite" }"#;
    let back = "links.satellite.return";
    for settings in [
        vec![("gateways.hub", split)],
        vec![("gateways.hub", hybrid)],
        vec![("links.satellite.tunnel", "true")],
        vec![("links.satellite.compression", "rfc1144")],
        vec![(
            back,
            r#"{ rate = "30 kbit/s", acks = { kind = "compaction", low = 4, high = 60, spacing = true } }"#,
        )],
        vec![(
            back,
            r#"{ rate = "30 kbit/s", acks = { kind = "reconstruction" } }"#,
        )],
        vec![
            ("links.satellite.mtu", "1300 B"),
            ("hosts.server.tcp.path_mtu_discovery", "icmp"),
        ],
        vec![
            ("links.satellite.corruption", "0.01"),
            ("links.satellite.duplication", "0.01"),
        ],
    ] {
        let settings: Vec<_> = [("ip", "v6")].into_iter().chain(settings).collect();
        let summary = run(&settings);
        let flow = &summary.flows[0];
        assert_eq!(
            (flow.outcome, flow.bytes_delivered),
            ("finished", 5_000_000),
            "{settings:?}"
        );
    }
}
