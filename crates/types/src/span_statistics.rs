//! Statistics of times: extremes, mean and quantiles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;
use crate::histogram::{ExactValues, Histogram};

/// Statistics of times: exact extremes and mean, and quantiles from a log-linear histogram.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct SpanStatistics {
    count: u64,
    sum: u64,
    minimum: Span,
    maximum: Span,
    last: Span,
    histogram: Histogram,
}

impl SpanStatistics {
    /// Prefetches what the next sample needs.
    #[inline]
    pub fn fetch(&self) {
        self.histogram.fetch();
    }

    /// Records a sample.
    #[inline]
    pub fn record(&mut self, span: Span) {
        if span == self.last && self.count > 0 {
            // Mostly, a round trip is as long as the previous one.
            self.count += 1;
            self.sum = self.sum.saturating_add(span.as_nanos());
            self.histogram.record_again();
            return;
        }
        self.last = span;
        if self.count == 0 || span < self.minimum {
            self.minimum = span;
        }
        if span > self.maximum {
            self.maximum = span;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(span.as_nanos());
        self.histogram.record(span);
    }

    /// Adds the samples of other statistics.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.histogram.add(&other.histogram);
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all samples.
    #[must_use]
    pub fn sum(&self) -> Span {
        Span::from_nanos(self.sum)
    }

    /// Returns the shortest sample.
    #[must_use]
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(self.minimum)
    }

    /// Returns the longest sample.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.maximum)
    }

    /// Returns the arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(self.count).map(Span::from_nanos)
    }

    /// Returns the 95th percentile, as accurate as [`Self::quantile`].
    #[must_use]
    pub fn p95(&self) -> Option<Span> {
        self.quantile(0.95)
    }

    /// Returns the sample of rank ⌈`q` × count⌉, at least the first: a share `q` of all samples is
    /// not larger.
    ///
    /// Exact if all samples are equal, with up to three samples, and for `q` of 0 and 1. Otherwise
    /// the value is interpolated in its bucket by rank and by the sum of all samples: off by less
    /// than the bucket's width, 1/32 of the value (1 us below 32 us). From 264 s on there is one
    /// bucket. The result never decreases with `q`.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let exact = ExactValues {
            minimum: self.minimum,
            maximum: self.maximum,
            sum: self.sum,
        };
        self.histogram.quantile(q, exact)
    }
}

