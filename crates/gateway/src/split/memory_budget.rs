//! The memory budget of a split gateway: bytes promised, and bytes held.

/// Memory for the bytes of streams.
///
/// A gateway must have space for all that it has offered: the window advertised on one side, less
/// what the other side has acknowledged. This amount is bounded, not the bytes held. Invariant: a
/// segment within the advertised window is never dropped for want of memory.
///
/// The share of a connection is a dynamic threshold (Choudhury and Hahne 1998): in each direction
/// it may grow until it equals what is left for all others. Busy connections get equal shares, idle
/// ones leave theirs to others, and some memory is always left for new ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryBudget {
    total: u64,
    /// Bytes promised, and the state of connections.
    used: u64,
    pub(super) used_maximum: u64,
    pub(super) held: u64,
    pub(super) held_maximum: u64,
}

/// Largest initial receive window of a new connection, in each direction: the largest value of a
/// SYN's window field.
pub(super) const MAX_INITIAL_WINDOW: u64 = 65_535;
/// Bytes charged for a split connection besides its streams: both legs, with what they allocate on
/// first use. An assertion checks that it is at least the true size. It is a constant, so that
/// results do not change with the layout of a struct.
pub(super) const SPLIT_STATE: usize = 5092;
/// Bytes charged for a multiplexed connection, which has one leg only.
pub(super) const MULTIPLEXED_STATE: usize = 2788;
/// A connection is not split if it would get less than this in each direction.
pub(super) const MIN_WINDOW: u64 = 4096;

impl MemoryBudget {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            used: 0,
            used_maximum: 0,
            held: 0,
            held_maximum: 0,
        }
    }

    /// Takes over the maxima of an earlier budget.
    pub(super) fn keep_maxima_of(&mut self, before: &Self) {
        self.used_maximum = before.used_maximum;
        self.held_maximum = before.held_maximum;
    }

    /// Changes the limit. Bytes promised already stay.
    pub(super) fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// Bytes left.
    #[inline]
    pub(super) fn available(&self) -> u64 {
        self.total.saturating_sub(self.used)
    }

    /// Bytes promised, the state of connections included.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns true if less than half of the budget is left. Ended connections are then removed, so
    /// that new ones get more than the minimum.
    pub(super) fn is_low(&self) -> bool {
        self.available() < self.total / 2
    }

    /// Returns the initial receive window of a new connection in each direction; `None` if too
    /// little is left. `state` is the size of the connection's state.
    pub(super) fn initial_window(&self, state: u64) -> Option<u64> {
        let left = self.available().saturating_sub(state);
        // One sixty-fourth: in a burst of new connections each gets little at first, and more once
        // it sends.
        let first = (left / 64).clamp(MIN_WINDOW, MAX_INITIAL_WINDOW);
        (2 * first <= left).then_some(first)
    }

    /// Returns the most bytes that may be promised to a stream that has `promised` now.
    #[inline]
    pub(super) fn allowed(&self, promised: u64) -> u64 {
        promised + self.available().saturating_sub(promised) / 2
    }

    /// Records a change of the bytes promised and held, each as a pair of old and new value.
    #[inline]
    pub(super) fn change(&mut self, promised: (u64, u64), held: (u64, u64)) {
        self.used = self.used + promised.1 - promised.0;
        self.used_maximum = self.used_maximum.max(self.used);
        self.held = self.held + held.1 - held.0;
        self.held_maximum = self.held_maximum.max(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_streams_get_equal_shares_and_leave_one() {
        let mut budget = MemoryBudget::new(1_000_000);
        let mut promised = [0_u64; 4];
        for round in 0..200 {
            let one = &mut promised[round % 4];
            // The stream takes all it may; now and then it starts again.
            let before = if round % 7 == 0 { *one / 2 } else { *one };
            budget.change((*one, before), (0, 0));
            *one = budget.allowed(before);
            budget.change((before, *one), (0, 0));
        }
        for share in promised {
            assert!(share.abs_diff(200_000) < 40_000, "{promised:?}");
        }
        assert!(budget.used_maximum <= 1_000_000);
    }

    #[test]
    fn late_connections_get_the_minimum_or_are_refused() {
        let mut budget = MemoryBudget::new(256 << 10);
        let mut taken = 0;
        while let Some(first) = budget.initial_window(1000) {
            assert!(first >= MIN_WINDOW);
            budget.change((0, 2 * first + 1000), (0, 0));
            taken += 1;
        }
        assert!(taken > 10);
        assert!(budget.used() <= 256 << 10);
    }
}
