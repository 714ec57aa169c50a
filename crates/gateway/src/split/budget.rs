//! The memory of a split gateway: what it has promised room for, and what it holds.

/// Bytes of streams.
///
/// What a gateway must find room for is not what it holds but what it has offered: the window that it
/// advertised on one side, less what the other side has acknowledged. So that is what is bounded, and
/// nothing that arrives within its window ever has to be dropped.
///
/// A connection's share is a dynamic threshold (Choudhury and Hahne 1998): it may grow, each way, until
/// it has as much as is left for all others. Those that are busy all get the same, those that are not
/// leave it to others, and there is always something left for who comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    total: u64,
    /// Promised, and each connection's state.
    used: u64,
    pub(super) used_maximum: u64,
    pub(super) held: u64,
    pub(super) held_maximum: u64,
}

/// What a new connection is offered at first, each way: as much as fits a SYN's window field.
pub(super) const FIRST: u64 = 65_535;
/// What a split connection counts besides its streams: both ends, with what they make when they first need
/// it. No less than it takes (whoever asks asserts that), and a number rather than what it takes today: no
/// result is to change with the layout of a struct.
pub(super) const SPLIT_STATE: usize = 5092;
/// The same of one that a persistent connection carries, which has an end of its own at one side only.
pub(super) const CARRIED_STATE: usize = 2788;
/// With less than this each way, a connection is better not split.
pub(super) const LEAST: u64 = 4096;

impl Budget {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            used: 0,
            used_maximum: 0,
            held: 0,
            held_maximum: 0,
        }
    }

    /// The most there ever was, of one that was there before.
    pub(super) fn remember(&mut self, before: &Self) {
        self.used_maximum = before.used_maximum;
        self.held_maximum = before.held_maximum;
    }

    /// What is left.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.total.saturating_sub(self.used)
    }

    /// What is promised, in bytes, the state of connections included.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Is less than half of it left? What is over then makes way, so that those who come still get more than the least.
    pub(super) fn is_short(&self) -> bool {
        self.left() < self.total / 2
    }

    /// What a new connection is offered each way; `None` if it is too little. `state`: bytes that the
    /// connection takes besides.
    pub(super) fn first(&self, state: u64) -> Option<u64> {
        let left = self.left().saturating_sub(state);
        // A sixty-fourth: who comes in a crowd gets little at first, and more once it is used.
        let first = (left / 64).clamp(LEAST, FIRST);
        (2 * first <= left).then_some(first)
    }

    /// The most that may be promised to a stream that has `promised` now.
    #[inline]
    pub(super) fn allowed(&self, promised: u64) -> u64 {
        promised + self.left().saturating_sub(promised) / 2
    }

    /// A promise, or what is held, has changed.
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
    fn greedy_streams_come_to_equal_shares_and_leave_one() {
        let mut budget = Budget::new(1_000_000);
        let mut promised = [0_u64; 4];
        for round in 0..200 {
            let one = &mut promised[round % 4];
            // It takes all it may; now and then it has to begin again.
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
    fn who_comes_late_gets_something_or_is_refused() {
        let mut budget = Budget::new(256 << 10);
        let mut taken = 0;
        while let Some(first) = budget.first(1000) {
            assert!(first >= LEAST);
            budget.change((0, 2 * first + 1000), (0, 0));
            taken += 1;
        }
        assert!(taken > 10);
        assert!(budget.used() <= 256 << 10);
    }
}
