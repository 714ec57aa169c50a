//! What is done about acknowledgments, with every default filled in.

use bentpipe_types::Bytes;

use crate::schema::{AcksKind, FilterMode, Spacing};

/// What a direction does about acknowledgments that are too many for it.
/// [`AcksFile`](crate::schema::AcksFile) says what each setting does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acks {
    /// Nothing.
    None,
    /// Older acknowledgments that wait are removed.
    Suppression(WaterMarks),
    /// They are removed, and restored at the far end; the direction is a tunnel.
    Compaction {
        /// When, and how many; at most 255.
        marks: WaterMarks,
        /// How they are let out.
        spacing: Spacing,
    },
    /// The filter of CAKE.
    Filter(FilterMode),
    /// Suppression, and the far end fills in what it sees missing.
    Reconstruction {
        /// When the near end removes, and how many.
        marks: WaterMarks,
        /// Bytes between two that are filled in; at most 1 MiB.
        threshold: Bytes,
    },
}

/// When acknowledgments are removed, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaterMarks {
    /// More of a flow than this, and older ones are removed.
    pub low: u32,
    /// At most this many in favour of one; not below the other.
    pub high: u32,
    /// Duplicates that are kept although they have no SACK blocks: all, or this many, at least 3.
    pub duplicates: Option<u32>,
}

impl Acks {
    /// The method's name.
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

    /// The water marks, if the method has any.
    #[must_use]
    pub fn marks(self) -> Option<WaterMarks> {
        match self {
            Self::Suppression(marks)
            | Self::Compaction { marks, .. }
            | Self::Reconstruction { marks, .. } => Some(marks),
            Self::None | Self::Filter(_) => None,
        }
    }

    /// How restored acknowledgments are let out, if the method restores any.
    #[must_use]
    pub fn spacing(self) -> Option<Spacing> {
        match self {
            Self::Compaction { spacing, .. } => Some(spacing),
            _ => None,
        }
    }
}
