//! Paths that change over time, from file to result.

use std::fs;
use std::path::{Path, PathBuf};

use bentpipe_scenario::{RunOptions, RunOutput, Scenario, Way};
use serde_json::{Value, json};

use crate::runs::run_text;

const TEXT: &str = r#"
name = "changing"
duration = "60 s"
hosts = { server = {}, client = {} }
links.satellite = { between = ["server", "client"], rate = "8 Mbit/s", delay = "50 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    Scenario::parse(TEXT, "changing.toml", settings).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(settings: &[(&str, &str)]) -> String {
    let error = Scenario::parse(TEXT, "changing.toml", settings).expect_err("it is wrong");
    let error = error.to_string();
    // The message begins with the option.
    error
        .rsplit_once("]: ")
        .or(error.rsplit_once("}: "))
        .map_or(error.clone(), |(_, said)| said.to_owned())
}

fn run(scenario: &Scenario) -> RunOutput {
    let options = RunOptions {
        no_series: true,
        ..RunOptions::default()
    };
    scenario
        .run(&options)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Creates a folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("changes-{name}"));
    fs::create_dir_all(&folder).expect("a folder for a test");
    folder
}

#[test]
fn a_schedule_with_a_constant_rate_equals_a_link_without_one() {
    let plain = run(&scenario(&[]));
    let same = run(&scenario(&[(
        "links.satellite.schedule",
        r#"[{ at = "1 s", rate = "8 Mbit/s" }, { at = "2 s", delay = "50 ms", packet_loss_rate = 0 }]"#,
    )]));
    let without = |output: &RunOutput| {
        let mut summary = serde_json::to_value(&output.summary).expect("it serializes");
        for link in summary["links"].as_array_mut().expect("links") {
            link.as_object_mut().expect("a link").remove("counters");
        }
        summary
    };
    assert_eq!(without(&plain), without(&same));
}

#[test]
fn goodput_follows_the_rate() {
    // 8 Mbit/s for one half of the time, 2 Mbit/s for the other.
    let output = run(&scenario(&[
        (
            "links.satellite.forward.schedule",
            r#"[{ at = "5 s", rate = "2 Mbit/s" }]"#,
        ),
        ("links.satellite.forward.schedule_every", "10 s"),
    ]));
    let goodput = output.summary.flows[0].goodput_bps;
    // 5 Mbit/s on the wire, 1448 of 1500 bytes payload; slow start takes a second or two at first.
    assert!((4.5e6..=4.83e6).contains(&goodput), "{goodput}");
    assert!(output.summary.links[0].utilization > 0.95);
}

#[test]
fn outages_are_counted_and_survived() {
    for (sending, in_flight) in [
        ("lost", "lost"),
        ("held", "held"),
        ("held", "arrive"),
        ("held", "lost"),
    ] {
        let outages = format!(
            r#"[{{ at = "10 s", lasts = "300 ms", every = "15 s", sending = "{sending}", in_flight = "{in_flight}" }}]"#
        );
        let output = run(&scenario(&[
            ("links.satellite.outages", &outages),
            (
                "links.satellite.queue",
                r#"{ kind = "drop-tail", limit = "10 MB" }"#,
            ),
            ("flows.download.app.size", "20 MB"),
        ]));
        let flow = &output.summary.flows[0];
        assert_eq!(flow.outcome, "finished", "{sending} {in_flight}");
        assert_eq!(flow.bytes_delivered, 20_000_000);
        let link = &output.summary.links[0];
        let counters = link.counters.as_ref().expect("it counts");
        assert_eq!(counters.total["lost_to_outages"], link.packets_lost);
        assert_eq!(
            link.packets_lost > 0,
            (sending, in_flight) != ("held", "held") && in_flight != "arrive"
        );
        if sending == "held" && in_flight != "lost" {
            assert_eq!(flow.segments_retransmitted, 0, "{in_flight}");
        }
    }
}

#[test]
fn corrupted_packets_are_counted_and_discarded_by_the_receiver() {
    let output = run(&scenario(&[
        ("links.satellite.forward.corruption", "0.01"),
        ("links.satellite.return.duplication", "0.01"),
        (
            "links.satellite.return.reordering",
            r#"{ probability = 0.01, late_by = "uniform(1 ms, 30 ms)" }"#,
        ),
    ]));
    let [forward, back] = &output.summary.links[..] else {
        unreachable!("two directions");
    };
    let count = |link: &bentpipe_scenario::LinkSummary, name: &str| {
        link.counters
            .as_ref()
            .map_or(0, |counters| counters.total[name])
    };
    let corrupted = count(forward, "corrupted");
    assert!(corrupted > 50, "{corrupted}");
    assert_eq!(forward.packets_lost, 0);
    // Except packets in transit at the end.
    assert!(corrupted - output.summary.packets_discarded < 5);
    assert!(count(back, "duplicated") > 20 && count(back, "reordered") > 20);
    assert!(output.summary.flows[0].segments_retransmitted >= output.summary.packets_discarded - 5);
}

