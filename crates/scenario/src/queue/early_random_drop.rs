//! Early random drop: drops a fixed share of arriving packets above a threshold.

use bentpipe_link::{EarlyRandomDropSettings, QueueDiscipline};
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::quantity::probability::Probability;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, Settings, packets_or_bytes, share};

/// Early random drop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlyRandomDrop {
    /// Threshold.
    pub drop_level: QueueLimit,
    /// Share of packets that are dropped.
    pub drop_probability: f64,
}

impl Settings for EarlyRandomDrop {
    fn resolve(file: &QueueFile, limit: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
        Ok(Self {
            drop_level: file.drop_level.unwrap_or_else(|| share(limit, 2)),
            drop_probability: file.drop_probability.map_or(0.02, Probability::get),
        })
    }

    fn measured(&self) -> Value {
        let (packets, bytes) = packets_or_bytes(self.drop_level);
        json!({
            "drop_level_packets": packets,
            "drop_level_bytes": bytes,
            "drop_probability": self.drop_probability,
        })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        let settings = EarlyRandomDropSettings {
            limit: at.limit(),
            drop_level: self.drop_level.into(),
            drop_probability: self.drop_probability,
        };
        Some(Box::new(bentpipe_link::EarlyRandomDrop::new(settings)))
    }
}
