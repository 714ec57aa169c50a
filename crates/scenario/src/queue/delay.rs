//! Controlled delay: CoDel (RFC 8289) in one queue, or in a queue for each flow (RFC 8290).

use bentpipe_link::{CodelSettings, DelayBounds, FqCodelSettings, QueueDiscipline};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::quantity::time::{Length, length_within};
use crate::queue::fair::Fair;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, Settings, TARGETS};

/// Default target (RFC 8289 section 4.4, and Linux).
const TARGET: Span = Span::from_millis(5);

/// Default interval (RFC 8289 section 4.3, and Linux).
const INTERVAL: Span = Span::from_millis(100);

const INTERVALS: [Span; 2] = [Span::from_millis(1), Span::from_secs(100)];

/// CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codel {
    /// Target and interval.
    pub bounds: DelayBounds,
}

/// FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodel {
    /// Target and interval of each queue.
    pub bounds: DelayBounds,
    /// Round robin among the queues.
    pub turns: Fair,
}

fn bounds(file: &QueueFile, ecn: bool) -> Result<DelayBounds, KeyError> {
    let target = length_within("target", file.target, TARGET, TARGETS)?;
    let interval = length_within("interval", file.interval, INTERVAL, INTERVALS)?;
    if target >= interval {
        let [target, interval] = [target, interval].map(Length);
        return Err(if file.interval.is_some() {
            let message = format!("expected more than target (\"{target}\"), got \"{interval}\"");
            ("interval", message)
        } else {
            let message =
                format!("expected less than interval, \"{interval}\" by default, got \"{target}\"");
            ("target", message)
        });
    }
    Ok(DelayBounds {
        target,
        interval,
        ecn: file.ecn.unwrap_or(ecn),
    })
}

fn measured(bounds: &DelayBounds) -> Value {
    json!({
        "target_ms": bounds.target.as_millis_f64(),
        "interval_ms": bounds.interval.as_millis_f64(),
        "ecn": bounds.ecn,
    })
}

impl Settings for Codel {
    fn resolve(file: &QueueFile, _: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
        Ok(Self {
            bounds: bounds(file, false)?,
        })
    }

    fn measured(&self) -> Value {
        measured(&self.bounds)
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        Some(Box::new(bentpipe_link::Codel::new(CodelSettings {
            limit: at.limit(),
            bounds: self.bounds,
        })))
    }
}

impl Settings for FqCodel {
    fn resolve(
        file: &QueueFile,
        limit: QueueLimit,
        classes: &[PacketClass],
    ) -> Result<Self, KeyError> {
        Ok(Self {
            bounds: bounds(file, true)?,
            turns: Fair::resolve(file, limit, classes)?,
        })
    }

    fn measured(&self) -> Value {
        let mut data = measured(&self.bounds);
        if let (Value::Object(data), Value::Object(turns)) = (&mut data, self.turns.measured()) {
            data.extend(turns);
        }
        data
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        let queue = bentpipe_link::FqCodel::new(FqCodelSettings {
            limit: at.limit(),
            bounds: self.bounds,
            quantum: self.turns.quantum,
            flows: self.turns.flows as usize,
        });
        Some(Box::new(queue.with_gateways_from(at.first_gateway)))
    }
}
