//! How a quantity is written: a number and a unit.

use std::fmt;

/// Regular expression of the number at the start of a quantity, for the JSON Schema.
macro_rules! number {
    () => {
        r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
    };
}

/// A unit and its value in base units.
pub(crate) type Unit = (&'static str, u64);

/// Splits `"1.536 Mbit/s"` into number and unit. It accepts no sign: quantities are not negative.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    if byte(end) == Some(b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// Writes a value in the largest unit that holds it without a fraction.
pub(crate) fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let mut best = ("", 1);
    for (name, worth) in units {
        if value.is_multiple_of(*worth) && *worth >= best.1 && (value > 0 || *worth == 1) {
            best = (name, *worth);
        }
    }
    write!(f, "{} {}", value / best.1, best.0)
}

pub(crate) use number;
