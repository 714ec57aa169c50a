//! Capacity on demand: shared carriers, and what directions may request.

use std::sync::Arc;

use bentpipe_link::{Changes, RateCourse, TerminalSettings};
use bentpipe_types::{BitRate, Span};

use crate::access::schema::{AccessFile, AccessKind, CarrierFile};
use crate::access::settings::{Carrier, OnDemand};
use crate::error::quoted;
use crate::fault::{Fault, KeyError, Segment, fault};
use crate::hints::list;
use crate::link::settings::{Link, Way};
use crate::link::table::LinkTable;
use crate::named::Named;
use crate::quantity::rate::Rate;
use crate::quantity::scheduled::ScheduledRate;
use crate::quantity::time::{Delay, Length, length_within};

/// Default duration of a frame: OpenSAND's since 2014.
const FRAME: Span = Span::from_micros(26_500);

const FRAMES: [Span; 2] = [Span::from_millis(1), Span::from_secs(10)];

/// Returns all shared carriers, in the order of the file.
pub(crate) fn resolve_carriers(file: &Named<CarrierFile>) -> Result<Vec<Carrier>, Fault> {
    let carriers = file.iter().map(|(name, carrier)| {
        let frame = frame(carrier.frame)
            .map_err(|(key, message)| fault(&["carriers", name, key], message))?;
        Ok(Carrier {
            name: Some(Arc::from(name)),
            rate: carrier.rate.0,
            frame,
            processing: carrier.processing.map_or(Span::ZERO, |of| of.0),
        })
    });
    carriers.collect()
}

fn frame(file: Option<Length>) -> Result<Span, KeyError> {
    length_within("frame", file, FRAME, FRAMES)
}

/// Checks that the constant capacities fit on each carrier, because they are always granted.
pub(crate) fn check_carriers(carriers: &[Carrier], links: &[Link]) -> Result<(), Fault> {
    for carrier in carriers {
        let directions = links.iter().flat_map(Link::directions);
        let members = directions.filter_map(|(_, direction)| direction.access.as_ref());
        let constant: Vec<u64> = members
            .filter(|access| access.carrier.name == carrier.name)
            .filter_map(|access| Some(access.terminal.constant?.bits_per_second()))
            .collect();
        let all = constant
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        if all > carrier.rate.bits_per_second() {
            let name = carrier.name.as_deref().unwrap_or_default();
            let message = format!(
                r#"expected at least "{all} bit/s", which the constant capacity of {} directions comes to, got "{}""#,
                constant.len(),
                Rate(carrier.rate)
            );
            return Err(fault(&["carriers", name, "rate"], message));
        }
    }
    Ok(())
}

/// Properties of the direction and of the opposite one on which access depends.
pub(crate) struct AccessContext<'a> {
    pub(crate) rate: BitRate,
    pub(crate) delay: Span,
    pub(crate) back: Span,
    pub(crate) changes: Option<&'a Changes>,
}

