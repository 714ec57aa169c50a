//! Queues in front of transmitters: which packets are dropped, and which is sent next.
//!
//! Each kind of queue has a file here, which sets up its [`QueueDiscipline`], and an entry in the
//! table of [`kinds`]. The keys, the schema, the defaults, the results and the network follow from
//! these.

mod by_class;
mod delay;
mod drop_tail;
mod early_random_drop;
mod fair;
mod kinds;
mod pie;
mod red;

use bentpipe_link::{Limit, QueueDiscipline, TrafficClass};
use bentpipe_types::{BitRate, Bytes, Span};
use serde_json::{Value, json};

use crate::class::PacketClass;
use crate::document::KeyError;
use crate::quantity::QueueLimit;
use crate::schema::hints::list;

pub use by_class::{Priority, QueueClass, Weighted};
pub use delay::{Codel, FqCodel};
pub use drop_tail::DropTail;
pub use early_random_drop::EarlyRandomDrop;
pub use fair::Fair;
pub use kinds::{QueueFile, QueueKind, QueueRule};
pub use pie::Pie;
pub use red::Red;

/// Length of a full packet on most networks.
const FULL_PACKET: u64 = 1500;
/// Minimum of the default capacity: with a bandwidth-delay product smaller than a burst, every
/// initial window would be dropped.
const SMALLEST_DEFAULT_QUEUE: u32 = 100;

/// The settings of a kind of queue, with every default filled in.
trait Settings: Sized {
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

/// A queue with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Queue discipline.
    pub rule: QueueRule,
    /// Capacity.
    pub limit: QueueLimit,
    /// Whether the file gives no capacity, so that it is a bandwidth-delay product or 100 packets.
    pub limit_is_default: bool,
}

impl Queue {
    /// Returns the kind of the queue discipline.
    #[must_use]
    pub fn kind(&self) -> QueueKind {
        self.rule.kind()
    }

    /// Returns the queue of a direction with this rate, on a link with this round-trip time.
    pub(crate) fn resolve(
        file: Option<&QueueFile>,
        classes: &[PacketClass],
        rate: BitRate,
        round_trip: Span,
    ) -> Result<Self, KeyError> {
        let given = file
            .and_then(|queue| queue.limit)
            .map(|limit| limit.at(rate));
        let limit = given.unwrap_or_else(|| {
            let product = rate.bytes_in(round_trip);
            if product > Bytes::new(u64::from(SMALLEST_DEFAULT_QUEUE) * FULL_PACKET) {
                QueueLimit::Bytes(product)
            } else {
                QueueLimit::Packets(SMALLEST_DEFAULT_QUEUE)
            }
        });
        let rule = match file {
            Some(file) => {
                has_an_effect(file)?;
                QueueRule::resolve(file, limit, classes)?
            }
            None => QueueRule::DropTail(DropTail),
        };
        Ok(Self {
            rule,
            limit,
            limit_is_default: given.is_none(),
        })
    }

    /// Returns the queue as results give it.
    pub(crate) fn measured(&self) -> Value {
        let (packets, bytes) = packets_or_bytes(self.limit);
        let mut data = json!({
            "kind": self.kind(),
            "limit_packets": packets,
            "limit_bytes": bytes,
            "limit_is_default": self.limit_is_default,
        });
        if let (Value::Object(data), Value::Object(own)) = (&mut data, self.rule.measured()) {
            data.extend(own);
        }
        data
    }
}

/// Checks that every given key applies to the kind.
fn has_an_effect(file: &QueueFile) -> Result<(), KeyError> {
    let keys = file.kind.keys();
    let Some(foreign) = file.given().find(|key| !keys.contains(key)) else {
        return Ok(());
    };
    let message = if keys.is_empty() {
        format!("has no effect: a \"{}\" queue has only a limit", file.kind)
    } else {
        format!(
            "has no effect: a \"{}\" queue has limit, {}",
            file.kind,
            list(keys).replace('"', "")
        )
    };
    Err((foreign, message))
}

/// Shortest and longest target delay.
const TARGETS: [Span; 2] = [Span::from_micros(10), Span::from_secs(10)];

/// Returns this fraction of a capacity, but at least one packet or byte.
fn share(limit: QueueLimit, of: u32) -> QueueLimit {
    match limit {
        QueueLimit::Packets(packets) => QueueLimit::Packets((packets / of).max(1)),
        QueueLimit::Bytes(bytes) => {
            QueueLimit::Bytes(Bytes::new((bytes.get() / u64::from(of)).max(1)))
        }
    }
}

/// Splits a capacity into packets and bytes, of which one is `None`.
fn packets_or_bytes(limit: QueueLimit) -> (Option<u32>, Option<u64>) {
    match limit {
        QueueLimit::Packets(packets) => (Some(packets), None),
        QueueLimit::Bytes(bytes) => (None, Some(bytes.get())),
    }
}
