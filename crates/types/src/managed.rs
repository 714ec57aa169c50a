//! The interface for the operator of a running gateway ([`Managed`]).

use std::any::Any;
use std::ops::ControlFlow;

use crate::{FlowKey, Party, Span, Time};

/// A node that an operator can inspect and change while it runs. No method is called per packet.
pub trait Managed {
    /// Calls `visit` with each connection, in the order of the table, until it breaks.
    fn connections(
        &self,
        now: Time,
        visit: &mut dyn FnMut(&ConnectionReport) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Number of connections that need this node to go on.
    fn dependent_connections(&self) -> u64;

    /// From now on, forwards new connections unchanged, or stops doing so.
    fn set_draining(&mut self, draining: bool);

    /// Takes over the settings of `other`, a node of the same type, for new connections.
    ///
    /// # Errors
    /// One line, if a setting cannot change while the node runs. Nothing has changed then.
    fn adopt_settings(&mut self, other: &mut dyn Managed) -> Result<(), String>;

    /// Returns the node itself, for [`adopt_settings`](Self::adopt_settings).
    fn as_any(&mut self) -> &mut dyn Any;

    /// Calls `visit` with the name and value of each counter that results do not have.
    fn more_counters(&self, _visit: &mut dyn FnMut(&str, u64)) {}

    /// Moves the changes of the set of split connections since the last call to the end of
    /// `changes`.
    fn take_connection_changes(&mut self, _changes: &mut Vec<ConnectionChange>) {}

    /// Round-trip times of the legs, over the facing link and to the hosts.
    fn round_trips(&self) -> [RoundTripHistogram; 2] {
        [RoundTripHistogram::default(); 2]
    }
}

/// Returns `other` as a node of type `T`, for [`Managed::adopt_settings`].
///
/// # Errors
/// One line, if it is of another type.
pub fn of_same_kind<T: 'static>(other: &mut dyn Managed) -> Result<&mut T, String> {
    let same = other.as_any().downcast_mut();
    same.ok_or_else(|| "another kind of gateway takes effect after a restart".to_owned())
}

/// Checks settings that cannot change while a node runs: their keys, and whether they are equal.
///
/// # Errors
/// One line with the first key whose setting differs.
pub fn check_unchanged(settings: &[(&str, bool)]) -> Result<(), String> {
    match settings.iter().find(|(_, is_equal)| !is_equal) {
        Some((key, _)) => Err(format!("another \"{key}\" takes effect after a restart")),
        None => Ok(()),
    }
}

/// A gateway has begun or ceased to split a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionChange {
    /// Number of the connection, which a later connection may have again.
    pub index: u32,
    /// The connection, as the host that opens it sends; `None` if it is gone.
    pub key: Option<FlowKey>,
}

/// State of a connection through a gateway.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    /// The host that opened it.
    pub opener: Party,
    /// The host that answered.
    pub responder: Party,
    /// How the gateway treats it: `split`, `multiplexed` or `tracked`.
    pub treatment: &'static str,
    /// Time since the SYN; `None` if unknown.
    pub age: Option<Span>,
    /// Time since the last packet; `None` if unknown.
    pub idle: Option<Span>,
    /// The legs: towards the host that opened it, and towards the host that answered.
    pub legs: [Option<LegReport>; 2],
}

/// State of one leg of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct LegReport {
    /// Whether it is over the facing link.
    pub is_facing: bool,
    /// State as in RFC 9293 section 3.3.2, such as `established`.
    pub state: &'static str,
    /// Bytes received from the host.
    pub received: u64,
    /// Bytes that the host has acknowledged.
    pub delivered: u64,
    /// Bytes received from the host that the other host has not acknowledged.
    pub held: u64,
    /// Bytes sent to the host that are in the network.
    pub in_flight: u64,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Receive window advertised by the host.
    pub peer_window: u64,
    /// Receive window advertised to the host.
    pub advertised_window: u64,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Histogram of round-trip times with fixed bounds. It never shrinks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTripHistogram {
    counts: [u64; Self::BOUNDS_MS.len() + 1],
    sum: Span,
}

impl RoundTripHistogram {
    /// Upper bounds of the buckets but the last, in milliseconds: dense around LEO (25 to 100 ms)
    /// and GEO (500 to 750 ms).
    pub const BOUNDS_MS: [u64; 14] = [
        1, 2, 5, 10, 25, 50, 75, 100, 250, 500, 600, 750, 1_000, 2_500,
    ];

    /// Adds a round-trip time.
    pub fn record(&mut self, round_trip: Span) {
        let fits = |bound: &u64| round_trip <= Span::from_millis(*bound);
        let bucket = Self::BOUNDS_MS.iter().position(fits);
        self.counts[bucket.unwrap_or(Self::BOUNDS_MS.len())] += 1;
        self.sum = Span::from_nanos(self.sum.as_nanos().saturating_add(round_trip.as_nanos()));
    }

    /// Adds the samples of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = Span::from_nanos(self.sum.as_nanos().saturating_add(other.sum.as_nanos()));
    }

    /// Returns the count of each bucket. The last bucket has no bound.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of all samples.
    #[must_use]
    pub fn sum(&self) -> Span {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_the_first_bucket_that_fits() {
        let mut histogram = RoundTripHistogram::default();
        for milliseconds in [1, 2, 3, 600, 601, 9_000] {
            histogram.record(Span::from_millis(milliseconds));
        }
        let found: Vec<usize> = (histogram.counts().iter().enumerate())
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, _)| bucket)
            .collect();
        assert_eq!(found, [0, 1, 2, 10, 11, 14]);
        assert_eq!(histogram.sum(), Span::from_millis(10_207));
        let mut both = histogram;
        both.add(&histogram);
        assert_eq!(both.counts()[14], 2);
    }
}
