//! The series to record.

use std::collections::BTreeSet;

use bentpipe_sim::{FlowQuantity, HOST_GAUGES, LinkQuantity, PROCESSED_HOST_GAUGES};
use bentpipe_types::{Gauge, Span};

use crate::directory::{Directory, Members, member_name};
use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::hints::{list, suggested_series};
use crate::limits::{MAX_RECORDS, MAX_SERIES};
use crate::link::settings::{Link, Way};
use crate::node::settings::{Node, NodeKind};
use crate::orbit::path::PathQuantity;
use crate::probe::schema::ProbesFile;
use crate::probe::settings::{Probe, Probes, Series};
use crate::quantity::time::{Interval, Length, SHORTEST_INTERVAL};
use crate::suggest::suggest;

/// Word for a link's path over satellites in the name of a series, in place of a direction.
const PATH: &str = "path";

/// The flows, links, gateways and hosts that series may name.
pub(crate) struct SeriesOwners<'a> {
    pub(crate) flows: &'a Directory<'a>,
    pub(crate) links: &'a Directory<'a>,
    pub(crate) made_links: &'a [Link],
    pub(crate) node_names: &'a Directory<'a>,
    pub(crate) nodes: &'a [Node],
}

pub(crate) fn resolve_probes(
    file: &ProbesFile,
    owners: &SeriesOwners<'_>,
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
        let (owner, rest, members) = match owner_of(text, owners) {
            Ok(found) => found,
            Err(message) => return refuse(message),
        };
        if let Quantity::Link(way, _) = rest
            && owners.made_links[members.first].direction(way).is_none()
        {
            return refuse(format!("{} has no {way}: it is one_way", quoted(owner)));
        }
        if let Quantity::Path(_) = rest
            && owners.made_links[members.first].path.is_none()
        {
            return refuse(format!("{} has no path over satellites", quoted(owner)));
        }
        if series.len().saturating_add(members.len()) > MAX_SERIES {
            return refuse(format!("expected at most {MAX_SERIES} series"));
        }
        for n in 0..members.len() {
            let name = member_name(owner, members.count, n);
            let of = rest.of(members.nth(n));
            if !seen.insert(of) {
                return refuse(format!("{} stands twice in the array", quoted(text)));
            }
            series.push(Probe {
                name: format!("{name}.{}", rest.name()),
                of,
            });
        }
    }
    let averages_every = averages_every(file)?;
    check_records(file.interval, averages_every, duration, &series)?;
    Ok(Probes {
        series,
        interval: file.interval,
        averages_every,
    })
}

