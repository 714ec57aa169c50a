//! Lists of newly SACKed and newly lost segments, and send times.

use bentpipe_types::Time;

use super::{LossState, LostSegment, Scoreboard};

impl Scoreboard {
    /// Time of the last transmission of the first outstanding segment.
    pub(crate) fn first_sent_at(&self) -> Option<Time> {
        (self.ring.first < self.ring.next).then(|| self.ring.get(self.ring.first).sent_at)
    }

    /// Whether the first outstanding segment is lost and was not retransmitted since.
    pub(crate) fn first_is_lost_to_send(&self) -> bool {
        self.ring.first < self.ring.next && self.ring.get(self.ring.first).is_to_be_sent()
    }

    /// Time of the last transmission of the last outstanding segment.
    pub(crate) fn latest_sent_at(&self) -> Option<Time> {
        (self.ring.first < self.ring.next).then(|| self.ring.get(self.ring.next - 1).sent_at)
    }

    /// Enables [`newly_sacked`](Self::newly_sacked) and
    /// [`newly_lost_segments`](Self::newly_lost_segments), which only model-based congestion
    /// control needs.
    pub(crate) fn watch(&mut self, watch: bool) {
        self.watched = watch;
    }

    /// The segments counted by [`newly_lost`](Self::newly_lost), if watched.
    pub(crate) fn newly_lost_segments(&self) -> &[LostSegment] {
        self.loss_state
            .as_deref()
            .map_or(&[], |loss_state| &loss_state.newly_lost)
    }

    /// Resets the newly lost bytes and segments.
    #[inline]
    pub(crate) fn forget_newly_lost(&mut self) {
        self.newly_lost = 0;
        if let Some(loss_state) = self.loss_state.as_deref_mut() {
            loss_state.newly_lost.clear();
        }
    }

    /// Adds a newly SACKed segment.
    #[inline(never)]
    pub(super) fn note_sacked(&mut self, start: u64, end: u64) {
        let loss_state = LossState::of(&mut self.loss_state);
        match loss_state.newly_sacked.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => loss_state.newly_sacked.push((start, end)),
        }
    }

    /// Adds a newly lost segment.
    #[inline]
    pub(super) fn note_loss(&mut self, position: u64, length: u32) {
        self.newly_lost += u64::from(length);
        if self.watched {
            let loss_state = LossState::of(&mut self.loss_state);
            loss_state.newly_lost.push(LostSegment { position, length });
        }
    }
}
