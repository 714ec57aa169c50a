//! A queue, with every default filled in.

use bentpipe_types::{BitRate, Bytes, Span};
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::hints::list;
use crate::quantity::count::QueueLimit;
use crate::queue::drop_tail::DropTail;
use crate::queue::rule::QueueRule;
use crate::queue::schema::{QueueFile, QueueKind};
use crate::queue::settings::{FULL_PACKET, packets_or_bytes};

/// Minimum of the default capacity: with a bandwidth-delay product smaller than a burst, every
/// initial window would be dropped.
const SMALLEST_DEFAULT_QUEUE: u32 = 100;

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