fn averages_every(file: &ProbesFile) -> Result<Span, Fault> {
    let key = ["probes", "averages_every"];
    match (file.interval, file.averages_every) {
        (Interval::Every(_), Some(_)) => Err(fault(
            &key,
            r#"has no effect: interval is not "every-change""#,
        )),
        (Interval::Every(interval), None) => Ok(interval),
        (Interval::EveryChange, Some(length)) if length.0 < SHORTEST_INTERVAL => {
            let message = format!(r#"expected at least "1 us", got "{length}""#);
            Err(fault(&key, message))
        }
        (Interval::EveryChange, Some(length)) => Ok(length.0),
        (Interval::EveryChange, None) => Ok(Span::from_millis(100)),
    }
}

/// Checks the number of samples. With every change recorded, it is known only during the run.
fn check_records(
    interval: Interval,
    averages_every: Span,
    duration: Span,
    series: &[Probe],
) -> Result<(), Fault> {
    let (key, sampled) = match interval {
        Interval::Every(_) => ("interval", series.len()),
        Interval::EveryChange => {
            let averages = series.iter().filter(|probe| probe.of.is_average());
            ("averages_every", averages.count())
        }
    };
    let each = duration.as_nanos() / averages_every.as_nanos().max(1) + 1;
    let all = each.saturating_mul(sampled as u64);
    if all <= MAX_RECORDS {
        return Ok(());
    }
    let every = Length(averages_every);
    let message = format!(
        r#"expected a longer time between records: {sampled} series every "{every}" are {all} records, above {MAX_RECORDS}"#
    );
    Err(fault(&["probes", key], message))
}

/// The quantity of a series without its owner.
enum Quantity {
    Flow(FlowQuantity),
    Link(Way, LinkQuantity),
    Path(PathQuantity),
    Node(usize, Gauge),
}

impl Quantity {
    fn of(&self, index: usize) -> Series {
        match self {
            Self::Flow(series) => Series::Flow(index, *series),
            Self::Link(way, series) => Series::Link(index, *way, *series),
            Self::Path(series) => Series::Path(index, *series),
            Self::Node(gauge, of) => Series::Node(index, *gauge, of.unit),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Flow(series) => series.name().to_owned(),
            Self::Link(way, series) => format!("{way}.{}", series.name()),
            Self::Path(series) => format!("{PATH}.{}", series.name()),
            Self::Node(_, of) => of.name.to_owned(),
        }
    }
}

/// Returns the flow, link or gateway that a series names, and the quantity.
fn owner_of<'t>(
    text: &'t str,
    owners: &SeriesOwners<'_>,
) -> Result<(&'t str, Quantity, Members), String> {
    let SeriesOwners { flows, links, .. } = owners;
    let parts: Vec<&str> = text.splitn(4, '.').collect();
    match parts[..] {
        [flow, series] => {
            let Some(members) = flows.find(flow) else {
                if let Some((members, kind)) = node_of(flow, owners) {
                    let rest = gauge_of(flow, series, kind)?;
                    return Ok((flow, rest, members));
                }
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
                FlowQuantity::ALL,
                FlowQuantity::name,
                "series of a flow",
            )?;
            Ok((flow, Quantity::Flow(series), members))
        }
        [link, way, series] => {
            let Some(members) = links.find(link) else {
                return Err(links.missing(link));
            };
            if way == PATH {
                let series = word(
                    series,
                    PathQuantity::ALL,
                    PathQuantity::name,
                    "series of a path",
                )?;
                return Ok((link, Quantity::Path(series), members));
            }
            let way = word(way, Way::ALL, Way::name, "direction of a link")?;
            let series = word(
                series,
                LinkQuantity::ALL,
                LinkQuantity::name,
                "series of a link",
            )?;
            Ok((link, Quantity::Link(way, series), members))
        }
        _ => Err(format!(
            r#"expected a series such as "download.goodput" or "satellite.forward.queue", got {}"#,
            quoted(text)
        )),
    }
}

/// Returns the gateway or host of this name.
fn node_of<'a>(name: &str, owners: &SeriesOwners<'a>) -> Option<(Members, &'a NodeKind)> {
    let members = owners.node_names.find(name)?;
    Some((members, &owners.nodes.get(members.first)?.kind))
}

fn gauge_of(name: &str, series: &str, kind: &NodeKind) -> Result<Quantity, String> {
    let gauges = match kind {
        NodeKind::Host(host) if host.processing.is_none() => HOST_GAUGES,
        NodeKind::Host(_) => PROCESSED_HOST_GAUGES,
        NodeKind::Gateway(gateway) => gateway.gauges(),
    };
    if let Some(index) = gauges.iter().position(|gauge| gauge.name == series) {
        return Ok(Quantity::Node(index, gauges[index]));
    }
    let names: Vec<&str> = gauges.iter().map(|gauge| gauge.name).collect();
    let owner = match kind {
        NodeKind::Host(_) => "host".to_owned(),
        NodeKind::Gateway(gateway) if names.is_empty() => {
            let (name, kind) = (quoted(name), gateway.kind());
            return Err(format!(
                "{name} is a gateway of kind \"{kind}\": it has no series"
            ));
        }
        NodeKind::Gateway(gateway) => format!("\"{}\" gateway", gateway.kind()),
    };
    let hint = match suggest(series, names.iter().copied()) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("known: {}", list(&names)),
    };
    Err(format!(
        "no series of a {owner} is {}; {hint}",
        quoted(series)
    ))
}

/// Returns the value with this name.
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
    let near = suggested_series(text, &names).or_else(|| suggest(text, names.iter().copied()));
    Err(match near {
        Some(near) => format!(
            "no {what} is {}; did you mean {}?",
            quoted(text),
            quoted(near)
        ),
        None => format!("no {what} is {}; known: {}", quoted(text), list(&names)),
    })
}
