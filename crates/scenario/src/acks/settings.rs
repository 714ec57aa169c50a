//! Reduction of acknowledgments, with every default filled in.

use bentpipe_types::Bytes;

use crate::acks::schema::{AcksKind, FilterMode, Spacing};

/// How a direction reduces acknowledgments. [`AcksFile`](crate::schema::AcksFile) describes each
/// setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acks {
    /// No reduction.
    None,
    /// Removes older queued acknowledgments.
    Suppression(WaterMarks),
    /// Removes them, and restores them at the far end; the direction is a tunnel.
    Compaction {
        /// Thresholds; at most 255.
        marks: WaterMarks,
        /// How restored acknowledgments are spaced.
        spacing: Spacing,
    },
    /// The ACK filter of CAKE.
    Filter(FilterMode),
    /// Suppression in which the far end fills in missing acknowledgments.
    Reconstruction {
        /// Thresholds of the near end.
        marks: WaterMarks,
        /// Bytes between two acknowledgments that are filled in; at most 1 MiB.
        threshold: Bytes,
    },
}

/// Thresholds for removing acknowledgments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaterMarks {
    /// Number of queued acknowledgments of a flow above which older ones are removed.
    pub low: u32,
    /// Most acknowledgments that are removed in favour of one. Invariant: `high >= low`.
    pub high: u32,
    /// Number of duplicates that are kept although they have no SACK blocks, at least 3; `None` for
    /// all.
    pub duplicates: Option<u32>,
}

impl Acks {
    /// Returns the kind.
    #[must_use]
    pub fn kind(self) -> AcksKind {
        match self {
            Self::None => AcksKind::None,
            Self::Suppression(_) => AcksKind::Suppression,
            Self::Compaction { .. } => AcksKind::Compaction,
            Self::Filter(_) => AcksKind::Filter,
            Self::Reconstruction { .. } => AcksKind::Reconstruction,
        }
    }

    /// Returns the thresholds, if the method has any.
    #[must_use]
    pub fn marks(self) -> Option<WaterMarks> {
        match self {
            Self::Suppression(marks)
            | Self::Compaction { marks, .. }
            | Self::Reconstruction { marks, .. } => Some(marks),
            Self::None | Self::Filter(_) => None,
        }
    }

    /// Returns the spacing of restored acknowledgments, if the method restores any.
    #[must_use]
    pub fn spacing(self) -> Option<Spacing> {
        match self {
            Self::Compaction { spacing, .. } => Some(spacing),
            _ => None,
        }
    }
}
