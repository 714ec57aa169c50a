//! `queue = { ... }` of a link or a direction.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Named;
use crate::quantity::{Probability, QueueLimit, Size};
use bentpipe_types::words;

/// Where packets wait for the transmitter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueFile {
    /// Which packets are dropped, and which is sent next. Default: "drop-tail".
    #[serde(default = "drop_tail")]
    pub kind: QueueKind,
    /// Most that waits, the packet in transmission not counted: packets, or bytes with headers.
    /// Default: one bandwidth-delay product of the link (rate times the delays of both directions),
    /// but at least 100 packets.
    pub limit: Option<QueueLimit>,
    /// RED's min_th: while the average queue is shorter, nothing is dropped. In packets or in bytes;
    /// in bytes, long packets are dropped more often. Default: a third of `maximum_threshold`.
    pub minimum_threshold: Option<QueueLimit>,
    /// RED's max_th: from this average on, every packet is dropped. Default: half of `limit`.
    pub maximum_threshold: Option<QueueLimit>,
    /// RED's max_p: the share of packets dropped just below `maximum_threshold`. Default: 0.1.
    pub maximum_probability: Option<Probability>,
    /// RED's w_q: the weight of the present queue in the average. Default: 0.002.
    pub weight: Option<Probability>,
    /// RED: from `maximum_threshold` to twice that, let the share grow from `maximum_probability` to
    /// 1. Default: true.
    pub gentle: Option<bool>,
    /// RED: mark the packets of ECN-capable flows instead of dropping them early. Default: false.
    pub ecn: Option<bool>,
    /// RED's usual packet: how fast the average falls while the link is idle. Default: "1000 B".
    pub mean_packet: Option<Size>,
    /// Early random drop: while this much waits, arriving packets are dropped at random. Default:
    /// half of `limit`.
    pub drop_level: Option<QueueLimit>,
    /// Early random drop: the share of packets dropped then. Default: 0.02.
    pub drop_probability: Option<Probability>,
    /// Fair queueing: what a flow sends in its turn. At least "64 B". Default: "1500 B".
    pub quantum: Option<Size>,
    /// Fair queueing: separate queues. If more flows than this wait at once, some share. 1 to 65536.
    /// Default: 1024.
    pub flows: Option<u32>,
    /// Priority: the classes of `[classes.NAME]`, the first before all others. "others" is what belongs
    /// to none of them, and comes last unless it is named. A packet is of the first class of this list
    /// that it belongs to. Required with "priority".
    pub classes: Option<Vec<String>>,
    /// Weighted: each class with its share beside the others, such as { calls = 4, web = 2, others = 1 };
    /// above 0. "others" is what belongs to none of them; 1 unless it is named. A packet is of the first
    /// class that it belongs to. Required with "weighted".
    pub weights: Option<Named<f64>>,
}

words! {
    /// Which packets are dropped, and which is sent next.
    QueueKind {
        /// First in, first out; what finds it full is dropped.
        DropTail = "drop-tail",
        /// First in, first out; the longer it is on average, the more packets are dropped at random
        /// before it is full (Floyd and Jacobson 1993).
        Red = "red",
        /// First in, first out; beyond a length, a fixed share is dropped at random (Hashem 1989).
        EarlyRandomDrop = "early-random-drop",
        /// A queue for each flow, served in turn, by deficit round robin (Shreedhar and Varghese
        /// 1996). When all of them together are full, the longest loses its first packet.
        Fair = "fair",
        /// A queue for each of `classes`: whenever the transmitter is free, the first that has a packet
        /// sends it. When all of them together are full, the last that has any loses its first packet.
        Priority = "priority",
        /// A queue for each class of `weights`, whose bytes are as its weight while it has any, by
        /// start-time fair queueing (Goyal, Vin and Cheng 1997). When all of them together are full, the
        /// one with most bytes for its weight loses its first packet.
        Weighted = "weighted",
    }
}

impl QueueKind {
    /// The keys that mean something to this kind, besides `kind` and `limit`.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DropTail => &[],
            Self::Red => &[
                "minimum_threshold",
                "maximum_threshold",
                "maximum_probability",
                "weight",
                "gentle",
                "ecn",
                "mean_packet",
            ],
            Self::EarlyRandomDrop => &["drop_level", "drop_probability"],
            Self::Fair => &["quantum", "flows"],
            Self::Priority => &["classes"],
            Self::Weighted => &["weights"],
        }
    }
}

impl QueueFile {
    /// The keys that the file gives, besides `kind` and `limit`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("minimum_threshold", self.minimum_threshold.is_some()),
            ("maximum_threshold", self.maximum_threshold.is_some()),
            ("maximum_probability", self.maximum_probability.is_some()),
            ("weight", self.weight.is_some()),
            ("gentle", self.gentle.is_some()),
            ("ecn", self.ecn.is_some()),
            ("mean_packet", self.mean_packet.is_some()),
            ("drop_level", self.drop_level.is_some()),
            ("drop_probability", self.drop_probability.is_some()),
            ("quantum", self.quantum.is_some()),
            ("flows", self.flows.is_some()),
            ("classes", self.classes.is_some()),
            ("weights", self.weights.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}

fn drop_tail() -> QueueKind {
    QueueKind::DropTail
}
