//! A window that comes down bit by bit, whichever recovery that knows of each segment sees to it.

use super::course::Course;
use super::{Rare, Recovery, SendSequence};

impl Recovery {
    /// How far a recovery has come that [knows of each segment](Self::knows_segments) what has become of it.
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

    /// Fast recovery has begun with a reduction of this window, which Linux takes for what was in flight (prior_cwnd).
    /// `counted`: what it takes for delivered then.
    pub(crate) fn reduce_from(&mut self, window: u64, counted: u64, segment: u32) {
        if let Some(course) = self.course_mut() {
            course.reduce_from(window, counted, segment);
        }
    }

    /// Nothing is being repaired, and the path has marked: this window is to come down as in fast recovery until more than what
    /// was sent by now is acknowledged (tcp_enter_cwr).
    pub(crate) fn reduce_for_mark(&mut self, window: u64, send: &SendSequence) {
        if let Some(course) = self.course_mut() {
            course.reduce_for_mark(window, send);
        }
    }

    /// Can [`reduce_for_mark`](Self::reduce_for_mark) be asked for?
    pub(crate) fn can_reduce_for_marks(&self) -> bool {
        self.course()
            .is_some_and(|course| course.reduction.is_wanted())
    }

    /// Everything before `unacknowledged` is acknowledged: is that the end of a [reduction for a mark](Self::reduce_for_mark)?
    pub(crate) fn end_of_mark(&mut self, unacknowledged: u64) {
        if let Some(course) = self.course_mut() {
            course.end_of_mark(unacknowledged);
        }
    }

    /// Does the window come down for a mark? (Whoever asks whether all [is quiet](super::LossRecovery::is_quiet) asks this, too,
    /// where marks are in use.)
    pub(crate) fn is_reducing_for_mark(&self) -> bool {
        self.course().is_some_and(Course::is_marked)
    }

    /// Is a reduction of the window under way that began before fast recovery did?
    pub(crate) fn goes_on_reducing(&self) -> bool {
        self.course()
            .is_some_and(|course| course.reduction.is_under_way())
    }
}
