//! Instants of universal time.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};

/// An instant of universal time (UTC), to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Instant(pub(crate) NaiveDateTime);

/// The formats of an instant, without the "Z" at its end.
const FORMATS: [&str; 3] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
];

impl Instant {
    /// Returns the seconds from `earlier` to this instant.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        let between = self.0.signed_duration_since(earlier.0);
        between.num_seconds() as f64 + f64::from(between.subsec_nanos()) * 1e-9
    }

    /// Returns the sidereal angle of Greenwich in radians (GMST, Aoki et al. 1982, which SGP4's
    /// frame needs).
    #[must_use]
    pub fn sidereal_angle(self) -> f64 {
        sgp4::iau_epoch_to_sidereal_time(sgp4::julian_years_since_j2000(&self.0))
    }
}

impl FromStr for Instant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let bare = trimmed.strip_suffix(['Z', 'z']).unwrap_or(trimmed);
        let read = FORMATS
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(bare, format).ok())
            .or_else(|| {
                NaiveDate::parse_from_str(bare, "%Y-%m-%d")
                    .ok()?
                    .and_hms_opt(0, 0, 0)
            });
        // Element sets are from 1957 to 2056.
        read.filter(|read| (1957..2100).contains(&read.year()))
            .map(Self)
            .ok_or_else(|| {
                format!(r#"expected a time such as "2026-06-01T12:00:00Z", got "{trimmed}""#)
            })
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.0;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            of.year(),
            of.month(),
            of.day(),
            of.hour(),
            of.minute(),
            of.second()
        )?;
        let microseconds = of.nanosecond() / 1_000;
        if microseconds > 0 {
            let digits = format!("{microseconds:06}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_and_written() {
        for (text, written) in [
            ("2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z"),
            ("2026-06-01", "2026-06-01T00:00:00Z"),
            ("2020-07-12T01:19:07.402656", "2020-07-12T01:19:07.402656Z"),
            ("2026-06-01 12:30:00", "2026-06-01T12:30:00Z"),
        ] {
            assert_eq!(
                text.parse::<Instant>().map(|at| at.to_string()).as_deref(),
                Ok(written)
            );
        }
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "1900-01-01",
            "2026-06-01T25:00:00Z",
        ] {
            assert!(text.parse::<Instant>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_sidereal_angle_of_a_published_instant() {
        // Vallado 2013, example 3-5: 1992-08-20 12:14 UT1, GMST 152.578787810 degrees.
        let at: Instant = "1992-08-20T12:14:00Z".parse().expect("a time");
        let angle = crate::degrees(at.sidereal_angle());
        assert!((angle - 152.578_787_81).abs() < 1e-6, "{angle}");
    }
}
