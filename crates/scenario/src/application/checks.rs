//! Checks of keys that several applications have.

use bentpipe_sim::Distribution;
use bentpipe_types::Bytes;

use crate::application::schema::AppFile;
use crate::application::words::TransportName;
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};
use crate::quantity::size::Size;
use crate::quantity::time::Length;

/// Shortest mean of a random interval, in seconds. No real traffic is faster.
pub(crate) const SHORTEST_INTERVAL: f64 = 1e-6;

/// Checks that a transport has connections.
pub(crate) fn with_connections(file: &AppFile) -> Result<(), KeyError> {
    match file.transport {
        Some(TransportName::Udp) => Err(("transport", r#"expected "tcp" or "quic""#.to_owned())),
        _ => Ok(()),
    }
}

pub(crate) fn at_least_one(
    key: &'static str,
    number: Option<u64>,
) -> Result<Option<u64>, KeyError> {
    match number {
        Some(0) => Err((key, "expected at least 1, got 0".to_owned())),
        number => Ok(number),
    }
}

/// Checks that a size is above zero.
pub(crate) fn some_bytes(key: &'static str, size: Option<Size>) -> Result<Option<Size>, KeyError> {
    match size {
        Some(size) if size.0 == Bytes::ZERO => Err((key, r#"expected at least "1 B""#.to_owned())),
        size => Ok(size),
    }
}

/// Checks that a size is not random.
pub(crate) fn one_size(
    key: &'static str,
    size: Option<RandomSize>,
    of: &str,
) -> Result<Option<Size>, KeyError> {
    let one = size.map(|size| {
        let no = || {
            let message = format!(r#"expected one size such as "64 KiB", not a random one: {of}"#);
            (key, message)
        };
        size.constant().ok_or_else(no)
    });
    some_bytes(key, one.transpose()?)
}

/// Checks that a length of time is not random.
pub(crate) fn one_length(
    key: &'static str,
    length: Option<RandomLength>,
    of: &str,
) -> Result<Option<Length>, KeyError> {
    let one = length.map(|length| {
        let no = || {
            let message =
                format!(r#"expected one length of time such as "250 ms", not a random one: {of}"#);
            (key, message)
        };
        length.constant().ok_or_else(no)
    });
    one.transpose()
}

/// Returns the pause, which is zero by default.
pub(crate) fn pause(file: &AppFile) -> Distribution {
    let pause = file.pause.map(|pause| pause.0);
    pause.unwrap_or(Distribution::Constant(0.0))
}

/// Returns a distribution of sizes with a mean above zero.
pub(crate) fn sizes(key: &'static str, size: RandomSize) -> Result<Distribution, KeyError> {
    if size.0.mean() < 1.0 {
        return Err((key, r#"expected at least "1 B""#.to_owned()));
    }
    Ok(size.0)
}

pub(crate) fn missing(key: &'static str, expected: &str) -> KeyError {
    (key, format!("missing; expected {expected}"))
}

/// Returns the number of calls.
pub(crate) fn calls(file: &AppFile) -> Result<u64, KeyError> {
    let count = at_least_one("calls", file.calls)?.unwrap_or(1);
    if count > 1 && file.lasts.is_none() {
        let message = "has no effect: a call without a length (lasts) has no end";
        return Err(("calls", message.to_owned()));
    }
    if count == 1 && file.pause.is_some() {
        return Err(("pause", "has no effect: there is one call".to_owned()));
    }
    Ok(count)
}

/// Gives calls a length, by default of three minutes on average.
pub(crate) fn one_call(file: &mut AppFile) {
    let call = RandomLength(Distribution::Exponential(180.0));
    file.lasts = file.lasts.or(Some(call));
}
