//! Fast paths that apply to a link direction.

/// Marks a direction without a single upstream direction.
pub(super) const ANYWHERE: u16 = u16::MAX;

/// Fast paths that apply to a direction, as bits: one byte to test for a direction without any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shortcuts(u8);

impl Shortcuts {
    pub(super) const NONE: Self = Self(0);
    /// Other directions follow it in a chain.
    pub(super) const LEADS_ON: Self = Self(1);
    /// Its host runs ahead, so that arrivals are not in the schedule.
    pub(super) const RUNS_AHEAD: Self = Self(2);
    /// Its [queue history](super::queue_history::QueueHistory) is recorded.
    pub(super) const RECORDED: Self = Self(4);

    #[inline(always)]
    pub(super) fn has(self, shortcut: Self) -> bool {
        self.0 & shortcut.0 != 0
    }

    pub(super) fn set(&mut self, shortcut: Self) {
        self.0 |= shortcut.0;
    }

    pub(super) fn clear(&mut self, shortcut: Self) {
        self.0 &= !shortcut.0;
    }
}
