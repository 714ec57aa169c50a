//! Reader of CSV tables: names and units in the first line, then a line for each time at which
//! something changes.
//!
//! The columns are "time (s), rate (Mbit/s), attenuation (dB), delay (ms), packet_loss_rate,
//! bit_error_rate", in any order. The unit may also be in square brackets or after an underscore
//! ("delay_ms"), and a loss rate may be in "%". Fields are separated by commas, semicolons or tabs.
//! An empty field leaves the value unchanged; lines that begin with "#" are ignored.

use bentpipe_link::{LossRates, Profile};
use bentpipe_types::Span;

use crate::error::quoted;
use crate::quantity::decibels::MOST_DECIBELS;
use crate::suggest::suggest;
use crate::traces::trace::{
    ATTENUATIONS_TOO_CLOSE, CLOSEST_ATTENUATIONS, Trace, TraceError, delay, lines, number, rates,
    step, time,
};

/// Quantity in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Time,
    Rate,
    Attenuation,
    Delay,
    PacketLoss,
    BitError,
}

const NAMES: [(&str, Column); 6] = [
    ("time", Column::Time),
    ("rate", Column::Rate),
    ("attenuation", Column::Attenuation),
    ("delay", Column::Delay),
    ("packet_loss_rate", Column::PacketLoss),
    ("bit_error_rate", Column::BitError),
];

/// Values of units in seconds, bit/s, milliseconds or one.
const TIMES: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
];

const RATES: [(&str, f64); 8] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
];

const DELAYS: [(&str, f64); 4] = [("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)];

const DECIBELS: [(&str, f64); 1] = [("dB", 1.0)];

const SHARES: [(&str, f64); 2] = [("", 1.0), ("%", 0.01)];

impl Column {
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => &TIMES,
            Self::Rate => &RATES,
            Self::Attenuation => &DECIBELS,
            Self::Delay => &DELAYS,
            Self::PacketLoss | Self::BitError => &SHARES,
        }
    }
}

/// The fastest rate of a link.
const FASTEST: f64 = 1e12;

pub(crate) fn parse(text: &str, every: Option<Span>) -> Result<Trace, TraceError> {
    let mut rows = lines(text).filter(|(_, row)| !row.starts_with('#') && !row.trim().is_empty());
    let Some((line, header)) = rows.next() else {
        let message = r#"expected a first line such as "time (s), rate (Mbit/s), delay (ms)""#;
        return Err(TraceError::file(message));
    };
    let separator = [',', ';', '\t']
        .into_iter()
        .find(|c| header.contains(*c))
        .unwrap_or(',');
    let columns =
        (header.split(separator).map(|name| column(line, name))).collect::<Result<Vec<_>, _>>()?;
    for (index, (kind, _)) in columns.iter().enumerate() {
        if columns[..index].iter().any(|(other, _)| other == kind) {
            let name = NAMES
                .iter()
                .find(|(_, other)| other == kind)
                .map_or("", |(name, _)| name);
            return Err(TraceError::new(
                line,
                format!("expected one column of {name}, got two"),
            ));
        }
    }
    if columns[..].iter().all(|(kind, _)| *kind != Column::Time) || columns.len() < 2 {
        let message = r#"expected a column "time (s)" and one of a changing quantity"#;
        return Err(TraceError::new(line, message));
    }
    let mut steps = Steps::default();
    let mut last = None;
    let mut row = vec![None; columns.len()];
    for (line, text) in rows {
        let fields: Vec<&str> = text.split(separator).map(str::trim).collect();
        if fields.len() != columns.len() {
            let message = format!("expected {} fields, got {}", columns.len(), fields.len());
            return Err(TraceError::new(line, message));
        }
        let mut now = None;
        for (place, (field, (kind, unit))) in fields.iter().zip(&columns).enumerate() {
            row[place] = None;
            if !field.is_empty() {
                let value = number(line, field, "a number")? * unit;
                row[place] = Some(value);
                if *kind == Column::Time {
                    now = Some(time(line, value)?);
                }
            }
        }
        let now = now.ok_or_else(|| TraceError::new(line, "expected a time, got nothing"))?;
        if last.is_some_and(|last| now <= last) {
            return Err(TraceError::new(
                line,
                "expected a time later than on the line before",
            ));
        }
        last = Some(now);
        for (value, (kind, _)) in row.iter().zip(&columns) {
            if let Some(value) = value {
                steps.take(line, now, *kind, *value)?;
            }
        }
    }
    steps.finish(every)
}

