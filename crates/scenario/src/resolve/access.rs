//! Capacity on demand: who shares which carrier, and what may be asked for.

use std::sync::Arc;

use bentpipe_link::{Changes, RateCourse};
use bentpipe_types::{BitRate, Span};

use super::fault;
use super::links::LinkTable;
use crate::document::{Fault, Wrong};
use crate::error::quoted;
use crate::quantity::{Delay, Length, Rate, length_within};
use crate::schema::hints::list;
use crate::schema::{AccessFile, AccessKind, CarrierFile, Named};
use crate::{Carrier, Link, OnDemand, Way};

/// OpenSAND's default since 2014.
const FRAME: Span = Span::from_micros(26_500);
const FRAMES: [Span; 2] = [Span::from_millis(1), Span::from_secs(10)];

/// All shared carriers, in the order of the file.
pub(super) fn carriers(file: &Named<CarrierFile>) -> Result<Vec<Carrier>, Fault> {
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

fn frame(file: Option<Length>) -> Result<Span, Wrong> {
    length_within("frame", file, FRAME, FRAMES)
}

/// What is constant is granted whatever else is asked for: it has to fit.
pub(super) fn check(carriers: &[Carrier], links: &[Link]) -> Result<(), Fault> {
    for carrier in carriers {
        let directions = links.iter().flat_map(Link::directions);
        let members = directions.filter_map(|(_, direction)| direction.access.as_ref());
        let constant: Vec<u64> = members
            .filter(|access| access.carrier.name == carrier.name)
            .filter_map(|access| Some(access.constant?.bits_per_second()))
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

/// What a direction is besides, and what the one that goes back is.
pub(super) struct Beside<'a> {
    pub(super) rate: BitRate,
    pub(super) delay: Span,
    pub(super) back: Span,
    pub(super) changes: Option<&'a Changes>,
}

impl LinkTable<'_> {
    /// How the direction comes by its capacity; `None` where it has it to itself.
    pub(super) fn access(&self, way: Way, beside: &Beside<'_>) -> Result<Option<OnDemand>, Fault> {
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
            let message = "expected \"continuous\": a channel that many hear is its sender's alone, who asks nobody";
            return refuse("kind", message.to_owned());
        }
        if let Some(what) = beside.changes.and_then(stands_against) {
            let message = format!(
                "expected no {what} beside it: how much goes when is the hub's to say (delays and losses may change)"
            );
            return refuse("", message);
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
            constant: file.constant.map(|rate| rate.0),
            rate_based: file.rate_based.map(|rate| rate.0),
            volume_based,
            free,
            request_delay: file
                .request_delay
                .map_or(beside.delay, |Delay(delay)| delay),
            grant_delay: file.grant_delay.map_or(beside.back, |Delay(delay)| delay),
        }))
    }

    fn carrier(&self, file: &AccessFile, rate: BitRate) -> Result<Carrier, Wrong> {
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
            let message = format!("has no effect: [carriers.{name}] says so for all who share it");
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

/// A change of the path that says how much goes when.
fn stands_against(changes: &Changes) -> Option<&'static str> {
    let fades = changes
        .fading
        .as_ref()
        .is_some_and(|fading| fading.rate.is_some());
    if changes.rate != RateCourse::Constant {
        Some("rate that changes")
    } else if fades {
        Some("rate in a fade")
    } else if !changes.outages.is_empty() {
        Some("outages")
    } else {
        None
    }
}
