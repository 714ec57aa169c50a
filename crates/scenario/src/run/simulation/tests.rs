use super::*;
use crate::run::options::CaptureRequest;
use std::path::PathBuf;

const NETWORK: &str = r#"
name = "t1"
duration = "60 s"
hosts = { server = {}, client = {} }
links.satellite = { between = ["server", "client"], rate = "1.536 Mbit/s", delay = "250 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "500 kB" } }
"#;

fn scenario(overrides: &[(&str, &str)]) -> Scenario {
    Scenario::parse(NETWORK, "t1.toml", overrides).expect("it is right")
}

#[test]
fn a_run_has_a_summary() {
    let output = scenario(&[]).run(&RunOptions::default()).expect("it runs");
    let summary = output.summary;
    assert_eq!((summary.scenario.as_str(), summary.seed), ("t1", 1));
    let flow = &summary.flows[0];
    assert_eq!(flow.bytes_delivered, 500_000);
    let finish = flow.finish_s.expect("finished");
    assert!((flow.goodput_bps - 4e6 / finish).abs() < 1.0);
    assert!(flow.rtt_ms.min.expect("sampled") >= 500.0);
    let forward = &summary.links[0];
    assert_eq!(forward.name, "satellite.forward");
    // One bandwidth-delay product, 1.536 Mbit/s x 500 ms = 96,000 bytes, is below the minimum.
    assert_eq!(
        (forward.queue_limit_packets, forward.queue_limit_bytes),
        (Some(100), None)
    );
    assert!(output.series.is_empty());
}

#[test]
fn options_apply_and_default_probes_are_recorded_on_request() {
    let options = RunOptions {
        seed: Some(7),
        default_probes: true,
        ..RunOptions::default()
    };
    let output = scenario(&[]).run(&options).expect("it runs");
    assert_eq!(output.summary.seed, 7);
    let names: Vec<&str> = output
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert!(names.contains(&"download.congestion_window"), "{names:?}");
    assert!(names.contains(&"satellite.return.queue"), "{names:?}");
}

#[test]
fn queues_and_directions_are_in_the_same_order() {
    let limits = &[
        ("links.satellite.forward.queue.limit", "7 packets"),
        ("links.satellite.return.queue.limit", "9 packets"),
        (
            "probes.series",
            r#"["satellite.forward.dropped", "satellite.return.dropped"]"#,
        ),
    ];
    let output = scenario(limits)
        .run(&RunOptions::default())
        .expect("it runs");
    let limit_of = |name: &str| {
        let link = output
            .summary
            .links
            .iter()
            .find(|link| link.name == name)
            .expect("there");
        (link.queue_limit_packets, link.packets_dropped)
    };
    let (forward, dropped) = limit_of("satellite.forward");
    assert_eq!(forward, Some(7));
    assert!(dropped > 0);
    assert_eq!(limit_of("satellite.return"), (Some(9), 0));
    assert_eq!(output.series[0].values.last(), Some(&(dropped as f64)));
    assert_eq!(output.series[1].values.last(), Some(&0.0));
}

#[test]
fn a_capture_of_an_unknown_place_is_refused() {
    let error = |place: &str, path: &str| {
        let captures = vec![CaptureRequest {
            place: place.to_owned(),
            path: path.into(),
        }];
        let options = RunOptions {
            captures,
            ..RunOptions::default()
        };
        scenario(&[]).run(&options).expect_err("refused")
    };
    assert_eq!(
        error("satelite", "x.pcapng"),
        RunError::Request(
            r#"--pcap satelite: no link is "satelite"; did you mean "satellite"?"#.to_owned()
        )
    );
    assert_eq!(
        error("satellite@hub", "x.pcapng").to_string(),
        r#"--pcap satellite@hub: expected one of its ends, "server" or "client", got "hub""#
    );
    assert!(matches!(
        error("satellite", "/nowhere/x.pcapng"),
        RunError::Failed(_)
    ));
}

/// Returns options with a capture of the satellite link at this path.
fn captured(path: impl Into<PathBuf>) -> RunOptions {
    RunOptions {
        captures: vec![CaptureRequest {
            place: "satellite".to_owned(),
            path: path.into(),
        }],
        ..RunOptions::default()
    }
}

#[test]
fn the_snap_length_limits_captured_packets() {
    let folder = std::env::temp_dir().join(format!("bentpipe-snap-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("satellite.pcapng");
    let size = |snap_length| {
        let options = RunOptions {
            snap_length,
            ..captured(&path)
        };
        scenario(&[]).run(&options).expect("it runs");
        std::fs::metadata(&path).expect("written").len()
    };
    let whole = size(None);
    // Each block has 32 bytes besides the packet.
    assert!(size(Some(68)) * 5 < whole);
    assert_eq!(size(Some(65_535)), whole);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn only_a_complete_capture_leaves_a_file() {
    let folder = std::env::temp_dir().join(format!("bentpipe-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let names = || {
        let there = std::fs::read_dir(&folder).expect("a folder");
        let mut names: Vec<String> = there
            .map(|each| {
                each.expect("a file")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    };
    let path = folder.join("satellite.pcapng");
    std::fs::write(&path, "an earlier one").expect("it can be written");

    let mut run = Run::new(&scenario(&[]), &captured(&path)).expect("it fits together");
    run.advance(1000).expect("it runs");
    assert_eq!(names(), [".satellite.pcapng.part", "satellite.pcapng"]);
    drop(run);
    assert_eq!(names(), ["satellite.pcapng"]);
    let earlier = std::fs::read(&path).expect("it is there");
    assert_eq!(earlier, b"an earlier one");

    // If a later capture is refused, the file of the first is removed, too.
    let mut options = captured(&path);
    options
        .captures
        .extend(captured(folder.join("nowhere/x.pcapng")).captures);
    assert!(Run::new(&scenario(&[]), &options).is_err());
    assert_eq!(names(), ["satellite.pcapng"]);

    scenario(&[]).run(&captured(&path)).expect("it runs");
    assert_eq!(names(), ["satellite.pcapng"]);
    assert!(std::fs::metadata(&path).expect("it is there").len() > 500_000);
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_ends_when_its_capture_cannot_be_written() {
    let fast = scenario(&[
        ("links.satellite.rate", "100 Mbit/s"),
        ("flows.download.app", r#"{ kind = "bulk" }"#),
    ]);
    let mut run = Run::new(&fast, &captured("/dev/full")).expect("it fits together");
    let error = run.advance(u64::MAX).expect_err("there is no room");
    assert!(run.share_done() < 0.5, "{}", run.share_done());
    assert!(
        error
            .to_string()
            .starts_with("/dev/full: cannot be written: ")
    );
}

#[test]
fn samples_of_every_change_are_limited_unless_taken() {
    let scenario = scenario(&[
        ("probes.interval", "every-change"),
        (
            "probes.series",
            r#"["download.sent", "download.congestion_window", "satellite.forward.queue"]"#,
        ),
    ]);
    let run = |options: RunOptions| scenario.run(&options);
    let kept = run(RunOptions::default()).expect("it runs");
    let records = |series: &[Series]| -> usize { series.iter().map(|s| s.values.len()).sum() };
    let all = records(&kept.series);
    assert!(all > 800, "{all}");
    let few = |most| RunOptions {
        most_records: Some(most),
        ..RunOptions::default()
    };
    assert!(run(few(all as u64)).is_ok());
    let error = run(few(all as u64 - 1)).expect_err("too many").to_string();
    assert!(
        error.starts_with(&format!("more than {} records", all - 1)),
        "{error}"
    );
    assert!(error.contains("every-change"), "{error}");
    // No series are wanted.
    let none = RunOptions {
        no_series: true,
        ..few(1)
    };
    let silent = run(none).expect("it runs");
    assert!(silent.series.is_empty());
    let json = |output: &RunOutput| serde_json::to_string(&output.summary).expect("JSON");
    assert_eq!(json(&silent), json(&kept));
    // Taken piece by piece, the samples are the same in total.
    let mut run = Run::new(&scenario, &few(100)).expect("it fits together");
    let mut taken: Vec<Series> = Vec::new();
    let mut pieces = 0;
    loop {
        let progress = run.advance(20).expect("never many at once");
        let piece = run.take_records();
        pieces += usize::from(records(&piece) > 0);
        if taken.is_empty() {
            taken = piece;
        } else {
            for (all, more) in taken.iter_mut().zip(piece) {
                assert_eq!(all.name, more.name);
                all.times_ns.extend(more.times_ns);
                all.values.extend(more.values);
            }
        }
        if progress == Progress::Ended {
            break;
        }
    }
    assert!(pieces > 20, "{pieces}");
    assert_eq!(taken, kept.series);
}

/// The same loss rate with and without bursts: the same number of losses, in far fewer runs.
#[test]
fn losses_come_in_bursts() {
    let lost = |burst: &str| {
        let errors = format!("{{ packet_loss_rate = 0.02{burst} }}");
        let network = scenario(&[
            ("duration", "2 h"),
            ("links.satellite.rate", "10 Mbit/s"),
            ("links.satellite.delay", "1 ms"),
            ("flows.download.app.size", "1 GB"),
            ("links.satellite.forward.errors", &errors),
            ("probes.series", r#"["satellite.forward.lost"]"#),
            ("probes.interval", "every-change"),
        ]);
        let output = network.run(&RunOptions::default()).expect("it runs");
        let link = &output.summary.links[0];
        let packets = (link.packets_lost + link.packets_delivered) as f64;
        let share = link.packets_lost as f64 / packets;
        (packets, share, output.summary.flows[0].fast_recoveries)
    };
    let (packets, scattered, recoveries) = lost("");
    let error = 4.0 / (packets * 0.02).sqrt();
    assert!((scattered / 0.02 - 1.0).abs() < error, "{scattered}");
    let (packets, in_bursts, fewer) = lost(", mean_burst_packets = 8");
    // Bursts of 8 on average have a mean square of 2 x 64 - 8. The standard error of the packets
    // lost is the square root of 120 times the number of bursts; the tolerance is four of them.
    let bursts = packets * 0.02 / 8.0;
    let error = 4.0 * (120.0 * bursts).sqrt() / (packets * 0.02);
    assert!(
        (in_bursts / 0.02 - 1.0).abs() < error,
        "{in_bursts} of {packets}"
    );
    assert!(fewer * 2 < recoveries, "{fewer} against {recoveries}");
}

#[test]
fn the_maximum_queue_between_two_samples_is_recorded() {
    let limits = &[
        ("probes.series", r#"["satellite.forward.queue"]"#),
        ("probes.interval", "1 s"),
    ];
    let options = RunOptions {
        default_probes: true,
        ..RunOptions::default()
    };
    let output = scenario(limits).run(&options).expect("it runs");
    let most = |name: &str| {
        let series = output.series.iter().find(|series| series.name == name);
        let values = &series.expect("recorded").values;
        values.iter().copied().fold(0.0, f64::max)
    };
    let counted = output.summary.links[0].queue_max_packets as f64;
    // Whole windows arrive at once: a sample every second misses the longest queue.
    assert!(most("satellite.forward.queue") < counted);
    assert_eq!(most("satellite.forward.queue_max"), counted);
    let without = scenario(limits)
        .run(&RunOptions::default())
        .expect("it runs");
    assert_eq!(without.series.len(), 1);
}

#[test]
fn default_probes_cover_one_flow_of_each_table_first() {
    let options = RunOptions {
        default_probes: true,
        ..RunOptions::default()
    };
    let app = |name: &str| format!("flows.{name}.app.size");
    let changes = [
        ("flows.download.count".to_owned(), "9"),
        ("flows.upload.from".to_owned(), "client"),
        ("flows.upload.to".to_owned(), "server"),
        ("flows.upload.app.kind".to_owned(), "bulk"),
        (app("upload"), "10 kB"),
        (app("download"), "10 kB"),
    ];
    let changes: Vec<(&str, &str)> = changes
        .iter()
        .map(|(key, value)| (&**key, *value))
        .collect();
    let output = scenario(&changes).run(&options).expect("it runs");
    let windows = output.series.iter().filter_map(|series| {
        let flow = series.name.strip_suffix(".congestion_window")?;
        Some(flow.to_owned())
    });
    let mut expected: Vec<String> = (1..=7).map(|number| format!("download-{number}")).collect();
    expected.push("upload".to_owned());
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn default_probes_resolve_a_short_transfer_in_a_long_run() {
    let options = RunOptions {
        default_probes: true,
        ..RunOptions::default()
    };
    for duration in ["10 s", "600 s", "7 h"] {
        let changes = &[("duration", duration), ("flows.download.app.size", "5 MB")];
        let output = scenario(changes).run(&options).expect("it runs");
        let goodput = "download.goodput";
        let series = output.series.iter().find(|series| series.name == goodput);
        let points = series.expect("recorded").values.len();
        assert!((1_900..=4_001).contains(&points), "{points} of {duration}");
    }
}
