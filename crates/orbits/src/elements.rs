//! Element sets from files: TLE with two or three lines per satellite, and OMM as JSON.

use std::collections::BTreeMap;

use crate::error::OrbitError;
use crate::instant::Instant;

/// Most satellites of a constellation.
pub const MOST_SATELLITES: usize = 100_000;

/// Mean orbital elements of a satellite.
#[derive(Clone, PartialEq, Debug)]
pub struct ElementSet {
    /// Line of the file on which it begins; the number of the object in a JSON file.
    pub line: usize,
    pub(crate) elements: sgp4::Elements,
    name: String,
}

impl ElementSet {
    /// Returns the epoch.
    #[must_use]
    pub fn epoch(&self) -> Instant {
        Instant(self.elements.datetime)
    }

    /// Returns the name, or the catalogue number if there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the catalogue number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.elements.norad_id
    }

    /// Returns the position in kilometres at minutes since the epoch, or `None` if SGP4 has none.
    /// The axes are SGP4's, which do not rotate (TEME: true equator, mean equinox).
    #[must_use]
    pub fn inertial_position(&self, minutes: f64) -> Option<[f64; 3]> {
        let constants =
            sgp4::Constants::from_elements_afspc_compatibility_mode(&self.elements).ok()?;
        let minutes = sgp4::MinutesSinceEpoch(minutes);
        let state = constants.propagate_afspc_compatibility_mode(minutes).ok()?;
        Some(state.position)
    }

    fn new(line: usize, elements: sgp4::Elements) -> Result<Self, OrbitError> {
        let name = match &elements.object_name {
            Some(name) if !name.trim().is_empty() => name.trim().to_owned(),
            _ => elements.norad_id.to_string(),
        };
        let finite = [
            elements.mean_motion,
            elements.eccentricity,
            elements.inclination,
            elements.drag_term,
        ];
        if finite.iter().any(|value| !value.is_finite()) || elements.mean_motion <= 0.0 {
            let message = format!("{name}: expected a mean motion above 0 and finite elements");
            return Err(OrbitError::at(line, message));
        }
        Ok(Self {
            line,
            elements,
            name,
        })
    }
}

/// Reads a file with element sets. If it begins with `[` or `{` it is OMM as JSON, else TLE. Of
/// several sets with one catalogue number, the one with the newest epoch is kept.
///
/// # Errors
/// The line, and what is wrong: a checksum, a length, a truncated set, or too many satellites.
pub fn parse_elements(text: &str) -> Result<Vec<ElementSet>, OrbitError> {
    let text = text.trim_start_matches('\u{feff}');
    let sets = if text.trim_start().starts_with(['[', '{']) {
        parse_omm(text)?
    } else {
        parse_tle(text)?
    };
    if sets.is_empty() {
        return Err(OrbitError::new(
            "expected element sets (TLE, or OMM as JSON), got none",
        ));
    }
    let mut newest: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, set) in sets.iter().enumerate() {
        let kept = newest.entry(set.number()).or_insert(index);
        if set.epoch() > sets[*kept].epoch() {
            *kept = index;
        }
    }
    let mut index = 0;
    let mut sets = sets;
    sets.retain(|set| {
        index += 1;
        newest.get(&set.number()) == Some(&(index - 1))
    });
    if sets.len() > MOST_SATELLITES {
        let got = sets.len();
        let message = format!("expected at most {MOST_SATELLITES} satellites, got {got}");
        return Err(OrbitError::new(message));
    }
    Ok(sets)
}

fn parse_omm(text: &str) -> Result<Vec<ElementSet>, OrbitError> {
    let document: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| OrbitError::at(error.line(), format!("expected JSON: {error}")))?;
    let objects = match document {
        serde_json::Value::Array(objects) => objects,
        object => vec![object],
    };
    let sets = objects.into_iter().enumerate().map(|(index, object)| {
        let wrong =
            |error: serde_json::Error| OrbitError::new(format!("object {}: {error}", index + 1));
        ElementSet::new(index + 1, serde_json::from_value(object).map_err(wrong)?)
    });
    sets.collect()
}

fn parse_tle(text: &str) -> Result<Vec<ElementSet>, OrbitError> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim_end))
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut sets = Vec::new();
    let mut name: Option<(usize, &str)> = None;
    while let Some((number, line)) = lines.next() {
        if !is_line(line, '1') {
            if is_line(line, '2') {
                return Err(OrbitError::at(
                    number,
                    "expected line 1 of a set before its line 2",
                ));
            }
            if let Some((_, earlier)) = name {
                let message = format!(
                    "expected line 1 of a set after the name {earlier:?}, got {}",
                    shortened(line)
                );
                return Err(OrbitError::at(number, message));
            }
            // CelesTrak and others begin the line of a name with "0 ".
            name = Some((number, line.strip_prefix("0 ").unwrap_or(line).trim()));
            continue;
        }
        let Some((second_number, second)) = lines.next() else {
            return Err(OrbitError::at(
                number,
                "expected line 2 of the set after it, got the end",
            ));
        };
        if !is_line(second, '2') {
            let message = format!("expected line 2 of the set, got {}", shortened(second));
            return Err(OrbitError::at(second_number, message));
        }
        let object_name = name.take().map(|(_, name)| name.to_owned());
        let read = checked(line, number)
            .and_then(|()| checked(second, second_number))
            .and_then(|()| {
                sgp4::Elements::from_tle(object_name, line.as_bytes(), second.as_bytes())
                    .map_err(|error| OrbitError::at(number, error.to_string()))
            });
        sets.push(ElementSet::new(number, read?)?);
    }
    if let Some((number, name)) = name {
        let message = format!("expected line 1 of a set after the name {name:?}, got the end");
        return Err(OrbitError::at(number, message));
    }
    Ok(sets)
}

fn is_line(line: &str, digit: char) -> bool {
    line.starts_with(digit) && line.as_bytes().get(1) == Some(&b' ') && line.len() >= 40
}

fn shortened(line: &str) -> String {
    let short: String = line.chars().take(24).collect();
    format!("{short:?}")
}

/// Checks length, characters and checksum of a line, whose errors then name it.
fn checked(line: &str, number: usize) -> Result<(), OrbitError> {
    if !line.is_ascii() || line.len() != 69 {
        let got = line.chars().count();
        return Err(OrbitError::at(
            number,
            format!("expected 69 characters, got {got}"),
        ));
    }
    let worth = |byte: u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        b'-' => 1,
        _ => 0,
    };
    let sum: u32 = line.bytes().take(68).map(worth).sum();
    let given = line.as_bytes()[68];
    if !given.is_ascii_digit() || u32::from(given - b'0') != sum % 10 {
        let message = format!("expected checksum {}, got {:?}", sum % 10, given as char);
        return Err(OrbitError::at(number, message));
    }
    Ok(())
}
