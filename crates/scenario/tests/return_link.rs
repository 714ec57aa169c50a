//! A fast download acknowledged through a slow return link: the network of samaraweera1999, and the
//! methods that reduce the queue of acknowledgments, in any combination.

use bentpipe_scenario::{LinkSummary, RunOptions, RunOutput, Scenario};
use proptest::prelude::*;

use crate::runs::run_text;

/// Network of samaraweera1999, section 3.4: Reno, MSS 1024, 720 kB, every segment acknowledged; 10
/// Mbit/s and 280 ms down, 9.6 kbit/s and 200 ms back.
const PAPER: &str = r#"
name = "dvb"
duration = "300 s"

[hosts.server.tcp]
congestion_control = "reno"
recovery = "reno"
slow_start = "standard"
congestion_avoidance = "per-acknowledgment"
initial_window = "1 segment"
sack = false
timestamps = false
mss = "1024 B"
send_buffer = "720 kB"
[hosts.client.tcp]
sack = false
timestamps = false
mss = "1024 B"
receive_buffer = "720 kB"
delayed_ack = "off"

[links.satellite]
between = ["server", "client"]
forward = { rate = "10 Mbit/s", delay = "280 ms", queue = { limit = "2000 packets" } }
return = { rate = "9.6 kbit/s", delay = "200 ms", queue = { limit = "2000 packets" } }

[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "5 MB" }

[probes]
series = [
    "satellite.return.queue", "satellite.return.acks_removed", "satellite.return.acks_regenerated",
    "satellite.return.acks_delayed", "satellite.return.acks_held",
]
"#;

fn run(settings: &[(&str, &str)]) -> RunOutput {
    run_text(PAPER, settings)
}

fn return_link(output: &RunOutput) -> &LinkSummary {
    let links = &output.summary.links;
    let found = links.iter().find(|link| link.name == "satellite.return");
    found.expect("there")
}

fn count(output: &RunOutput, name: &str) -> u64 {
    let counters = return_link(output).counters.as_ref();
    counters.map_or(0, |c| c.total.get(name).copied().unwrap_or(0))
}

fn finish(output: &RunOutput) -> f64 {
    let flow = &output.summary.flows[0];
    assert_eq!(flow.bytes_delivered, 5_000_000);
    assert_eq!(flow.segments_retransmitted, 0);
    flow.finish_s.expect("it finishes")
}

/// Returns the last value of a series.
fn last(output: &RunOutput, name: &str) -> f64 {
    let series = output.series.iter().find(|series| series.name == name);
    let values = &series.expect("recorded").values;
    values.last().copied().expect("not empty")
}

const ACKS: &str = "links.satellite.return.acks";

