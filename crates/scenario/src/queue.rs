//! A queue with every default filled in.

use std::sync::Arc;

use bentpipe_types::Bytes;

use crate::quantity::QueueLimit;
use crate::schema::QueueKind;

/// Where packets wait for the transmitter.
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
        match &self.rule {
            QueueRule::DropTail => QueueKind::DropTail,
            QueueRule::Red(_) => QueueKind::Red,
            QueueRule::EarlyRandomDrop { .. } => QueueKind::EarlyRandomDrop,
            QueueRule::Fair { .. } => QueueKind::Fair,
            QueueRule::Priority(_) => QueueKind::Priority,
            QueueRule::Weighted(_) => QueueKind::Weighted,
        }
    }
}

/// Which packets are dropped, and which is sent next.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueRule {
    /// First in, first out, up to the limit.
    DropTail,
    /// Random early detection.
    Red(RedRule),
    /// A fixed share of what arrives, beyond a level.
    EarlyRandomDrop {
        /// The level.
        drop_level: QueueLimit,
        /// The share.
        drop_probability: f64,
    },
    /// Deficit round robin.
    Fair {
        /// What a flow sends in its turn.
        quantum: Bytes,
        /// Separate queues.
        flows: u32,
    },
    /// A queue for each class, the first before all others.
    Priority(Arc<[QueueClass]>),
    /// A queue for each class, by weight.
    Weighted(Arc<[QueueClass]>),
}

/// A class of a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueClass {
    /// Its name.
    pub name: Arc<str>,
    /// Of the scenario's classes, by index; none: what belongs to no other of the queue.
    pub class: Option<usize>,
    /// Its share beside the others, in thousandths; by priority, it means nothing.
    pub weight: u32,
}

/// Random early detection. [`QueueFile`](crate::schema::QueueFile) says what each setting does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedRule {
    /// min_th.
    pub minimum_threshold: QueueLimit,
    /// max_th, in the same unit and above the other.
    pub maximum_threshold: QueueLimit,
    /// max_p.
    pub maximum_probability: f64,
    /// w_q, above zero.
    pub weight: f64,
    /// From max_th to twice that, a share that grows to 1.
    pub gentle: bool,
    /// Mark instead of drop.
    pub ecn: bool,
    /// A usual packet.
    pub mean_packet: Bytes,
}
