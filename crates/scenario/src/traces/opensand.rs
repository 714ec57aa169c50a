//! Reader of OpenSAND's files of satellite delays (the plug-in FileDelay).
//!
//! Each line is a time in seconds and the delay in milliseconds; empty lines and lines that begin
//! with "#" are ignored. Between two times the delay is interpolated linearly; before the first
//! time it is the first delay. The file repeats from its last time, as with `loop_mode`. (OpenSAND
//! reads the delay once per refresh period, and repeats at the first of these after the last time.)

use std::collections::BTreeMap;

use bentpipe_link::Profile;
use bentpipe_types::Span;

use crate::traces::trace::{Trace, TraceError, delay, lines, number, time};

pub(crate) fn parse(text: &str) -> Result<Trace, TraceError> {
    // Lines may be in any order; if a time occurs twice, the later line counts.
    let mut delays: BTreeMap<Span, Span> = BTreeMap::new();
    for (line, text) in lines(text) {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [at, value] = fields[..] else {
            let message = format!(
                "expected a time in seconds and a delay in milliseconds, got {} fields",
                fields.len()
            );
            return Err(TraceError::new(line, message));
        };
        let at = time(line, number(line, at, "a time in seconds")?)?;
        let value = delay(line, number(line, value, "a delay in milliseconds")?)?;
        delays.insert(at, value);
    }
    let (Some((_, first)), Some((last, _))) = (delays.first_key_value(), delays.last_key_value())
    else {
        return Err(TraceError::file(
            "expected a time and a delay on each line, got none",
        ));
    };
    let (first, last) = (*first, *last);
    delays.entry(Span::ZERO).or_insert(first);
    let steps: Vec<(Span, Span)> = delays.into_iter().collect();
    let profile = if last == Span::ZERO {
        Profile::new(steps, None)
    } else {
        Profile::ramps_through(steps, Some(last))
    };
    Ok(Trace {
        delay: profile,
        ..Trace::default()
    })
}
