//! Capacity on demand in rain: effects of a fade on a terminal and on others on its carrier,
//! outages, and refused files.

use std::fs;

use bentpipe_scenario::{RunOptions, RunOutput, Scenario};
use proptest::prelude::*;
use proptest::sample::select;

use crate::runs::access;

/// Twenty terminals on one carrier, and one more with its own link. All offer more than the
/// capacity.
const NETWORK: &str = r#"
name = "rain"
duration = "60 s"
[hosts.server]
[hosts.home]
count = 20
[hosts.far]
[carriers.uplink]
rate = "4.2 Mbit/s"
frame = "25 ms"
[links.homes]
between = ["home", "server"]
rate = "1 Mbit/s"
delay = "250 ms"
forward = { access = { kind = "on-demand", carrier = "uplink" } }
[links.far]
between = ["far", "server"]
rate = "1 Mbit/s"
delay = "250 ms"
forward = { access = { kind = "on-demand", carrier = "uplink" } }
[flows.home]
from = "home"
to = "server"
app = { kind = "packets", size = "972 B", interval = "20 ms" }
[flows.far]
from = "far"
to = "server"
app = { kind = "packets", size = "972 B", interval = "20 ms" }
"#;

fn parsed(settings: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse(NETWORK, "rain.toml", settings).map_err(|error| error.to_string())
}

fn run(settings: &[(&str, &str)]) -> RunOutput {
    let scenario = parsed(settings).expect("it is right");
    scenario.run(&RunOptions::default()).expect("it runs")
}

fn counter(output: &RunOutput, direction: &str, name: &str) -> Option<u64> {
    let mut links = output.summary.links.iter();
    let link = links.find(|link| link.name == direction)?;
    link.counters.as_ref()?.total.get(name).copied()
}

/// Number of frames with requests of all terminals: the first packets arrive at 20 ms and are in
/// the requests of 25 ms, so that the first full frame begins at 525 ms.
const FULL: u64 = (60_000 - 525) / 25 + 1;
/// A twenty-first of the carrier in a frame, in bytes.
const SHARE: u64 = 625;

#[test]
fn a_fade_reduces_only_the_affected_terminals_rate() {
    // Time on the air is shared evenly.
    let clear = run(&[]);
    let faded = run(&[(
        "links.far.forward.schedule",
        r#"[{ at = "0 s", rate = "250 kbit/s" }]"#,
    )]);
    for home in ["homes-1.forward", "homes-20.forward"] {
        assert_eq!(access(&clear, home).granted_bytes, FULL * SHARE);
        assert_eq!(access(&faded, home).granted_bytes, FULL * SHARE);
        assert_eq!(access(&faded, home).faded_bytes, None);
    }
    assert_eq!(access(&clear, "far.forward").granted_bytes, FULL * SHARE);
    let far = access(&faded, "far.forward");
    assert_eq!(far.granted_bytes, FULL * SHARE / 4);
    assert_eq!(far.faded_bytes, Some(0));
    // It has the same share of the carrier as the others.
    assert_eq!(far.granted_air_bytes, Some(FULL * SHARE));
    assert_eq!(far.used_air_bytes, Some(4 * far.used_bytes));
    assert_eq!(access(&clear, "far.forward").granted_air_bytes, None);
    // The unused rest of the grants is smaller than a packet.
    assert!(far.granted_bytes - far.used_bytes < 1_000, "{far:?}");
}

