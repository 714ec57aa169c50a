//! Computes paths over a shell, to measure how the work grows: run it under `time` or callgrind.
//!
//!     growth PLANES SATELLITES_PER_PLANE PAIRS SECONDS bent-pipe|inter-satellite-links
//!
//! Pairs are 500 km apart over a bent pipe, and anywhere over inter-satellite links.

use std::env;

use bentpipe_orbits::{
    Constellation, Geodetic, PathRequest, Routing, Selection, Shell, Site, presets, timeline,
};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| -> usize {
        let word = words.get(index).map_or("", String::as_str);
        word.parse()
            .unwrap_or_else(|_| panic!("expected a number, got {word:?}"))
    };
    let (planes, satellites_per_plane, pairs) = (number(0), number(1), number(2));
    let over_mesh = words
        .get(4)
        .is_some_and(|word| word == "inter-satellite-links");
    let shell = Shell {
        planes,
        satellites_per_plane,
        phasing: planes / 2,
        ..presets::PRESETS[0].shell.clone()
    };
    let constellation = Constellation::of_shell(&shell).expect("a shell");
    let site = |number: usize, longitude: f64| {
        // Spread by the golden angle, between 45 degrees south and north.
        let latitude = 45.0 * (number as f64 * 0.618 % 1.0 * 2.0 - 1.0);
        let longitude = (number as f64 * 137.5 + longitude + 180.0) % 360.0 - 180.0;
        let place = Geodetic {
            latitude,
            longitude,
            height: 0.0,
        };
        Site::fixed("site", place, 25.0)
    };
    let (mut samples, mut handovers, mut gaps) = (0, 0, 0.0);
    for pair in 0..pairs {
        let from = site(pair, 0.0);
        let to = if over_mesh {
            site(pair + pairs, 0.0)
        } else {
            site(pair, 6.0)
        };
        let gateways = [&to];
        let mut request =
            PathRequest::bent_pipe(&constellation, &from, &gateways, number(3) as f64);
        if over_mesh {
            request.routing = Routing::InterSatellite;
            request.selection = Selection::Shortest;
        }
        let path = timeline(&request).expect("a path");
        samples += path
            .stretches
            .iter()
            .map(|stretch| stretch.samples.len())
            .sum::<usize>();
        handovers += path.handovers();
        gaps += path.gaps();
    }
    let satellites = constellation.satellites.len();
    println!(
        "{satellites} satellites, {pairs} pairs: {samples} samples, {handovers} handovers, {gaps:.0} s of gaps"
    );
}
