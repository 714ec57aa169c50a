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

/// Jitter, spikes and losses: their size, their places, and their independence of direction.
#[test]
fn a_variation_has_offsets_jitter_spikes_and_losses() {
    let ping = |variation: &str, more: &[(&str, &str)]| {
        let settings = [
            ("flows.download.app.kind", "ping"),
            ("flows.download.app.interval", "10 ms"),
            ("links.satellite.path.handover", "0 s"),
            ("links.satellite.path.variation", variation),
        ];
        scenario(&[&settings[..], more].concat())
    };
    let echoes = |scenario: &Scenario| {
        let summary = serde_json::to_value(run(scenario)).expect("it serializes");
        summary["flows"][0]["echoes"].clone()
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    let geometry = scenario(&[]).orbit_report(0.0).summary["paths"][0]["delay_s"].clone();
    let [least, most] = ["min", "max"].map(|key| 2e3 * number(&geometry[key]));

    // Jitter of up to 10 ms in each direction: a triangle of 0 to 20 ms around their sum.
    let jitter = ping(
        r#"{ jitter = "uniform(0 ms, 10 ms)", jitter_every = "10 ms" }"#,
        &[],
    );
    let times = echoes(&jitter)["time_ms"].clone();
    assert!(number(&times["min"]) < least + 2.0, "{times:#}");
    assert!(number(&times["max"]) > most + 17.0, "{times:#}");
    assert!(number(&times["max"]) < most + 20.2, "{times:#}");
    let median = number(&times["p50"]);
    assert!((least + 9.0..most + 11.0).contains(&median), "{times:#}");
    let mean = number(&data(&jitter)["links"][0]["forward"]["delay_s"]) * 2e3;
    assert!(
        (number(&times["mean"]) - mean).abs() < 0.3,
        "{mean} {times:#}"
    );

    // Spikes of 30 ms for 1.5 s around each of the 7 boundaries: 9% of the time.
    let text = r#"{ spike = "30 ms", spike_before = "500 ms", spike_after = "1 s" }"#;
    let times = echoes(&ping(text, &[]))["time_ms"].clone();
    assert!(number(&times["max"]) > least + 59.0, "{times:#}");
    assert!(number(&times["max"]) < most + 60.2, "{times:#}");
    assert!(number(&times["p50"]) < most + 1.0, "{times:#}");
    assert!(number(&times["p95"]) > least + 29.0, "{times:#}");

    // Half of the packets are lost around boundaries, in each direction: 1 - 0.25 of the echoes.
    let text = r#"{ boundary_loss_rate = 0.5, spike_before = "500 ms", spike_after = "1 s" }"#;
    let lossy = ping(text, &[]);
    let found = echoes(&lossy);
    let lost = 1.0 - number(&found["count"]) / number(&found["requests"]);
    let expected = 0.75 * 7.0 * 1.5 / 120.0;
    // 788 echoes are sent then: a standard deviation of 1.6% of them.
    assert!((lost / expected - 1.0).abs() < 0.1, "{lost} {expected}");
    let losses = data(&lossy)["links"][0]["forward"]["changes"].to_string();
    assert!(losses.contains("14.5"), "{losses}");

    // A key replaces that of the preset.
    let preset = ping(
        r#"{ preset = "starlink-australia-2024", jitter = "0 ms", packet_loss_rate = 0 }"#,
        &[],
    );
    let variation = data(&preset)["links"][0]["path"]["variation"].clone();
    assert_eq!(variation["jitter"], "0 s");
    assert_eq!(variation["boundary_loss_rate"], 0.5);
    assert_eq!(variation["preset"], "starlink-australia-2024");
}

#[test]
fn mistakes_of_a_variation_are_named() {
    let refused = |variation: &str, more: &[(&str, &str)]| {
        let settings = [("links.satellite.path.variation", variation)];
        refusal(&[&settings[..], more].concat())
    };
    for (variation, expected) in [
        ("starlink-europe", "did you mean \"starlink-europe-2023\"?"),
        ("gauss(3 ms)", "expected exponential(MEAN)"),
        (
            r#"{ preset = "none" }"#,
            "variation.preset: expected one of",
        ),
        (r#"{ offset = "3" }"#, "expected a length of time"),
        (
            r#"{ spike = "1 ms", spike_before = "10 s", spike_after = "6 s" }"#,
            "less than a slot",
        ),
        (
            r#"{ jitter_every = "1 ms" }"#,
            "has no effect: there is no jitter",
        ),
        (r#"{ jitters = "1 ms" }"#, "jitters"),
    ] {
        let error = refused(variation, &[]);
        assert!(error.contains(expected), "{variation}: {error}");
    }
    let day = [("duration", "48 h")];
    let error = refused(r#"{ jitter = "1 ms", jitter_every = "10 ms" }"#, &day);
    assert!(
        error.contains("jitter_every: expected a longer time"),
        "{error}"
    );
    let step = [(
        "links.satellite.schedule",
        r#"[{ at = "1 s", packet_loss_rate = 0.1 }]"#,
    )];
    let error = refused("starlink-australia-2024", &step);
    assert!(error.contains("the loss rate is given twice"), "{error}");
}

/// Series of a path have the values of the table `paths`.
#[test]
fn series_of_a_path_are_its_table() {
    let series = r#"["satellite.path.delay", "satellite.path.elevation", "satellite.path.satellite", "satellite.path.satellites", "satellite.path.gateway", "satellite.path.range"]"#;
    let settings = [
        ("probes.series", series),
        ("probes.interval", "1 s"),
        ("links.satellite.path.extra_delay", "5 ms"),
    ];
    let scenario = scenario(&settings);
    let report = scenario.orbit_report(0.0);
    let numbers = |name: &str| -> Vec<f64> {
        let columns = &report.tables[0].columns;
        match columns.iter().find(|(each, _)| *each == name) {
            Some((_, OrbitColumn::Numbers(numbers))) => numbers.clone(),
            other => panic!("{other:?}"),
        }
    };
    let at = numbers("at_s");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    for (series, column) in [
        ("delay", "delay_s"),
        ("elevation", "elevation_deg"),
        ("satellites", "satellites"),
        ("range", "range_m"),
    ] {
        let name = format!("satellite.path.{series}");
        let found = output.series.iter().find(|each| each.name == name);
        let found = found.unwrap_or_else(|| panic!("no {name}"));
        assert!(found.values.len() >= 120, "{}", found.values.len());
        let values = numbers(column);
        for (time, value) in found.times_ns.iter().zip(&found.values) {
            let seconds = *time as f64 / 1e9;
            // Of two rows at a handover, the later one counts.
            let row = at.iter().rposition(|at| *at <= seconds).expect("a row");
            assert!(
                (values[row] - value).abs() < 1e-9 * value.abs(),
                "{name} at {seconds}"
            );
        }
    }
    let changing = [settings[0], ("probes.interval", "every-change")];
    let output = self::scenario(&changing).run(&RunOptions::default());
    let series = output.expect("it runs").series;
    assert!(
        series[0].values.len() >= 1_200,
        "{}",
        series[0].values.len()
    );
    let error = refusal(&[("probes.series", r#"["satellite.path.height"]"#)]);
    assert!(
        error.contains("no series of a path is \"height\""),
        "{error}"
    );
    let text = TEXT.replace("path = {", "delay = \"1 ms\" #");
    let error = Scenario::parse(&text, "orbits.toml", &[settings[0]]).expect_err("it is wrong");
    assert!(
        error.to_string().contains("has no path over satellites"),
        "{error}"
    );
}

const TWO_GATEWAYS: &str = r#"name = "addresses"
duration = "240 s"
constellations.geo.longitudes = ["0 deg"]
constellations.leo.preset = "starlink-shell-1"
sites.office = { latitude = "52.5 deg", longitude = "13.4 deg" }
sites.west = { latitude = "51 deg", longitude = "4 deg" }
sites.east = { latitude = "51 deg", longitude = "23 deg" }
hosts = { server = {}, client = {} }
gateways.pop = { kind = "nat", facing = "satellite" }
flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
flows.call = { from = "client", to = "server", app = { kind = "voice" } }
links.backbone = { between = ["server", "pop"], rate = "1 Gbit/s", delay = "2 ms" }
[links.satellite]
between = ["pop", "client"]
rate = "20 Mbit/s"
path = { constellation = "leo", from = "office", to = ["west", "east"] }
"#;

/// A change of gateway changes the address: TCP connections break, and calls go on.
#[test]
fn a_change_of_address_breaks_connections() {
    let parse = |settings: &[(&str, &str)]| {
        let parsed = Scenario::parse(TWO_GATEWAYS, "addresses.toml", settings);
        parsed.unwrap_or_else(|error| panic!("{error}"))
    };
    let summary = |scenario: &Scenario| serde_json::to_value(run(scenario)).expect("it serializes");
    let nat = parse(&[]);
    let changes = data(&nat)["nodes"].as_array().expect("nodes").clone();
    let pop = changes
        .iter()
        .find(|node| node["name"] == "pop")
        .expect("pop");
    let times = pop["changes_s"].as_array().expect("times").clone();
    assert!(!times.is_empty(), "{pop:#}");
    let first = times[0].as_f64().expect("a number");
    assert!((first / 15.0).fract().abs() < 1e-9);

    let broken = summary(&nat);
    let download = &broken["flows"][0];
    let addresses = &broken["gateways"][0]["addresses"];
    assert_eq!(addresses["changes"], times.len(), "{addresses:#}");
    assert!(
        addresses["connections_broken"].as_u64() >= Some(1),
        "{addresses:#}"
    );
    // Nothing of it is delivered after the change.
    let most = first * 20e6 / 8.0;
    let bytes = download["bytes_delivered"].as_f64().expect("a number");
    assert!((0.5 * most..most).contains(&bytes), "{download:#}");
    assert!(
        addresses["mappings_renewed"].as_u64() >= Some(1),
        "{addresses:#}"
    );
    let heard = |summary: &Value| {
        let call = &summary["flows"][1]["calls"][0];
        ["there", "back"].map(|way| call[way]["mos"].as_f64().expect("a number"))
    };
    assert!(heard(&broken).iter().all(|mos| *mos > 4.0), "{broken:#}");

    // An operator that keeps addresses by a tunnel.
    let kept = summary(&parse(&[("gateways.pop", r#"{ kind = "router" }"#)]));
    let all = kept["flows"][0]["bytes_delivered"]
        .as_f64()
        .expect("a number");
    assert!(all > 0.7 * 240.0 * 20e6 / 8.0, "{all}");
    assert!(bytes < 0.8 * all, "{bytes} {all}");

    let error = Scenario::parse(
        TWO_GATEWAYS,
        "addresses.toml",
        &[("gateways.pop.facing", "backbone")],
    );
    let error = error.expect_err("it has no path").to_string();
    assert!(
        error.contains("expected a link with a path over satellites"),
        "{error}"
    );
}

const BEAM: &str = r#"name = "beam"
duration = "120 s"
constellations.leo.preset = "oneweb"
sites.village = { latitude = "60 deg", longitude = "10 deg" }
sites.gateway = { latitude = "58 deg", longitude = "16 deg" }
hosts = { server = {}, homes = { count = 4 } }
gateways.hub = { kind = "router" }
carriers.uplink = { rate = "8 Mbit/s" }
links.backbone = { between = ["server", "hub"], rate = "1 Gbit/s", delay = "2 ms" }
flows.downloads = { from = "server", to = "homes", app = { kind = "bulk" } }
[links.beam]
between = ["hub", "homes"]
broadcast = true
one_way = true
acm = { modes = "dvb-s2x", symbol_rate = "8 Mbaud", es_n0 = "12 dB" }
queue = { kind = "fq-codel" }
path = { constellation = "leo", from = "village", to = "gateway", select = "longest" }
[links.up]
between = ["homes", "hub"]
one_way = true
rate = "2 Mbit/s"
path = { constellation = "leo", from = "village", to = "gateway", select = "longest" }
access = { kind = "on-demand", carrier = "uplink", constant = "64 kbit/s", volume_based = true }
"#;

/// Terminals of one beam share its carrier, whose modes follow the satellite, and a return carrier.
#[test]
fn terminals_share_a_beam() {
    let parse = |settings: &[(&str, &str)]| {
        let parsed = Scenario::parse(BEAM, "beam.toml", settings);
        parsed.unwrap_or_else(|error| panic!("{error}"))
    };
    let beam = parse(&[]);
    let rates = data(&beam)["links"].as_array().expect("links").clone();
    let carrier = rates
        .iter()
        .find(|link| link["name"] == "beam")
        .expect("the beam");
    let course = carrier["forward"]["acm"]["course"]
        .as_array()
        .expect("a course");
    assert!(course.len() > 1, "{course:?}");
    let summary = serde_json::to_value(run(&beam)).expect("it serializes");
    let goodputs: Vec<f64> = (0..4)
        .map(|flow| {
            summary["flows"][flow]["goodput_bps"]
                .as_f64()
                .expect("a number")
        })
        .collect();
    let all: f64 = goodputs.iter().sum();
    // DVB-S2X at 12 dB less the margin and up to 3 dB for the distance: 2.2 to 3 bits a symbol.
    assert!((0.75 * 16e6..24e6).contains(&all), "{goodputs:?}");
    for goodput in &goodputs {
        assert!((goodput * 4.0 / all - 1.0).abs() < 0.15, "{goodputs:?}");
    }
    // Alone, one home gets most of the beam.
    let one = parse(&[("flows.downloads.to", "homes-1")]);
    let alone = serde_json::to_value(run(&one)).expect("it serializes");
    let alone = alone["flows"][0]["goodput_bps"].as_f64().expect("a number");
    assert!(alone > 0.8 * all, "{alone} {all}");
}

/// Packets in flight at a handover are lost, or arrive over the old satellite.
#[test]
fn packets_in_flight_are_lost_or_forwarded() {
    let counters = |in_flight: &str, sending: &str| {
        let summary = run(&scenario(&[
            ("links.satellite.path.in_flight", in_flight),
            ("links.satellite.path.sending", sending),
        ]));
        let counters = summary.links[0].counters.as_ref().expect("counters");
        ["lost_to_outages", "held_by_outages"].map(|name| counters.total[name])
    };
    let [lost, held] = counters("lost", "held");
    assert!(lost > 0 && held == 0, "{lost} {held}");
    let [lost, held] = counters("held", "held");
    assert!(lost == 0 && held > 0, "{lost} {held}");
    let [lost, held] = counters("arrive", "held");
    assert!(lost == 0, "{lost} {held}");
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