#[test]
fn constant_capacity_takes_more_of_the_carrier_in_a_fade() {
    let constant = r#"{ kind = "on-demand", carrier = "uplink", constant = "200 kbit/s" }"#;
    let with = |rate: &str| {
        let schedule = format!(r#"[{{ at = "0 s", rate = "{rate}" }}]"#);
        run(&[
            ("links.far.forward.access", constant),
            ("links.far.forward.schedule", &schedule),
        ])
    };
    // 200 kbit/s at 1 Mbit/s take a fifth of the terminal's time, at 250 kbit/s four fifths.
    for (rate, takes) in [("1 Mbit/s", 200_000), ("250 kbit/s", 800_000)] {
        let output = with(rate);
        let far = access(&output, "far.forward");
        assert_eq!(
            far.granted_constant_bytes,
            200_000 / 8 / 40 * 2_401,
            "{rate}"
        );
        // All of the run, and the frame in which it ends.
        assert_eq!(far.granted_air_bytes, Some(takes / 8 / 40 * 2_401));
        let each = FULL * (4_200_000 - takes) / 20 / (8 * 40);
        let home = access(&output, "homes-7.forward");
        assert_eq!(home.granted_bytes, each, "{rate}");
    }
}

#[test]
fn rain_over_all_terminals_reduces_the_carrier() {
    // From 30 s all terminals send at a third of the rate. Grants planned for clear sky before the
    // hub knew are worth a third, too.
    let output = run(&[(
        "links.homes.forward.schedule",
        r#"[{ at = "30 s", rate = "333 kbit/s" }]"#,
    )]);
    let third = |bits: u64| bits * 333 / 1_000;
    let frame = SHARE * 8_000;
    let (clear, storm) = ((30_000 - 525) / 25, FULL - (30_000 - 525) / 25);
    let home = access(&output, "homes-3.forward");
    assert_eq!(
        home.granted_bytes,
        (clear * frame + storm * third(frame)) / 8_000
    );
    assert_eq!(home.faded_bytes, Some(20 * (frame - third(frame)) / 8_000));
    assert_eq!(home.granted_air_bytes, Some(FULL * SHARE));
    assert_eq!(access(&output, "far.forward").granted_bytes, FULL * SHARE);
}

#[test]
fn random_fades_are_independent_for_each_terminal() {
    let fading =
        r#"{ clear = "exponential(5 s)", faded = "exponential(5 s)", rate = "500 kbit/s" }"#;
    let output = run(&[("links.homes.forward.fading", fading)]);
    let granted = |number: u64| access(&output, &format!("homes-{number}.forward")).granted_bytes;
    let all: Vec<u64> = (1..=20).map(granted).collect();
    let (least, most) = (FULL * SHARE / 2, FULL * SHARE);
    assert!(
        all.iter().all(|one| (least..=most).contains(one)),
        "{all:?}"
    );
    // Each half of the time on average: the standard deviation of the mean over sixty seconds is
    // about a tenth for twenty.
    let mean = all.iter().sum::<u64>() / 20;
    assert!(
        mean.abs_diff(FULL * SHARE * 3 / 4) < FULL * SHARE / 10,
        "{mean}"
    );
    assert!(
        all.iter().any(|one| one.abs_diff(mean) > mean / 20),
        "{all:?}"
    );
    let again = run(&[("links.homes.forward.fading", fading)]);
    let text = |output: &RunOutput| serde_json::to_string(&output.summary.links).expect("numbers");
    assert_eq!(text(&output), text(&again));
}

#[test]
fn outages_also_lose_requests() {
    let alone = [
        ("links.far.forward.access.carrier", "\"own\""),
        ("carriers.own", r#"{ rate = "1 Mbit/s", frame = "25 ms" }"#),
    ];
    let outage = |sending: &str| {
        let outage = format!(
            r#"[{{ at = "10 s", lasts = "1 s", sending = "{sending}", in_flight = "arrive" }}]"#
        );
        let mut settings = alone.to_vec();
        settings.push(("links.far.forward.outages", &outage));
        run(&settings)
    };
    let lost = outage("lost");
    // One request per frame is lost from 10 s to 11 s.
    assert_eq!(counter(&lost, "far.forward", "requests_lost"), Some(40));
    assert_eq!(counter(&run(&alone), "far.forward", "requests_lost"), None);
    let held = outage("held");
    assert_eq!(counter(&held, "far.forward", "requests_lost"), Some(0));
    let link = |output: &RunOutput| {
        output
            .summary
            .links
            .iter()
            .find(|of| of.name == "far.forward")
            .cloned()
    };
    let (lost, held) = (link(&lost).expect("there"), link(&held).expect("there"));
    // Packets sent in half a second of grants are lost. Later plans have received no requests, so
    // that packets wait, as if the terminal were aware of the outage.
    assert_eq!(lost.packets_lost, 25);
    assert_eq!(held.packets_lost, 0);
    let all = |link: &bentpipe_scenario::LinkSummary| link.packets_delivered + link.packets_lost;
    // Packets in transit or waiting for a grant at the end of the run are missing.
    assert!(all(&held) > 2_999 - 50, "{held:?}");
    let wasted = held.access.as_ref().expect("it asks");
    // Grants of the second in which nothing was sent.
    let unused = wasted.granted_bytes - wasted.used_bytes;
    assert!((24_000..28_000).contains(&unused), "{wasted:?}");
}

#[test]
fn the_granted_rate_follows_a_fade() {
    let output = run(&[
        (
            "probes",
            r#"{ series = ["far.forward.granted"], interval = "1 s" }"#,
        ),
        ("links.far.forward.access.constant", "\"100 kbit/s\""),
        (
            "links.far.forward.schedule",
            r#"[{ at = "20 s", rate = "50 kbit/s" }, { at = "40 s", rate = "1 Mbit/s" }]"#,
        ),
    ]);
    let series = &output.series[0];
    let at = |second: usize| series.values[second];
    assert!((at(10) - 100_000.0).abs() < 1.0, "{}", at(10));
    assert!((at(30) - 50_000.0).abs() < 1.0, "{}", at(30));
    assert!((at(50) - 100_000.0).abs() < 1.0, "{}", at(50));
    let bits: f64 = series.values.iter().sum();
    let granted = access(&output, "far.forward").granted_bytes * 8;
    // The summary includes the whole of the last frame.
    assert!(
        (bits - granted as f64).abs() < 2_600.0,
        "{bits} of {granted}"
    );
}

#[test]
fn inconsistent_access_is_refused() {
    let folder = std::env::temp_dir().join("bentpipe-access-fades");
    fs::create_dir_all(&folder).expect("a folder for a test");
    let file = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("written");
        format!(r#"[{{ file = "{}" }}]"#, folder.join(name).display())
    };
    let table = file("fast.csv", "time (s),rate (Mbit/s)\n0,0.5\n9,1.5\n");
    let instants = file("instants", "2\n").replace(" }]", r#", format = "mahimahi" }]"#);
    let steps = r#"[{ at = "0 s", rate = "1 kbit/s" }, { at = "2 s", rate = "2 Mbit/s" }]"#;
    let (traces, schedule) = ("links.far.forward.traces", "links.far.forward.schedule");
    let of_the_trace = [
        "between = [\"far\", \"server\"]\nrate = \"1 Mbit/s\"",
        "between = [\"far\", \"server\"]\nreturn.rate = \"1 Mbit/s\"",
    ];
    let text = NETWORK.replace(of_the_trace[0], of_the_trace[1]);
    for (text, key, value, message) in [
        (
            NETWORK,
            schedule,
            steps,
            r#".rate: expected at most its rate, "1 Mbit/s", which it has in clear sky, got "2 Mbit/s""#,
        ),
        (
            NETWORK,
            traces,
            &table,
            r#": expected at most its rate, "1 Mbit/s", which it has in clear sky, got "1500 kbit/s""#,
        ),
        (
            &text,
            traces,
            &table,
            "links.far.forward.rate: missing; expected with access the terminal's rate in clear sky, which determines the carrier's share in a fade",
        ),
        (
            &text,
            traces,
            &instants,
            ": expected no trace of instants with access: the hub determines when packets are sent",
        ),
    ] {
        let refusal =
            Scenario::parse(text, "rain.toml", &[(key, value)]).expect_err("it makes no sense");
        let refusal = refusal.to_string();
        assert!(refusal.ends_with(message), "{refusal}");
    }
    // For a trace file, the message has the line.
    let text = NETWORK.replace(
        "[flows.home]",
        "[links.far.forward]\nschedule = [\n    { at = \"1 s\", rate = \"9 Mbit/s\" },\n]\n[flows.home]",
    ).replace("forward = { access = { kind = \"on-demand\", carrier = \"uplink\" } }\n[links.far.forward]", "[links.far.forward]\naccess = { kind = \"on-demand\", carrier = \"uplink\" }");
    let refusal = Scenario::parse(&text, "rain.toml", &[]).expect_err("it is too fast");
    assert_eq!(
        refusal.to_string(),
        r#"rain.toml:23: links.far.forward.schedule.rate: expected at most its rate, "1 Mbit/s", which it has in clear sky, got "9 Mbit/s""#
    );
}

const ACCESSES: [&str; 6] = [
    r#"{ kind = "on-demand", carrier = "uplink" }"#,
    r#"{ kind = "on-demand", carrier = "uplink", rate_based = "300 kbit/s" }"#,
    r#"{ kind = "on-demand", carrier = "uplink", constant = "100 kbit/s", volume_based = true }"#,
    r#"{ kind = "on-demand", carrier = "uplink", constant = "200 kbit/s", free = true }"#,
    r#"{ kind = "on-demand", carrier = "uplink", rate_based = "1 Mbit/s", volume_based = true, free = true }"#,
    r#"{ kind = "on-demand", carrier = "uplink", free = true, request_delay = "3 ms", grant_delay = "1 ms" }"#,
];
const CHANGES: [(&str, &str); 7] = [
    ("in_order", "true"),
    (
        "schedule",
        r#"[{ at = "1 s", rate = "100 kbit/s" }, { at = "2.01 s", rate = "0 bit/s" }, { at = "2.5 s", rate = "700 kbit/s" }]"#,
    ),
    (
        "schedule",
        r#"[{ at = "0 s", rate = "30 kbit/s", delay = "100 ms" }, { at = "4 s", rate = "1 Mbit/s", packet_loss_rate = 0.1 }]"#,
    ),
    (
        "fading",
        r#"{ clear = "exponential(500 ms)", faded = "exponential(300 ms)", rate = "0 bit/s" }"#,
    ),
    (
        "fading",
        r#"{ clear = "uniform(1 ms, 200 ms)", faded = "uniform(1 ms, 90 ms)", rate = "333333 bit/s", packet_loss_rate = 0.2 }"#,
    ),
    (
        "outages",
        r#"[{ at = "1 s", lasts = "600 ms", every = "2 s" }]"#,
    ),
    (
        "outages",
        r#"[{ at = "1 s", lasts = "17 ms", every = "29 ms", sending = "held", in_flight = "held" }, { at = "900 ms", lasts = "1 s" }]"#,
    ),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A debug build counts every packet and the capacity of each frame of a carrier.
    #[test]
    fn all_packets_are_accounted_for_in_any_weather(
        homes in (select(&ACCESSES), select(&CHANGES)),
        far in (select(&ACCESSES), select(&CHANGES)),
        carrier in select(&["1 Mbit/s", "1300 kbit/s", "5 Mbit/s"]),
        bulk in any::<bool>(),
        seed in 1..1_000_u32,
    ) {
        let key = |link: &str, key: &str| format!("links.{link}.forward.{key}");
        let (of_homes, of_far) = (key("homes", homes.1.0), key("far", far.1.0));
        let seed = seed.to_string();
        let carrier = format!("{{ rate = \"{carrier}\", frame = \"20 ms\" }}");
        let mut settings = vec![
            ("duration", "\"8 s\""),
            ("hosts.home.count", "4"),
            ("carriers.uplink", &carrier),
            ("links.homes.forward.access", homes.0),
            ("links.far.forward.access", far.0),
            (&of_homes, homes.1.1),
            (&of_far, far.1.1),
            ("seed", &seed),
        ];
        if bulk {
            settings.push(("flows.home.app", r#"{ kind = "bulk", direction = "both" }"#));
        }
        let output = run(&settings);
        let mut on_air = 0;
        for link in &output.summary.links {
            prop_assert!(link.utilization <= 1.0, "{link:?}");
            let Some(access) = &link.access else { continue };
            prop_assert!(access.used_bytes <= access.granted_bytes, "{link:?}");
            let parts = access.granted_constant_bytes
                + access.granted_rate_based_bytes
                + access.granted_volume_based_bytes
                + access.granted_free_bytes;
            // Each part is rounded down.
            prop_assert!(parts <= access.granted_bytes && access.granted_bytes <= parts + 3);
            prop_assert!(link.bytes_delivered <= access.used_bytes, "{link:?}");
            let free = access.granted_free_bytes;
            on_air += access.granted_air_bytes.unwrap_or(access.granted_bytes - free);
            if let (Some(granted), Some(used)) = (access.granted_air_bytes, access.used_air_bytes) {
                prop_assert!(access.granted_bytes - free <= granted + 4, "{access:?}");
                prop_assert!(access.used_bytes <= used, "{access:?}");
            }
        }
        // Not above the capacity of the carrier, in the frames of 8 s and the one in which they
        // end.
        let rate = output.summary.links.iter().find_map(|link| link.access.as_ref());
        let frames = rate.map_or(0, |access| access.carrier_rate_bps * 20 * 401 / 8_000);
        prop_assert!(on_air <= frames + 8, "{on_air} of {frames}");
        let links = |output: &RunOutput| serde_json::to_string(&output.summary.links).ok();
        prop_assert_eq!(links(&output), links(&run(&settings)));
    }
}
