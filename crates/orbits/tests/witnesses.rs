//! Published figures and closed forms.

use bentpipe_orbits::{
    Constellation, EQUATORIAL_RADIUS, Geodetic, PathRequest, Pattern, Routing, Selection, Shell,
    Site, coverage_angle, degrees, parse_elements, passes, presets, radians, slant_range, timeline,
    worst_gap,
};

fn site(name: &str, latitude: f64, longitude: f64, min_elevation: f64) -> Site {
    let place = Geodetic {
        latitude,
        longitude,
        height: 0.0,
    };
    Site::fixed(name, place, min_elevation)
}

/// Vallado, Crawford, Hujsak and Kelso 2006: positions to a millimetre.
#[test]
fn sgp4_meets_the_published_vectors() {
    let text = include_str!("data/vallado.txt");
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .peekable();
    let (mut sets, mut states, mut errors) = (0, 0, 0);
    while let Some(first) = lines.next() {
        let second = lines.next().expect("line 2");
        let read = parse_elements(&format!("{first}\n{second}\n")).expect(first);
        sets += 1;
        while let Some(state) = lines.next_if(|line| !line.starts_with("1 ")) {
            let (minutes, rest) = state.split_once(' ').expect(state);
            let position = read[0].inertial_position(minutes.parse().expect(state));
            if rest == "error" {
                assert_eq!(position, None, "{first} {state}");
                errors += 1;
                continue;
            }
            let position = position.expect(state);
            for (expected, got) in rest.split(' ').zip(position) {
                let expected: f64 = expected.parse().expect(state);
                assert!(
                    (expected - got).abs() < 1e-6,
                    "{first} {state} {position:?}"
                );
            }
            states += 1;
        }
    }
    assert_eq!((sets, states, errors), SGP4_VECTORS);
}

const SGP4_VECTORS: (usize, usize, usize) = (33, 95, 2);

/// A satellite on a circle over the equator, seen from the equator: the length of a pass follows
/// from the coverage angle and the relative rate.
#[test]
fn a_pass_lasts_as_long_as_the_closed_form() {
    let shell = Shell {
        altitude: 1_000e3,
        inclination: 0.0,
        planes: 1,
        satellites_per_plane: 1,
        phasing: 0,
        pattern: Pattern::Delta,
        ascending_node: 0.0,
        phase: 180.0,
    };
    let constellation = Constellation::of_shell(&shell).expect("a shell");
    let found = passes(&constellation, &site("equator", 0.0, 0.0, 10.0), 8_000.0);
    assert_eq!(found.len(), 1);
    let orbit = EQUATORIAL_RADIUS + 1_000e3;
    let angle = coverage_angle(EQUATORIAL_RADIUS, orbit, radians(10.0));
    // Kepler's third law, the drift by J2 (3 n J2 (R/a)^2 / 2 times 3 - 1) and the Earth's turn.
    let motion = f64::sqrt(3.986_004_418e14 / orbit.powi(3));
    let drift = 1.5 * motion * 1.082_626_68e-3 * (EQUATORIAL_RADIUS / orbit).powi(2) * 2.0;
    let expected = 2.0 * angle / (motion + drift - 7.292_115_855e-5);
    let lasts = found[0].sets - found[0].rises;
    assert!((lasts - expected).abs() < 0.2, "{lasts} {expected}");
    assert!((found[0].highest - 90.0).abs() < 1.0, "{found:?}");
}

/// Delays of a bent pipe lie between those of the zenith and of the least elevation.
#[test]
fn a_bent_pipe_is_as_long_as_its_slant_ranges() {
    let preset = presets::find("starlink-shell-1").expect("a preset");
    let constellation = Constellation::of_shell(&preset.shell).expect("a shell");
    let terminal = site("terminal", 52.5, 13.4, 25.0);
    let gateway = site("gateway", 50.1, 8.7, 25.0);
    let gateways = [&gateway];
    let path = timeline(&PathRequest::bent_pipe(
        &constellation,
        &terminal,
        &gateways,
        600.0,
    ));
    let path = path.expect("a path");
    assert!(path.gaps() < 1e-9);
    assert!(path.handovers() >= 10, "{}", path.handovers());
    let orbit = EQUATORIAL_RADIUS + 550e3;
    for stretch in &path.stretches {
        for sample in &stretch.samples {
            for (elevation, range) in [
                (sample.elevation, sample.range),
                (sample.far_elevation, sample.far_range),
            ] {
                assert!(elevation >= 25.0);
                // On the ellipsoid the ground is up to 15 km lower at these latitudes.
                let radius = EQUATORIAL_RADIUS - 14e3;
                let expected = slant_range(radius, orbit, radians(elevation));
                assert!(
                    (range - expected).abs() < 6e3,
                    "{range} {expected} {elevation}"
                );
            }
            assert!((sample.length - sample.range - sample.far_range).abs() < 1e-6);
        }
    }
}

