//! Trace files with the changes of a direction over time: one reader for each format.
//!
//! A reader converts text to a [`Trace`], or returns an error with a line number. Readers access
//! only the text; only [`Files`] opens files.

use bentpipe_link::{LossRates, Profile, RateCourse};
use bentpipe_types::Span;

use crate::changes::schema::{IrttColumn, TraceFormat};
use crate::quantity::time::{LONGEST, LONGEST_DELAY};

/// Contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trace {
    pub(crate) rate: Option<RateCourse>,
    /// Attenuation in dB.
    pub(crate) attenuation: Option<Profile<f64>>,
    pub(crate) delay: Option<Profile<Span>>,
    pub(crate) losses: Option<Profile<LossRates>>,
}

/// How a file is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    pub(crate) format: TraceFormat,
    pub(crate) column: Option<IrttColumn>,
    pub(crate) every: Option<Span>,
}

/// An error in a file, with the line number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TraceError {
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl TraceError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            message: message.into(),
        }
    }

    /// Creates an error about the whole file.
    pub(crate) fn file(message: impl Into<String>) -> Self {
        Self {
            line: None,
            message: message.into(),
        }
    }
}

/// Shortest time between steps of a rate: a slow packet processes all steps during its
/// transmission.
pub(crate) const CLOSEST_RATES: Span = Span::from_micros(100);

/// Shortest time between steps of the attenuation, because the shortest outage is 1 ms.
pub(crate) const CLOSEST_ATTENUATIONS: Span = Span::from_millis(1);

/// Error message for a shorter time.
pub(crate) const ATTENUATIONS_TOO_CLOSE: &str =
    "expected 1 ms or more since the attenuation before it";

/// Returns the lines without line ends, with numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Parses a finite number.
pub(crate) fn number(line: usize, field: &str, expected: &str) -> Result<f64, TraceError> {
    let read = field
        .trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite());
    read.ok_or_else(|| {
        let got = crate::error::quoted(field.trim());
        TraceError::new(line, format!("expected {expected}, got {got}"))
    })
}

/// Converts a delay in milliseconds.
pub(crate) fn delay(line: usize, milliseconds: f64) -> Result<Span, TraceError> {
    let nanoseconds = milliseconds * 1e6;
    if !(0.0..=LONGEST_DELAY.as_nanos() as f64).contains(&nanoseconds) {
        let message = format!("expected a delay from 0 ms to 1 h, got {milliseconds} ms");
        return Err(TraceError::new(line, message));
    }
    Ok(Span::from_nanos((nanoseconds + 0.5) as u64))
}

/// Converts a time since the start, in seconds.
pub(crate) fn time(line: usize, seconds: f64) -> Result<Span, TraceError> {
    let nanoseconds = seconds * 1e9;
    if !(0.0..=LONGEST.as_nanos() as f64).contains(&nanoseconds) {
        let message = format!("expected a time from 0 s to 72 h, got {seconds} s");
        return Err(TraceError::new(line, message));
    }
    Ok(Span::from_nanos((nanoseconds + 0.5) as u64))
}

/// Appends a step, unless the value is unchanged.
pub(crate) fn step<T: Copy + PartialEq>(steps: &mut Vec<(Span, T)>, at: Span, value: T) {
    if steps.last().is_none_or(|(_, before)| *before != value) {
        steps.push((at, value));
    }
}

/// Creates the course of a rate, and checks that a transmitter can follow it.
pub(crate) fn rates(steps: Vec<(Span, u64)>, every: Option<Span>) -> Result<RateCourse, String> {
    let close = |pair: &[(Span, u64)]| pair[1].0.saturating_sub(pair[0].0) < CLOSEST_RATES;
    if steps.windows(2).any(close) {
        return Err("expected steps of the rate 100 us apart or more".to_owned());
    }
    let profile = Profile::new(steps, every);
    profile.map(RateCourse::Steps).ok_or_else(out_of_order)
}

pub(crate) fn out_of_order() -> String {
    "expected each step after the one before it, and the last before it begins again".to_owned()
}
