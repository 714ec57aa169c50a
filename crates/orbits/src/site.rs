//! Sites: places on the ground, at sea or in the air.

use crate::earth::{EQUATORIAL_RADIUS, FLATTENING, Geodetic, Ground, radians};
use crate::error::OrbitError;
use crate::instant::Instant;
use crate::vector::Vector;

/// A place on a track at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackPoint {
    /// Seconds since the start.
    pub at: f64,
    /// The place.
    pub place: Geodetic,
}

/// A range of azimuths in which the least elevation is greater: a building, a mountain, a mast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MaskSector {
    /// First azimuth in degrees, clockwise from north.
    pub from: f64,
    /// Last azimuth in degrees; less than `from` if the sector contains north.
    pub to: f64,
    /// Least elevation in degrees.
    pub elevation: f64,
}

impl MaskSector {
    fn contains(&self, azimuth: f64) -> bool {
        if self.from <= self.to {
            (self.from..=self.to).contains(&azimuth)
        } else {
            azimuth >= self.from || azimuth <= self.to
        }
    }
}

/// A place from which satellites are seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Least elevation in degrees.
    pub min_elevation: f64,
    /// Sectors with a greater least elevation.
    pub mask: Vec<MaskSector>,
    track: Vec<TrackPoint>,
    fixed: Ground,
}

impl Site {
    /// Creates a site that does not move.
    #[must_use]
    pub fn fixed(name: &str, place: Geodetic, min_elevation: f64) -> Self {
        Self {
            name: name.to_owned(),
            min_elevation,
            mask: Vec::new(),
            track: vec![TrackPoint { at: 0.0, place }],
            fixed: place.ground(),
        }
    }

    /// Creates a site that moves along a track. Before its first and after its last point it is
    /// there.
    ///
    /// # Errors
    /// The track is empty, or a point is not later than the one before it.
    pub fn moving(
        name: &str,
        track: Vec<TrackPoint>,
        min_elevation: f64,
    ) -> Result<Self, OrbitError> {
        let Some(first) = track.first() else {
            return Err(OrbitError::new("expected a point of the track, got none"));
        };
        if track.windows(2).any(|pair| pair[0].at >= pair[1].at) {
            let message = "expected each point of the track later than the one before it";
            return Err(OrbitError::new(message));
        }
        Ok(Self {
            fixed: first.place.ground(),
            name: name.to_owned(),
            min_elevation,
            mask: Vec::new(),
            track,
        })
    }

    /// Whether it moves.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.track.len() > 1
    }

    /// Returns its place at a time: between two points of a track, on the shorter arc of longitude.
    #[must_use]
    pub fn place(&self, seconds: f64) -> Geodetic {
        let later = self.track.partition_point(|point| point.at <= seconds);
        let Some(from) = later.checked_sub(1).map(|index| self.track[index]) else {
            return self.track[0].place;
        };
        let Some(to) = self.track.get(later) else {
            return from.place;
        };
        let share = (seconds - from.at) / (to.at - from.at);
        let between = |one: f64, other: f64| one + (other - one) * share;
        let mut across = to.place.longitude - from.place.longitude;
        across -= 360.0 * libm::round(across / 360.0);
        let longitude = from.place.longitude + across * share;
        Geodetic {
            latitude: between(from.place.latitude, to.place.latitude),
            longitude: longitude - 360.0 * libm::round(longitude / 360.0),
            height: between(from.place.height, to.place.height),
        }
    }

    /// Returns its place at a time, with its vertical.
    #[must_use]
    pub fn ground(&self, seconds: f64) -> Ground {
        if self.moves() {
            self.place(seconds).ground()
        } else {
            self.fixed
        }
    }

    /// Whether a point is in sight from the site's `ground`.
    #[must_use]
    pub fn sees(&self, ground: &Ground, point: Vector) -> bool {
        let sine = ground.sine_of_elevation(point);
        if sine < libm::sin(radians(self.min_elevation)) {
            return false;
        }
        if self.mask.is_empty() {
            return true;
        }
        let look = ground.look(point);
        let mut sectors = self.mask.iter();
        !sectors.any(|sector| sector.contains(look.azimuth) && look.elevation < sector.elevation)
    }

    /// Returns the greatest angular speed along the track as seen from the Earth's centre, in
    /// rad/s.
    pub(crate) fn fastest(&self) -> f64 {
        let polar_radius = EQUATORIAL_RADIUS * (1.0 - FLATTENING);
        let speeds = self.track.windows(2).map(|pair| {
            let between = pair[0]
                .place
                .ground()
                .position
                .distance(pair[1].place.ground().position);
            between / polar_radius / (pair[1].at - pair[0].at)
        });
        // A chord is shorter than its arc, by less than half.
        1.6 * speeds.fold(0.0, f64::max)
    }
}

