//! Quantities that are counted in packets or segments, or given in bytes.

use std::fmt;
use std::str::FromStr;

use bentpipe_link::Limit;
use bentpipe_types::{BitRate, Bytes, Span};

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::size::Size;
use crate::quantity::string_quantity::string_quantity;
use crate::quantity::time::Length;

/// Upper limit: 10 GB of segments, above any window.
const MOST_SEGMENTS: u32 = 10_000_000;

/// Upper limit, above any queue.
const MOST_PACKETS: u32 = 1_000_000_000;

/// Parses a whole number from 1 to `most` of `unit` or its singular.
fn counted(text: &str, unit: &str, most: u32) -> Option<Result<u32, QuantityError>> {
    let (number, found) = split(text)?;
    if found != unit && Some(found) != unit.strip_suffix('s') {
        return None;
    }
    let whole = number >= 1.0 && number <= f64::from(most) && number % 1.0 == 0.0;
    Some(if whole {
        Ok(number as u32)
    } else {
        let expected = format!("a whole number of {unit} from 1 to {most}");
        Err(QuantityError::new(expected, text))
    })
}

/// Parses a count, or else an amount of data above zero.
fn counted_or_measured<T>(
    counted: Option<Result<T, QuantityError>>,
    text: &str,
    expected: &str,
    measured: impl FnOnce(Bytes) -> T,
) -> Result<T, QuantityError> {
    counted.unwrap_or_else(|| match Size::read(text) {
        Some(Ok(Size(bytes))) if bytes > Bytes::ZERO => Ok(measured(bytes)),
        Some(Err(error)) => Err(error),
        _ => Err(QuantityError::new(expected, text)),
    })
}

/// Capacity of a queue: `"100 packets"` or `"64 KiB"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Number of packets of any length.
    Packets(u32),
    /// Bytes of packets, headers included.
    Bytes(Bytes),
}

impl From<QueueLimit> for Limit {
    fn from(limit: QueueLimit) -> Self {
        match limit {
            QueueLimit::Packets(packets) => Self::Packets(packets.into()),
            QueueLimit::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::read(text, r#"a limit such as "100 packets" or "64 KiB""#)
    }
}

impl QueueLimit {
    /// Parses a text; an error message names `expected`.
    fn read(text: &str, expected: &str) -> Result<Self, QuantityError> {
        let packets = counted(text, "packets", MOST_PACKETS);
        counted_or_measured(
            packets.map(|count| count.map(Self::Packets)),
            text,
            expected,
            Self::Bytes,
        )
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Bytes(bytes) => Size(*bytes).fmt(f),
        }
    }
}

string_quantity!(
    QueueLimit,
    r#"a limit such as "100 packets" or "64 KiB""#,
    pattern: concat!("^", number!(), " *(packets?|B|kB|KB|KiB|MB|MiB|GB|GiB)$"),
    examples: ["100 packets", "64 KiB"]
);

/// Capacity of a link's queue as the file gives it: a [`QueueLimit`], or the longest queuing time,
/// `"100 ms"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkQueueLimit {
    /// Independent of the link's rate.
    Fixed(QueueLimit),
    /// Time in which the link transmits a full queue.
    Time(Span),
}

impl LinkQueueLimit {
    /// Returns the capacity in front of a transmitter of this rate. It is at least one packet.
    pub(crate) fn at(self, rate: BitRate) -> QueueLimit {
        match self {
            Self::Fixed(limit) => limit,
            Self::Time(time) => QueueLimit::Bytes(rate.bytes_in(time).max(Bytes::new(1))),
        }
    }
}

impl FromStr for LinkQueueLimit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.parse() {
            Ok(Length(time)) if time > Span::ZERO => Ok(Self::Time(time)),
            _ => {
                let expected = r#"a limit such as "100 packets", "64 KiB" or "100 ms""#;
                QueueLimit::read(text, expected).map(Self::Fixed)
            }
        }
    }
}

impl fmt::Display for LinkQueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(limit) => limit.fmt(f),
            Self::Time(time) => Length(*time).fmt(f),
        }
    }
}

string_quantity!(
    LinkQueueLimit,
    r#"a limit such as "100 packets", "64 KiB" or "100 ms""#,
    pattern: concat!("^", number!(), " *(packets?|B|kB|KB|KiB|MB|MiB|GB|GiB|ns|us|ms|s|min|h)$"),
    examples: ["100 packets", "64 KiB", "100 ms"]
);

/// Number of segments: `"10 segments"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Segments(pub u32);

impl FromStr for Segments {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        counted(text, "segments", MOST_SEGMENTS).map_or_else(
            || {
                let expected = r#"a number of segments such as "10 segments""#;
                Err(QuantityError::new(expected, text))
            },
            |count| count.map(Self),
        )
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Window::Segments(self.0).fmt(f)
    }
}

string_quantity!(
    Segments,
    r#"a number of segments such as "10 segments""#,
    pattern: concat!("^", number!(), " *segments?$"),
    examples: ["10 segments", "1 segment"]
);

/// A TCP window: `"10 segments"` or `"64 KiB"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// Number of segments of the connection's segment size.
    Segments(u32),
    /// Bytes of payload.
    Bytes(Bytes),
}

impl Window {
    /// Returns the window in bytes for the given segment size.
    #[must_use]
    pub fn bytes(self, segment: Bytes) -> Bytes {
        match self {
            Self::Segments(count) => Bytes::new(u64::from(count).saturating_mul(segment.get())),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl FromStr for Window {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let segments = counted(text, "segments", MOST_SEGMENTS);
        let expected = r#"a window such as "10 segments" or "64 KiB""#;
        counted_or_measured(
            segments.map(|count| count.map(Self::Segments)),
            text,
            expected,
            Self::Bytes,
        )
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segments(1) => f.write_str("1 segment"),
            Self::Segments(count) => write!(f, "{count} segments"),
            Self::Bytes(bytes) => Size(*bytes).fmt(f),
        }
    }
}

string_quantity!(
    Window,
    r#"a window such as "10 segments" or "64 KiB""#,
    pattern: concat!("^", number!(), " *(segments?|B|kB|KB|KiB|MB|MiB|GB|GiB)$"),
    examples: ["10 segments", "64 KiB"]
);

impl From<u32> for Segments {
    fn from(value: u32) -> Self {
        Self(value)
    }
}

impl From<Segments> for u32 {
    fn from(value: Segments) -> Self {
        value.0
    }
}