/// A geostationary satellite at the site's longitude: the elevation is a textbook formula, and the
/// delay is that of the law of cosines.
#[test]
fn a_geostationary_satellite_stands_still() {
    let constellation = Constellation::geostationary(&[13.0]);
    let terminal = site("terminal", 48.0, 13.0, 5.0);
    let equator = site("gateway", 0.0, 13.0, 5.0);
    let gateways = [&equator];
    let path = timeline(&PathRequest::bent_pipe(
        &constellation,
        &terminal,
        &gateways,
        3_600.0,
    ));
    let path = path.expect("a path");
    assert_eq!(path.stretches.len(), 1);
    let samples = &path.stretches[0].samples;
    assert_eq!(samples.len(), 3_601);
    assert!(
        samples
            .windows(2)
            .all(|pair| pair[0].length == pair[1].length)
    );
    // 42,164 km from the centre: 35,786 km above the equator.
    assert!(
        (samples[0].far_range - 35_786e3).abs() < 1e3,
        "{:?}",
        samples[0]
    );
    let ground = terminal.ground(0.0).position;
    let radius = f64::hypot(ground.x, f64::hypot(ground.y, ground.z));
    let latitude = f64::atan2(ground.z, f64::hypot(ground.x, ground.y));
    let orbit = 42_164.2e3_f64;
    let squared = radius.powi(2) + orbit.powi(2) - 2.0 * radius * orbit * latitude.cos();
    assert!((samples[0].range - squared.sqrt()).abs() < 1e3);
}

/// Huston, "Using LEOs and GEOs", APNIC 2022: from the ground below a geostationary satellite to it
/// and down takes 239 ms. From where it is on the horizon, his distance of 42,640 km gives 284 ms;
/// the tangent to the equator is 2% shorter.
#[test]
fn geostationary_delays_are_the_published_ones() {
    let constellation = Constellation::geostationary(&[0.0]);
    let delay_ms = |latitude: f64, longitude: f64| {
        let one = site("one", latitude, longitude, 0.0);
        let gateways = [&one];
        let path = timeline(&PathRequest::bent_pipe(
            &constellation,
            &one,
            &gateways,
            1.0,
        ));
        path.expect("a path").stretches[0].samples[0].delay_s() * 1e3
    };
    assert!(
        (delay_ms(0.0, 0.0) - 239.0).abs() < 0.5,
        "{}",
        delay_ms(0.0, 0.0)
    );
    // On the equator the satellite sets at acos(6378.137 / 42164.2) = 81.3 degrees, and is as far
    // away as the tangent is long.
    let tangent = f64::sqrt(42_164.2_f64.powi(2) - 6_378.137_f64.powi(2));
    let expected = 2.0 * tangent / 299_792.458 * 1e3;
    assert!(
        (delay_ms(0.0, 81.29) - expected).abs() < 0.1,
        "{}",
        delay_ms(0.0, 81.29)
    );
    assert!((expected / 284.0 - 1.0).abs() < 0.03);
}