impl fmt::Debug for SpanStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanStatistics")
            .field("count", &self.count)
            .field("min", &self.min())
            .field("mean", &self.mean())
            .field("p95", &self.p95())
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::rank;

    // Start of the last bucket.
    const LONGEST: u64 = 264_000_000_000;

    fn of(nanoseconds: &[u64]) -> SpanStatistics {
        let mut statistics = SpanStatistics::default();
        for each in nanoseconds {
            statistics.record(Span::from_nanos(*each));
        }
        statistics
    }

    /// Samples of several kinds: equal, in a few clusters, within one or two buckets, arbitrary.
    fn times() -> impl Strategy<Value = Vec<u64>> {
        let clumped = vec(any::<u64>().prop_map(|each| each % 2_000_000_000), 1..5)
            .prop_flat_map(|clumps| vec(select(clumps), 1..300));
        let near =
            (1_000u64..1_000_000_000).prop_flat_map(|base| vec(base..base + 1 + base / 20, 1..300));
        let any_length = vec((0u64..40).prop_flat_map(|bits| 0..=(1u64 << bits)), 1..300);
        prop_oneof![clumped, near, any_length]
    }

    /// The exact quantile of sorted samples.
    fn exact(ordered: &[u64], q: f64) -> u64 {
        ordered[rank(q, ordered.len() as u64) as usize - 1]
    }

    fn quantile_of(statistics: &SpanStatistics, q: f64) -> u64 {
        statistics.quantile(q).expect("samples").as_nanos()
    }

    const SHARES: [f64; 13] = [
        0.0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.501, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0,
    ];

    proptest! {
        #[test]
        fn quantiles_are_close_to_those_of_the_sorted_samples(times in times(), other in times()) {
            let mut all = of(&times);
            all.add(&of(&other));
            let mut ordered = [times, other].concat();
            ordered.sort_unstable();
            let mut before = 0;
            for q in SHARES {
                let (told, exact) = (quantile_of(&all, q), exact(&ordered, q));
                if exact <= LONGEST {
                    prop_assert!(told.abs_diff(exact) <= (exact / 32).max(1_032), "{q}: {told} {exact}");
                }
                prop_assert!(told >= before, "{q}: {told} after {before}");
                before = told;
            }
            prop_assert_eq!(quantile_of(&all, 0.0), ordered[0]);
            prop_assert_eq!(quantile_of(&all, 1.0), ordered[ordered.len() - 1]);
            prop_assert_eq!(all.quantile(0.5), of(&ordered).quantile(0.5));
        }

        // Mean and quantiles describe one distribution.
        #[test]
        fn the_mean_is_consistent_with_the_quantiles(times in times()) {
            let all = of(&times);
            let count = times.len() as u64;
            let ranks = (1..=count).map(|rank| quantile_of(&all, (rank as f64 - 0.5) / count as f64));
            let sum: u64 = ranks.sum();
            prop_assert!(sum.abs_diff(all.sum().as_nanos()) <= count, "{sum} {:?}", all.sum());
        }

        #[test]
        fn quantiles_of_equal_or_few_samples_are_exact(time in 0..LONGEST, many in 1usize..50, few in [0..LONGEST, 0..LONGEST, 0..LONGEST]) {
            let mut ordered = few;
            ordered.sort_unstable();
            for q in SHARES {
                prop_assert_eq!(quantile_of(&of(&vec![time; many]), q), time);
                for some in 1..=3 {
                    let mut ordered = few[..some].to_vec();
                    ordered.sort_unstable();
                    prop_assert_eq!(quantile_of(&of(&few[..some]), q), exact(&ordered, q));
                }
            }
        }

        // Times spread uniformly over a bucket are far more accurate than the bucket's width.
        #[test]
        fn quantiles_of_uniform_samples_are_within_a_thousandth(base in 1_000_000u64..1_000_000_000, share in 0.0..1.0f64) {
            let times: Vec<u64> = (0..1000).map(|each| base + base / 4_000 * each).collect();
            let (told, exact) = (quantile_of(&of(&times), share), exact(&times, share));
            prop_assert!(told.abs_diff(exact) <= exact / 1_000, "{told} {exact}");
        }
    }

    #[test]
    fn a_median_is_near_almost_equal_samples() {
        // 998 round trips of 605 ms, one longer, one shorter: the bucket is 590 to 606 ms.
        let mut times = vec![605_000_000; 998];
        times.extend([560_000_000, 700_000_000]);
        let all = of(&times);
        for q in [0.5, 0.95] {
            let told = quantile_of(&all, q);
            assert!(told.abs_diff(605_000_000) < 1_500_000, "{q}: {told}");
        }
        let (mean, p95) = (all.mean().unwrap(), all.p95().unwrap());
        assert!(mean <= p95, "{mean:?} {p95:?}");
    }

    #[test]
    fn quantiles_are_by_rank() {
        let times: Vec<u64> = (1..=1000).map(|ms| ms * 1_000_000).collect();
        let statistics = of(&times);
        assert_eq!(statistics.min(), Some(Span::from_millis(1)));
        assert_eq!(statistics.max(), Some(Span::from_millis(1000)));
        assert_eq!(statistics.mean(), Some(Span::from_micros(500_500)));
        let p95 = statistics.p95().unwrap().as_millis_f64();
        assert!((p95 - 950.0).abs() < 1.0, "{p95}");
    }

    #[test]
    fn extremes_stay_inside_the_histogram() {
        let mut statistics = SpanStatistics::default();
        assert_eq!(statistics.p95(), None);
        statistics.record(Span::ZERO);
        statistics.record(Span::from_nanos(u64::MAX >> 6));
        statistics.record(Span::from_nanos(u64::MAX));
        assert_eq!(statistics.quantile(0.0), Some(Span::ZERO));
        assert_eq!(statistics.quantile(1.0), Some(Span::from_nanos(u64::MAX)));
        assert!(statistics.quantile(0.5).is_some());
        let longest = of(&[u64::MAX; 5]);
        assert_eq!(longest.quantile(0.5), Some(Span::from_nanos(u64::MAX)));
    }
}
