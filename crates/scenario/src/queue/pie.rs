//! PIE (RFC 8033).

use bentpipe_link::{PieSettings, QueueDiscipline};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::quantity::time::length_within;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, Settings, TARGETS};

/// Default of QDELAY_REF and T_UPDATE (RFC 8033 section 4.2).
const FIFTEEN: Span = Span::from_millis(15);

const UPDATES: [Span; 2] = [Span::from_millis(1), Span::from_secs(10)];

/// Default of MAX_BURST (RFC 8033 section 4.4).
const BURST: Span = Span::from_millis(150);

const BURSTS: [Span; 2] = [Span::ZERO, Span::from_secs(100)];

/// PIE. [`QueueFile`] describes each setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pie {
    /// Target delay.
    pub target: Span,
    /// Interval at which the drop probability is computed.
    pub update_interval: Span,
    /// Time for which a burst is not dropped.
    pub burst_allowance: Span,
    /// Whether to mark instead of drop.
    pub ecn: bool,
}

impl Settings for Pie {
    fn resolve(file: &QueueFile, _: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
        Ok(Self {
            target: length_within("target", file.target, FIFTEEN, TARGETS)?,
            update_interval: length_within(
                "update_interval",
                file.update_interval,
                FIFTEEN,
                UPDATES,
            )?,
            burst_allowance: length_within("burst_allowance", file.burst_allowance, BURST, BURSTS)?,
            ecn: file.ecn.unwrap_or(false),
        })
    }

    fn measured(&self) -> Value {
        json!({
            "target_ms": self.target.as_millis_f64(),
            "update_interval_ms": self.update_interval.as_millis_f64(),
            "burst_allowance_ms": self.burst_allowance.as_millis_f64(),
            "ecn": self.ecn,
        })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        Some(Box::new(bentpipe_link::Pie::new(PieSettings {
            limit: at.limit(),
            target: self.target,
            update_interval: self.update_interval,
            burst_allowance: self.burst_allowance,
            ecn: self.ecn,
        })))
    }
}
