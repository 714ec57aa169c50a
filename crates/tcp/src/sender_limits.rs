//! Statistics of what limits a sender: how long each [`Limit`] kept it from sending more.
//!
//! At each moment exactly one limit holds. It is determined whenever the sender has sent all that
//! it may, in this order:
//!
//! 1. Everything written is acknowledged: [`Idle`](Limit::Idle).
//! 2. The congestion window has no room for a full segment, or lost segments wait to be sent again:
//!    [`Recovery`](Limit::Recovery) in loss recovery, else [`SlowStart`](Limit::SlowStart) or
//!    [`CongestionWindow`](Limit::CongestionWindow).
//! 3. There is unsent data, but the peer's window has no room:
//!    [`ReceiveWindow`](Limit::ReceiveWindow).
//! 4. All data was sent and the writer waits for space: [`SendBuffer`](Limit::SendBuffer).
//! 5. The pacer holds the next segment, or all data was sent: [`Recovery`](Limit::Recovery) in loss
//!    recovery, else [`Pacing`](Limit::Pacing) or [`Application`](Limit::Application).
//!
//! Linux counts 3 and 4 in the same way, in loss recovery as well (`tcp_chrono_start` in
//! `tcp_write_xmit` and `tcp_cwnd_validate`; `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`). All
//! limits but `Idle` together are its `tcpi_busy_time`.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Reason why a sender does not send more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Limit {
    /// None: all written data is acknowledged.
    #[default]
    Idle,
    /// The congestion window, in slow start.
    SlowStart,
    /// The congestion window, in congestion avoidance.
    CongestionWindow,
    /// The window that the peer advertises.
    ReceiveWindow,
    /// The send buffer: it is full, and all of it was sent.
    SendBuffer,
    /// The application: all written data was sent, and not all is acknowledged.
    Application,
    /// The pacer.
    Pacing,
    /// Loss recovery: fast recovery, or the time after a timeout until all that was outstanding is
    /// acknowledged.
    Recovery,
}

impl Limit {
    /// All limits, without `Idle`.
    pub const ALL: [Self; 7] = [
        Self::SlowStart,
        Self::CongestionWindow,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Application,
        Self::Pacing,
        Self::Recovery,
    ];

    /// Whether a buffer limits: the peer's receive buffer or the sender's own. Both do so in loss
    /// recovery, too, where all that arrives behind a gap stays in them.
    #[inline]
    pub(crate) fn is_buffer(self) -> bool {
        matches!(self, Self::ReceiveWindow | Self::SendBuffer)
    }
}

/// Duration of each limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct LimitedTimes {
    spent: [Span; 1 + Limit::ALL.len()],
    since: Time,
    now: Limit,
}

impl LimitedTimes {
    /// Sets the current limit. Called for every segment, nearly always with an unchanged limit,
    /// which costs one comparison.
    #[inline]
    pub fn set(&mut self, limit: Limit, now: Time) {
        if limit != self.now {
            self.change(limit, now);
        }
    }

    /// Adds another connection's times. If both have a current limit, this one's is kept.
    pub fn add(&mut self, other: &Self) {
        for (spent, more) in self.spent.iter_mut().zip(&other.spent) {
            *spent += *more;
        }
        if self.now == Limit::Idle {
            self.now = other.now;
            self.since = other.since;
        }
    }

    /// Returns the current limit.
    #[must_use]
    pub fn current(&self) -> Limit {
        self.now
    }

    /// Whether any limit applies.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.now != Limit::Idle
    }

    fn change(&mut self, limit: Limit, now: Time) {
        self.spent[self.now as usize] += now.since(self.since);
        self.now = limit;
        self.since = now;
    }

    /// Total time of this limit until `now`, which must not be before the last change.
    #[must_use]
    pub fn spent(&self, limit: Limit, now: Time) -> Span {
        let still = if limit == self.now {
            now.since(self.since)
        } else {
            Span::ZERO
        };
        self.spent[limit as usize] + still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_and_the_current_limit_runs() {
        let mut times = LimitedTimes::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        times.set(Limit::SlowStart, at(100));
        times.set(Limit::SlowStart, at(200));
        times.set(Limit::Recovery, at(350));
        times.set(Limit::SlowStart, at(400));
        assert_eq!(times.spent(Limit::Idle, at(1000)), Span::from_millis(100));
        assert_eq!(
            times.spent(Limit::Recovery, at(1000)),
            Span::from_millis(50)
        );
        assert_eq!(
            times.spent(Limit::SlowStart, at(1000)),
            Span::from_millis(850)
        );
        let all: Span = Limit::ALL
            .iter()
            .map(|&limit| times.spent(limit, at(1000)))
            .fold(Span::ZERO, |sum, each| sum + each);
        assert_eq!(all, Span::from_millis(900));
    }

    #[test]
    fn limits_index_the_array() {
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, index + 1);
        }
    }
}
