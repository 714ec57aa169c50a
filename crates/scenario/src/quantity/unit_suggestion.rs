//! Suggests the correct spelling for quantities in another tool's notation.

use crate::quantity::notation::split;
use crate::quantity::units::{number_and_unit, units};

/// Returns the number with the unit that a file would use, if `got` has another tool's spelling of
/// a unit that `expected` shows.
pub(crate) fn suggestion(expected: &str, got: &str) -> Option<String> {
    let (_, written) = split(got)?;
    if written.starts_with(',') {
        return with_decimal_point(expected, got);
    }
    let number = got.trim().strip_suffix(written)?.trim_end();
    let examples = expected.split('"').skip(1).step_by(2);
    let unit = examples
        .filter_map(number_and_unit)
        .find_map(|(_, unit)| file_unit(unit.base, written))?;
    Some(format!("{number} {unit}"))
}

/// Returns the number with a decimal point in place of a comma, unless the comma may separate
/// thousands.
fn with_decimal_point(expected: &str, got: &str) -> Option<String> {
    let (before, after) = got.trim().split_once(',')?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits == 3 {
        return None;
    }
    let pointed = format!("{before}.{after}");
    let (_, written) = split(&pointed)?;
    let mut examples = expected.split('"').skip(1).step_by(2);
    let fits = examples.any(|example| {
        let base = number_and_unit(example).map(|(_, unit)| unit.base);
        units().any(|unit| Some(unit.base) == base && unit.name == written)
    });
    if fits {
        Some(pointed)
    } else {
        suggestion(expected, &pointed)
    }
}

/// Returns the file spelling of a unit with this base, or `None` if it is already spelled so.
fn file_unit(base: &str, written: &str) -> Option<&'static str> {
    if units().any(|unit| unit.base == base && unit.name == written) {
        return None;
    }
    let lower = written.to_lowercase();
    match base {
        "s" => second(&lower),
        // Many read a capital B as bytes, which would be a different number.
        "bps" if !written.contains('B') => prefixed(&lower, &BITS, &RATES),
        "bytes" => prefixed(&lower, &BYTES, &SIZES),
        "packets" if matches!(lower.as_str(), "p" | "pkt" | "pkts" | "packets") => Some("packets"),
        "segments" if matches!(lower.as_str(), "mss" | "seg" | "segs" | "segments") => {
            Some("segments")
        }
        _ => None,
    }
}

fn second(lower: &str) -> Option<&'static str> {
    Some(match lower {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => "ns",
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "usecs" | "microsecond" | "microseconds" => "us",
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        _ => return None,
    })
}

const BITS: [&str; 12] = [
    "bit/s",
    "bits/s",
    "bit/sec",
    "bits/sec",
    "bits/second",
    "b/s",
    "bps",
    "bitps",
    "bits",
    "bit",
    "b",
    "",
];

const RATES: [(&str, &str); 4] = [
    ("", "bit/s"),
    ("k", "kbit/s"),
    ("m", "Mbit/s"),
    ("g", "Gbit/s"),
];

const BYTES: [&str; 4] = ["bytes", "byte", "b", ""];

const SIZES: [(&str, &str); 7] = [
    ("", "B"),
    ("k", "kB"),
    ("m", "MB"),
    ("g", "GB"),
    ("ki", "KiB"),
    ("mi", "MiB"),
    ("gi", "GiB"),
];

/// Returns the unit for the prefix before one of these endings.
fn prefixed(
    lower: &str,
    endings: &[&str],
    prefixes: &[(&str, &'static str)],
) -> Option<&'static str> {
    if lower.is_empty() {
        return None;
    }
    let before = endings
        .iter()
        .filter_map(|ending| lower.strip_suffix(ending));
    before
        .filter_map(|before| {
            prefixes
                .iter()
                .find(|(prefix, _)| *prefix == before.trim_end())
        })
        .map(|(_, unit)| *unit)
        .next()
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn units_of_other_tools_are_suggested() {
        let rate = r#"a rate such as "10 Mbit/s" (units: ...)"#;
        let time = r#"a length of time such as "250 ms""#;
        let size = r#"a size such as "64 KiB""#;
        let limit = r#"a limit such as "100 packets", "64 KiB" or "100 ms""#;
        for (expected, got, right) in [
            (rate, "10 Mb", Some("10 Mbit/s")),
            (rate, "10Mbps", Some("10 Mbit/s")),
            (rate, "1.5 MBIT/S", None),
            (rate, "1.5 mbit/s", Some("1.5 Mbit/s")),
            (rate, "2e3 kb/s", Some("2e3 kbit/s")),
            (rate, "512K", Some("512 kbit/s")),
            (rate, "10 MB/s", None),
            (rate, "10 Mbit/s", None),
            (rate, "8,5 Mbit/s", Some("8.5 Mbit/s")),
            (rate, "8,5 Mbps", Some("8.5 Mbit/s")),
            (rate, "1,000 kbit/s", None),
            (rate, "8, Mbit/s", None),
            (rate, "8,5 ms", None),
            (rate, "10", None),
            (rate, "10 s", None),
            (time, "20 sec", Some("20 s")),
            (time, "5 \u{b5}s", Some("5 us")),
            (time, "2 m", Some("2 min")),
            (time, "100 h", None),
            (size, "2 mb", Some("2 MB")),
            (size, "1500 bytes", Some("1500 B")),
            (size, "64 kib", Some("64 KiB")),
            (limit, "50 pkts", Some("50 packets")),
            (limit, "2 mb", Some("2 MB")),
            (limit, "100 msec", Some("100 ms")),
            (r#""1 ms" to "10 s""#, "0 s", None),
            (r#""16/15" or a number"#, "2 s", None),
        ] {
            assert_eq!(suggestion(expected, got).as_deref(), right, "{got}");
        }
    }
}
