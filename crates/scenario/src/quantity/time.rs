//! Lengths of time, and two settings that are a length of time or a word.

use std::fmt;
use std::str::FromStr;

use bentpipe_types::Span;

use crate::fault::KeyError;
use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, write_in};
use crate::quantity::string_quantity::{in_base_units, string_quantity};
use crate::quantity::units::TIMES;

/// A length of time: `"250 ms"`. Units: ns, us, ms, s, min, h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length(pub Span);

/// Upper limit: three days. This is within the scheduler's 48-bit clock (`Time::LAST`, 3.26 days)
/// and leaves room for packets in flight at the end.
pub(crate) const LONGEST: Span = Span::from_secs(3 * 24 * 3600);

impl FromStr for Length {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let Some(nanos) = in_base_units(text, &TIMES) else {
            let expected = r#"a length of time such as "250 ms" (units: ns, us, ms, s, min, h)"#;
            return Err(QuantityError::new(expected, text));
        };
        let span = Span::from_nanos(nanos?);
        if span > LONGEST {
            return Err(QuantityError::new("a length of time up to 72 h", text));
        }
        Ok(Self(span))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Span::ZERO {
            return f.write_str("0 s");
        }
        write_in(f, self.0.as_nanos(), &TIMES)
    }
}

string_quantity!(
    Length,
    r#"a length of time such as "250 ms""#,
    pattern: concat!("^", number!(), " *(ns|us|ms|s|min|h)$"),
    examples: ["250 ms", "120 s", "1.5 min"]
);

/// Returns the length of time of a key, or the default, and checks its bounds.
pub(crate) fn length_within(
    key: &'static str,
    given: Option<Length>,
    default: Span,
    [least, most]: [Span; 2],
) -> Result<Span, KeyError> {
    let length = given.map_or(default, |length| length.0);
    if (least..=most).contains(&length) {
        return Ok(length);
    }
    let [least, most, length] = [least, most, length].map(Length);
    Err((
        key,
        format!(r#"expected "{least}" to "{most}", got "{length}""#),
    ))
}

/// A propagation delay: a length of time up to an hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay(pub Span);

/// Upper limit: about the round trip of light to Jupiter.
pub(crate) const LONGEST_DELAY: Span = Span::from_secs(3600);

impl FromStr for Delay {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let expected = r#"a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h)"#;
        if let Some(Err(error)) = in_base_units(text, &TIMES) {
            return Err(error);
        }
        match text.parse::<Length>() {
            Ok(Length(span)) if span <= LONGEST_DELAY => Ok(Self(span)),
            _ => Err(QuantityError::new(expected, text)),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Length(self.0).fmt(f)
    }
}

string_quantity!(
    Delay,
    r#"a length of time such as "250 ms""#,
    pattern: concat!("^", number!(), " *(ns|us|ms|s|min|h)$"),
    examples: ["250 ms", "1.5 s"]
);

/// Delayed acknowledgments (RFC 9293 section 3.8.6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// Acknowledge every second full segment at once, and a single one after this time.
    After(Span),
    /// Acknowledge every segment at once.
    Off,
}

/// Upper limit of the delay: half a second (RFC 9293 section 3.8.6.3 (MUST-40), RFC 5681 section
/// 4.2).
const LATEST_ACK: Span = Span::from_millis(500);

impl FromStr for DelayedAck {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim() == "off" {
            return Ok(Self::Off);
        }
        let expected = r#"a delay up to 500 ms such as "40 ms", or "off""#;
        match text.parse::<Length>() {
            Ok(Length(span)) if span > Span::ZERO && span <= LATEST_ACK => Ok(Self::After(span)),
            _ => Err(QuantityError::new(expected, text)),
        }
    }
}

impl fmt::Display for DelayedAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(span) => Length(*span).fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

string_quantity!(
    DelayedAck,
    r#"a delay such as "40 ms", or "off""#,
    pattern: concat!("^(off|", number!(), " *(ns|us|ms|s|min|h))$"),
    examples: ["40 ms", "200 ms", "off"]
);

/// Recording interval of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interval {
    /// Record at time 0 and then at this interval.
    Every(Span),
    /// Record each change of the value.
    EveryChange,
}

/// Lower limit: a microsecond, less than a packet takes on a 10 Gbit/s link.
pub(crate) const SHORTEST_INTERVAL: Span = Span::from_micros(1);

impl FromStr for Interval {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim() == "every-change" {
            return Ok(Self::EveryChange);
        }
        let expected = r#"an interval of 1 us or more such as "100 ms", or "every-change""#;
        match text.parse::<Length>() {
            Ok(Length(span)) if span >= SHORTEST_INTERVAL => Ok(Self::Every(span)),
            _ => Err(QuantityError::new(expected, text)),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(span) => Length(*span).fmt(f),
            Self::EveryChange => f.write_str("every-change"),
        }
    }
}

string_quantity!(
    Interval,
    r#"an interval such as "100 ms", or "every-change""#,
    pattern: concat!("^(every-change|", number!(), " *(ns|us|ms|s|min|h))$"),
    examples: ["100 ms", "every-change"]
);

impl From<Span> for Length {
    fn from(value: Span) -> Self {
        Self(value)
    }
}

impl From<Length> for Span {
    fn from(value: Length) -> Self {
        value.0
    }
}

impl From<Option<Span>> for DelayedAck {
    fn from(value: Option<Span>) -> Self {
        value.map_or(Self::Off, Self::After)
    }
}

impl From<DelayedAck> for Option<Span> {
    fn from(value: DelayedAck) -> Self {
        match value {
            DelayedAck::After(span) => Some(span),
            DelayedAck::Off => None,
        }
    }
}
