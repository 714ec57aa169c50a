//! Which segments were newly taken for lost.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::segment::Segment;
use super::{LostSegment, Scoreboard};

/// The segments newly taken for lost, for those who want to know which.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Losses {
    watched: bool,
    segments: Vec<LostSegment>,
}

impl Losses {
    #[inline]
    pub(super) const fn watched(&self) -> bool {
        self.watched
    }

    #[inline]
    pub(super) fn note(&mut self, segment: &Segment) {
        if self.watched {
            self.segments.push(LostSegment {
                position: segment.start,
                length: segment.length,
            });
        }
    }
}

impl Scoreboard {
    /// When the first segment outstanding last left.
    pub(crate) fn first_sent_at(&self) -> Option<Time> {
        (self.ring.first < self.ring.next).then(|| self.ring.get(self.ring.first).sent_at)
    }

    /// Keep what [`newly_lost_segments`](Self::newly_lost_segments) and
    /// [`newly_sacked`](Self::newly_sacked) return.
    pub(crate) fn watch_losses(&mut self, watch: bool) {
        self.losses.watched = watch;
    }

    /// What [`newly_lost`](Self::newly_lost) counts, segment by segment, if it is watched.
    pub(crate) fn newly_lost_segments(&self) -> &[LostSegment] {
        &self.losses.segments
    }

    /// From now on, other losses are new.
    #[inline]
    pub(crate) fn forget_newly_lost(&mut self) {
        self.newly_lost = 0;
        self.losses.segments.clear();
    }
}