impl LinkTable<'_> {
    /// Returns how the direction gets its capacity, or `None` if its rate is always available.
    pub(crate) fn access(
        &self,
        way: Way,
        beside: &AccessContext<'_>,
    ) -> Result<Option<OnDemand>, Fault> {
        let own = self.own(way).and_then(|own| own.access.as_ref());
        let Some(file) = own.or(self.link.access.as_ref()) else {
            return Ok(None);
        };
        let refuse = |key: &str, message: String| {
            let keys = ["access", key];
            let keys = if key.is_empty() { &keys[..1] } else { &keys };
            Err(Fault::new(self.path(way, own.is_some(), keys), message))
        };
        if file.kind == AccessKind::Continuous {
            return match file.given().next() {
                Some(key) => refuse(key, format!("has no effect with \"{}\"", file.kind)),
                None => Ok(None),
            };
        }
        if self.link.broadcast {
            let message = "expected \"continuous\": a broadcast channel has a single sender, which needs no requests";
            return refuse("kind", message.to_owned());
        }
        if let Some(changes) = beside.changes {
            self.fits_changes(way, beside.rate, changes)?;
        }
        let carrier = match self.carrier(file, beside.rate) {
            Ok(carrier) => carrier,
            Err((key, message)) => return refuse(key, message),
        };
        for (key, rate) in [("constant", file.constant), ("rate_based", file.rate_based)] {
            if let Some(rate) = rate
                && rate.0 > beside.rate
            {
                let message = format!(
                    r#"expected at most its rate, "{}", got "{rate}""#,
                    Rate(beside.rate)
                );
                return refuse(key, message);
            }
        }
        let rates = file.constant.is_some() || file.rate_based.is_some();
        let volume_based = file.volume_based.unwrap_or(!rates);
        let free = file.free.unwrap_or(false);
        if !(rates || volume_based || free) {
            let message = "expected true where there is neither constant, rate_based nor free: it could never send";
            return refuse("volume_based", message.to_owned());
        }
        Ok(Some(OnDemand {
            carrier,
            terminal: TerminalSettings {
                rate: beside.rate,
                constant: file.constant.map(|rate| rate.0),
                rate_based: file.rate_based.map(|rate| rate.0),
                volume_based,
                free,
                request_delay: file
                    .request_delay
                    .map_or(beside.delay, |Delay(delay)| delay),
                grant_delay: file.grant_delay.map_or(beside.back, |Delay(delay)| delay),
            },
        }))
    }

    /// Checks the rates of a fade. The carrier counts in the clear-sky rate of the terminal, so
    /// that there must be one, and no other rate may exceed it.
    fn fits_changes(&self, way: Way, clear: BitRate, changes: &Changes) -> Result<(), Fault> {
        let own = self.own(way);
        let traces = || {
            let own = own.is_some_and(|own| own.traces.is_some());
            self.path(way, own, &["traces"])
        };
        let profile = match &changes.rate {
            RateCourse::Constant => return Ok(()),
            RateCourse::Steps(profile) => profile,
            RateCourse::Opportunities(_) => {
                let message = "expected no trace of instants with access: the hub determines when packets are sent";
                return Err(Fault::new(traces(), message));
            }
        };
        let has_modes = own.is_some_and(|own| own.acm.is_some()) || self.link.acm.is_some();
        if !has_modes && own.and_then(|own| own.rate).or(self.link.rate).is_none() {
            let expected = "with access the terminal's rate in clear sky, which determines the carrier's share in a fade";
            return Err(self.missing(way, "rate", |other| other.rate.is_some(), expected));
        }
        let above = |rate: u64| rate > clear.bits_per_second();
        let Some((_, most)) = profile.steps().iter().find(|(_, rate)| above(*rate)) else {
            return Ok(());
        };
        let own_steps = own.and_then(|own| own.schedule.as_ref());
        let steps = own_steps.or(self.link.schedule.as_ref());
        let step = steps.into_iter().flatten().position(|step| {
            let rate = step.rate.as_ref();
            rate.is_some_and(|rate| above(rate.0))
        });
        let message = format!(
            r#"expected at most its rate, "{}", which it has in clear sky, got "{}""#,
            Rate(clear),
            ScheduledRate(*most)
        );
        let path = match step {
            Some(index) => {
                let mut path = self.path(way, own_steps.is_some(), &["schedule"]);
                path.extend([Segment::Index(index), Segment::Key("rate".to_owned())]);
                path
            }
            None => traces(),
        };
        Err(Fault::new(path, message))
    }

    fn carrier(&self, file: &AccessFile, rate: BitRate) -> Result<Carrier, KeyError> {
        let Some(name) = &file.carrier else {
            return Ok(Carrier {
                name: None,
                rate,
                frame: frame(file.frame)?,
                processing: file.processing.map_or(Span::ZERO, |of| of.0),
            });
        };
        let named = |carrier: &&Carrier| carrier.name.as_deref() == Some(name);
        let Some(carrier) = self.carriers.iter().find(named) else {
            let names: Vec<&str> = self
                .carriers
                .iter()
                .filter_map(|of| of.name.as_deref())
                .collect();
            let message = if names.is_empty() {
                format!(
                    "no carrier is named \"{name}\"; expected a table such as [carriers.{name}]"
                )
            } else {
                format!("no carrier is named \"{name}\"; known: {}", list(&names))
            };
            return Err(("carrier", message));
        };
        let shared = [
            ("frame", file.frame.is_some()),
            ("processing", file.processing.is_some()),
        ];
        if let Some((key, _)) = shared.iter().find(|(_, given)| *given) {
            let message = format!(
                "has no effect: [carriers.{name}] sets it for all directions that share it"
            );
            return Err((key, message));
        }
        if rate > carrier.rate {
            let message = format!(
                r#"expected a carrier of its rate, "{}", or more, got {} of "{}""#,
                Rate(rate),
                quoted(name),
                Rate(carrier.rate)
            );
            return Err(("carrier", message));
        }
        Ok(carrier.clone())
    }
}
