//! Framing of links against closed forms, and refusals of framings that carry no such packets.

use bentpipe_scenario::Scenario;
use serde_json::Value;

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "framing"
duration = "60 s"
[hosts.server.tcp]
timestamps = false
mss = "1460 B"
initial_window = "10 segments"
[hosts.client.tcp]
timestamps = false
mss = "1460 B"
delayed_ack = "off"
[links.satellite]
between = ["server", "client"]
forward = { rate = "1 Mbit/s", delay = "20 ms", queue = { kind = "drop-tail", limit = "1000 packets" } }
return = { rate = "1 Mbit/s", delay = "20 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"#;

const FORWARD: &str = "links.satellite.forward.framing";
const RETURN: &str = "links.satellite.return.framing";
const COMPRESSION: &str = "links.satellite.return.compression";

fn run(settings: &[(&str, &str)]) -> Value {
    let output = run_text(NETWORK, settings);
    serde_json::to_value(&output.summary).expect("it is JSON")
}

fn direction<'a>(results: &'a Value, name: &str) -> &'a Value {
    let links = results["links"].as_array().expect("links");
    (links.iter())
        .find(|summary| summary["name"] == name)
        .expect("the direction")
}

/// Goodput is the link's rate times the payload per byte of frames.
#[test]
fn goodput_is_the_payload_per_byte_of_frames() {
    for (framing, bytes) in [
        ("\"ppp\"", 1507.0),
        ("\"ppp-compressed\"", 1504.0),
        ("\"6 B\"", 1506.0),
        ("\"gse\"", 1510.0),
        // Nine cells of 188 bytes.
        ("\"mpe-padding\"", 9.0 * 188.0),
        ("\"ule-padding\"", 9.0 * 188.0),
        // 1516 and 1514 bytes and a pointer, in cells with 184 bytes of payload.
        ("\"mpe\"", 1517.0 * 188.0 / 184.0),
        ("\"ule\"", 1515.0 * 188.0 / 184.0),
    ] {
        let results = run(&[(FORWARD, framing)]);
        let goodput = results["flows"][0]["goodput_bps"].as_f64().expect("a rate");
        let expected = 1e6 * 1460.0 / bytes;
        // Slow start takes a small part of the minute.
        assert!(
            (0.99..=1.0).contains(&(goodput / expected)),
            "{framing}: {goodput} of {expected}"
        );
    }
}

/// Bytes per packet of ACKs that do not queue: 40 bytes, 5 compressed, 16 by a modem.
#[test]
fn acknowledgments_take_the_bytes_of_their_frames() {
    for (framing, compression, bytes) in [
        ("\"none\"", "\"none\"", 40.0),
        ("\"ppp\"", "\"none\"", 47.0),
        ("\"6 B\"", "\"none\"", 46.0),
        ("\"mpe\"", "\"none\"", 188.0),
        ("\"ule\"", "\"none\"", 188.0),
        ("\"gse\"", "\"none\"", 50.0),
        // Six bytes, and SLIP's END or all that the link adds.
        ("\"none\"", "\"rfc1144\"", 7.0),
        ("\"ppp-compressed\"", "\"rfc1144\"", 10.0),
        ("\"6 B\"", "\"rfc1144\"", 12.0),
        // The modem compresses the whole frame: 0.4 of 47 bytes.
        ("\"ppp\"", "\"v42bis\"", 18.8),
        ("\"ethernet\"", "\"v42bis\"", 84.0),
    ] {
        let results = run(&[(RETURN, framing), (COMPRESSION, compression)]);
        let back = direction(&results, "satellite.return");
        let packets = back["packets_delivered"].as_f64().expect("packets");
        let mean = back["bytes_delivered"].as_f64().expect("bytes") / packets;
        // The first packets have options, or are not compressed.
        assert!(
            (mean / bytes - 1.0).abs() < 0.02,
            "{framing} {compression}: {mean} of {bytes}"
        );
    }
}

/// The directions of a link may differ; a key of the link is for both.
#[test]
fn a_direction_overrides_the_framing_of_the_link() {
    let resolved = |settings: &[(&str, &str)]| {
        let scenario = Scenario::parse(NETWORK, "framing.toml", settings).expect("it is right");
        let data = serde_json::to_value(&scenario).expect("it serializes");
        data["links"][0].clone()
    };
    let link = resolved(&[("links.satellite.framing", "\"ppp\""), (FORWARD, "\"mpe\"")]);
    assert_eq!(link["forward"]["framing"], "mpe");
    assert_eq!(link["return"]["framing"], "ppp");
    assert_eq!(link["framing"], Value::Null);
    // The smaller of MPE's 4080 bytes and PPP's 1500.
    assert_eq!(link["mtu_bytes"], 1500);
    let link = resolved(&[("links.satellite.framing", "\"6 B\"")]);
    assert_eq!(link["framing"], 6);
    assert_eq!(link["mtu_bytes"], Value::Null);
    let mtu = |settings: &[(&str, &str)]| resolved(settings)["mtu_bytes"].clone();
    assert_eq!(mtu(&[("links.satellite.framing", "\"mpe\"")]), 4080);
    assert_eq!(
        mtu(&[("links.satellite.framing", "\"ule-padding\"")]),
        32_756
    );
    let tunnel = ("links.satellite.forward.tunnel", "true");
    assert_eq!(mtu(&[("links.satellite.framing", "\"mpe\""), tunnel]), 4060);
}

#[test]
fn framings_that_carry_no_such_packets_are_refused() {
    for (settings, expected) in [
        (
            vec![(RETURN, "\"mpe\""), (COMPRESSION, "\"rfc1144\"")],
            r#"expected "none", "ethernet", "ppp", "ppp-compressed" or a size with compression = "rfc1144""#,
        ),
        (
            vec![(FORWARD, "\"mpe\""), ("links.satellite.mtu", "\"5000 B\"")],
            r#"expected at most "4080 B" with this framing, got "5 kB""#,
        ),
        (vec![(FORWARD, "\"0 B\"")], r#"a size from "1 B" to "1 kB""#),
        (
            vec![(FORWARD, "\"hdlc\"")],
            r#""gse", or a size such as "6 B""#,
        ),
        (
            vec![
                ("links.satellite.framing", "\"ppp\""),
                (FORWARD, "\"mpe\""),
                (RETURN, "\"ppp\""),
            ],
            "has no effect: forward.framing and return.framing overrule it",
        ),
        (
            vec![(FORWARD, "\"ethernet\""), ("links.satellite.arp", "{}")],
            r#"expected framing = "ethernet" in both directions"#,
        ),
    ] {
        let error = Scenario::parse(NETWORK, "framing.toml", &settings).expect_err("it is refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
    // The place in the file.
    let text = NETWORK.replace(
        r#"rate = "1 Mbit/s", delay = "20 ms" }"#,
        r#"rate = "1 Mbit/s", delay = "20 ms", framing = "hdlc" }"#,
    );
    let error = Scenario::parse(&text, "framing.toml", &[]).expect_err("no such framing");
    assert!(error.to_string().starts_with("framing.toml:15:"), "{error}");
}
