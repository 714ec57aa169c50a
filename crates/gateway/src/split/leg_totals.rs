//! Totals of the legs of many connections.

use bentpipe_tcp::{Connection, Payload, Socket};
use bentpipe_types::{Port, StreamCheck};

use super::split_connection::SplitConnection;

/// Totals over many legs, on either side of the gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) facing: LegTotals,
    pub(super) hosts: LegTotals,
    pub(super) check: StreamCheck,
}

/// Totals of legs: counters, and current windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LegTotals {
    bytes_delivered: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u64,
    /// Sum of the congestion windows of connections that have not ended, in bytes.
    pub(super) windows: u64,
    /// Sum of their advertised windows, in bytes.
    pub(super) offered: u64,
}

impl LegTotals {
    fn of(connection: &Connection) -> Self {
        let statistics = connection.statistics();
        Self {
            bytes_delivered: connection.acknowledged_offset(),
            segments_sent: statistics.segments_sent,
            segments_retransmitted: statistics.segments_retransmitted,
            timeouts: statistics.timeouts,
            windows: connection.congestion_window(),
            offered: connection.advertised_window(),
        }
    }

    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        change(&mut self.bytes_delivered, other.bytes_delivered);
        change(&mut self.segments_sent, other.segments_sent);
        change(
            &mut self.segments_retransmitted,
            other.segments_retransmitted,
        );
        change(&mut self.timeouts, other.timeouts);
        change(&mut self.windows, other.windows);
        change(&mut self.offered, other.offered);
    }

    /// Clears the windows: the leg has ended.
    pub(super) fn close(&mut self) {
        (self.windows, self.offered) = (0, 0);
    }
}

impl Sums {
    /// Returns the totals of one connection.
    pub(super) fn of<P: Payload>(pair: &SplitConnection<P>, facing: Port) -> Self {
        let mut sums = Self::default();
        for (leg, port) in pair.legs.iter().zip(pair.ports) {
            if let Some(leg) = leg {
                sums.add_leg(leg, port == facing, pair.has_ended);
            }
        }
        sums
    }

    pub(super) fn add_leg<P: Payload>(&mut self, leg: &Socket<P>, facing: bool, has_ended: bool) {
        let mut totals = LegTotals::of(leg.connection());
        if has_ended {
            totals.close();
        }
        let of = if facing {
            &mut self.facing
        } else {
            &mut self.hosts
        };
        of.combine(&totals, |sum, one| *sum += one);
        let found = leg.stream_check();
        self.check.ranges += found.ranges;
        self.check.mismatches += found.mismatches;
    }

    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        self.facing.combine(&other.facing, &change);
        self.hosts.combine(&other.hosts, &change);
        change(&mut self.check.ranges, other.check.ranges);
        change(&mut self.check.mismatches, other.check.mismatches);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, |sum, one| *sum += one);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, |sum, one| *sum -= one);
    }
}

impl LegTotals {
    pub(super) fn report(&self, part: &str, visit: &mut dyn FnMut(&str, u64)) {
        for (name, value) in [
            ("bytes_delivered", self.bytes_delivered),
            ("segments_sent", self.segments_sent),
            ("segments_retransmitted", self.segments_retransmitted),
            ("timeouts", self.timeouts),
        ] {
            visit(&format!("{part}.{name}"), value);
        }
    }
}