#[test]
fn the_same_seed_gives_the_same() {
    let settings = [
        (
            "links.satellite.fading",
            r#"{ clear = "exponential(4 s)", faded = "exponential(500 ms)" }"#,
        ),
        ("links.satellite.duplication", "0.01"),
        ("links.satellite.corruption", "0.001"),
    ];
    let of = |seed| {
        let options = RunOptions {
            seed: Some(seed),
            no_series: true,
            ..RunOptions::default()
        };
        let output = scenario(&settings).run(&options).expect("it runs");
        serde_json::to_value(output.summary).expect("it serializes")
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1)["links"], of(2)["links"]);
}

#[test]
fn trace_paths_are_relative_to_the_scenario() {
    let folder = folder("trace");
    // 1500 bytes every 2 ms: 6 Mbit/s.
    fs::write(folder.join("down.trace"), "2\n").expect("written");
    fs::write(folder.join("delay.txt"), "30\n40\n").expect("written");
    let text = TEXT.replace(
        r#"rate = "8 Mbit/s", delay = "50 ms""#,
        r#"forward = { traces = [{ file = "down.trace", format = "mahimahi" }, { file = "delay.txt", format = "leoreplayer" }] }, return = { rate = "1 Mbit/s", delay = "35 ms" }"#,
    );
    let file = folder.join("scenario.toml");
    fs::write(&file, text).expect("written");
    let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
    let forward = &scenario.links[0].forward;
    assert_eq!(forward.rate.bits_per_second(), 6_000_000);
    assert_eq!(forward.delay.as_millis_f64(), 35.0);
    let output = run(&scenario);
    let goodput = output.summary.flows[0].goodput_bps;
    assert!(
        (5.5e6..=6e6 * 1448.0 / 1500.0).contains(&goodput),
        "{goodput}"
    );
    // The message about an error in the file has the line.
    fs::write(folder.join("down.trace"), "2\n1\n").expect("written");
    let error = Scenario::load(&file, &[])
        .expect_err("a time that goes back")
        .to_string();
    let place = format!(
        "{}:5: links.satellite.forward.traces.file: ",
        file.display()
    );
    let said = format!(
        "{}:2: expected 2 ms or later, as on the line before, got 1",
        folder.join("down.trace").display()
    );
    assert_eq!(error, format!("{place}{said}"));
}

