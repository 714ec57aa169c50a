//! Drop-tail: first in, first out, up to the capacity.

use bentpipe_link::QueueDiscipline;
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, QueueFacts, Settings};

/// Drop-tail, which has no settings but the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropTail;

impl Settings for DropTail {
    const FACTS: QueueFacts = QueueFacts {
        manages: false,
        has_classes: false,
    };

    fn resolve(_: &QueueFile, _: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
        Ok(Self)
    }

    fn measured(&self) -> Value {
        json!({})
    }

    fn discipline(&self, _: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        None
    }
}
