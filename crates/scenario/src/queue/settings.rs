//! Common parts of all kinds of queue.

use bentpipe_link::{Limit, QueueDiscipline, TrafficClass};
use bentpipe_types::{BitRate, Bytes, Span};
use serde::Serialize;
use serde_json::Value;

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::queue::schema::QueueFile;

/// Length of a full packet on most networks.
pub(crate) const FULL_PACKET: u64 = 1500;

/// Properties of a kind of queue for closed forms and advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct QueueFacts {
    /// Whether it drops or reorders packets before it is full, so that it may be short whatever its
    /// limit. False for drop-tail alone.
    pub manages: bool,
    /// Whether it has a queue for each class of traffic.
    pub has_classes: bool,
}

/// The settings of a kind of queue, with every default filled in.
pub(crate) trait Settings: Sized {
    /// Properties for closed forms and advice.
    const FACTS: QueueFacts = QueueFacts {
        manages: true,
        has_classes: false,
    };

    /// Resolves the keys of a file, given the capacity.
    fn resolve(
        file: &QueueFile,
        limit: QueueLimit,
        classes: &[PacketClass],
    ) -> Result<Self, KeyError>;

    /// Returns the settings as results give them: an object.
    fn measured(&self) -> Value;

    /// Creates an empty queue, or returns `None` for drop-tail, for which the engine has a faster
    /// path.
    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>>;
}

/// Context of a queue.
#[derive(Debug)]
pub(crate) struct QueueContext<'a> {
    /// Capacity.
    pub(crate) limit: QueueLimit,
    /// Rate of the transmitter.
    pub(crate) rate: BitRate,
    /// Traffic classes of the scenario.
    pub(crate) classes: &'a [TrafficClass],
    /// Lowest address of a gateway.
    pub(crate) first_gateway: u16,
}

impl QueueContext<'_> {
    /// Returns the capacity in the engine's type.
    pub(crate) fn limit(&self) -> Limit {
        self.limit.into()
    }
}

/// Shortest and longest target delay.
pub(crate) const TARGETS: [Span; 2] = [Span::from_micros(10), Span::from_secs(10)];

/// Returns this fraction of a capacity, but at least one packet or byte.
pub(crate) fn share(limit: QueueLimit, of: u32) -> QueueLimit {
    match limit {
        QueueLimit::Packets(packets) => QueueLimit::Packets((packets / of).max(1)),
        QueueLimit::Bytes(bytes) => {
            QueueLimit::Bytes(Bytes::new((bytes.get() / u64::from(of)).max(1)))
        }
    }
}

/// Splits a capacity into packets and bytes, of which one is `None`.
pub(crate) fn packets_or_bytes(limit: QueueLimit) -> (Option<u32>, Option<u64>) {
    match limit {
        QueueLimit::Packets(packets) => (Some(packets), None),
        QueueLimit::Bytes(bytes) => (None, Some(bytes.get())),
    }
}
