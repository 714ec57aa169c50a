//! Drop-tail: first in, first out, up to the capacity.

use bentpipe_link::QueueDiscipline;
use serde_json::{Value, json};

use super::{QueueContext, QueueFile, Settings};
use crate::class::PacketClass;
use crate::document::KeyError;
use crate::quantity::QueueLimit;

/// Drop-tail, which has no settings but the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropTail;

impl Settings for DropTail {
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