#[test]
fn devices_and_folders_are_refused_as_traces() {
    for (name, expected) in [
        ("/dev/zero", "/dev/zero: not a file"),
        ("/", "/: not a file"),
        ("missing.trace", "missing.trace: no such file"),
    ] {
        let traces = format!(r#"[{{ file = "{name}", format = "mahimahi" }}]"#);
        assert_eq!(
            refusal(&[("links.satellite.traces", &traces)]),
            format!("links.satellite.traces.file: {expected}")
        );
    }
}

#[test]
fn inconsistent_settings_are_refused() {
    let schedule = "links.satellite.schedule";
    for (settings, expected) in [
        (vec![(schedule, "[]")], "expected steps such as"),
        (
            vec![(schedule, r#"[{ at = "1 s" }]"#)],
            "expected a new value",
        ),
        (
            vec![(
                schedule,
                r#"[{ at = "1 s", rate = "1 Mbit/s" }, { at = "1 s", rate = "2 Mbit/s" }]"#,
            )],
            "expected 100 us or more after",
        ),
        (
            vec![
                (schedule, r#"[{ at = "9 s", rate = "1 Mbit/s" }]"#),
                ("links.satellite.schedule_every", "9 s"),
            ],
            "after the last step",
        ),
        (
            vec![("links.satellite.schedule_every", "9 s")],
            "has no effect: there is no schedule",
        ),
        (
            vec![(
                "links.satellite.outages",
                r#"[{ at = "1 s", lasts = "0 s" }]"#,
            )],
            "expected 1 ms or more",
        ),
        (
            vec![(
                "links.satellite.outages",
                r#"[{ at = "1 s", lasts = "1 s", every = "1 s" }]"#,
            )],
            "expected 1 ms or more above",
        ),
        (
            vec![(
                "links.satellite.fading",
                r#"{ clear = "1 us", faded = "1 s" }"#,
            )],
            "expected 1 ms or more on average",
        ),
        (
            vec![("links.satellite.in_order", "false")],
            "has no effect: the delay does not change",
        ),
        (
            vec![
                (
                    "links.satellite.reordering",
                    r#"{ probability = 0.1, late_by = "1 ms" }"#,
                ),
                ("links.satellite.tunnel", "true"),
            ],
            "expected none: compression, framings and tunnels",
        ),
        (
            vec![
                ("links.satellite.corruption", "0.1"),
                (
                    "links.satellite.acks",
                    r#"{ kind = "compaction", low = 4, high = 60 }"#,
                ),
            ],
            "expected none where acknowledgments are compacted",
        ),
        (
            vec![("links.satellite.traces", r#"[{ file = "a.txt" }]"#)],
            "missing; expected one of",
        ),
        (
            vec![(
                "links.satellite.traces",
                r#"[{ file = "a.csv", format = "mahimahi", every = "1 s" }]"#,
            )],
            "has no effect: \"mahimahi\" begins again",
        ),
        (
            vec![("links.satellite.one_way", "true")],
            "no route from \"client\" to \"server\"",
        ),
    ] {
        let said = refusal(&settings);
        assert!(said.contains(expected), "{settings:?}: {said}");
    }
}

/// Download by satellite and return by modem, as in figure 1 of gaid1998 and obata2000.
const ONE_WAY: &str = r#"
name = "satellite-down-modem-back"
duration = "60 s"
hosts = { server = {}, client = {} }
gateways = { hub = {}, provider = {} }
links.internet = { between = ["server", "hub"], rate = "100 Mbit/s", delay = "5 ms" }
links.satellite = { between = ["hub", "client"], one_way = true, rate = "4 Mbit/s", delay = "250 ms" }
links.modem = { between = ["client", "provider"], one_way = true, rate = "64 kbit/s", delay = "50 ms" }
links.backbone = { between = ["provider", "server"], rate = "10 Mbit/s", delay = "10 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "4 MB" } }
"#;

#[test]
fn one_way_links_form_different_paths() {
    let scenario =
        Scenario::parse(ONE_WAY, "one-way.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let data = serde_json::to_value(&scenario).expect("it serializes");
    assert_eq!(data["links"][1]["return"], Value::Null);
    assert_eq!(scenario.direction_index(2, Way::Forward), Some(3));
    assert_eq!(scenario.direction_index(2, Way::Return), None);
    assert_eq!(scenario.direction_index(3, Way::Return), Some(5));
    let output = run(&scenario);
    let names: Vec<&str> = output
        .summary
        .links
        .iter()
        .map(|link| link.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "internet.forward",
            "internet.return",
            "satellite.forward",
            "modem.forward",
            "backbone.forward",
            "backbone.return"
        ]
    );
    let flow = &output.summary.flows[0];
    assert_eq!(flow.outcome, "finished");
    // 5 + 250 ms there, 50 + 10 ms back, and the transmission time of a SYN on each: 60 bytes
    // there, a 60-byte answer.
    let (there, back) = (4.8e-3 + 120e-3, 7500e-3 + 48e-3);
    let expected = 315.0 + there + back;
    let shortest = flow.rtt_ms.min.expect("measured");
    assert!((shortest - expected).abs() < 1.0, "{shortest} {expected}");
    let sent = |name: &str| {
        output
            .summary
            .links
            .iter()
            .find(|link| link.name == name)
            .map(|link| link.packets_delivered)
    };
    assert_eq!(sent("internet.return"), Some(0));
    assert!(sent("modem.forward") > Some(1_000));
}

#[test]
fn a_one_way_link_has_one_direction_to_probe() {
    let settings = [("probes.series", r#"["satellite.return.queue"]"#)];
    let error = Scenario::parse(ONE_WAY, "one-way.toml", &settings).expect_err("there is none");
    assert!(
        error
            .to_string()
            .ends_with("\"satellite\" has no return: it is one_way"),
        "{error}"
    );
    let settings = [("probes.series", r#"["backbone.return.queue_max"]"#)];
    let output = run_text(ONE_WAY, &settings);
    // The acknowledgments use the backbone's forward direction.
    assert_eq!(
        output.series[0]
            .values
            .iter()
            .fold(0.0, |most: f64, value| most.max(*value)),
        0.0
    );
    let settings = [("links.satellite.return", r#"{ rate = "1 Mbit/s" }"#)];
    let error = Scenario::parse(ONE_WAY, "one-way.toml", &settings).expect_err("it has no effect");
    assert!(
        error
            .to_string()
            .contains("has no effect: the link is one_way"),
        "{error}"
    );
}

#[test]
fn the_resolved_scenario_has_the_changes() {
    let scenario = scenario(&[
        (
            "links.satellite.forward.schedule",
            r#"[{ at = "30 s", rate = "2 Mbit/s", delay = "100 ms" }]"#,
        ),
        (
            "links.satellite.forward.outages",
            r#"[{ at = "1 s", lasts = "2 s" }]"#,
        ),
    ]);
    let data = serde_json::to_value(&scenario).expect("it serializes");
    let forward = &data["links"][0]["forward"];
    assert_eq!(forward["changes"]["rate"]["mean_bps"], json!(5e6));
    assert_eq!(forward["changes"]["delay"]["mean_s"], json!(0.075));
    assert_eq!(forward["changes"]["outages"][0]["in_flight"], json!("lost"));
    assert_eq!(data["links"][0]["return"]["changes"], Value::Null);
}
