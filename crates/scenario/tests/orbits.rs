//! Paths over satellites, from file to result.

use std::fs;
use std::path::Path;

use bentpipe_scenario::{OrbitColumn, RunOptions, Scenario, Summary};
use serde_json::Value;

const TEXT: &str = r#"name = "orbits"
duration = "120 s"
constellations.leo.preset = "starlink-shell-1"
sites.office = { latitude = "52.5 deg", longitude = "13.4 deg" }
sites.gateway = { latitude = "50.1 deg", longitude = "8.7 deg" }
hosts = { server = {}, client = {} }
flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
[links.satellite]
between = ["server", "client"]
rate = "20 Mbit/s"
path = { constellation = "leo", from = "office", to = "gateway", handover = "50 ms" }
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    Scenario::parse(TEXT, "orbits.toml", settings).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(settings: &[(&str, &str)]) -> String {
    let error = Scenario::parse(TEXT, "orbits.toml", settings).expect_err("it is wrong");
    error.to_string()
}

fn run(scenario: &Scenario) -> Summary {
    let options = RunOptions {
        no_series: true,
        ..RunOptions::default()
    };
    let output = scenario.run(&options);
    output.unwrap_or_else(|error| panic!("{error}")).summary
}

fn data(scenario: &Scenario) -> Value {
    serde_json::to_value(scenario).expect("it serializes")
}

