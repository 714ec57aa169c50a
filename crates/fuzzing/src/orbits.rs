//! Fuzzes the readers of orbital elements (TLE, OMM) and of tracks (CSV, GPX): any text is read, or
//! gets an error of one line.

use bentpipe_orbits::{Constellation, OrbitError, Site, parse_elements, parse_track};

/// Times at which what was read is asked for its place, in seconds.
const TIMES: [f64; 4] = [0.0, 1.0, 86_400.0, -1e9];

/// Element sets of which places are computed.
const MOST: usize = 16;

/// Reads `text` as orbital elements and as a track, and computes places of both.
///
/// # Panics
/// If an error is not one short line, or a place is no number.
pub fn run(text: &str) {
    match parse_elements(text) {
        Err(error) => check(&error),
        Ok(sets) => match Constellation::of_elements(&sets[..sets.len().min(MOST)], None) {
            Err(error) => check(&error),
            Ok(constellation) => {
                for satellite in 0..constellation.satellites.len() {
                    for seconds in TIMES {
                        if let Some(place) = constellation.position(satellite, seconds) {
                            assert!(place.norm().is_finite(), "{place:?}");
                        }
                    }
                }
            }
        },
    }
    match parse_track(text).and_then(|points| Site::moving("site", points, 0.0)) {
        Err(error) => check(&error),
        Ok(site) => {
            for seconds in TIMES {
                let place = site.place(seconds);
                assert!((-90.0..=90.0).contains(&place.latitude), "{place:?}");
                assert!((-360.0..=360.0).contains(&place.longitude), "{place:?}");
            }
        }
    }
}

fn check(error: &OrbitError) {
    let line = error.to_string();
    assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    assert!(line.len() < 2_000, "{line}");
}
