//! Reader of LeoReplayer's delay traces (Z. Lai et al., "LeoCC: Making Internet Congestion Control
//! Robust to LEO Satellite Dynamics", ACM SIGCOMM 2025). Each line is the delay in milliseconds
//! during one slot of 10 ms. The trace repeats from its end.

use bentpipe_link::Profile;
use bentpipe_types::Span;

use crate::traces::trace::{Trace, TraceError, delay, lines, number, step};

const SLOT: Span = Span::from_millis(10);

pub(crate) fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut steps = Vec::new();
    let mut ends = Span::ZERO;
    for (line, field) in lines(text) {
        let milliseconds = number(line, field, "a delay in milliseconds")?;
        step(&mut steps, ends, delay(line, milliseconds)?);
        ends += SLOT;
    }
    let profile = Profile::new(steps, Some(ends));
    let profile = profile.ok_or_else(|| {
        TraceError::file("expected a delay in milliseconds on each line, got none")
    })?;
    Ok(Trace {
        delay: Some(profile),
        ..Trace::default()
    })
}
