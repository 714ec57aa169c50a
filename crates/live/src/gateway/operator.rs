//! Answers the operator's requests about a running gateway.

use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_types::{ConnectionReport, LegReport, Span};
use serde_json::{Value, json};

use super::control::{Answer, Control, MAX_CONNECTIONS, Question};
use super::control_socket::Handler;
use super::metrics;
use super::reload::Reloader;
use super::statistics::{Statistics, Totals};

/// Connections in an answer, unless the request has another number.
const CONNECTIONS: usize = 100;

/// Longest drain that a request can ask for.
const MAX_DRAIN: Span = Span::from_secs(86_400);

/// A running gateway, as its operator sees it.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) control: Arc<Control>,
    pub(super) reloader: Reloader,
    /// Description of what runs, such as the interfaces of each side.
    pub(super) lines: Vec<String>,
    /// Totals of earlier runs.
    pub(super) earlier: Totals,
    /// One reload at a time.
    pub(super) reloading: Mutex<()>,
}

impl Operator {
    /// Returns the counters. Totals include earlier runs.
    pub(super) fn statistics(&self) -> Result<Statistics, String> {
        match self.control.ask(Question::Statistics)? {
            Answer::Statistics(statistics) => Ok(self.with_earlier(*statistics)),
            _ => Err(unexpected()),
        }
    }

    /// Adds the totals of earlier runs.
    pub(super) fn with_earlier(&self, mut statistics: Statistics) -> Statistics {
        statistics.totals.add(&self.earlier);
        statistics
    }

    /// Reads the scenario file again. Returns notes for the user.
    pub(super) fn reload(&self) -> Result<Vec<String>, String> {
        let _one = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (network, notes) = self.reloader.read()?;
        match self.control.ask(Question::Adopt(network))? {
            Answer::Adopted(result) => result.map(|()| notes),
            _ => Err(unexpected()),
        }
    }

    fn connections(&self, request: &Value) -> Result<Value, String> {
        let number = |key: &str, default: usize| match &request[key] {
            Value::Null => Ok(default),
            value => (value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok()))
            .ok_or_else(|| format!("{key}: expected a whole number")),
        };
        let first = number("first", 0)?;
        let limit = number("limit", CONNECTIONS)?;
        if limit == 0 || limit > MAX_CONNECTIONS {
            return Err(format!("limit: expected 1 to {MAX_CONNECTIONS}"));
        }
        match self.control.ask(Question::Connections { first, limit })? {
            Answer::Connections(connections, more) => Ok(json!({
                "connections": connections.iter().map(connection).collect::<Vec<_>>(),
                "next": more.then_some(first + limit),
            })),
            _ => Err(unexpected()),
        }
    }
}

impl Handler for Operator {
    fn answer(&self, request: &Value) -> Result<Value, String> {
        match request["request"].as_str() {
            Some("status") => {
                let statistics = serde_json::to_value(self.statistics()?);
                let mut fields = statistics.map_err(|error| error.to_string())?;
                fields["version"] = env!("CARGO_PKG_VERSION").into();
                fields["sides"] = self.lines.clone().into();
                Ok(fields)
            }
            Some("connections") => self.connections(request),
            Some("metrics") => Ok(json!({ "text": self.metrics()?.0 })),
            Some("reload") => {
                let result = self.reload();
                self.control.report(reload_line(&result));
                Ok(json!({ "notes": result? }))
            }
            Some("drain") => {
                let within_s = &request["within_s"];
                let within = within_s.as_f64().filter(|within_s| *within_s >= 0.0);
                let Some(within_s) = within else {
                    return Err("within_s: expected a number of seconds".to_owned());
                };
                let within = Span::from_millis((within_s * 1e3).min(1e12) as u64);
                self.control.drain(within.min(MAX_DRAIN));
                Ok(json!({ "open": open(&self.statistics()?) }))
            }
            Some(other) => Err(format!("no request is \"{other}\"")),
            None => Err("expected a \"request\"".to_owned()),
        }
    }

    fn metrics(&self) -> Result<(String, &'static str), String> {
        let text = metrics::text(self.statistics()?);
        let text = text.map_err(|error| error.to_string())?;
        Ok((text, metrics::MEDIA_TYPE))
    }
}

/// Returns the message about an attempt to read the file again.
pub(super) fn reload_line(result: &Result<Vec<String>, String>) -> String {
    match result {
        Ok(_) => "the scenario was read again: new connections have its settings".to_owned(),
        Err(error) => format!("the scenario was not read again, and all settings stay: {error}"),
    }
}

fn unexpected() -> String {
    "internal error: unexpected answer".to_owned()
}

/// Returns the number of open connections that the gateways have taken on.
fn open(statistics: &Statistics) -> u64 {
    let each = statistics.gauges.values();
    each.filter_map(|gauges| gauges.get("connections.open"))
        .sum()
}

fn connection(report: &ConnectionReport) -> Value {
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    json!({
        "opener": report.opener.to_string(),
        "responder": report.responder.to_string(),
        "treatment": report.treatment,
        "age_s": seconds(report.age),
        "idle_s": seconds(report.idle),
        "legs": report.legs.iter().map(|one| one.as_ref().map(leg)).collect::<Vec<_>>(),
    })
}

fn leg(leg: &LegReport) -> Value {
    json!({
        "is_facing": leg.is_facing,
        "state": leg.state,
        "received_bytes": leg.received,
        "delivered_bytes": leg.delivered,
        "held_bytes": leg.held,
        "in_flight_bytes": leg.in_flight,
        "congestion_window_bytes": leg.congestion_window,
        "peer_window_bytes": leg.peer_window,
        "advertised_window_bytes": leg.advertised_window,
        "round_trip_s": leg.smoothed_rtt.map(Span::as_secs_f64),
        "retransmitted_segments": leg.retransmitted,
        "timeouts": leg.timeouts,
    })
}
