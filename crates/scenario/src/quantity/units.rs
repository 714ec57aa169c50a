//! The units of all quantities, for who computes with what a file says.

use super::{Unit, rate, size, split, time};

/// What a quantity is of: a unit, and the base unit that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitOf {
    /// Its name, as files write it.
    pub name: &'static str,
    /// The base unit, as names of results end: s, bps, bytes, packets, segments.
    pub base: &'static str,
    /// It is `worth / per` base units.
    pub worth: u64,
    /// See `worth`.
    pub per: u64,
    /// It comes in whole numbers only.
    pub whole: bool,
}

const PACKETS: [Unit; 2] = [("packet", 1), ("packets", 1)];
const SEGMENTS: [Unit; 2] = [("segment", 1), ("segments", 1)];

/// Each kind: its base unit, its units, how many of what these count in are one of the base unit, and
/// whether it is counted.
const KINDS: [(&str, &[Unit], u64, bool); 5] = [
    ("s", &time::UNITS, 1_000_000_000, false),
    ("bps", &rate::UNITS, 1, false),
    ("bytes", &size::UNITS, 1, false),
    ("packets", &PACKETS, 1, true),
    ("segments", &SEGMENTS, 1, true),
];

/// Digits of an exponent: who computes exactly is not made to compute with millions of digits.
const EXPONENT_DIGITS: usize = 3;

/// Every unit that a quantity may be in.
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

/// The number of a quantity, as it was written, and its unit; `None` where the text is no such thing.
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
    fn numbers_are_as_they_were_written() {
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