#[test]
fn acknowledgments_limit_the_download_unless_their_number_is_reduced() {
    let plain = run(&[]);
    // 4,883 segments, of which the last 703 fill the window: an acknowledgment of 40 bytes for each
    // of the others takes 139 s at 9.6 kbit/s, while the download could take 4 s.
    let acknowledged = (4_883.0 - 703.0) * 40.0 * 8.0 / 9_600.0;
    let time = finish(&plain);
    assert!(time > acknowledged && time < acknowledged + 5.0, "{time}");
    assert!(return_link(&plain).counters.is_none());

    let suppressed = run(&[(ACKS, r#"{ kind = "suppression" }"#)]);
    let compacted = run(&[(ACKS, r#"{ kind = "compaction" }"#)]);
    let spaced = run(&[(ACKS, r#"{ kind = "compaction", spacing = true }"#)]);
    let compressed = run(&[("links.satellite.return.compression", "rfc1144")]);
    let times = [&compacted, &suppressed, &compressed, &plain].map(finish);
    assert!(times.is_sorted(), "{times:?}");
    assert!(finish(&spaced) < finish(&suppressed));
    // The backlog is never larger than the low threshold plus the acknowledgments of one burst of
    // data.
    for output in [&suppressed, &compacted, &spaced] {
        assert!(return_link(output).queue_max_packets < 400);
    }
    assert!(return_link(&plain).queue_max_packets > 600);
}

#[test]
fn every_acknowledgment_is_counted() {
    let output = run(&[
        (ACKS, r#"{ kind = "compaction", spacing = true }"#),
        ("probes.interval", "every-change"),
    ]);
    let link = return_link(&output);
    let removed = count(&output, "acks_removed");
    assert!(removed > 3_000, "{removed}");
    // No acknowledgment was lost, so all removed ones are restored.
    assert_eq!(count(&output, "acks_regenerated"), removed);
    assert_eq!(
        last(&output, "satellite.return.acks_removed"),
        removed as f64
    );
    assert_eq!(
        last(&output, "satellite.return.acks_regenerated"),
        removed as f64
    );
    let delayed = last(&output, "satellite.return.acks_delayed");
    assert!(delayed > 0.0);
    assert_eq!(delayed, count(&output, "acks_delayed") as f64);
    assert_eq!(last(&output, "satellite.return.acks_held"), 0.0);
    let flows = &link.counters.as_ref().expect("counted").flows;
    assert_eq!(flows.keys().collect::<Vec<_>>(), ["download"]);
    assert_eq!(flows["download"]["acks_removed"], removed);
    assert_eq!(flows["download"]["acks_regenerated"], removed);
    // 60 bytes each in the tunnel; three more if one stands for several; 64 for a SYN with MSS.
    let compacted = count(&output, "acks_compacted");
    let expected = 60 * link.packets_delivered + 3 * compacted;
    let syn = link.bytes_delivered - expected;
    assert!((4..=20).contains(&syn), "{syn}");
}

#[test]
fn a_compressed_acknowledgment_takes_seven_bytes_and_v42bis_sixteen() {
    // Change mask, checksum, three bytes for a step of 1024, and SLIP's END.
    for (compression, bytes) in [("rfc1144", 7.0), ("v42bis", 16.0)] {
        let output = run(&[("links.satellite.return.compression", compression)]);
        let link = return_link(&output);
        let mean = link.bytes_delivered as f64 / link.packets_delivered as f64;
        assert!((mean - bytes).abs() < 0.2, "{compression}: {mean}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let settings = [
        (ACKS, r#"{ kind = "compaction", spacing = "per-flow" }"#),
        (
            "links.satellite.forward.errors",
            "{ packet_loss_rate = 0.01 }",
        ),
        (
            "links.satellite.forward.queue",
            r#"{ kind = "red", limit = "100 packets" }"#,
        ),
    ];
    let once = run(&settings);
    let again = run(&settings);
    let json = |output: &RunOutput| serde_json::to_string(&output.summary).expect("JSON");
    assert_eq!(json(&once), json(&again));
    assert_eq!(once.series, again.series);
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        (20_u32..400).prop_map(|limit| format!(r#"{{ limit = "{limit} packets" }}"#)),
        (20_u32..400).prop_map(|limit| format!(r#"{{ kind = "red", limit = "{limit} packets" }}"#)),
        (20_u32..400).prop_map(|limit| {
            format!(r#"{{ kind = "early-random-drop", limit = "{limit} packets" }}"#)
        }),
        (20_u32..400)
            .prop_map(|limit| format!(r#"{{ kind = "fair", limit = "{limit} packets" }}"#)),
    ]
}

fn acks() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{ kind = "none" }"#.to_owned()),
        (1_u32..10, 0_u32..100).prop_map(|(low, more)| {
            format!(
                r#"{{ kind = "suppression", low = {low}, high = {} }}"#,
                low + more
            )
        }),
        (1_u32..10, 0_u32..240, 0_usize..3).prop_map(|(low, more, spacing)| {
            let spacing = ["false", "true", r#""per-flow""#][spacing];
            let high = low + more;
            format!(r#"{{ kind = "compaction", low = {low}, high = {high}, spacing = {spacing} }}"#)
        }),
        prop_oneof![Just("conservative"), Just("aggressive")]
            .prop_map(|mode| format!(r#"{{ kind = "filter", mode = "{mode}" }}"#)),
        (1_u32..10, 500_u32..5_000).prop_map(|(low, threshold)| {
            format!(r#"{{ kind = "reconstruction", low = {low}, threshold = "{threshold} B" }}"#)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// For any settings and losses, every byte of both transfers arrives once and in order, and
    /// every packet is accounted for. Receivers compare offsets: a debug build fails if one is
    /// wrong.
    #[test]
    fn every_transfer_completes(
        seed in any::<u32>(),
        acks in acks(),
        compression in prop_oneof![Just("none"), Just("rfc1144"), Just("v42bis")],
        tunnel in any::<bool>(),
        forward_queue in queue(),
        return_limit in 5_u32..200,
        loss in (0.0_f64..0.03, 0.0_f64..0.1),
        upload in any::<bool>(),
        options in (any::<bool>(), any::<bool>(), any::<bool>()),
        control in prop_oneof![
            Just("reno"), Just("cubic"), Just("bbr"), Just("hybla"), Just("westwood")
        ],
        recovery in prop_oneof![Just("reno"), Just("newreno"), Just("sack")],
        rate in 9_u32..300,
    ) {
        let (sack, timestamps, delayed) = options;
        let recovery = if sack { recovery } else { "newreno" };
        let in_tunnel = tunnel || acks.contains("compaction");
        let compression = if in_tunnel && compression == "rfc1144" { "none" } else { compression };
        let delayed = if delayed { "40 ms" } else { "off" };
        let upload = if upload {
            r#"
            [flows.upload]
            from = "client"
            to = "server"
            start = "1 s"
            app = { kind = "bulk", size = "20 kB" }
            "#
        } else {
            ""
        };
        let text = format!(
            r#"
            name = "hostile"
            duration = "10000 s"
            seed = {seed}
            [hosts.server.tcp]
            congestion_control = "{control}"
            recovery = "{recovery}"
            sack = {sack}
            timestamps = {timestamps}
            delayed_ack = "{delayed}"
            [hosts.client.tcp]
            sack = {sack}
            timestamps = {timestamps}
            delayed_ack = "{delayed}"
            [links.satellite]
            between = ["server", "client"]
            [links.satellite.forward]
            rate = "10 Mbit/s"
            delay = "280 ms"
            queue = {forward_queue}
            errors = {{ packet_loss_rate = {} }}
            [links.satellite.return]
            rate = "{rate} kbit/s"
            delay = "200 ms"
            queue = {{ limit = "{return_limit} packets" }}
            errors = {{ packet_loss_rate = {} }}
            acks = {acks}
            compression = "{compression}"
            tunnel = {in_tunnel}
            [flows.download]
            from = "server"
            to = "client"
            app = {{ kind = "bulk", size = "300 kB" }}
            {upload}
            "#,
            loss.0, loss.1,
        );
        let scenario = Scenario::parse(&text, "hostile.toml", &[])
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let output = scenario.run(&RunOptions::default()).expect("it runs");
        for flow in &output.summary.flows {
            prop_assert!(flow.finish_s.is_some(), "{} has not finished: {flow:?}\n{text}", flow.name);
        }
        let counts = |name| count(&output, name);
        if acks.contains("compaction") {
            // The far end cannot restore what a lost or dropped acknowledgment stood for, and never
            // restores more.
            prop_assert!(counts("acks_regenerated") <= counts("acks_removed"), "{text}");
            prop_assert_eq!(counts("refused_high_mark"), 0, "{}", text);
        }
    }
}

/// Early random drop that never drops early equals a drop-tail queue, with another implementation
/// in the engine: the whole runs are the same, including every change of the queue.
#[test]
fn both_queue_implementations_give_the_same_run() {
    let run_with = |kind: &str, seed: &str| {
        let queue = |limit: u32| match kind {
            "drop-tail" => format!(r#"{{ limit = "{limit} packets" }}"#),
            _ => {
                format!(r#"{{ kind = "{kind}", limit = "{limit} packets", drop_probability = 0 }}"#)
            }
        };
        let series = ["queue", "queue_bytes", "dropped", "lost"];
        let series: Vec<String> = ["forward", "return"]
            .iter()
            .flat_map(|way| series.map(|of| format!("\"satellite.{way}.{of}\"")))
            .chain(["\"download.congestion_window\"".to_owned()])
            .collect();
        run(&[
            ("seed", seed),
            ("links.satellite.return.rate", "100 kbit/s"),
            ("links.satellite.forward.queue", &queue(12)),
            ("links.satellite.return.queue", &queue(5)),
            (
                "links.satellite.forward.errors",
                "{ packet_loss_rate = 0.002 }",
            ),
            ("hosts.server.tcp.congestion_control", "cubic"),
            (
                "flows.upload",
                r#"{ from = "client", to = "server", app = { kind = "bulk", size = "30 kB" } }"#,
            ),
            ("probes.interval", "every-change"),
            ("probes.series", &format!("[{}]", series.join(", "))),
        ])
    };
    for seed in ["1", "2", "3"] {
        let quick = run_with("drop-tail", seed);
        let mut managed = run_with("early-random-drop", seed);
        assert!(
            quick
                .summary
                .links
                .iter()
                .all(|link| link.packets_dropped > 0)
        );
        for link in &mut managed.summary.links {
            let counters = link.counters.take().expect("it counts");
            assert_eq!(counters.total["dropped_early"], 0);
        }
        let json = |output: &RunOutput| serde_json::to_string(&output.summary).expect("JSON");
        assert_eq!(json(&quick), json(&managed));
        for (quick, managed) in quick.series.iter().zip(&managed.series) {
            assert_eq!(quick.name, managed.name);
            // The value after each instant: several changes at one instant may be recorded as one.
            let records = |series: &bentpipe_scenario::RecordedSeries| {
                let mut records: Vec<(u64, f64)> = Vec::new();
                for (time, value) in series.times_ns.iter().zip(&series.values) {
                    if records.last().is_some_and(|(last, _)| last == time) {
                        records.pop();
                    }
                    if records.last().is_none_or(|(_, last)| last != value) {
                        records.push((*time, *value));
                    }
                }
                records
            };
            let (quick_records, records) = (records(quick), records(managed));
            let pairs = quick_records.iter().zip(&records);
            let same = pairs
                .take_while(|(quick, managed)| quick == managed)
                .count();
            assert_eq!(
                quick_records.get(same.saturating_sub(2)..(same + 4).min(quick_records.len())),
                records.get(same.saturating_sub(2)..(same + 4).min(records.len())),
                "seed {seed}: {} after {same}",
                quick.name
            );
        }
    }
}

/// docs/queues.md: the packet in transmission is not queued. With a capacity below one packet, a
/// sender that sends one packet after another succeeds with any queue; and packets that are never
/// queued take the same time.
#[test]
fn a_limit_below_one_packet_is_the_same_for_every_queue() {
    let limit = r#"limit = "1 KiB""#;
    let drop_tail = format!("{{ {limit} }}");
    let red = format!(
        r#"{{ kind = "red", {limit}, minimum_threshold = "200 B", maximum_threshold = "900 B" }}"#
    );
    let early = format!(r#"{{ kind = "early-random-drop", {limit}, drop_level = "1 KiB" }}"#);
    let fair = format!(r#"{{ kind = "fair", {limit} }}"#);
    let cases = [
        (&drop_tail, "none"),
        (&drop_tail, "suppression"),
        (&drop_tail, "filter"),
        (&red, "none"),
        (&early, "none"),
        (&fair, "none"),
    ];
    let finishes = cases.map(|(queue, acks)| {
        let output = run(&[
            ("hosts.server.tcp.mss", "1460 B"),
            ("hosts.client.tcp.mss", "1460 B"),
            ("hosts.client.tcp.receive_buffer", "1460 B"),
            ("flows.download.app.size", "20 kB"),
            ("links.satellite.forward.queue", queue),
            (
                "links.satellite.forward.acks",
                &format!(r#"{{ kind = "{acks}" }}"#),
            ),
        ]);
        let flow = &output.summary.flows[0];
        assert_eq!(flow.bytes_delivered, 20_000, "{acks} {queue}");
        flow.finish_s
    });
    assert!(
        finishes.iter().all(|finish| *finish == finishes[0]),
        "{finishes:?}"
    );
}