/// Most points of a track.
const MOST_POINTS: usize = 1_000_000;

/// Reads a track: CSV with the columns time, latitude, longitude and, if wanted, height, or GPX
/// whose points have times. Times of GPX are counted from its first point.
///
/// # Errors
/// The line, and what was expected.
pub fn parse_track(text: &str) -> Result<Vec<TrackPoint>, OrbitError> {
    let text = text.trim_start_matches('\u{feff}');
    let points = if text.trim_start().starts_with('<') {
        parse_gpx(text)?
    } else {
        parse_csv(text)?
    };
    if points.is_empty() {
        return Err(OrbitError::new("expected points of a track, got none"));
    }
    if points.len() > MOST_POINTS {
        let got = points.len();
        return Err(OrbitError::new(format!(
            "expected at most {MOST_POINTS} points, got {got}"
        )));
    }
    let mut before = f64::NEG_INFINITY;
    for (line, point) in &points {
        if point.at <= before {
            return Err(OrbitError::at(
                *line,
                "expected a time later than at the point before",
            ));
        }
        before = point.at;
    }
    Ok(points.into_iter().map(|(_, point)| point).collect())
}

type Numbered = Vec<(usize, TrackPoint)>;

fn checked(
    line: usize,
    at: f64,
    latitude: f64,
    longitude: f64,
    height: f64,
) -> Result<TrackPoint, OrbitError> {
    let within = |value: f64, most: f64, what: &str| {
        if (-most..=most).contains(&value) {
            return Ok(());
        }
        let message = format!("expected a {what} from -{most} to {most}, got {value}");
        Err(OrbitError::at(line, message))
    };
    within(latitude, 90.0, "latitude")?;
    within(longitude, 360.0, "longitude")?;
    within(height, 100e3, "height in metres")?;
    if !(0.0..=3.0 * 86_400.0).contains(&at) {
        return Err(OrbitError::at(
            line,
            format!("expected a time from 0 to 72 h, got {at} s"),
        ));
    }
    Ok(TrackPoint {
        at,
        place: Geodetic {
            latitude,
            longitude,
            height,
        },
    })
}

