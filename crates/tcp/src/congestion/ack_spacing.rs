//! Bandwidth estimates from the spacing of the first acknowledgments.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::AckSample;

/// Rates of pairs in an estimate of the capacity. An odd number has a median of its own.
const PAIRS: usize = 31;
/// Pairs before the first estimate: as many spacings as in Hoe's estimate.
const FIRST_PAIRS: usize = 3;

/// Capacity estimate by packet pairs: the median of the rates of the first pairs of consecutive
/// acknowledgments.
///
/// Sources: S. Keshav, "A control-theoretic approach to flow control", SIGCOMM 1991, for the rate
/// of a pair; V. Paxson, "End-to-end Internet packet dynamics", SIGCOMM 1997, for the need of a
/// robust statistic over many pairs. A lost packet halves the rate of one pair, a pause between
/// bursts lowers it, and acknowledgments compressed on their way raise it. The median tolerates all
/// of these in less than half of the pairs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PacketPairs {
    // Rates in payload bytes per second.
    rates: Vec<f64>,
    last: Option<(Time, u64)>,
}

impl PacketPairs {
    /// Processes an acknowledgment. Returns the estimate in payload bytes per second, if it is new.
    pub(super) fn on_delivery(&mut self, sample: &AckSample) -> Option<f64> {
        let (before, delivered) = self.last.replace((sample.now, sample.delivered))?;
        let bytes = sample.delivered.saturating_sub(delivered);
        if bytes == 0 {
            return None;
        }
        // Simultaneous acknowledgments have an infinite rate, which only their rank uses.
        self.rates
            .push(bytes as f64 / sample.now.since(before).as_secs_f64());
        self.rates.sort_by(f64::total_cmp);
        if self.rates.len() < FIRST_PAIRS {
            return None;
        }
        Some(self.rates[(self.rates.len() - 1) / 2]).filter(|rate| rate.is_finite())
    }

    /// Whether the estimate is final.
    pub(super) fn is_complete(&self) -> bool {
        self.rates.len() >= PAIRS
    }
}

/// Number of acknowledgments of one round trip in an estimate: Hoe's three spacings.
const POINTS: usize = 4;

/// Hoe's bandwidth estimate (J. Hoe, "Improving the Start-up Behavior of a Congestion Control
/// Scheme for TCP", SIGCOMM 1996). Segments sent back to back leave the bottleneck at its rate, and
/// their acknowledgments arrive with that spacing. The estimate is a least-squares fit over the
/// first few acknowledgments of one round trip.
///
/// It measures the slowest link in both directions: a return link on which acknowledgments queue
/// looks like a slow forward link. With a paced sender it measures the pacing rate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct AckSpacing {
    // Seconds since the first acknowledgment, and bytes acknowledged since then.
    points: [(f64, f64); POINTS],
    count: usize,
    first: Time,
    bytes: u64,
    // Stream position whose acknowledgment ends the round trip.
    round_end: u64,
}

impl AckSpacing {
    /// Processes an acknowledgment of new data. Returns the bandwidth in payload bytes per second
    /// when an estimate is complete.
    pub(super) fn on_ack(&mut self, sample: &AckSample) -> Option<f64> {
        if self.count == 0 || sample.unacknowledged > self.round_end {
            // Segments sent before this acknowledgment were sent back to back.
            self.round_end = sample.next;
            self.first = sample.now;
            self.count = 0;
            self.bytes = 0;
        } else {
            self.bytes += sample.acknowledged;
        }
        self.points[self.count] = (
            sample.now.since(self.first).as_secs_f64(),
            self.bytes as f64,
        );
        self.count += 1;
        if self.count < POINTS {
            return None;
        }
        self.count = 0;
        slope(&self.points)
    }
}

/// Returns the slope of the least-squares line, if it is positive.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let variance: f64 = points
        .iter()
        .map(|(x, _)| (x - mean_x) * (x - mean_x))
        .sum();
    let slope = covariance / variance;
    (slope.is_finite() && slope > 0.0).then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(spacing: &mut AckSpacing, acks: &[(u64, u64)], flight_end: u64) -> Option<f64> {
        let mut position = 0;
        let mut found = None;
        for (nanos, bytes) in acks {
            position += bytes;
            let mut sample = AckSample::at(Time::from_nanos(*nanos), *bytes);
            sample.unacknowledged = position;
            sample.next = flight_end;
            found = found.or(spacing.on_ack(&sample));
        }
        found
    }

    #[test]
    fn evenly_spaced_acknowledgments_give_the_bottleneck_rate() {
        // 1500-byte packets at 100 Mbit/s leave every 120 us: 1448 B each.
        let acks: Vec<_> = (0..4).map(|n| (600_000_000 + n * 120_000, 1448)).collect();
        let rate = feed(&mut AckSpacing::default(), &acks, 24 * 1448).unwrap();
        assert!((rate - 1448.0 / 120e-6).abs() < 1.0, "{rate}");
        // The same rate if every second segment is acknowledged.
        let acks: Vec<_> = (0..4).map(|n| (600_000_000 + n * 240_000, 2896)).collect();
        let rate = feed(&mut AckSpacing::default(), &acks, 24 * 1448).unwrap();
        assert!((rate - 1448.0 / 120e-6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn slope_equals_a_calculation_by_hand() {
        // Bytes 0, 1, 2, 3 at 0, 1, 2, 4 s: means 1.5 and 1.75, covariance 6.5, variance 8.75.
        let slope = slope(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (4.0, 3.0)]).unwrap();
        assert!((slope - 6.5 / 8.75).abs() < 1e-12);
    }

    /// Returns the estimate after acknowledgments at these microseconds, one segment each.
    fn pairs(microseconds: impl IntoIterator<Item = u64>) -> Option<f64> {
        let mut pairs = PacketPairs::default();
        let mut found = None;
        for (n, at) in (1_u64..).zip(microseconds) {
            let mut sample = AckSample::at(Time::from_nanos(1000 * at), 1448);
            sample.delivered = 1448 * n;
            found = pairs.on_delivery(&sample).or(found);
        }
        found
    }

    #[test]
    fn packet_pairs_tolerate_losses_pauses_and_compressed_acknowledgments() {
        let rate = 1448.0 / 120e-6;
        assert_eq!(pairs((0..4).map(|n| 120 * n)), Some(rate));
        // Two spacings are too few.
        assert_eq!(pairs((0..3).map(|n| 120 * n)), None);
        // Every fifth packet is lost; and a pause of a round trip after every tenth.
        let lossy = (0..30).filter(|n| n % 5 != 4);
        assert_eq!(pairs(lossy.map(|n| 120 * n + n / 10 * 600_000)), Some(rate));
        // A third of the acknowledgments arrives together with the one before.
        assert_eq!(
            pairs((0..30).map(|n| 120 * (n - u64::from(n % 3 == 1)))),
            Some(rate)
        );
        assert_eq!(pairs([5; 8]), None);
    }

    #[test]
    fn round_trips_are_not_mixed_and_simultaneous_acknowledgments_give_no_rate() {
        // Two acknowledgments of the first flight, and one of the next flight a round trip later.
        let acks = [(0, 1000), (1000, 1000), (600_000_000, 1000)];
        assert_eq!(feed(&mut AckSpacing::default(), &acks, 2000), None);
        let acks = [(5, 1000); 4];
        assert_eq!(feed(&mut AckSpacing::default(), &acks, 9000), None);
    }
}
