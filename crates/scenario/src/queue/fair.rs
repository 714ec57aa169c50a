//! Fair queueing by deficit round robin.

use std::ops::RangeInclusive;

use bentpipe_link::{FairSettings, QueueDiscipline};
use bentpipe_types::Bytes;
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::quantity::size::Size;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{FULL_PACKET, QueueContext, Settings};

/// Range of quanta. A smaller quantum needs many rounds for each packet.
const QUANTUM: RangeInclusive<u64> = 64..=1 << 24;

const FLOWS: RangeInclusive<u32> = 1..=65_536;

const DEFAULT_FLOWS: u32 = 1024;

/// Deficit round robin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fair {
    /// Bytes that a flow sends per round.
    pub quantum: Bytes,
    /// Number of separate queues.
    pub flows: u32,
}

impl Settings for Fair {
    fn resolve(file: &QueueFile, _: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
        let quantum = file.quantum.unwrap_or(Size(Bytes::new(FULL_PACKET)));
        if !QUANTUM.contains(&quantum.0.get()) {
            let message = format!(r#"expected "64 B" to "16 MiB", got "{quantum}""#);
            return Err(("quantum", message));
        }
        let flows = file.flows.unwrap_or(DEFAULT_FLOWS);
        if !FLOWS.contains(&flows) {
            let message = format!("expected {} to {}, got {flows}", FLOWS.start(), FLOWS.end());
            return Err(("flows", message));
        }
        Ok(Self {
            quantum: quantum.0,
            flows,
        })
    }

    fn measured(&self) -> Value {
        json!({ "quantum_bytes": self.quantum.get(), "flows": self.flows })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        let settings = FairSettings {
            limit: at.limit(),
            quantum: self.quantum,
            flows: self.flows as usize,
        };
        let queue = bentpipe_link::Fair::new(settings);
        Some(Box::new(queue.with_gateways_from(at.first_gateway)))
    }
}