/// A geostationary satellite does not move, so its path is a constant delay.
#[test]
fn a_geostationary_path_equals_a_constant_delay() {
    let path = r#"{ constellation = "geo", from = "office", to = "gateway" }"#;
    let geo = scenario(&[
        ("constellations.geo", r#"{ longitudes = ["13 deg"] }"#),
        ("links.satellite.path", path),
    ]);
    let delay = geo.links[0].forward.delay;
    assert!((0.24..0.28).contains(&delay.as_secs_f64()), "{delay:?}");
    let text = TEXT.replace(
        "path = { constellation = \"leo\", from = \"office\", to = \"gateway\", handover = \"50 ms\" }",
        &format!("delay = \"{} ns\"", delay.as_nanos()),
    );
    let constant = Scenario::parse(&text, "orbits.toml", &[]).expect("it is right");
    let [one, other] = [&geo, &constant].map(|scenario| {
        let mut summary = serde_json::to_value(run(scenario)).expect("it serializes");
        for link in summary["links"].as_array_mut().expect("links") {
            link.as_object_mut().expect("a link").remove("counters");
        }
        summary
    });
    assert_eq!(one, other);
}

/// The least round trip of a run is that of the shortest path.
#[test]
fn round_trips_are_those_of_the_orbits() {
    let summary = run(&scenario(&[
        ("flows.download.app.kind", "ping"),
        ("flows.download.app.interval", "100 ms"),
        ("links.satellite.path.handover", "0 s"),
    ]));
    let resolved = scenario(&[("links.satellite.path.handover", "0 s")]);
    let report = resolved.orbit_report(0.0);
    let delay = &report.summary["paths"][0]["delay_s"];
    let echoes = serde_json::to_value(&summary.flows[0]).expect("it serializes");
    let rtt = &echoes["echoes"]["time_ms"];
    let number = |value: &Value| value.as_f64().expect("a number");
    // Transmission of an echo takes some microseconds each way.
    let least = number(&rtt["min"]) / 1e3 - 2.0 * number(&delay["min"]);
    assert!((0.0..2e-4).contains(&least), "{least} {echoes:#}");
    let most = number(&rtt["max"]) / 1e3 - 2.0 * number(&delay["max"]);
    assert!(most.abs() < 2e-4, "{most} {echoes:#}");
}

#[test]
fn handovers_are_outages_of_both_directions() {
    let scenario = scenario(&[]);
    let resolved = data(&scenario);
    let link = &resolved["links"][0];
    let outages = link["forward"]["changes"]["outages"]
        .as_array()
        .expect("outages");
    let handovers = link["path"]["handovers"].as_u64().expect("a number");
    assert!(handovers >= 2);
    assert_eq!(outages.len() as u64, handovers);
    for outage in outages {
        let at = outage["at_s"].as_f64().expect("a number");
        assert!((at / 15.0).fract().abs() < 1e-9, "{at}");
        assert!((outage["lasts_s"].as_f64().expect("a number") - 0.05).abs() < 1e-12);
    }
    assert_eq!(
        &link["return"]["changes"]["outages"],
        &link["forward"]["changes"]["outages"]
    );
    let summary = run(&scenario);
    let counters = summary.links[0].counters.as_ref().expect("counters");
    assert!(counters.total["lost_to_outages"] > 0, "{counters:?}");
}

/// Each slot has a further delay of its own, drawn from the seed.
#[test]
fn slots_vary_with_the_seed() {
    let settings = [
        ("flows.download.app.kind", "ping"),
        ("flows.download.app.interval", "100 ms"),
        ("links.satellite.path.handover", "0 s"),
        ("links.satellite.path.variation", "uniform(0 ms, 20 ms)"),
    ];
    let round_trips = |seed: &str| {
        let settings = [&settings[..], &[("seed", seed)]].concat();
        let summary = serde_json::to_value(run(&scenario(&settings))).expect("it serializes");
        let rtt = &summary["flows"][0]["echoes"]["time_ms"];
        ["min", "mean", "max"].map(|key| rtt[key].as_f64().expect("a number") / 1e3)
    };
    let [one, same, other] = ["1", "1", "2"].map(round_trips);
    assert_eq!(one, same);
    assert_ne!(one, other);
    // Within 40 ms of the geometry: both directions have the same variation.
    let steady = scenario(&settings[..3]).orbit_report(0.0).summary["paths"][0]["delay_s"].clone();
    let [least, most] = ["min", "max"].map(|key| 2.0 * steady[key].as_f64().expect("a number"));
    for [min, _, max] in [one, other] {
        assert!(
            least <= min && max <= most + 0.0402 && max - min > 0.015,
            "{one:?} {other:?}"
        );
    }
    // The mean is part of what predictions use.
    let varied = data(&scenario(&settings))["links"][0]["forward"]["delay_s"].clone();
    let constant = data(&scenario(&settings[..3]))["links"][0]["forward"]["delay_s"].clone();
    let difference = varied.as_f64().expect("a number") - constant.as_f64().expect("a number");
    assert!((difference - 0.01).abs() < 1e-6, "{difference}");
}

/// The same file gives the same delays on every machine: pinned to the nanosecond.
#[test]
fn delays_are_the_same_on_every_machine() {
    let scenario = scenario(&[]);
    let changes = scenario.links[0].forward.changes.as_ref().expect("changes");
    let delays = changes.delay.as_ref().expect("delays").steps();
    // Up and down at the zenith, and at 25 degrees above a sphere whose radius is the polar one,
    // the least of the ellipsoid: sqrt((R + h)^2 - (R cos e)^2) - R sin e.
    let (orbit, ground, elevation) = (6_928.137_f64, 6_356.752_f64, 25_f64.to_radians());
    let slant =
        (orbit.powi(2) - (ground * elevation.cos()).powi(2)).sqrt() - ground * elevation.sin();
    let nanoseconds = |kilometres: f64| (2.0 * kilometres / 299_792.458 * 1e9) as u64;
    let bounds = nanoseconds(550.0)..nanoseconds(slant);
    assert!(
        delays
            .iter()
            .all(|(_, delay)| bounds.contains(&delay.as_nanos()))
    );
    let sum: u64 = delays.iter().map(|(_, delay)| delay.as_nanos()).sum();
    assert_eq!((delays.len(), sum), PINNED);
}

/// The number of points and the sum of their delays in nanoseconds, as computed on x86-64.
const PINNED: (usize, u64) = (124, 561_958_556);

#[test]
fn the_rate_follows_the_distance() {
    let acm = r#"{ modes = "dvb-s2", symbol_rate = "20 Mbaud", es_n0 = "12 dB" }"#;
    let text = TEXT.replace("rate = \"20 Mbit/s\"", &format!("acm = {acm}"));
    let scenario = Scenario::parse(&text, "orbits.toml", &[]).expect("it is right");
    let resolved = data(&scenario);
    let course = resolved["links"][0]["forward"]["acm"]["course"]
        .as_array()
        .expect("a course");
    assert!(course.len() > 3, "{course:?}");
    let report = scenario.orbit_report(0.0);
    let numbers = |table: usize, name: &str| -> Vec<f64> {
        let columns = &report.tables[table].columns;
        match columns.iter().find(|(each, _)| *each == name) {
            Some((_, OrbitColumn::Numbers(numbers))) => numbers.clone(),
            other => panic!("{other:?}"),
        }
    };
    // Free-space loss relative to 550 km, minus a margin of 1 dB.
    let range = numbers(0, "range_m");
    let at = numbers(0, "at_s");
    let es_n0_db = |index: usize| 12.0 - 20.0 * (range[index] / 550e3).log10() - 1.0;
    for step in course {
        let begins = step["at_s"].as_f64().expect("a number");
        let index = at.iter().rposition(|at| *at <= begins).expect("a sample");
        let name = step["mode"].as_str().expect("a mode");
        let mode = bentpipe_scenario::modcod::DVB_S2
            .iter()
            .find(|mode| mode.name == name);
        let threshold = mode.expect("a mode").threshold_db;
        assert!(threshold <= es_n0_db(index) + 1e-6, "{name} at {begins}");
    }
    // Rain and distance add up.
    let rain = [(
        "links.satellite.schedule",
        r#"[{ at = "60 s", attenuation = "30 dB" }]"#,
    )];
    let rain = Scenario::parse(&text, "orbits.toml", &rain).expect("it is right");
    let outages = data(&rain)["links"][0]["forward"]["changes"]["outages"].clone();
    let outages = outages.as_array().expect("outages").clone();
    assert!(
        outages.iter().any(|outage| outage["at_s"] == 60.0),
        "{outages:?}"
    );
}

#[test]
fn each_mistake_is_named() {
    let two = r#"["gateway", "elsewhere"]"#;
    for (key, value, expected) in [
        (
            "constellations.leo.preset",
            "starlink",
            "expected one of \"starlink-shell-1\", \"kuiper-shell-1\"",
        ),
        (
            "constellations.leo.altitude",
            "550 km",
            "expected none beside preset",
        ),
        (
            "constellations.leo.start",
            "\"2026-06-01\"",
            "has no effect with preset",
        ),
        (
            "constellations.leo.planes",
            "3",
            "has no effect with preset",
        ),
        ("constellations.leo", "{}", "missing; expected a preset"),
        (
            "constellations.leo",
            r#"{ file = "none.tle" }"#,
            "none.tle: no such file",
        ),
        ("constellations.leo", r#"{ altitude = "50 km" }"#, "missing"),
        (
            "sites.office.latitude",
            "91 deg",
            r#"expected "-90 deg" to "90 deg", got "91 deg""#,
        ),
        (
            "sites.office.latitude",
            "52.5",
            r#"expected an angle such as "52.5 deg", got 52.5"#,
        ),
        (
            "sites.office.min_elevation",
            "-1 deg",
            r#"expected "0 deg" to "90 deg""#,
        ),
        (
            "sites.office",
            "{}",
            r#"missing; expected an angle such as "52.5 deg""#,
        ),
        (
            "links.satellite.path.constellation",
            "geo",
            "no constellation is named \"geo\"",
        ),
        (
            "links.satellite.path.from",
            "offices",
            "did you mean \"office\"?",
        ),
        (
            "links.satellite.path.to",
            two,
            "no site is named \"elsewhere\"",
        ),
        ("links.satellite.path.select", "best", "expected one of"),
        (
            "links.satellite.path.slot",
            "1 ms",
            r#"expected "100 ms" to "1 h", got "1 ms""#,
        ),
        (
            "links.satellite.path.handover",
            "20 s",
            r#"expected "0 s" to "15 s", got "20 s""#,
        ),
        ("links.satellite.path.height", "3", "height"),
        (
            "links.satellite.delay",
            "10 ms",
            "has no effect: path determines the delay",
        ),
        (
            "links.satellite.schedule",
            r#"[{ at = "1 s", delay = "3 ms" }]"#,
            "the delay is given twice",
        ),
        (
            "sites.gateway",
            r#"{ latitude = "-50 deg", longitude = "8 deg" }"#,
            "no satellite of \"leo\" joins \"office\" and \"gateway\" at any time of the run",
        ),
    ] {
        let error = refusal(&[(key, value)]);
        assert!(error.contains(expected), "{key}={value}: {error}");
    }
    let geo = [
        ("constellations.leo", r#"{ longitudes = ["13 deg"] }"#),
        ("links.satellite.path.over", "inter-satellite-links"),
    ];
    assert!(refusal(&geo).contains("expected a shell of at least 3 planes"));
    let longest = [
        ("links.satellite.path.select", "longest"),
        ("links.satellite.path.hysteresis", "3 deg"),
    ];
    assert!(refusal(&longest).contains("has no effect: only select = \"highest\""));
    let lines = TEXT.replace("52.5 deg", "95 deg");
    let error = Scenario::parse(&lines, "orbits.toml", &[]).expect_err("it is wrong");
    assert!(
        error
            .to_string()
            .starts_with("orbits.toml:4: sites.office.latitude: "),
        "{error}"
    );
}

#[test]
fn elements_and_tracks_are_read_from_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("orbits-files");
    fs::create_dir_all(&folder).expect("a folder for a test");
    let set = "ISS\n1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";
    let write = |name: &str, content: &str| fs::write(folder.join(name), content).expect("written");
    write("iss.tle", set);
    write("wrong.tle", &set.replace("2927", "2921"));
    write(
        "ship.csv",
        "time (s),latitude,longitude\n0,0,0\n7200,0.5,0.5\n",
    );
    let file = folder.join("orbits.toml");
    let load =
        |settings: &[(&str, &str)]| Scenario::parse(TEXT, &file.display().to_string(), settings);
    let day = [
        ("duration", "24 h"),
        ("constellations.leo", r#"{ file = "iss.tle" }"#),
        (
            "sites.office",
            r#"{ track = "ship.csv", min_elevation = "5 deg" }"#,
        ),
        (
            "sites.gateway",
            r#"{ latitude = "0 deg", longitude = "1 deg", min_elevation = "5 deg" }"#,
        ),
    ];
    let scenario = load(&day).unwrap_or_else(|error| panic!("{error}"));
    let report = scenario.orbit_report(0.0);
    let path = &report.summary["paths"][0];
    // One satellite in a low orbit is in sight for minutes a day.
    let available = path["available"].as_f64().expect("a number");
    assert!((0.001..0.05).contains(&available), "{path:#}");
    assert_eq!(
        report.summary["constellations"][0]["start"],
        "2008-09-20T12:25:40.104192Z"
    );
    let error = load(&[("constellations.leo", r#"{ file = "wrong.tle" }"#)]).expect_err("wrong");
    assert!(
        error
            .to_string()
            .contains("wrong.tle:2: expected checksum 7, got '1'"),
        "{error}"
    );
}
