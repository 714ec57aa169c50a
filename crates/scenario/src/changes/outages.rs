//! Outages.

use bentpipe_link::{InFlight, Outages, Sending};
use bentpipe_types::Span;

use crate::changes::schema::{InFlightName, OutageFile, SendingName};
use crate::quantity::time::Length;

/// Shortest outage, and shortest time between two.
const SHORTEST_OUTAGE: Span = Span::from_millis(1);

pub(crate) const MOST_OUTAGES: usize = 10_000;

pub(crate) fn outage(file: &OutageFile) -> Result<Outages, (&'static str, String)> {
    let Length(lasts) = file.lasts;
    if lasts < SHORTEST_OUTAGE {
        return Err(("lasts", "expected 1 ms or more".to_owned()));
    }
    if let Some(Length(every)) = file.every
        && every < lasts + SHORTEST_OUTAGE
    {
        let message = format!(
            r#"expected 1 ms or more above "{}", which it lasts, got "{}""#,
            file.lasts,
            Length(every)
        );
        return Err(("every", message));
    }
    Ok(Outages {
        at: file.at.0,
        lasts,
        every: file.every.map(|Length(every)| every),
        sending: sending(file.sending),
        in_flight: in_flight(file.in_flight),
    })
}

/// Converts the effect of an outage on packets that would be sent; the default is loss.
pub(crate) fn sending(name: Option<SendingName>) -> Sending {
    match name.unwrap_or(SendingName::Lost) {
        SendingName::Lost => Sending::Lost,
        SendingName::Held => Sending::Held,
    }
}

/// Converts the effect of an outage on packets in transit; the default is loss.
pub(crate) fn in_flight(name: Option<InFlightName>) -> InFlight {
    match name.unwrap_or(InFlightName::Lost) {
        InFlightName::Lost => InFlight::Lost,
        InFlightName::Held => InFlight::Held,
        InFlightName::Arrive => InFlight::Arrive,
    }
}
