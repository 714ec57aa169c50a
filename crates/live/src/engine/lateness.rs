//! Statistics of how late packets leave the network.

use bentpipe_types::{Span, rank};
use serde::Serialize;

/// Buckets per doubling, so that quantiles are accurate to 3%.
const BUCKETS_PER_DOUBLING: usize = 32;
const BITS: u32 = BUCKETS_PER_DOUBLING.trailing_zeros();

/// Histogram of lateness, of constant size.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    most: u64,
}

/// Lateness in a result, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct LatenessSummary {
    /// Mean of all packets that left.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS_PER_DOUBLING * (64 - BITS as usize + 1)],
            count: 0,
            sum: 0,
            most: 0,
        }
    }
}

impl Lateness {
    /// Adds a packet.
    pub fn note(&mut self, late: Span) {
        let nanoseconds = late.as_nanos();
        self.counts[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.sum += u128::from(nanoseconds);
        self.most = self.most.max(nanoseconds);
    }

    /// Returns the number of packets.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the quantile `q`, at most 3% too high; `None` without packets.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let rank = rank(q, self.count);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(Span::from_nanos(upper_bound(index).min(self.most)));
            }
        }
        None
    }

    /// Returns the mean; `None` without packets.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Returns the summary, with zeros if there were no packets.
    #[must_use]
    pub fn summary(&self) -> LatenessSummary {
        let milliseconds = |span: Option<Span>| span.map_or(0.0, |span| span.as_secs_f64() * 1e3);
        LatenessSummary {
            mean: milliseconds(self.mean()),
            p99: milliseconds(self.quantile(0.99)),
            p999: milliseconds(self.quantile(0.999)),
            max: milliseconds(Some(Span::from_nanos(self.most))),
        }
    }

    /// Returns the upper bound and the count of each bucket that has packets.
    pub fn histogram(&self) -> impl Iterator<Item = (Span, u64)> {
        let steps = self.counts.iter().enumerate();
        let some = steps.filter(|(_, count)| **count > 0);
        some.map(|(index, count)| (Span::from_nanos(upper_bound(index)), *count))
    }
}

/// Returns the bucket of a value: the first 2 x 32 values have one each, then each doubling has 32.
fn bucket(value: u64) -> usize {
    let doubling = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    let step = (value >> doubling) as usize;
    doubling as usize * BUCKETS_PER_DOUBLING + step
}

/// Returns the largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    let doubling = (index / BUCKETS_PER_DOUBLING).saturating_sub(1);
    let step = (index - doubling * BUCKETS_PER_DOUBLING) as u64;
    let next = u128::from(step + 1) << doubling;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_within_their_bucket(value in any::<u64>()) {
            let index = bucket(value);
            prop_assert!(index < Lateness::default().counts.len());
            prop_assert!(upper_bound(index) >= value);
            prop_assert!(upper_bound(index) - value <= value / 32);
            prop_assert!(index == 0 || upper_bound(index - 1) < value);
        }
    }

    #[test]
    fn quantiles_match_the_packets() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), None);
        for late in 1..=1000 {
            lateness.note(Span::from_micros(late));
        }
        let near = |q: f64, expected: u64| {
            let at = lateness.quantile(q).expect("packets").as_nanos();
            assert!(
                at >= expected && at <= expected + expected / 32,
                "{q}: {at}"
            );
        };
        near(0.5, 500_000);
        near(0.99, 990_000);
        near(0.999, 999_000);
        assert_eq!(lateness.quantile(1.0), Some(Span::from_millis(1)));
        assert_eq!(lateness.mean(), Some(Span::from_nanos(500_500)));
        assert_eq!(
            lateness.histogram().map(|(_, count)| count).sum::<u64>(),
            1000
        );
    }
}
