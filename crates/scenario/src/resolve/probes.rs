//! Which series to record.

use std::collections::BTreeSet;

use bentpipe_types::Span;

use super::directory::{Directory, Members, member_name};
use super::fault;
use super::limits::{MAX_RECORDS, MAX_SERIES};
use crate::document::{Fault, Segment, path};
use crate::error::quoted;
use crate::quantity::Interval;
use crate::schema::ProbesFile;
use crate::schema::hints::list;
use crate::suggest::suggest;
use crate::{FlowSeries, LinkSeries, Probe, Probes, Series, Way};

pub(super) fn resolve(
    file: &ProbesFile,
    flows: &Directory<'_>,
    links: &Directory<'_>,
    duration: Span,
) -> Result<Probes, Fault> {
    let mut series: Vec<Probe> = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, text) in file.series.iter().enumerate() {
        let refuse = |message: String| {
            let mut keys = path(&["probes", "series"]);
            keys.push(Segment::Index(index));
            Err(Fault::new(keys, message))
        };
        let (owner, rest, members) = match owner_of(text, flows, links) {
            Ok(found) => found,
            Err(message) => return refuse(message),
        };
        if series.len().saturating_add(members.len()) > MAX_SERIES {
            return refuse(format!("expected at most {MAX_SERIES} series"));
        }
        for n in 0..members.len() {
            let name = member_name(owner, members.count, n);
            let of = rest.of(members.nth(n));
            if of.is_average() && file.interval == Interval::EveryChange {
                return refuse(format!(
                    r#"{} is an average over the interval: expected interval = "100 ms" or the like, got "every-change""#,
                    quoted(text)
                ));
            }
            if !seen.insert(of) {
                return refuse(format!("{} stands twice in the array", quoted(text)));
            }
            series.push(Probe {
                name: format!("{name}.{}", rest.name()),
                of,
            });
        }
    }
    check_records(file.interval, duration, series.len())?;
    Ok(Probes {
        series,
        interval: file.interval,
    })
}

fn check_records(interval: Interval, duration: Span, series: usize) -> Result<(), Fault> {
    let Interval::Every(span) = interval else {
        return Ok(());
    };
    let each = duration.as_nanos() / span.as_nanos().max(1) + 1;
    let all = each.saturating_mul(series as u64);
    if all <= MAX_RECORDS {
        return Ok(());
    }
    let message = format!(
        r#"expected a longer interval: {series} series every "{interval}" are {all} records, more than {MAX_RECORDS}"#
    );
    Err(fault(&["probes", "interval"], message))
}

/// What a series is of, but for whose.
enum Rest {
    Flow(FlowSeries),
    Link(Way, LinkSeries),
}

impl Rest {
    fn of(&self, index: usize) -> Series {
        match self {
            Self::Flow(series) => Series::Flow(index, *series),
            Self::Link(way, series) => Series::Link(index, *way, *series),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Flow(series) => series.name().to_owned(),
            Self::Link(way, series) => format!("{way}.{series}"),
        }
    }
}

/// The flow or link that a series names, and which of its series.
fn owner_of<'t>(
    text: &'t str,
    flows: &Directory<'_>,
    links: &Directory<'_>,
) -> Result<(&'t str, Rest, Members), String> {
    let parts: Vec<&str> = text.splitn(4, '.').collect();
    match parts[..] {
        [flow, series] => {
            let Some(members) = flows.find(flow) else {
                if links.find(flow).is_some() {
                    return Err(format!(
                        "{} is a link: expected {}, got {}",
                        quoted(flow),
                        quoted(&format!("{flow}.forward.queue")),
                        quoted(text)
                    ));
                }
                return Err(flows.missing(flow));
            };
            let series = word(
                series,
                FlowSeries::ALL,
                FlowSeries::name,
                "series of a flow",
            )?;
            Ok((flow, Rest::Flow(series), members))
        }
        [link, way, series] => {
            let Some(members) = links.find(link) else {
                return Err(links.missing(link));
            };
            let way = word(way, Way::ALL, Way::name, "direction of a link")?;
            let series = word(
                series,
                LinkSeries::ALL,
                LinkSeries::name,
                "series of a link",
            )?;
            Ok((link, Rest::Link(way, series), members))
        }
        _ => Err(format!(
            r#"expected a series such as "download.goodput" or "satellite.forward.queue", got {}"#,
            quoted(text)
        )),
    }
}

/// The value with this name.
fn word<T: Copy>(
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
    what: &str,
) -> Result<T, String> {
    if let Some(value) = all.iter().find(|value| name(**value) == text) {
        return Ok(*value);
    }
    let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
    Err(match suggest(text, names.iter().copied()) {
        Some(near) => format!(
            "no {what} is {}; did you mean {}?",
            quoted(text),
            quoted(near)
        ),
        None => format!("no {what} is {}; known: {}", quoted(text), list(&names)),
    })
}
