//! Queues: where packets wait for the transmitter, which of them are dropped, and which is sent next.
//!
//! A kind of queue is its own file here, over the [`QueueDiscipline`] that it sets up, and an entry in
//! the table of [`kinds`]: what a file may say, its schema, the defaults, what results say, and the
//! network follow from these.

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
use crate::document::Wrong;
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

/// A full packet on most networks.
const FULL_PACKET: u64 = 1500;
/// The default queue holds no less: a bandwidth-delay product smaller than a burst would drop every
/// initial window.
const SMALLEST_DEFAULT_QUEUE: u32 = 100;

/// What the table asks of a kind of queue: its settings, with every default filled in.
trait Settings: Sized {
    /// From what the file says, beside a limit that is known.
    fn resolve(file: &QueueFile, limit: QueueLimit, classes: &[PacketClass])
    -> Result<Self, Wrong>;

    /// What results say of them: an object.
    fn measured(&self) -> Value;

    /// An empty queue. `None`: drop-tail, for which the engine has a shorter way.
    fn discipline(&self, at: &Place<'_>) -> Option<Box<dyn QueueDiscipline>>;
}

/// Where a queue stands.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// Most that waits.
    pub(crate) limit: QueueLimit,
    /// The transmitter's rate.
    pub(crate) rate: BitRate,
    /// The scenario's classes of traffic.
    pub(crate) classes: &'a [TrafficClass],
}

impl Place<'_> {
    /// Most that waits, as the engine takes it.
    pub(crate) fn limit(&self) -> Limit {
        self.limit.into()
    }
}

/// A queue with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Which packets are dropped, and which is sent next.
    pub rule: QueueRule,
    /// Most that waits.
    pub limit: QueueLimit,
    /// The file did not say: a bandwidth-delay product, or 100 packets.
    pub limit_is_default: bool,
}

impl Queue {
    /// The rule's name.
    #[must_use]
    pub fn kind(&self) -> QueueKind {
        self.rule.kind()
    }

    /// The queue of a direction with this rate, on a link with this round trip.
    pub(crate) fn resolve(
        file: Option<&QueueFile>,
        classes: &[PacketClass],
        rate: BitRate,
        round_trip: Span,
    ) -> Result<Self, Wrong> {
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

    /// What results say of it.
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

/// Every key that is given means something to the kind.
fn has_an_effect(file: &QueueFile) -> Result<(), Wrong> {
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

/// The shortest and the longest delay that a queue may aim at.
const TARGETS: [Span; 2] = [Span::from_micros(10), Span::from_secs(10)];

/// So much of a limit, but at least one packet or byte.
fn share(limit: QueueLimit, of: u32) -> QueueLimit {
    match limit {
        QueueLimit::Packets(packets) => QueueLimit::Packets((packets / of).max(1)),
        QueueLimit::Bytes(bytes) => {
            QueueLimit::Bytes(Bytes::new((bytes.get() / u64::from(of)).max(1)))
        }
    }
}

/// A limit in packets and in bytes, of which one is null.
fn packets_or_bytes(limit: QueueLimit) -> (Option<u32>, Option<u64>) {
    match limit {
        QueueLimit::Packets(packets) => (Some(packets), None),
        QueueLimit::Bytes(bytes) => (None, Some(bytes.get())),
    }
}
