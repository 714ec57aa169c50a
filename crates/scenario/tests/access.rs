//! Capacity on demand: waiting times and shares against closed forms, shared carriers, and refused
//! files.

use bentpipe_scenario::{RunOptions, RunOutput, Scenario};

use crate::runs::{access, run_text};

const NETWORK: &str = r#"
name = "terminals"
duration = "60 s"
[hosts.server]
[hosts.terminal]
[links.satellite]
between = ["server", "terminal"]
delay = "250 ms"
forward = { rate = "10 Mbit/s" }
[links.satellite.return]
rate = "1 Mbit/s"
access = { kind = "on-demand" }
[flows.stream]
from = "terminal"
to = "server"
app = { kind = "packets", size = "972 B", interval = "5 s" }
[probes]
series = ["stream.response_time"]
interval = "every-change"
"#;

fn parsed(settings: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse(NETWORK, "terminals.toml", settings).map_err(|error| error.to_string())
}

fn run(settings: &[(&str, &str)]) -> RunOutput {
    let scenario = parsed(settings).expect("it is right");
    scenario.run(&RunOptions::default()).expect("it runs")
}

/// Returns the delay of each packet that arrived, in nanoseconds.
fn delays(output: &RunOutput) -> Vec<u64> {
    let values = &output.series[0].values;
    values.iter().map(|s| (s * 1e9).round() as u64).collect()
}

const ACCESS: &str = "links.satellite.return.access";
const MS: u64 = 1_000_000;
/// OpenSAND's frame duration, in nanoseconds.
const FRAME: u64 = 26_500_000;

/// Returns the start of the first frame after `at`, when a request can be made.
fn next_frame(at: u64) -> u64 {
    (at / FRAME + 1) * FRAME
}

#[test]
fn a_single_packet_waits_for_frame_request_hub_and_grant() {
    let alone = |settings: &[(&str, &str)], wait_ms: u64| {
        let output = run(settings);
        let delays = delays(&output);
        assert_eq!(delays.len(), 11);
        for (delay, number) in delays.iter().zip(1_u64..) {
            let sent = number * 5_000 * MS;
            // 1000 bytes at 1 Mbit/s take 8 ms: they fit in the frame.
            let plan = next_frame(sent) + wait_ms * MS;
            let grant = plan.div_ceil(FRAME) * FRAME;
            assert_eq!(*delay, grant + 8 * MS + 250 * MS - sent, "packet {number}");
        }
        let access = access(&output, "satellite.return");
        assert_eq!((access.granted_bytes, access.used_bytes), (11_000, 11_000));
        // The grants of packets that were in transit at the end of the run are not included.
        assert_eq!(access.requests, 11);
        let longest = delays.iter().max().expect("not empty") - 258 * MS;
        assert_eq!(access.wait_ms.max, Some(longest as f64 / 1e6));
    };
    alone(&[], 500);
    let processing = r#"{ kind = "on-demand", processing = "30 ms" }"#;
    alone(&[(ACCESS, processing)], 530);
    // The hub may be elsewhere, for example in the satellite.
    let near = r#"{ kind = "on-demand", request_delay = "125 ms", grant_delay = "125 ms" }"#;
    alone(&[(ACCESS, near)], 250);
}

#[test]
fn capacity_for_added_headers_is_requested_too() {
    // Headers added at transmission: the queued packet is shorter than the transmitted one.
    for others in [
        &[("links.satellite.return.tunnel", "true")] as &[(&str, &str)],
        &[("links.satellite.framing", "\"ethernet\"")],
        &[("links.satellite.return.compression", "\"rfc1144\"")],
    ] {
        let longest = delays(&run(others)).into_iter().max().expect("not empty");
        // The frame of the request, 19 frames, the transmission time at 1 Mbit/s, and the
        // propagation delay.
        assert!(
            longest < 20 * FRAME + 9 * MS + 250 * MS,
            "{others:?}: {longest}"
        );
    }
}

