//! Drop-tail: first in, first out, up to the capacity.

use bentpipe_link::QueueDiscipline;
use serde_json::{Value, json};

use super::{Place, QueueFile, Settings};
use crate::class::PacketClass;
use crate::document::Wrong;
use crate::quantity::QueueLimit;

/// Drop-tail, which has no settings but the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropTail;

impl Settings for DropTail {
    fn resolve(_: &QueueFile, _: QueueLimit, _: &[PacketClass]) -> Result<Self, Wrong> {
        Ok(Self)
    }

    fn measured(&self) -> Value {
        json!({})
    }

    fn discipline(&self, _: &Place<'_>) -> Option<Box<dyn QueueDiscipline>> {
        None
    }
}
