//! The memory budget of a split gateway: bytes promised, reserved and held.

/// Memory for the bytes of streams.
///
/// A stream is *promised* the window advertised on one side, less what the other side has
/// acknowledged. Of that, memory is *reserved* for twice the bytes that have arrived, since slow
/// start at most doubles the flight size, until the connection is suspended. So streams that carry
/// nothing have a window, and no reservation. If many of them begin at once, more than the total is
/// reserved. Then windows no longer grow, and [`accepts`](Self::accepts) bounds the bytes *held*.
///
/// Invariants:
///
/// * The bytes held and the state of connections take at most the total.
/// * While at most the total is reserved, no segment within its window is dropped.
///
/// The share of a connection is a dynamic threshold (Choudhury and Hahne 1998): in each direction
/// it may grow until it equals what is left for all others. Busy connections get equal shares, idle
/// ones leave theirs to others, and some memory is always left for new ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryBudget {
    total: u64,
    /// State of connections.
    state: u64,
    /// Number of suspended connections.
    suspended: usize,
    /// Bytes promised, and the state of connections.
    used: u64,
    pub(super) used_maximum: u64,
    /// Bytes reserved, and the state of connections.
    reserved: u64,
    pub(super) held: u64,
    pub(super) held_maximum: u64,
    /// Whether each stream is also limited to what its path needs.
    pub(super) limits_streams: bool,
}

/// Largest initial receive window of a new connection, in each direction: the largest value of a
/// SYN's window field.
pub(super) const MAX_INITIAL_WINDOW: u64 = 65_535;
/// Bytes charged for a split connection besides its streams: both legs, with what they allocate on
/// first use. An assertion checks that it is at least the true size. It is a constant, so that
/// results do not change with the layout of a struct.
pub(super) const SPLIT_STATE: usize = 5092;
/// Bytes charged for a suspended split connection: decision 28.
pub(super) const SUSPENDED_STATE: usize = 1700;
/// Bytes charged for a multiplexed connection, which has one leg only.
pub(super) const MULTIPLEXED_STATE: usize = 2788;
/// A connection is not split if it would get less than this in each direction.
pub(super) const MIN_WINDOW: u64 = 4096;

impl MemoryBudget {
    pub(super) fn new(total: u64, limits_streams: bool) -> Self {
        Self {
            total,
            state: 0,
            suspended: 0,
            used: 0,
            used_maximum: 0,
            reserved: 0,
            held: 0,
            held_maximum: 0,
            limits_streams,
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
        self.total.saturating_sub(self.reserved)
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

    /// Returns true if a source with so many connections may open one more. Its connections may
    /// take as much memory as is left for all others.
    pub(super) fn allows_source(&self, connections: u32, state: u64) -> bool {
        u64::from(connections) * state <= self.available()
    }

    /// Returns true if more than the total is reserved.
    #[inline]
    pub(super) fn is_overcommitted(&self) -> bool {
        self.reserved > self.total
    }

    /// Sets the number of suspended connections, whose state takes less memory.
    pub(super) fn set_suspended(&mut self, count: usize) {
        const SAVED: u64 = (SPLIT_STATE - SUSPENDED_STATE) as u64;
        let (before, after) = (self.suspended as u64 * SAVED, count as u64 * SAVED);
        self.state = self.state + before - after;
        self.reserved = self.reserved + before - after;
        self.suspended = count;
    }

    /// Returns true if a stream that holds `held` bytes may receive `more` of them. `in_order`:
    /// they are the next ones of the stream, which may be delivered at once.
    ///
    /// If more than the total is reserved, a stream may hold as much as is left for all others. An
    /// eighth of the memory is only for data in order, so that gaps can be closed.
    pub(super) fn accepts(&self, held: u64, more: u64, in_order: bool) -> bool {
        if !self.is_overcommitted() {
            return true;
        }
        let all = self.total.saturating_sub(self.state);
        let left = all.saturating_sub(self.held);
        let left = if in_order {
            left
        } else {
            left.saturating_sub(all / 8)
        };
        held + more <= left
    }

    /// Returns the most bytes that may be promised to a stream that has `promised` now.
    #[inline]
    pub(super) fn allowed(&self, promised: u64) -> u64 {
        promised + self.available().saturating_sub(promised) / 2
    }

    /// Records a change of the bytes promised and held, each as a pair of old and new value. All
    /// that is promised is reserved.
    #[inline]
    pub(super) fn change(&mut self, promised: (u64, u64), held: (u64, u64)) {
        self.change_stream(promised, promised, held);
    }

    /// Records a change of the memory of connections' state, as a pair of old and new value.
    pub(super) fn change_state(&mut self, state: (u64, u64)) {
        self.state = self.state + state.1 - state.0;
        self.change(state, (0, 0));
    }

    /// Records a change of the bytes promised, reserved and held, each as a pair of old and new
    /// value.
    #[inline]
    pub(super) fn change_stream(
        &mut self,
        promised: (u64, u64),
        reserved: (u64, u64),
        held: (u64, u64),
    ) {
        self.reserved = self.reserved + reserved.1 - reserved.0;
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
        let mut budget = MemoryBudget::new(1_000_000, false);
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
        let mut budget = MemoryBudget::new(256 << 10, false);
        let mut taken = 0;
        while let Some(first) = budget.initial_window(1000) {
            assert!(first >= MIN_WINDOW);
            budget.change((0, 2 * first + 1000), (0, 0));
            taken += 1;
        }
        assert!(taken > 10);
        assert!(budget.used() <= 256 << 10);
    }

    /// Many idle streams begin at once: more is reserved than there is, and the bytes held stay
    /// within the total.
    #[test]
    fn overcommitted_streams_hold_at_most_the_total() {
        let total = 1_000_000;
        let mut budget = MemoryBudget::new(total, false);
        let (window, segment) = (65_535, 1_448);
        let mut held = [0_u64; 100];
        for _ in &held {
            budget.change_state((0, 5_000));
            budget.change_stream((0, window), (0, 0), (0, 0));
        }
        assert!(!budget.is_overcommitted());
        for round in 0..5_000 {
            let stream = &mut held[round % 100];
            let reserved = if *stream == 0 { (0, window) } else { (0, 0) };
            budget.change_stream((0, 0), reserved, (0, 0));
            let fits = *stream + segment <= window;
            if fits && budget.accepts(*stream, segment, true) {
                budget.change_stream((0, 0), (0, 0), (*stream, *stream + segment));
                *stream += segment;
            }
            assert!(budget.held + 500_000 <= total, "{}", budget.held);
        }
        assert!(budget.is_overcommitted());
        // Equal shares, and one share is left.
        let (least, most) = (held.iter().min(), held.iter().max());
        assert!(
            most <= least.map(|least| least + 2 * segment).as_ref(),
            "{least:?} {most:?}"
        );
        assert!(budget.accepts(0, segment, true));
        // The last eighth is for data in order.
        assert!(!budget.accepts(0, 10_000, false));
    }

    #[test]
    fn suspended_connections_take_less() {
        let mut budget = MemoryBudget::new(1_000_000, false);
        for _ in 0..100 {
            budget.change_state((0, SPLIT_STATE as u64));
        }
        let (before, promised) = (budget.available(), budget.used());
        budget.set_suspended(100);
        assert_eq!(budget.available() - before, 100 * (5_092 - 1_700));
        assert_eq!(budget.used(), promised);
        budget.set_suspended(0);
        assert_eq!(budget.available(), before);
    }
}