/// Returns the quantity and unit of a column.
fn column(line: usize, header: &str) -> Result<(Column, f64), TraceError> {
    let header = header.trim().trim_matches('"').trim();
    let (name, unit) = match header.split_once(['(', '[']) {
        Some((name, unit)) => (name.trim(), unit.trim_end_matches([')', ']']).trim()),
        None => match NAMES.iter().find(|(name, _)| *name == header) {
            Some((name, _)) => (*name, ""),
            None => header.rsplit_once('_').unwrap_or((header, "")),
        },
    };
    let Some((name, kind)) = NAMES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
    else {
        let known = NAMES.map(|(name, _)| name);
        let hint = match suggest(name, known) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("known: {}", known.join(", ")),
        };
        return Err(TraceError::new(
            line,
            format!("no column is called {}; {hint}", quoted(header)),
        ));
    };
    let units = kind.units();
    // Case is ignored: files have both mbps and Mbps, and no unit differs from another by case
    // alone.
    let found = units
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(unit));
    let Some((_, worth)) = found else {
        let known: Vec<&str> = units
            .iter()
            .map(|(unit, _)| *unit)
            .filter(|unit| !unit.is_empty())
            .collect();
        let message = format!(
            "expected a unit of {name} such as \"{name} ({})\", one of {}, got {}",
            known[0],
            known.join(", "),
            quoted(header)
        );
        return Err(TraceError::new(line, message));
    };
    Ok((*kind, *worth))
}

#[derive(Default)]
struct Steps {
    rate: Vec<(Span, u64)>,
    attenuation: Vec<(Span, f64)>,
    delay: Vec<(Span, Span)>,
    losses: Vec<(Span, LossRates)>,
}

impl Steps {
    fn take(&mut self, line: usize, now: Span, kind: Column, value: f64) -> Result<(), TraceError> {
        let within = |most: f64, expected: &str| {
            let fits = (0.0..=most).contains(&value);
            fits.then_some(value)
                .ok_or_else(|| TraceError::new(line, format!("expected {expected}, got {value}")))
        };
        match kind {
            Column::Time => {}
            Column::Rate => {
                let rate = within(FASTEST, "a rate from 0 to 1000 Gbit/s")?;
                step(&mut self.rate, now, (rate + 0.5) as u64);
            }
            Column::Attenuation => {
                let attenuation = within(MOST_DECIBELS, "an attenuation from 0 to 200 dB")?;
                let last = self.attenuation.last();
                if last.is_some_and(|(at, _)| now.saturating_sub(*at) < CLOSEST_ATTENUATIONS) {
                    return Err(TraceError::new(line, ATTENUATIONS_TOO_CLOSE));
                }
                step(&mut self.attenuation, now, attenuation);
            }
            Column::Delay => step(&mut self.delay, now, delay(line, value)?),
            Column::PacketLoss | Column::BitError => {
                let share = within(1.0, "a probability from 0 to 1")?;
                let mut rates = self
                    .losses
                    .last()
                    .map_or_else(LossRates::default, |(_, rates)| *rates);
                // Both columns of one line make one step.
                let same = self.losses.pop_if(|(at, _)| *at == now);
                if kind == Column::PacketLoss {
                    rates.packet = share;
                } else {
                    rates.bit = share;
                }
                if same.is_some() {
                    self.losses.push((now, rates));
                } else {
                    step(&mut self.losses, now, rates);
                }
            }
        }
        Ok(())
    }

    fn finish(self, every: Option<Span>) -> Result<Trace, TraceError> {
        let Self {
            rate,
            attenuation,
            delay,
            losses,
        } = self;
        if rate.is_empty() && attenuation.is_empty() && delay.is_empty() && losses.is_empty() {
            return Err(TraceError::file(
                "expected a line with a time and new values, got none",
            ));
        }
        let late = TraceError::file("every: expected more than the last time in the file");
        let ends = [
            rate.last().map(|(at, _)| *at),
            attenuation.last().map(|(at, _)| *at),
            delay.last().map(|(at, _)| *at),
            losses.last().map(|(at, _)| *at),
        ];
        if every.is_some_and(|every| ends.into_iter().flatten().any(|end| every <= end)) {
            return Err(late);
        }
        let rate = if rate.is_empty() {
            None
        } else {
            Some(rates(rate, every).map_err(TraceError::file)?)
        };
        Ok(Trace {
            rate,
            attenuation: Profile::new(attenuation, every),
            delay: Profile::new(delay, every),
            losses: Profile::new(losses, every),
        })
    }
}
