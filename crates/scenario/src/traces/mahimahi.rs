//! Reader of Mahimahi's packet-delivery traces (mm-link). Each line is a time in whole milliseconds
//! at which 1500 bytes may be sent; times do not decrease. The trace repeats from its last time.

use bentpipe_link::{Opportunities, RateCourse};

use crate::error::quoted;
use crate::quantity::time::LONGEST;
use crate::traces::trace::{Trace, TraceError, lines};

pub(crate) fn parse(text: &str) -> Result<Trace, TraceError> {
    let longest = LONGEST.as_nanos() / 1_000_000;
    let mut at_ms: Vec<u64> = Vec::new();
    for (line, field) in lines(text) {
        let milliseconds = field.trim().parse().ok().filter(|ms| *ms <= longest);
        let Some(milliseconds) = milliseconds else {
            let expected = "expected a time in whole milliseconds up to 72 h";
            return Err(TraceError::new(
                line,
                format!("{expected}, got {}", quoted(field)),
            ));
        };
        if let Some(before) = at_ms.last().filter(|before| **before > milliseconds) {
            let message =
                format!("expected {before} ms or later, as on the line before, got {milliseconds}");
            return Err(TraceError::new(line, message));
        }
        at_ms.push(milliseconds);
    }
    let opportunities = Opportunities::new(at_ms).ok_or_else(|| {
        let message = "expected a last line later than 0 ms: the file begins again at its end";
        TraceError::file(message)
    })?;
    Ok(Trace {
        rate: Some(RateCourse::Opportunities(opportunities)),
        ..Trace::default()
    })
}