/// Hypatia (Kassing et al., IMC 2020), its test data for Kuiper's first shell: Manila to Dalian,
/// and Sankt-Peterburg to Dalian, over inter-satellite links, for 200 s from 2000-01-01 00:00. The
/// hop counts are those of its `networkx_path` files, and the round trips those of its
/// `networkx_rtt` files at the instants given. Ground links are at most 1,260 km long there, which
/// is an elevation here.
#[test]
fn hypatias_paths_over_kuiper() {
    let start: bentpipe_orbits::Instant = "2000-01-01T00:00:00Z".parse().expect("a time");
    let mut shell = presets::find("kuiper-shell-1")
        .expect("a preset")
        .shell
        .clone();
    // 14.80 revolutions per day, and the node of the first plane at the vernal equinox.
    let motion = 14.80 * std::f64::consts::TAU / 86_400.0;
    shell.altitude = libm::cbrt(3.986_004_418e14 / (motion * motion)) - EQUATORIAL_RADIUS;
    shell.ascending_node = -degrees(start.sidereal_angle());
    let constellation = Constellation::of_shell(&shell).expect("a shell");
    let longest = f64::hypot(630e3 / radians(30.0).tan(), 630e3);
    let orbit = EQUATORIAL_RADIUS + shell.altitude;
    let of_range = |radius: f64| {
        let sine = (orbit * orbit - radius * radius - longest * longest) / (2.0 * radius * longest);
        degrees(f64::asin(sine))
    };
    let at = |name, latitude: f64, longitude| {
        let radius = site(name, latitude, longitude, 0.0).ground(0.0).position;
        let radius = f64::hypot(radius.x, f64::hypot(radius.y, radius.z));
        site(name, latitude, longitude, of_range(radius))
    };
    let manila = at("Manila", 14.6042, 120.9822);
    let petersburg = at("Sankt-Peterburg", 59.929858, 30.326228);
    let dalian = at("Dalian", 38.913811, 121.602322);
    for (from, published) in [(&manila, &MANILA[..]), (&petersburg, &PETERSBURG[..])] {
        let gateways = [&dalian];
        let request = PathRequest {
            routing: Routing::InterSatellite,
            selection: Selection::Shortest,
            slot: 0.1,
            step: 0.1,
            ..PathRequest::bent_pipe(&constellation, from, &gateways, 200.0)
        };
        let path = timeline(&request).expect("a path");
        for (seconds, satellites, round_trip_ms) in published {
            let stretch = path
                .stretches
                .iter()
                .find(|stretch| (stretch.begins..stretch.ends).contains(seconds))
                .expect("within the run");
            let Some(route) = &stretch.route else {
                assert_eq!(*satellites, 0, "{seconds} {}", from.name);
                continue;
            };
            assert_eq!(
                route.satellites.len(),
                *satellites,
                "{seconds} {}",
                from.name
            );
            let sample = stretch
                .samples
                .iter()
                .find(|sample| (sample.at - seconds).abs() < 0.05)
                .expect("a sample");
            let difference = sample.delay_s() * 2e3 / round_trip_ms - 1.0;
            assert!(
                difference.abs() < 0.01,
                "{seconds} {difference} {}",
                from.name
            );
        }
    }
}

/// Seconds, satellites, and round trip in ms.
const MANILA: [(f64, usize, f64); 10] = [
    (0.0, 3, 29.4231),
    (10.0, 3, 29.1539),
    (22.0, 2, 25.2926),
    (50.0, 4, 41.1858),
    (100.0, 4, 42.7766),
    (127.0, 5, 48.1494),
    (150.0, 4, 42.234),
    (160.0, 4, 41.9547),
    (170.0, 4, 41.7189),
    (190.0, 4, 41.3801),
];

/// Unreachable at 160 s.
const PETERSBURG: [(f64, usize, f64); 10] = [
    (0.0, 8, 63.2039),
    (10.0, 8, 61.9361),
    (22.0, 7, 61.2608),
    (50.0, 7, 60.0359),
    (100.0, 7, 58.821),
    (127.0, 7, 58.7741),
    (150.0, 7, 59.8186),
    (160.0, 0, 0.0),
    (170.0, 8, 63.6734),
    (190.0, 8, 61.7659),
];

/// The coverage of a polar star has no gap at high latitudes.
#[test]
fn gaps_are_the_times_without_a_satellite() {
    let preset = presets::find("iridium").expect("a preset");
    let constellation = Constellation::of_shell(&preset.shell).expect("a shell");
    let north = passes(&constellation, &site("Alert", 82.5, -62.3, 8.2), 7_200.0);
    assert_eq!(worst_gap(&north, 7_200.0), (0.0, 0.0));
    // One satellite of the shell alone has gaps: the longest is that between its passes.
    let mut alone = preset.shell.clone();
    (alone.planes, alone.satellites_per_plane) = (1, 1);
    let alone = Constellation::of_shell(&alone).expect("a shell");
    let found = passes(&alone, &site("Alert", 82.5, -62.3, 8.2), 20_000.0);
    assert!(found.len() >= 2);
    let between = found.windows(2).map(|pair| pair[1].rises - pair[0].sets);
    let ends = [found[0].rises, 20_000.0 - found[found.len() - 1].sets];
    let longest = between.chain(ends).fold(0.0, f64::max);
    assert!((worst_gap(&found, 20_000.0).0 - longest).abs() < 1e-9);
}