fn parse_csv(text: &str) -> Result<Numbered, OrbitError> {
    let mut rows = (1..)
        .zip(text.lines())
        .filter(|(_, row)| !row.trim().is_empty() && !row.starts_with('#'));
    let Some((line, header)) = rows.next() else {
        return Err(OrbitError::new(
            r#"expected a first line such as "time (s),latitude,longitude""#,
        ));
    };
    let separator = [',', ';', '\t']
        .into_iter()
        .find(|c| header.contains(*c))
        .unwrap_or(',');
    let names: Vec<String> = header
        .split(separator)
        .map(|name| {
            let name = name.trim().trim_matches('"').to_lowercase();
            name.split(['(', '[', '_'])
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .collect();
    let column = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let needed = |known: &[&str]| {
        column(known).ok_or_else(|| {
            let message = format!(r#"expected a column "{}", got {header:?}"#, known[0]);
            OrbitError::at(line, message)
        })
    };
    let time = needed(&["time", "t", "seconds"])?;
    let latitude = needed(&["latitude", "lat"])?;
    let longitude = needed(&["longitude", "lon", "lng"])?;
    let height = column(&["height", "altitude", "elevation", "ele"]);
    let mut points = Vec::new();
    for (line, row) in rows {
        let fields: Vec<&str> = row.split(separator).map(str::trim).collect();
        let number = |index: usize| {
            let field = fields.get(index).copied().unwrap_or_default();
            let read = field
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            read.ok_or_else(|| OrbitError::at(line, format!("expected a number, got {field:?}")))
        };
        let height = height.map_or(Ok(0.0), number)?;
        let point = checked(
            line,
            number(time)?,
            number(latitude)?,
            number(longitude)?,
            height,
        )?;
        points.push((line, point));
    }
    Ok(points)
}

fn parse_gpx(text: &str) -> Result<Numbered, OrbitError> {
    let document = roxmltree::Document::parse(text).map_err(|error| {
        OrbitError::at(error.pos().row as usize, format!("expected GPX: {error}"))
    })?;
    let mut points = Vec::new();
    let mut first: Option<Instant> = None;
    for node in document.descendants() {
        if !matches!(node.tag_name().name(), "trkpt" | "rtept" | "wpt") {
            continue;
        }
        let line = document.text_pos_at(node.range().start).row as usize;
        let attribute = |name: &str| {
            let written = node.attribute(name).unwrap_or_default();
            let read = written
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            read.ok_or_else(|| {
                OrbitError::at(
                    line,
                    format!("expected a number as {name}, got {written:?}"),
                )
            })
        };
        let child = |name: &str| {
            let found = node
                .children()
                .find(|child| child.tag_name().name() == name);
            found.and_then(|child| child.text()).map(str::trim)
        };
        let written = child("time")
            .ok_or_else(|| OrbitError::at(line, "expected a time of the point, got none"))?;
        let instant: Instant = written
            .parse()
            .map_err(|message: String| OrbitError::at(line, message))?;
        let start = *first.get_or_insert(instant);
        let height = match child("ele") {
            None => 0.0,
            Some(text) => text.parse().map_err(|_| {
                OrbitError::at(line, format!("expected a number as ele, got {text:?}"))
            })?,
        };
        let seconds = instant.seconds_since(start);
        let point = checked(line, seconds, attribute("lat")?, attribute("lon")?, height)?;
        points.push((line, point));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_crosses_the_date_line_on_the_shorter_arc() {
        let track =
            parse_track("time (s),latitude (deg),lon\n0,10,179\n100,12,-179\n").expect("a track");
        let site = Site::moving("ship", track, 0.0).expect("a site");
        let half = site.place(50.0);
        assert!((half.latitude - 11.0).abs() < 1e-12);
        assert!((half.longitude.abs() - 180.0).abs() < 1e-9, "{half:?}");
        assert_eq!(site.place(-1.0), site.place(0.0));
        assert_eq!(site.place(1e6), site.place(100.0));
    }

    #[test]
    fn a_gpx_track_is_read() {
        let text = r#"<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
            <trkpt lat="54.1" lon="7.9"><ele>12</ele><time>2026-06-01T08:00:00Z</time></trkpt>
            <trkpt lat="54.2" lon="8.0"><time>2026-06-01T08:10:00Z</time></trkpt>
            </trkseg></trk></gpx>"#;
        let track = parse_track(text).expect("a track");
        assert_eq!(track.len(), 2);
        assert!((track[1].at - 600.0).abs() < 1e-9);
        assert!((track[0].place.height - 12.0).abs() < 1e-9);
    }

    #[test]
    fn wrong_tracks_name_the_line() {
        for (text, expected) in [
            ("", "expected a first line"),
            ("time,lat\n", "line 1: expected a column \"longitude\""),
            (
                "time,lat,lon\n0,1,2\n0,1,2\n",
                "line 3: expected a time later",
            ),
            (
                "time,lat,lon\n0,91,2\n",
                "line 2: expected a latitude from -90 to 90, got 91",
            ),
            (
                "time,lat,lon\n0,x,2\n",
                "line 2: expected a number, got \"x\"",
            ),
            ("time,lat,lon\n0,1\n", "line 2: expected a number, got \"\""),
            ("<gpx><trk>", "expected GPX"),
            (
                "<gpx><trkpt lat=\"1\" lon=\"2\"/></gpx>",
                "line 1: expected a time of the point",
            ),
        ] {
            let error = parse_track(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_mask_may_contain_north() {
        let mut site = Site::fixed(
            "mast",
            Geodetic {
                latitude: 0.0,
                longitude: 0.0,
                height: 0.0,
            },
            10.0,
        );
        site.mask = vec![MaskSector {
            from: 350.0,
            to: 10.0,
            elevation: 60.0,
        }];
        let ground = site.ground(0.0);
        let towards =
            |north: f64, east: f64| ground.position + Vector::new(1e6, east * 1e6, north * 1e6);
        assert!(!site.sees(&ground, towards(1.0, 0.0)));
        assert!(site.sees(&ground, towards(1.0, 1.0)));
        assert!(site.sees(&ground, towards(-1.0, 0.0)));
        assert!(!site.sees(&ground, towards(-6.0, 0.0)));
    }
}
