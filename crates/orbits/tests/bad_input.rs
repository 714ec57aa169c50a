//! Files of orbital elements that are wrong, old or very large, and extreme sites.

use bentpipe_orbits::{
    Constellation, Geodetic, Instant, PathRequest, Shell, Site, parse_elements, parse_track,
    passes, presets, timeline,
};
use proptest::prelude::*;

const FIRST: &str = "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927";
const SECOND: &str = "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537";

#[test]
fn each_wrong_file_names_its_line() {
    let set = format!("{FIRST}\n{SECOND}\n");
    let cases = [
        (String::new(), "expected element sets"),
        (
            format!("ISS\n{FIRST}\n"),
            "line 2: expected line 2 of the set after it, got the end",
        ),
        (
            format!("{set}NAME ONLY\n"),
            "line 3: expected line 1 of a set after the name",
        ),
        (
            format!("A\nB\n{set}"),
            "line 2: expected line 1 of a set after the name \"A\"",
        ),
        (
            SECOND.to_owned(),
            "line 1: expected line 1 of a set before its line 2",
        ),
        (
            set.replace("2927", "2920"),
            "line 1: expected checksum 7, got '0'",
        ),
        (
            set.replace("563537", "563536"),
            "line 2: expected checksum 7, got '6'",
        ),
        (
            format!("{FIRST}\n{}\n", &SECOND[..60]),
            "line 2: expected 69 characters, got 60",
        ),
        (
            format!("{FIRST}\n{FIRST}\n"),
            "line 2: expected line 2 of the set, got",
        ),
        ("[1, 2".to_owned(), "line 1: expected JSON"),
        ("[{}]".to_owned(), "object 1:"),
        ("{\"EPOCH\": 3}".to_owned(), "object 1:"),
    ];
    for (text, expected) in cases {
        let error = parse_elements(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

/// Libraries and formats quote what they could not read: the error is a short line all the same.
#[test]
fn errors_are_one_short_line() {
    let long = "x".repeat(10_000);
    let texts = [
        format!("{long}\u{7}\n{long}\n"),
        format!("[{{\"EPOCH\": \"{long}\"}}]"),
        format!(
            "a\u{1b}[31mb\n{}\n{SECOND}\n",
            FIRST.replace("2927", "2920")
        ),
    ];
    for text in texts {
        let error = parse_elements(&text).expect_err("not elements").to_string();
        assert!(error.len() < 500, "{error}");
        assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
        let error = parse_track(&text).expect_err("no track").to_string();
        assert!(error.len() < 500, "{error}");
        assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
    }
}

#[test]
fn names_duplicates_and_epochs() {
    let text = format!("0 ISS (ZARYA)\n{FIRST}\n{SECOND}\n\n# again\n{FIRST}\n{SECOND}\n");
    let sets = parse_elements(&text).expect("two sets of one object");
    assert_eq!(sets.len(), 1);
    assert_eq!(
        (sets[0].name(), sets[0].number(), sets[0].line),
        ("ISS (ZARYA)", 25_544, 2)
    );
    assert_eq!(sets[0].epoch().to_string(), "2008-09-20T12:25:40.104192Z");
    let start: Instant = "2008-10-20T12:25:40Z".parse().expect("a time");
    let later = Constellation::of_elements(&sets, Some(start)).expect("an orbit");
    let [least, most] = later.ages_days().expect("ages");
    assert!((least - 30.0).abs() < 1e-4 && (most - 30.0).abs() < 1e-4);
    assert_eq!(later.decayed(), [0_usize; 0]);
    // However old the elements are, their age is known.
    let start: Instant = "2050-09-20T00:00:00Z".parse().expect("a time");
    let much_later = Constellation::of_elements(&sets, Some(start)).expect("an orbit");
    assert!(much_later.ages_days().expect("ages")[0] > 15_000.0);
}

#[test]
fn omm_and_tle_give_the_same_orbit() {
    let omm = r#"[{"OBJECT_NAME": "ISS (ZARYA)", "OBJECT_ID": "1998-067A",
        "EPOCH": "2008-09-20T12:25:40.104192", "MEAN_MOTION": 15.72125391,
        "ECCENTRICITY": 0.0006703, "INCLINATION": 51.6416, "RA_OF_ASC_NODE": 247.4627,
        "ARG_OF_PERICENTER": 130.536, "MEAN_ANOMALY": 325.0288, "EPHEMERIS_TYPE": 0,
        "CLASSIFICATION_TYPE": "U", "NORAD_CAT_ID": "25544", "ELEMENT_SET_NO": 292,
        "REV_AT_EPOCH": 56353, "BSTAR": "-1.1606e-05", "MEAN_MOTION_DOT": -2.182e-05,
        "MEAN_MOTION_DDOT": 0}]"#;
    let of_tle = parse_elements(&format!("{FIRST}\n{SECOND}\n")).expect("TLE");
    let of_omm = parse_elements(omm).expect("OMM");
    let of_tle = Constellation::of_elements(&of_tle, None).expect("an orbit");
    let of_omm = Constellation::of_elements(&of_omm, None).expect("an orbit");
    for seconds in [0.0, 1_000.0, 86_400.0] {
        let [one, other] = [&of_tle, &of_omm].map(|of| of.position(0, seconds).expect("a place"));
        assert!(
            one.distance(other) < 2.0,
            "{seconds} {}",
            one.distance(other)
        );
    }
}

/// 100,000 objects: each is propagated a few times only, because most are below the horizon.
#[test]
fn a_hundred_thousand_objects_are_enough_and_more_are_refused() {
    let shell = |planes| Shell {
        planes,
        satellites_per_plane: 1_000,
        ..presets::PRESETS[0].shell.clone()
    };
    assert!(Constellation::of_shell(&shell(101)).is_err());
    let many = Constellation::of_shell(&shell(100)).expect("a shell");
    assert_eq!(many.satellites.len(), 100_000);
    let [site, gateway] = [0.0, 1.0].map(|longitude| {
        let place = Geodetic {
            latitude: 40.0,
            longitude,
            height: 0.0,
        };
        Site::fixed("site", place, 40.0)
    });
    let gateways = [&gateway];
    let path = timeline(&PathRequest::bent_pipe(&many, &site, &gateways, 30.0)).expect("a path");
    assert!(path.gaps() < 1e-9);
}

#[test]
fn sites_at_the_poles_and_on_the_date_line() {
    let iridium = presets::find("iridium").expect("a preset");
    let constellation = Constellation::of_shell(&iridium.shell).expect("a shell");
    let starlink = presets::find("starlink-shell-1").expect("a preset");
    let inclined = Constellation::of_shell(&starlink.shell).expect("a shell");
    for latitude in [-90.0, 90.0] {
        let place = Geodetic {
            latitude,
            longitude: 0.0,
            height: 0.0,
        };
        let pole = Site::fixed("pole", place, 8.0);
        assert!(!passes(&constellation, &pole, 3_600.0).is_empty());
        // A shell at 53 degrees is never seen from a pole: an hour without a satellite.
        assert!(passes(&inclined, &pole, 3_600.0).is_empty());
        let gateways = [&pole];
        let path = timeline(&PathRequest::bent_pipe(
            &inclined, &pole, &gateways, 3_600.0,
        ));
        let path = path.expect("a path");
        assert_eq!(path.stretches.len(), 1);
        assert!((path.gaps() - 3_600.0).abs() < 1e-9);
    }
    let at = |longitude| {
        let place = Geodetic {
            latitude: 10.0,
            longitude,
            height: 0.0,
        };
        Site::fixed("date line", place, 25.0)
    };
    let [east, west] = [at(180.0), at(-180.0)].map(|site| passes(&inclined, &site, 1_200.0));
    assert_eq!(east.len(), west.len());
    for (one, other) in east.iter().zip(&west) {
        assert!((one.rises - other.rises).abs() < 0.2 && one.satellite == other.satellite);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any text is refused or read; nothing panics, not even when it is propagated.
    #[test]
    fn any_text_is_refused_or_read(
        place in 0_usize..140, byte in 32_u8..127, minutes in -1e9_f64..1e9, cut in 0_usize..140,
    ) {
        let mut text = format!("{FIRST}\n{SECOND}\n").into_bytes();
        let place = place.min(text.len() - 1);
        text[place] = byte;
        let text = String::from_utf8(text).expect("ASCII");
        for text in [text.as_str(), &text[..cut]] {
            if let Ok(sets) = parse_elements(text) {
                let start = "2026-06-01".parse().expect("a time");
                if let Ok(of) = Constellation::of_elements(&sets, Some(start)) {
                    let _ = of.position(0, minutes * 60.0);
                }
            }
        }
    }

    /// A satellite that the pruned search does not find is not in sight.
    #[test]
    fn pruning_misses_no_satellite(
        latitude in -90.0_f64..90.0, longitude in -180.0_f64..180.0, elevation in 0.0_f64..60.0,
        preset in 0_usize..presets::PRESETS.len(),
    ) {
        let constellation = Constellation::of_shell(&presets::PRESETS[preset].shell).expect("a shell");
        let place = Geodetic { latitude, longitude, height: 0.0 };
        let site = Site::fixed("site", place, elevation);
        let found = passes(&constellation, &site, 900.0);
        let ground = site.ground(0.0);
        for step in 0..18 {
            let seconds = f64::from(step) * 50.0;
            for satellite in 0..constellation.satellites.len() {
                let position = constellation.position(satellite, seconds).expect("a place");
                let is_up = site.sees(&ground, position);
                let within = found.iter().any(|pass| {
                    pass.satellite == satellite
                        && (pass.rises - 0.1..=pass.sets + 0.1).contains(&seconds)
                });
                // Passes begin and end within the precision of the search.
                if is_up != within {
                    let near = found.iter().any(|pass| {
                        pass.satellite == satellite
                            && ((pass.rises - seconds).abs() < 0.2 || (pass.sets - seconds).abs() < 0.2)
                    });
                    // Shorter passes than its step may be missed.
                    let short = (1..=10).any(|second| {
                        [-1.0, 1.0].into_iter().any(|sign| {
                            let at = seconds + sign * f64::from(second);
                            let position = constellation.position(satellite, at).expect("a place");
                            !site.sees(&ground, position)
                        })
                    });
                    prop_assert!(near || (is_up && short), "{satellite} at {seconds}");
                }
            }
        }
    }
}
