//! Reader of IRTT's logs as CSV (J. Zhao and J. Pan, "LENS: A LEO Satellite Network Measurement
//! Dataset", ACM MMSys 2024): "timestamp,rtt,uplink,downlink", the sending time of each probe in ns
//! and its delays in ms.
//!
//! -1 is a lost probe. Under `rtt` the direction of the loss is unknown, and the uplink is assumed.
//! 0 is an unknown delay, because the probe was lost in the other direction. A probe stands for all
//! packets sent until the next probe. The log repeats an average interval after the last line.

use bentpipe_link::{LossRates, Profile};
use bentpipe_types::Span;

use crate::changes::schema::IrttColumn;
use crate::error::quoted;
use crate::quantity::time::LONGEST;
use crate::traces::trace::{Trace, TraceError, delay, lines, number, step};

/// Interval of the probes in the data set.
const USUAL_INTERVAL: Span = Span::from_millis(10);

const LOST: f64 = -1.0;

pub(crate) fn parse(text: &str, column: Option<IrttColumn>) -> Result<Trace, TraceError> {
    let Some(column) = column else {
        let message = r#"expected column = "uplink" or "downlink" beside it"#;
        return Err(TraceError::file(message));
    };
    let mut rows = lines(text);
    let header = rows.next().map_or("", |(_, header)| header);
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    let place = |name: &str| {
        let message = format!(
            r#"expected the columns "timestamp,rtt,uplink,downlink", got {}"#,
            quoted(header)
        );
        let found = names.iter().position(|other| *other == name);
        found.ok_or_else(|| TraceError::new(1, message))
    };
    let (timestamp, rtt, own) = (place("timestamp")?, place("rtt")?, place(column.name())?);
    let mut first = None;
    let mut now = Span::ZERO;
    let mut count = 0_u64;
    let mut delays = Vec::new();
    let mut losses = Vec::new();
    for (line, row) in rows {
        let fields: Vec<&str> = row.split(',').collect();
        if fields.len() != names.len() {
            let message = format!("expected {} fields, got {}", names.len(), fields.len());
            return Err(TraceError::new(line, message));
        }
        let sent: u64 = fields[timestamp].trim().parse().map_err(|_| {
            let got = quoted(fields[timestamp]);
            TraceError::new(
                line,
                format!("expected a timestamp in whole nanoseconds, got {got}"),
            )
        })?;
        let since = sent
            .checked_sub(*first.get_or_insert(sent))
            .map(Span::from_nanos);
        let later = since.filter(|at| (count == 0 || *at > now) && *at <= LONGEST);
        now = later.ok_or_else(|| {
            let message = "expected a timestamp later than the one before, and at most 72 h later than the first";
            TraceError::new(line, message)
        })?;
        count += 1;
        let value = |at: usize| {
            number(
                line,
                fields[at],
                "a time in milliseconds, or -1 for a lost packet",
            )
        };
        let (round_trip, taken) = (value(rtt)?, value(own)?);
        let lost = taken == LOST || (round_trip == LOST && column == IrttColumn::Uplink);
        let packet = if lost { 1.0 } else { 0.0 };
        step(&mut losses, now, LossRates { packet, bit: 0.0 });
        if taken < 0.0 && taken != LOST {
            let message = format!(
                "expected a delay from 0 ms on, or -1 for a lost packet, got {taken}: were the clocks of both ends the same?"
            );
            return Err(TraceError::new(line, message));
        }
        if taken > 0.0 {
            step(&mut delays, now, delay(line, taken)?);
        }
    }
    // Unknown delays at the start take the first known one.
    let Some(earliest) = delays.first_mut() else {
        let message = format!("expected a delay in the column \"{column}\", got none");
        return Err(TraceError::file(message));
    };
    earliest.0 = Span::ZERO;
    let interval = match count {
        0 | 1 => USUAL_INTERVAL,
        count => now / (count - 1),
    };
    let period = Some(now + interval);
    Ok(Trace {
        delay: Profile::new(delays, period),
        losses: Profile::new(losses, period),
        ..Trace::default()
    })
}
