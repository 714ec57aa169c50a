//! Constellations and sites.

use std::sync::Arc;

use bentpipe_orbits::{
    Constellation, Geodetic, Instant, MaskSector, Pattern, Shell, Site, parse_elements,
    parse_track, presets,
};

use crate::error::quoted;
use crate::fault::{Fault, Segment, fault};
use crate::hints::one_of;
use crate::named::Named;
use crate::orbit::schema::{ConstellationFile, MaskFile, PatternName, SiteFile};
use crate::orbit::settings::{NamedConstellation, Orbits};
use crate::quantity::angle::Angle;
use crate::suggest::suggest;
use crate::traces::files::Files;

/// Default least elevation in degrees.
const MIN_ELEVATION: f64 = 25.0;

/// Altitude of a geostationary orbit in metres.
const GEOSTATIONARY: f64 = 35_786e3;

type KeyFault = (&'static str, String);

pub(crate) fn resolve_orbits(
    constellations: &Named<ConstellationFile>,
    sites: &Named<SiteFile>,
    files: &Files<'_>,
) -> Result<Orbits, Fault> {
    let mut orbits = Orbits::default();
    for (name, file) in constellations.iter() {
        let found = constellation(name, file, files).map_err(|(key, message)| {
            let keys = ["constellations", name, key];
            fault(if key.is_empty() { &keys[..2] } else { &keys }, message)
        })?;
        orbits.constellations.push(found);
    }
    for (name, file) in sites.iter() {
        orbits.sites.push(site(name, file, files)?);
    }
    Ok(orbits)
}

/// Returns the presets of constellations: name, description and source.
#[must_use]
pub fn constellations() -> Vec<(&'static str, &'static str, &'static str)> {
    let presets = presets::PRESETS.iter();
    presets
        .map(|preset| (preset.name, preset.description, preset.source))
        .collect()
}

fn constellation(
    name: &str,
    file: &ConstellationFile,
    files: &Files<'_>,
) -> Result<NamedConstellation, KeyFault> {
    let shell_keys = [
        ("altitude", file.altitude.is_some()),
        ("inclination", file.inclination.is_some()),
        ("planes", file.planes.is_some()),
        ("satellites_per_plane", file.satellites_per_plane.is_some()),
        ("phasing", file.phasing.is_some()),
        ("pattern", file.pattern.is_some()),
    ];
    let place_keys = [
        ("ascending_node", file.ascending_node.is_some()),
        ("phase", file.phase.is_some()),
    ];
    let kinds = [
        ("preset", file.preset.is_some()),
        ("file", file.file.is_some()),
        ("longitudes", file.longitudes.is_some()),
        ("altitude", file.altitude.is_some()),
    ];
    let mut given = kinds
        .iter()
        .filter(|(_, given)| *given)
        .map(|(key, _)| *key);
    let Some(kind) = given.next() else {
        let message = r#"missing; expected a preset such as "starlink-shell-1", a file, longitudes of geostationary satellites, or altitude and inclination of a shell"#;
        return Err(("preset", message.to_owned()));
    };
    if let Some(other) = given.next() {
        return Err((
            other,
            format!("expected none beside {kind}: a constellation is one of both"),
        ));
    }
    let without_effect = |keys: &[(&'static str, bool)]| {
        let found = keys.iter().find(|(_, given)| *given);
        found.map_or(Ok(()), |(key, _)| {
            Err((*key, format!("has no effect with {kind}")))
        })
    };
    if kind != "altitude" {
        without_effect(&shell_keys)?;
    }
    if kind != "file" {
        without_effect(&[("start", file.start.is_some())])?;
    }
    if matches!(kind, "file" | "longitudes") {
        without_effect(&place_keys)?;
    }
    let named = |satellites: Constellation, altitude, origin| NamedConstellation {
        name: name.to_owned(),
        satellites: Arc::new(satellites),
        altitude,
        origin,
    };
    if let Some(elements) = &file.file {
        let text = files.text(elements).map_err(|message| ("file", message))?;
        let wrong = |error: bentpipe_orbits::OrbitError| {
            let path = files.displayed(elements);
            let place = error.line.map_or(String::new(), |line| format!(":{line}"));
            ("file", format!("{path}{place}: {}", error.message))
        };
        let start = match &file.start {
            None => None,
            Some(text) => Some(
                text.parse::<Instant>()
                    .map_err(|message| ("start", message))?,
            ),
        };
        let sets = parse_elements(&text).map_err(&wrong)?;
        let satellites = Constellation::of_elements(&sets, start).map_err(wrong)?;
        return Ok(named(satellites, None, Some(elements.clone())));
    }
    if let Some(longitudes) = &file.longitudes {
        if longitudes.is_empty() {
            return Err((
                "longitudes",
                r#"expected longitudes such as ["13 deg"], got none"#.to_owned(),
            ));
        }
        let degrees: Vec<f64> = longitudes.iter().map(|Angle(degrees)| *degrees).collect();
        let satellites = Constellation::geostationary(&degrees);
        return Ok(named(satellites, Some(GEOSTATIONARY), None));
    }
    let mut shell = match &file.preset {
        Some(preset) => preset_shell(preset)?,
        None => own_shell(file)?,
    };
    let angle = |angle: Option<Angle>| angle.map_or(0.0, |Angle(degrees)| degrees);
    shell.ascending_node += angle(file.ascending_node);
    shell.phase += angle(file.phase);
    let satellites = Constellation::of_shell(&shell).map_err(|error| {
        let key = if shell.altitude < 100e3 {
            "altitude"
        } else {
            "planes"
        };
        (key, error.message)
    })?;
    Ok(named(satellites, Some(shell.altitude), file.preset.clone()))
}

fn preset_shell(name: &str) -> Result<Shell, KeyFault> {
    let known: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
    let found = presets::find(name).map(|preset| preset.shell.clone());
    found.ok_or_else(|| {
        let hint = suggest(name, known.iter().copied()).map_or(String::new(), |near| {
            format!("; did you mean {}?", quoted(near))
        });
        (
            "preset",
            format!("expected {}, got {}{hint}", one_of(&known), quoted(name)),
        )
    })
}

fn own_shell(file: &ConstellationFile) -> Result<Shell, KeyFault> {
    let missing =
        |key: &'static str, expected: &str| (key, format!("missing; expected {expected}"));
    let altitude = file
        .altitude
        .ok_or_else(|| missing("altitude", r#"a distance such as "550 km""#))?;
    let inclination = file
        .inclination
        .ok_or_else(|| missing("inclination", r#"an angle such as "53 deg""#))?
        .within(0.0, 180.0)
        .map_err(|message| ("inclination", message))?;
    let count = |key: &'static str, given: Option<u32>| {
        let count = given.ok_or_else(|| missing(key, "a number such as 22"))?;
        if count == 0 {
            return Err((key, "expected 1 or more, got 0".to_owned()));
        }
        Ok(count as usize)
    };
    let planes = count("planes", file.planes)?;
    let satellites_per_plane = count("satellites_per_plane", file.satellites_per_plane)?;
    let phasing = file.phasing.unwrap_or(0) as usize;
    if phasing >= planes.max(1) && phasing > 0 {
        return Err((
            "phasing",
            format!("expected 0 to {}, got {phasing}", planes - 1),
        ));
    }
    Ok(Shell {
        altitude: altitude.0,
        inclination,
        planes,
        satellites_per_plane,
        phasing,
        pattern: match file.pattern.unwrap_or(PatternName::Delta) {
            PatternName::Delta => Pattern::Delta,
            PatternName::Star => Pattern::Star,
        },
        ascending_node: 0.0,
        phase: 0.0,
    })
}

fn site(name: &str, file: &SiteFile, files: &Files<'_>) -> Result<Site, Fault> {
    let wrong = |key: &str, message: String| fault(&["sites", name, key], message);
    let min_elevation = match file.min_elevation {
        None => MIN_ELEVATION,
        Some(angle) => angle
            .within(0.0, 90.0)
            .map_err(|message| wrong("min_elevation", message))?,
    };
    let mut site = match &file.track {
        Some(track) => {
            for (key, given) in [
                ("latitude", file.latitude.is_some()),
                ("longitude", file.longitude.is_some()),
                ("height", file.height.is_some()),
            ] {
                if given {
                    return Err(wrong(key, "has no effect with track".to_owned()));
                }
            }
            let text = files
                .text(track)
                .map_err(|message| wrong("track", message))?;
            let path = files.displayed(track);
            let bad = |error: bentpipe_orbits::OrbitError| {
                let place = match error.line {
                    Some(line) => format!("{path}:{line}"),
                    None => path.clone(),
                };
                wrong("track", format!("{place}: {}", error.message))
            };
            let points = parse_track(&text).map_err(&bad)?;
            Site::moving(name, points, min_elevation).map_err(bad)?
        }
        None => {
            let angle = |key: &'static str, given: Option<Angle>, most: f64, example: &str| {
                let angle = given.ok_or_else(|| {
                    wrong(key, format!("missing; expected an angle such as {example}"))
                })?;
                angle
                    .within(-most, most)
                    .map_err(|message| wrong(key, message))
            };
            let place = Geodetic {
                latitude: angle("latitude", file.latitude, 90.0, r#""52.5 deg""#)?,
                longitude: angle("longitude", file.longitude, 360.0, r#""13.4 deg""#)?,
                height: file.height.map_or(0.0, |height| height.0),
            };
            if place.height > 100e3 {
                return Err(wrong("height", "expected 100 km or less".to_owned()));
            }
            Site::fixed(name, place, min_elevation)
        }
    };
    for (index, sector) in file.mask.iter().flatten().enumerate() {
        let sector = mask(sector).map_err(|(key, message)| {
            let mut path = crate::fault::path(&["sites", name, "mask"]);
            path.extend([Segment::Index(index), Segment::Key(key.to_owned())]);
            Fault::new(path, message)
        })?;
        site.mask.push(sector);
    }
    Ok(site)
}

fn mask(file: &MaskFile) -> Result<MaskSector, KeyFault> {
    let within =
        |key, angle: Angle, most| angle.within(0.0, most).map_err(|message| (key, message));
    Ok(MaskSector {
        from: within("from", file.from, 360.0)?,
        to: within("to", file.to, 360.0)?,
        elevation: within("elevation", file.elevation, 90.0)?,
    })
}
