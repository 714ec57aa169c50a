//! The kinds of queue, each of which stands here once: whatever reads, describes, resolves, reports, builds
//! or lists them goes by this table.

use bentpipe_link::QueueDiscipline;
use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Codel, DropTail, EarlyRandomDrop, Fair, FqCodel, Pie, Place, Priority, Red, Settings, Weighted,
};
use crate::class::PacketClass;
use crate::document::Wrong;
use crate::quantity::{Length, LinkQueueLimit, Probability, QueueLimit, Size};
use crate::schema::Named;

/// An entry a kind: its name in a scenario file, with the description that is the reference, and the keys
/// that mean something to it besides `kind` and `limit`: those of its own, and those that it shares, by name. Its
/// settings are of the type of its name.
macro_rules! kinds {
    (
        shared {
            $($(#[$shared_doc:meta])* $shared_key:ident: $shared_type:ty,)*
        }
        $(
            $(#[$doc:meta])*
            $kind:ident = $name:literal, shares [$($shared:ident)*] {
                $($(#[$key_doc:meta])* $key:ident: $type:ty,)*
            }
        )+
    ) => {
        words! {
            /// Which packets are dropped, and which is sent next.
            QueueKind {
                $($(#[$doc])* $kind = $name,)+
            }
        }

        impl QueueKind {
            /// The keys that mean something to this kind, besides `kind` and `limit`.
            #[must_use]
            pub fn keys(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$(stringify!($key),)* $(stringify!($shared),)*],)+
                }
            }
        }

        /// Where packets wait for the transmitter.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct QueueFile {
            /// Which packets are dropped, and which is sent next. Default: "drop-tail".
            #[serde(default = "drop_tail")]
            pub kind: QueueKind,
            /// Most that waits, the packet in transmission not counted: packets, bytes with headers, or the
            /// time that it takes to transmit them at the link's `rate`. Default: one bandwidth-delay product
            /// of the link (rate times the delays of both directions), but at least 100 packets; with capacity on
            /// demand, the delay of request and grant counts, too.
            pub limit: Option<LinkQueueLimit>,
            $($($(#[$key_doc])* pub $key: Option<$type>,)*)+
            $($(#[$shared_doc])* pub $shared_key: Option<$shared_type>,)*
        }

        impl QueueFile {
            /// The keys that the file gives, besides `kind` and `limit`.
            pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
                [
                    $($((stringify!($key), self.$key.is_some()),)*)+
                    $((stringify!($shared_key), self.$shared_key.is_some()),)*
                ]
                    .into_iter()
                    .filter_map(|(key, given)| given.then_some(key))
            }
        }

        /// Which packets are dropped, and which is sent next: a kind, and how it is set up.
        #[derive(Clone, PartialEq, Debug)]
        pub enum QueueRule {
            $(
                #[doc = concat!("A scenario file's `", $name, "`.")]
                $kind($kind),
            )+
        }

        impl QueueRule {
            /// The kind.
            pub(super) fn kind(&self) -> QueueKind {
                match self {
                    $(Self::$kind(_) => QueueKind::$kind,)+
                }
            }

            /// From what the file says, beside a limit that is known.
            pub(super) fn resolve(
                file: &QueueFile,
                limit: QueueLimit,
                classes: &[PacketClass],
            ) -> Result<Self, Wrong> {
                Ok(match file.kind {
                    $(QueueKind::$kind => Self::$kind(Settings::resolve(file, limit, classes)?),)+
                })
            }

            /// What results say of how it is set up: an object.
            pub(super) fn measured(&self) -> Value {
                match self {
                    $(Self::$kind(settings) => settings.measured(),)+
                }
            }

            /// An empty queue. `None`: drop-tail, for which the engine has a shorter way.
            pub(crate) fn discipline(&self, at: &Place<'_>) -> Option<Box<dyn QueueDiscipline>> {
                match self {
                    $(Self::$kind(settings) => settings.discipline(at),)+
                }
            }
        }
    };
}

kinds! {
    shared {
        /// CoDel, FQ-CoDel and PIE: the delay in the queue that they aim at. "10 us" to "10 s". Default: "5 ms"; with "pie"
        /// "15 ms".
        target: Length,
        /// CoDel and FQ-CoDel: how long the delay has to be above `target` before a packet is dropped: about the longest round
        /// trip of the flows. Over a satellite, more than the default, which is Linux's. "1 ms" to "100 s". Default:
        /// "100 ms".
        interval: Length,
        /// RED, CoDel, FQ-CoDel, PIE: mark the packets of ECN-capable flows instead of dropping them before the queue is
        /// full (PIE: while no more than a tenth are due). Default: false; with "fq-codel" true, as in Linux.
        ecn: bool,
        /// Fair queueing and FQ-CoDel: what a flow sends in its turn. At least "64 B". Default: "1500 B".
        quantum: Size,
        /// Fair queueing and FQ-CoDel: separate queues, 1 to 65536. Fair queueing: if more flows than this wait at once, some
        /// share. FQ-CoDel: flows are spread by a hash, so that some may share before. Default: 1024.
        flows: u32,
    }

    /// First in, first out; what finds it full is dropped.
    DropTail = "drop-tail", shares [] {}

    /// First in, first out; the longer it is on average, the more packets are dropped at random
    /// before it is full (Floyd and Jacobson 1993).
    Red = "red", shares [ecn] {
        /// RED's min_th: while the average queue is shorter, nothing is dropped. In packets or in bytes;
        /// in bytes, long packets are dropped more often. Default: a third of `maximum_threshold`.
        minimum_threshold: QueueLimit,
        /// RED's max_th: from this average on, every packet is dropped. Default: half of `limit`.
        maximum_threshold: QueueLimit,
        /// RED's max_p: the share of packets dropped just below `maximum_threshold`. Default: 0.1.
        maximum_probability: Probability,
        /// RED's w_q: the weight of the present queue in the average. Default: 0.002.
        weight: Probability,
        /// RED: from `maximum_threshold` to twice that, let the share grow from `maximum_probability` to
        /// 1. Default: true.
        gentle: bool,
        /// RED's usual packet: how fast the average falls while the link is idle. Default: "1000 B".
        mean_packet: Size,
    }

    /// First in, first out; beyond a length, a fixed share is dropped at random (Hashem 1989).
    EarlyRandomDrop = "early-random-drop", shares [] {
        /// Early random drop: while this much waits, arriving packets are dropped at random. Default:
        /// half of `limit`.
        drop_level: QueueLimit,
        /// Early random drop: the share of packets dropped then. Default: 0.02.
        drop_probability: Probability,
    }

    /// A queue for each flow, served in turn, by deficit round robin (Shreedhar and Varghese
    /// 1996). When all of them together are full, the longest loses its first packet.
    Fair = "fair", shares [quantum flows] {}

    /// First in, first out; when packets have waited longer than `target` for an `interval`, one is dropped as it
    /// leaves, then the next sooner, and so on (CoDel, RFC 8289, as in Linux).
    Codel = "codel", shares [target interval ecn] {}

    /// A queue for each flow, those that have just begun first, with CoDel in each (FQ-CoDel, RFC 8290, as in Linux). When
    /// all of them together are full, the longest loses half of what it has, from its front.
    FqCodel = "fq-codel", shares [target interval ecn quantum flows] {}

    /// First in, first out; packets are dropped at random as they arrive, the more the longer they wait and the more that
    /// grows (PIE, RFC 8033).
    Pie = "pie", shares [target ecn] {
        /// PIE's T_UPDATE: how often the share to be dropped is worked out again. "1 ms" to "10 s". Default: "15 ms".
        update_interval: Length,
        /// PIE's MAX_BURST: for so long nothing is dropped at random when a queue builds up after a time without. Default:
        /// "150 ms".
        burst_allowance: Length,
    }

    /// A queue for each of `classes`: whenever the transmitter is free, the first that has a packet
    /// sends it. When all of them together are full, the last that has any loses its first packet.
    Priority = "priority", shares [] {
        /// Priority: the classes of `[classes.NAME]`, the first before all others. "others" is what belongs
        /// to none of them, and comes last unless it is named. A packet is of the first class of this list
        /// that it belongs to. Required with "priority".
        classes: Vec<String>,
    }

    /// A queue for each class of `weights`, whose bytes are as its weight while it has any, by
    /// start-time fair queueing (Goyal, Vin and Cheng 1997). When all of them together are full, the
    /// one with most bytes for its weight loses its first packet.
    Weighted = "weighted", shares [] {
        /// Weighted: each class with its share beside the others, such as { calls = 4, web = 2, others = 1 };
        /// above 0. "others" is what belongs to none of them; 1 unless it is named. A packet is of the first
        /// class that it belongs to. Required with "weighted".
        weights: Named<f64>,
    }
}

fn drop_tail() -> QueueKind {
    QueueKind::DropTail
}
