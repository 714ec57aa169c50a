//! `acks = { ... }` and `compression` of a link or a direction.

use std::borrow::Cow;

use bentpipe_types::words;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, scalar};
use crate::quantity::size::Size;

/// Reduces the number of acknowledgments on a slow link.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcksFile {
    /// Method that removes or rebuilds acknowledgments.
    pub kind: AcksKind,
    /// Number of queued acknowledgments of one flow from which older ones are removed. For
    /// suppression, compaction and reconstruction. 1 to 1000. Default: 4.
    pub low: Option<u32>,
    /// Most acknowledgments that are removed in favour of one. At least `low`; with compaction, at
    /// most 255. Default: 60.
    pub high: Option<u32>,
    /// For reconstruction: bytes between two acknowledgments that the far end fills in (ack_thresh
    /// in RFC 3449). "1 B" to "1 MiB". Default: "2920 B", two segments of 1460 bytes.
    pub threshold: Option<Size>,
    /// Number of duplicates of one acknowledgment that are kept although they have no SACK blocks.
    /// At least 3, the number that signals a loss. For suppression, compaction and reconstruction.
    /// Default: all, as in the paper. If senders have no SACK, 3 prevents a loss from filling the
    /// link with duplicates.
    pub duplicates: Option<u32>,
    /// How many acknowledgments a filter removes. Default: "conservative".
    pub mode: Option<FilterMode>,
    /// For compaction: send restored acknowledgments spaced in time instead of in a burst. true:
    /// one queue for all flows; "per-flow": one queue for each flow. Default: false.
    pub spacing: Option<Spacing>,
}

words! {
    /// How acknowledgments on a slow link are reduced.
    AcksKind {
        /// All acknowledgments are sent.
        None = "none",
        /// Only the latest of a flow's queued acknowledgments is sent (samaraweera1999, section 5).
        Suppression = "suppression",
        /// Suppression in which the acknowledgment that is sent carries the number of those
        /// removed; the far end restores them (samaraweera1999, section 6). Packets travel in a
        /// tunnel.
        Compaction = "compaction",
        /// The ACK filter of Linux's CAKE.
        Filter = "filter",
        /// Suppression in which the far end fills in acknowledgments at gaps, spaced in time,
        /// without information from the near end (RFC 3449 section 5.3.1).
        Reconstruction = "reconstruction",
    }
}

words! {
    /// How many acknowledgments an ACK filter removes.
    FilterMode {
        /// Keeps two acknowledgments of a flow: CAKE's `ack-filter`.
        Conservative = "conservative",
        /// Keeps one acknowledgment of a flow: CAKE's `ack-filter-aggressive`.
        Aggressive = "aggressive",
    }
}

impl AcksKind {
    /// Returns the keys that apply to this kind.
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
    /// Returns the keys that the file gives, except `kind`.
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

/// How restored acknowledgments are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// In one burst.
    Off,
    /// Spaced, with one queue for all flows.
    Shared,
    /// Spaced, with one queue for each flow.
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