#[test]
fn a_rate_based_stream_waits_behind_its_initial_backlog() {
    // 80 kbit/s of packets, half of them by constant capacity. Until the first grant, half of the
    // arriving packets are queued. This backlog remains, because an equal amount is requested and
    // not yet granted. So packets wait for half of the loop of 20 frames, and for the frame of
    // their request.
    let constant = r#"{ kind = "on-demand", constant = "40 kbit/s", rate_based = "100 kbit/s" }"#;
    let output = run(&[
        (ACCESS, constant),
        (
            "flows.stream.app",
            r#"{ kind = "packets", size = "172 B", interval = "20 ms" }"#,
        ),
    ]);
    let delays = delays(&output);
    let later = &delays[delays.len() / 2..];
    let mean = later.iter().sum::<u64>() / later.len() as u64;
    let expected = 250 * MS + 11 * FRAME;
    assert!(
        mean.abs_diff(expected) < FRAME,
        "{mean} ns instead of {expected}"
    );
    // With constant capacity for the whole stream, packets wait at most two frames: its burst is at
    // the start of each frame, and sends the packets that arrived during the previous one.
    let all = r#"{ kind = "on-demand", constant = "88 kbit/s" }"#;
    let output = run(&[
        (ACCESS, all),
        (
            "flows.stream.app",
            r#"{ kind = "packets", size = "172 B", interval = "20 ms" }"#,
        ),
    ]);
    let longest = output.series[0].values.iter().copied().fold(0.0, f64::max);
    assert!(longest < 0.25 + 2.0 * 0.0265, "{longest}");
}

