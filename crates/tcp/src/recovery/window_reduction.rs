//! Gradual window reduction, for recoveries that track individual segments.

use super::algorithm::Rare;
use super::recovery_progress::RecoveryProgress;
use super::{Recovery, SendSequence};

impl Recovery {
    /// State of a recovery that [tracks individual segments](Self::tracks_segments).
    fn progress(&self) -> Option<&RecoveryProgress> {
        match self {
            Self::Selective(selective) => Some(&selective.progress),
            Self::Rare(Rare::RecoveryWithoutSack(counted)) => Some(&counted.progress),
            Self::Rare(Rare::Reno(_)) | Self::NewReno(_) => None,
        }
    }

    fn progress_mut(&mut self) -> Option<&mut RecoveryProgress> {
        match self {
            Self::Selective(selective) => Some(&mut selective.progress),
            Self::Rare(Rare::RecoveryWithoutSack(counted)) => Some(&mut counted.progress),
            Self::Rare(Rare::Reno(_)) | Self::NewReno(_) => None,
        }
    }

    /// Starts the reduction of fast recovery from this window, which Linux takes for the data in
    /// flight (prior_cwnd). `counted`: bytes considered delivered at the start.
    pub(crate) fn start_reduction(&mut self, window: u64, counted: u64, segment: u32) {
        if let Some(progress) = self.progress_mut() {
            progress.start_reduction(window, counted, segment);
        }
    }

    /// Starts a reduction for an ECN mark outside of recovery. The window comes down as in fast
    /// recovery, until more than the data sent so far is acknowledged (tcp_enter_cwr).
    pub(crate) fn reduce_for_mark(&mut self, window: u64, send: &SendSequence) {
        if let Some(progress) = self.progress_mut() {
            progress.reduce_for_mark(window, send);
        }
    }

    /// Whether [`reduce_for_mark`](Self::reduce_for_mark) is supported.
    pub(crate) fn can_reduce_for_marks(&self) -> bool {
        self.progress()
            .is_some_and(|progress| progress.reduction.is_wanted())
    }

    /// Ends a [reduction for a mark](Self::reduce_for_mark), if `unacknowledged` is beyond its end.
    pub(crate) fn end_reduction_for_mark(&mut self, unacknowledged: u64) {
        if let Some(progress) = self.progress_mut() {
            progress.end_reduction_for_mark(unacknowledged);
        }
    }

    /// Whether a reduction for a mark is in progress. With ECN, this must be checked together with
    /// [`is_loss_free`](super::LossRecovery::is_loss_free).
    pub(crate) fn is_reducing_for_mark(&self) -> bool {
        self.progress().is_some_and(RecoveryProgress::is_marked)
    }

    /// Whether a window reduction that began before fast recovery is in progress.
    pub(crate) fn is_reducing(&self) -> bool {
        self.progress()
            .is_some_and(|progress| progress.reduction.is_in_progress())
    }
}
