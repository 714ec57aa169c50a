//! Gradual window reduction, for recoveries that track individual segments.

use super::course::Course;
use super::{Rare, Recovery, SendSequence};

impl Recovery {
    /// State of a recovery that [tracks individual segments](Self::knows_segments).
    fn course(&self) -> Option<&Course> {
        match self {
            Self::Selective(selective) => Some(&selective.course),
            Self::Rare(Rare::Counted(counted)) => Some(&counted.course),
            Self::Rare(Rare::Reno(_)) | Self::NewReno(_) => None,
        }
    }

    fn course_mut(&mut self) -> Option<&mut Course> {
        match self {
            Self::Selective(selective) => Some(&mut selective.course),
            Self::Rare(Rare::Counted(counted)) => Some(&mut counted.course),
            Self::Rare(Rare::Reno(_)) | Self::NewReno(_) => None,
        }
    }

    /// Starts the reduction of fast recovery from this window, which Linux takes for the data in
    /// flight (prior_cwnd). `counted`: bytes considered delivered at the start.
    pub(crate) fn reduce_from(&mut self, window: u64, counted: u64, segment: u32) {
        if let Some(course) = self.course_mut() {
            course.reduce_from(window, counted, segment);
        }
    }

    /// Starts a reduction for an ECN mark outside of recovery. The window comes down as in fast
    /// recovery, until more than the data sent so far is acknowledged (tcp_enter_cwr).
    pub(crate) fn reduce_for_mark(&mut self, window: u64, send: &SendSequence) {
        if let Some(course) = self.course_mut() {
            course.reduce_for_mark(window, send);
        }
    }

    /// Whether [`reduce_for_mark`](Self::reduce_for_mark) is supported.
    pub(crate) fn can_reduce_for_marks(&self) -> bool {
        self.course()
            .is_some_and(|course| course.reduction.is_wanted())
    }

    /// Ends a [reduction for a mark](Self::reduce_for_mark), if `unacknowledged` is beyond its end.
    pub(crate) fn end_of_mark(&mut self, unacknowledged: u64) {
        if let Some(course) = self.course_mut() {
            course.end_of_mark(unacknowledged);
        }
    }

    /// Whether a reduction for a mark is in progress. With ECN, this must be checked together with
    /// [`is_quiet`](super::LossRecovery::is_quiet).
    pub(crate) fn is_reducing_for_mark(&self) -> bool {
        self.course().is_some_and(Course::is_marked)
    }

    /// Whether a window reduction that began before fast recovery is in progress.
    pub(crate) fn goes_on_reducing(&self) -> bool {
        self.course()
            .is_some_and(|course| course.reduction.is_under_way())
    }
}
