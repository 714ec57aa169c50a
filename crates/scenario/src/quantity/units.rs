//! The units of all quantities, for programs that compute with values of a file.

use crate::quantity::notation::{Unit, split};

/// A unit, and its base unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitOf {
    /// Name of the unit in files.
    pub name: &'static str,
    /// Base unit, as in the endings of result names: s, bps, bytes, packets, segments.
    pub base: &'static str,
    /// Numerator of the unit's value in base units: `worth / per`.
    pub worth: u64,
    /// Denominator of the unit's value in base units.
    pub per: u64,
    /// Whether the quantity must be a whole number.
    pub whole: bool,
}

pub(crate) const TIMES: [Unit; 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

pub(crate) const RATES: [Unit; 4] = [
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
];

pub(crate) const SIZES: [Unit; 8] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

const PACKETS: [Unit; 2] = [("packet", 1), ("packets", 1)];

const SEGMENTS: [Unit; 2] = [("segment", 1), ("segments", 1)];

/// Each kind of quantity: its base unit, its units, how many internal units make one base unit, and
/// whether it is counted in whole numbers.
const KINDS: [(&str, &[Unit], u64, bool); 5] = [
    ("s", &TIMES, 1_000_000_000, false),
    ("bps", &RATES, 1, false),
    ("bytes", &SIZES, 1, false),
    ("packets", &PACKETS, 1, true),
    ("segments", &SEGMENTS, 1, true),
];

/// Longest exponent, so that exact arithmetic never needs millions of digits.
const EXPONENT_DIGITS: usize = 3;

/// Returns every unit of every kind of quantity.
pub fn units() -> impl Iterator<Item = UnitOf> {
    KINDS.into_iter().flat_map(|(base, units, per, whole)| {
        units.iter().map(move |&(name, worth)| UnitOf {
            name,
            base,
            worth,
            per,
            whole,
        })
    })
}

/// Splits a quantity into its number as written and its unit, or returns `None` if it is not one.
#[must_use]
pub fn number_and_unit(text: &str) -> Option<(&str, UnitOf)> {
    let (_, name) = split(text)?;
    let unit = units().find(|unit| unit.name == name)?;
    let number = text.trim().strip_suffix(name)?.trim_end();
    let exponent = number.rsplit(['e', 'E', '+', '-']).next()?;
    let has_exponent = number.contains(['e', 'E']);
    (!has_exponent || exponent.len() <= EXPONENT_DIGITS).then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_spelling() {
        let read =
            |text| number_and_unit(text).map(|(number, unit)| (number, unit.name, unit.base));
        assert_eq!(read(" 1.50 KiB"), Some(("1.50", "KiB", "bytes")));
        assert_eq!(read("1e-3s"), Some(("1e-3", "s", "s")));
        assert_eq!(read("2E+2  Mbit/s "), Some(("2E+2", "Mbit/s", "bps")));
        assert_eq!(read("10 segments"), Some(("10", "segments", "segments")));
        for text in [
            "16/15", "off", "3 parsec", "", "1 s 2", "-1 s", "1e1000 s", "1e s", "s",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
