//! Which segments have newly arrived, and which were newly taken for lost.

use bentpipe_types::Time;

use super::{LostSegment, Scoreboard, Trouble};

impl Scoreboard {
    /// When the first segment outstanding last left.
    pub(crate) fn first_sent_at(&self) -> Option<Time> {
        (self.ring.first < self.ring.next).then(|| self.ring.get(self.ring.first).sent_at)
    }

    /// When the segment that is highest in sequence last left.
    pub(crate) fn latest_sent_at(&self) -> Option<Time> {
        (self.ring.first < self.ring.next).then(|| self.ring.get(self.ring.next - 1).sent_at)
    }

    /// Keep what [`newly_sacked`](Self::newly_sacked) and
    /// [`newly_lost_segments`](Self::newly_lost_segments) return: only rules that model the path ask.
    pub(crate) fn watch(&mut self, watch: bool) {
        self.watched = watch;
    }

    /// What [`newly_lost`](Self::newly_lost) counts, segment by segment, if it is watched.
    pub(crate) fn newly_lost_segments(&self) -> &[LostSegment] {
        self.trouble
            .as_deref()
            .map_or(&[], |trouble| &trouble.newly_lost)
    }

    /// From now on, other losses are new.
    #[inline]
    pub(crate) fn forget_newly_lost(&mut self) {
        self.newly_lost = 0;
        if let Some(trouble) = self.trouble.as_deref_mut() {
            trouble.newly_lost.clear();
        }
    }

    /// A segment from `start` to `end` is newly SACKed.
    #[inline(never)]
    pub(super) fn note_sacked(&mut self, start: u64, end: u64) {
        let trouble = Trouble::of(&mut self.trouble);
        match trouble.newly_sacked.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => trouble.newly_sacked.push((start, end)),
        }
    }

    /// A segment is newly taken for lost.
    #[inline]
    pub(super) fn note_loss(&mut self, position: u64, length: u32) {
        self.newly_lost += u64::from(length);
        if self.watched {
            let trouble = Trouble::of(&mut self.trouble);
            trouble.newly_lost.push(LostSegment { position, length });
        }
    }
}