#[test]
fn round_trips_include_the_access_delay_of_acknowledgments() {
    let download = [
        ("flows.stream.from", "server"),
        ("flows.stream.to", "terminal"),
        ("flows.stream.app", r#"{ kind = "bulk", size = "500 kB" }"#),
        ("probes.series", "[]"),
    ];
    let least = |access: &str| {
        let mut settings = download.to_vec();
        settings.push((ACCESS, access));
        run(&settings).summary.flows[0].rtt_ms.min.expect("sampled")
    };
    // The request comes in the next frame, and the grant at least 19 whole frames (500 ms) later.
    let asked = least(r#"{ kind = "on-demand" }"#);
    assert!(asked > 500.0 + 19.0 * 26.5, "{asked}");
    let free = least(r#"{ kind = "on-demand", free = true }"#);
    assert!(free < 500.0 + 27.0, "{free}");
}

#[test]
fn continuous_access_equals_an_ordinary_link() {
    let mut plain = run(&[(ACCESS, r#"{ kind = "continuous" }"#)]).summary;
    let other = NETWORK.replace("access = { kind = \"on-demand\" }\n", "");
    let other = Scenario::parse(&other, "plain.toml", &[]).expect("it is right");
    let mut other = other.run(&RunOptions::default()).expect("it runs").summary;
    (plain.wall_s, other.wall_s) = (0.0, 0.0);
    let text = |summary| serde_json::to_string(summary).expect("numbers and names");
    assert_eq!(text(&plain), text(&other));
    assert!(!text(&plain).contains("access"));
}

/// Hosts that share a carrier, each with its own link.
const MANY: &str = r#"
name = "many"
duration = "60 s"
[hosts.server]
[hosts.terminal]
count = 100
[carriers.uplink]
rate = "4 Mbit/s"
frame = "25 ms"
[links.satellite]
between = ["terminal", "server"]
rate = "1 Mbit/s"
delay = "250 ms"
forward = { access = { kind = "on-demand", carrier = "uplink" } }
[flows.stream]
from = "terminal"
to = "server"
app = { kind = "packets", size = "972 B", interval = "100 ms" }
"#;

#[test]
fn counted_links_share_a_carrier_to_the_byte() {
    let output = run_text(MANY, &[]);
    let granted: Vec<u64> = (output.summary.links.iter())
        .filter_map(|link| Some(link.access.as_ref()?.granted_bytes))
        .collect();
    assert_eq!(granted.len(), 100);
    let one = access(&output, "satellite-7.forward");
    assert_eq!(one.carrier.as_deref(), Some("uplink"));
    assert_eq!(one.carrier_rate_bps, 4_000_000);
    let alone = run(&[]);
    let alone = access(&alone, "satellite.return");
    assert_eq!((&alone.carrier, alone.carrier_rate_bps), (&None, 1_000_000));
    // 8 Mbit/s are offered. The first packets arrive at 100 ms, and are in the requests of 125 ms.
    // The first full frame begins at 625 ms, and the last one that counts at the end, 60 s: 2376
    // frames of 12,500 bytes.
    let full = 2_376 * 12_500;
    let all: u64 = granted.iter().sum();
    // Each share is rounded down by less than a byte.
    assert!((full - 100..=full).contains(&all), "{all} of {full}");
    let each = full / 100;
    assert!(
        granted.iter().all(|one| one.abs_diff(each) <= 1),
        "{granted:?}"
    );
}

#[test]
fn idle_terminals_take_no_capacity() {
    // One terminal alone on the carrier reaches its own rate.
    let scenario = Scenario::parse(
        MANY,
        "many.toml",
        &[
            ("flows.stream.from", "terminal-7"),
            (
                "flows.stream.app",
                r#"{ kind = "packets", size = "972 B", interval = "8 ms" }"#,
            ),
        ],
    );
    let output = scenario.expect("it is right").run(&RunOptions::default());
    let output = output.expect("it runs");
    let of = |number: usize| access(&output, &format!("satellite-{number}.forward")).clone();
    assert_eq!((of(6).granted_bytes, of(6).requests), (0, 0));
    // All packets that arrived by 60 s - 525 ms are granted.
    assert!(of(7).used_bytes > (59_475 / 8 - 4) * 1_000, "{:?}", of(7));
}

#[test]
fn probes_record_grants_and_backlog() {
    let output = run(&[
        (
            "probes",
            r#"{ series = ["satellite.return.granted", "satellite.return.queue_bytes"], interval = "100 ms" }"#,
        ),
        (
            ACCESS,
            r#"{ kind = "on-demand", constant = "8 kbit/s", volume_based = true }"#,
        ),
    ]);
    let [granted, waits] = &output.series[..] else {
        panic!("two series, got {}", output.series.len());
    };
    let bits: f64 = granted.values.iter().map(|rate| rate * 0.1).sum();
    let access = access(&output, "satellite.return");
    // The summary includes the whole of the last frame.
    let told = 8.0 * access.granted_bytes as f64;
    assert!(
        (bits - told).abs() < 8_000.0 * 0.0265 + 8.0,
        "{bits} of {told}"
    );
    assert!(granted.values[1..].iter().all(|rate| *rate >= 7_999.0));
    assert!(waits.values.contains(&1_000.0));
}

#[test]
fn inconsistent_settings_are_refused() {
    for (key, value, message) in [
        (
            "links.satellite.return.access.carrier",
            "\"uplink\"",
            r#"--set links.satellite.return.access.carrier="uplink": no carrier is named "uplink"; expected a table such as [carriers.uplink]"#,
        ),
        (
            "links.satellite.return.access.kind",
            "\"demand\"",
            r#"--set links.satellite.return.access.kind="demand": expected one of "continuous", "on-demand", got "demand""#,
        ),
        (
            ACCESS,
            r#"{ kind = "on-demand", cra = "64 kbit/s" }"#,
            r#"--set links.satellite.return.access={ kind = "on-demand", cra = "64 kbit/s" }: links.satellite.return.access.cra: unknown key; did you mean "constant"?"#,
        ),
        (
            ACCESS,
            "{ free = true }",
            r#"--set links.satellite.return.access={ free = true }: links.satellite.return.access.kind: missing; expected a way such as "on-demand""#,
        ),
        (
            ACCESS,
            r#"{ kind = "continuous", free = true }"#,
            r#"--set links.satellite.return.access={ kind = "continuous", free = true }: links.satellite.return.access.free: has no effect with "continuous""#,
        ),
        (
            ACCESS,
            r#"{ kind = "on-demand", volume_based = false }"#,
            r#"--set links.satellite.return.access={ kind = "on-demand", volume_based = false }: links.satellite.return.access.volume_based: expected true where there is neither constant, rate_based nor free: it could never send"#,
        ),
        (
            "links.satellite.return.access.constant",
            "\"2 Mbit/s\"",
            r#"--set links.satellite.return.access.constant="2 Mbit/s": expected at most its rate, "1 Mbit/s", got "2 Mbit/s""#,
        ),
        (
            "links.satellite.return.access.frame",
            "\"20 s\"",
            r#"--set links.satellite.return.access.frame="20 s": expected "1 ms" to "10 s", got "20 s""#,
        ),
    ] {
        let refusal = parsed(&[(key, value)]).expect_err("it makes no sense");
        assert_eq!(refusal, message);
    }
    let carrier = |text: &str| {
        let text = format!(
            "{}{text}",
            NETWORK.replace("\"on-demand\"", "\"on-demand\", carrier = \"uplink\"")
        );
        Scenario::parse(&text, "terminals.toml", &[]).map_err(|error| error.to_string())
    };
    assert_eq!(
        carrier("[carriers.uplink]\nrate = \"999 kbit/s\"\n").expect_err("it is too slow"),
        r#"terminals.toml:12: links.satellite.return.access.carrier: expected a carrier of its rate, "1 Mbit/s", or more, got "uplink" of "999 kbit/s""#
    );
    assert_eq!(
        carrier("[carriers.up]\nrate = \"4 Mbit/s\"\n").expect_err("it has another name"),
        r#"terminals.toml:12: links.satellite.return.access.carrier: no carrier is named "uplink"; known: "up""#
    );
    carrier("[carriers.uplink]\nrate = \"1 Mbit/s\"\n").expect("it is right");
    let many = |settings: &[(&str, &str)]| {
        let scenario = Scenario::parse(MANY, "many.toml", settings);
        scenario.expect_err("it makes no sense").to_string()
    };
    assert_eq!(
        many(&[("links.satellite.forward.access.constant", "\"50 kbit/s\"")]),
        r#"many.toml:8: carriers.uplink.rate: expected at least "5000000 bit/s", which the constant capacity of 100 directions comes to, got "4 Mbit/s""#
    );
    assert_eq!(
        many(&[("links.satellite.forward.access.processing", "\"50 ms\"")]),
        r#"--set links.satellite.forward.access.processing="50 ms": has no effect: [carriers.uplink] sets it for all directions that share it"#
    );
}

#[test]
fn delays_and_losses_may_change_during_the_run() {
    let settings = [
        (
            "links.satellite.return.schedule",
            r#"[{ at = "20 s", delay = "100 ms", packet_loss_rate = 0.5 }]"#,
        ),
        (
            "flows.stream.app",
            r#"{ kind = "packets", size = "172 B", interval = "200 ms" }"#,
        ),
    ];
    let output = run(&settings);
    let link = &output.summary.links[1];
    // 100 packets until then all arrive, of 200 afterwards one half.
    assert!((60..140).contains(&link.packets_lost), "{link:?}");
    let delays = delays(&output);
    // The delay of requests stays that of the key `delay`.
    let (first, last) = (delays[0], *delays.last().expect("not empty"));
    assert!(
        first - last > 120 * MS && first - last < 180 * MS,
        "{first} {last}"
    );
}

/// All packets arrive with any other setting of a direction; a debug build counts every packet.
#[test]
fn access_works_with_settings_that_change_packets() {
    let bulk = [
        (
            "flows.stream.app",
            r#"{ kind = "bulk", size = "300 kB", direction = "both" }"#,
        ),
        ("duration", "\"200 s\""),
    ];
    let accesses = [
        r#"{ kind = "on-demand" }"#,
        r#"{ kind = "on-demand", constant = "20 kbit/s", rate_based = "300 kbit/s", volume_based = true, free = true }"#,
        r#"{ kind = "on-demand", rate_based = "200 kbit/s", frame = "100 ms" }"#,
    ];
    for others in [
        &[("links.satellite.return.queue.kind", "\"fair\"")] as &[(&str, &str)],
        &[("links.satellite.return.tunnel", "true")],
        &[("links.satellite.return.acks.kind", "\"compaction\"")],
        &[("links.satellite.return.acks.kind", "\"reconstruction\"")],
        &[("links.satellite.return.acks.kind", "\"filter\"")],
        &[("links.satellite.return.compression", "\"rfc1144\"")],
        &[("links.satellite.return.redundancy", "\"16/15\"")],
        &[
            ("links.satellite.framing", "\"ethernet\""),
            ("links.satellite.arp", "{}"),
        ],
        &[
            ("links.satellite.mtu", "\"576 B\""),
            ("links.satellite.fragment", "true"),
        ],
        &[("links.satellite.return.errors.packet_loss_rate", "0.01")],
        &[
            ("links.satellite.return.duplication", "0.05"),
            ("links.satellite.return.corruption", "0.01"),
        ],
        &[(
            "links.satellite.return.reordering",
            r#"{ probability = 0.05, late_by = "20 ms" }"#,
        )],
        &[("links.satellite.forward.access.kind", "\"on-demand\"")],
        &[(
            "links.satellite.return.fading",
            r#"{ clear = "exponential(3 s)", faded = "exponential(1 s)", rate = "150 kbit/s", packet_loss_rate = 0.01 }"#,
        )],
        &[
            (
                "links.satellite.return.schedule",
                r#"[{ at = "2 s", rate = "90 kbit/s" }, { at = "3 s", rate = "0 bit/s" }, { at = "5 s", rate = "1 Mbit/s" }]"#,
            ),
            ("links.satellite.return.schedule_every", "\"10 s\""),
        ],
        &[(
            "links.satellite.return.outages",
            r#"[{ at = "3 s", lasts = "700 ms", every = "11 s" }, { at = "5 s", lasts = "13 ms", every = "97 ms", sending = "held", in_flight = "held" }]"#,
        )],
    ] {
        for access in accesses {
            let mut settings = bulk.to_vec();
            settings.push((ACCESS, access));
            settings.extend(others);
            let output = run(&settings);
            let flow = &output.summary.flows[0];
            assert_eq!(flow.outcome, "finished", "{others:?} {access}");
            let access = &output.summary.links[1]
                .access
                .clone()
                .expect("it has to ask");
            assert!(
                access.used_bytes <= access.granted_bytes,
                "{others:?} {access:?}"
            );
            // All of the 300 kB but a retransmission are sent here.
            assert!(access.used_bytes > 290_000, "{others:?} {access:?}");
        }
    }
}
