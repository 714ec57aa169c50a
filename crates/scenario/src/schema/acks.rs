//! `acks = { ... }` and `compression` of a link or a direction.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::{QuantityError, Size};
use crate::scalar::{Scalar, scalar};
use bentpipe_types::words;

/// What is done about acknowledgments that are too many for the link.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcksFile {
    /// The method.
    pub kind: AcksKind,
    /// Acknowledgments of one flow that may wait before older ones are removed. For suppression,
    /// compaction and reconstruction. 1 to 1000. Default: 4.
    pub low: Option<u32>,
    /// Most that are removed in favour of one. At least `low`; with compaction, at most 255. Default:
    /// 60.
    pub high: Option<u32>,
    /// Reconstruction: bytes between two acknowledgments that are filled in (RFC 3449's ack_thresh).
    /// "1 B" to "1 MiB". Default: "2920 B", two segments of 1460.
    pub threshold: Option<Size>,
    /// Duplicates of one acknowledgment that are kept although they have no SACK blocks. At least 3,
    /// which mark a loss. For suppression, compaction and reconstruction. Default: all, as in the
    /// paper; where senders have no SACK, 3 keeps a loss from filling the link with duplicates.
    pub duplicates: Option<u32>,
    /// How much a filter removes. Default: "conservative".
    pub mode: Option<FilterMode>,
    /// Let restored acknowledgments out one after another instead of in a burst: true, one queue for
    /// all flows; "per-flow", one for each. For compaction. Default: false.
    pub spacing: Option<Spacing>,
}

words! {
    /// What is done about acknowledgments that are too many for the link.
    AcksKind {
        /// Nothing.
        None = "none",
        /// Of a flow's acknowledgments that wait, only the latest is sent (samaraweera1999, section
        /// 5).
        Suppression = "suppression",
        /// The same, and the one that is sent says how many there were; the far end restores them
        /// (samaraweera1999, section 6). Travels in a tunnel.
        Compaction = "compaction",
        /// The ACK filter of Linux's CAKE.
        Filter = "filter",
        /// Suppression, and the far end fills in acknowledgments where it sees gaps, spaced, without
        /// help from the near end (RFC 3449, section 5.3.1).
        Reconstruction = "reconstruction",
    }
}

words! {
    /// What makes headers shorter on a link.
    Compression {
        /// Nothing.
        None = "none",
        /// TCP/IP header compression (RFC 1144) on SLIP, whose framing takes a byte more per packet:
        /// real headers, and a decompressor that loses step after a lost packet. A capture shows the
        /// packets before compression.
        Rfc1144 = "rfc1144",
        /// A modem's data compression, as a ratio: a header of 40 bytes takes 16 (samaraweera1999,
        /// section 3.3), payload
        /// stays as it is.
        V42bis = "v42bis",
    }
}

words! {
    /// How much an ACK filter removes.
    FilterMode {
        /// Two acknowledgments of a flow are left: CAKE's `ack-filter`.
        Conservative = "conservative",
        /// One is left: CAKE's `ack-filter-aggressive`.
        Aggressive = "aggressive",
    }
}

impl AcksKind {
    /// The keys that mean something to this kind.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Suppression => &["low", "high", "duplicates"],
            Self::Reconstruction => &["low", "high", "duplicates", "threshold"],
            Self::Compaction => &["low", "high", "duplicates", "spacing"],
            Self::Filter => &["mode"],
        }
    }
}

impl AcksFile {
    /// The keys that the file gives, besides `kind`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("duplicates", self.duplicates.is_some()),
            ("mode", self.mode.is_some()),
            ("threshold", self.threshold.is_some()),
            ("spacing", self.spacing.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}

/// How restored acknowledgments are let out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// In one burst.
    Off,
    /// One after another, all flows in one queue.
    Shared,
    /// One after another, each flow in a queue of its own.
    PerFlow,
}

const PER_FLOW: &str = "per-flow";

impl Serialize for Spacing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Shared => serializer.serialize_bool(true),
            Self::PerFlow => serializer.serialize_str(PER_FLOW),
        }
    }
}

impl Scalar for Spacing {
    fn expected() -> Cow<'static, str> {
        r#"true, false or "per-flow""#.into()
    }

    fn from_bool(value: bool) -> Option<Self> {
        Some(if value { Self::Shared } else { Self::Off })
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        (text == PER_FLOW).then_some(Ok(Self::PerFlow))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "boolean" }, { "const": PER_FLOW }],
            "examples": [true, PER_FLOW],
        })
    }
}

scalar!(Spacing);
