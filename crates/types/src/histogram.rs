//! A log-linear histogram of times.

use serde::{Deserialize, Serialize};

use crate::Span;
use crate::quantile::{Part, Skew, rank};

// 1 us to 2^28 us (268 s) with 32 buckets per octave: each bucket is 1/32 of its times wide or
// less.
const OCTAVES: usize = 28;
const BUCKETS_PER_OCTAVE_LOG2: u32 = 5;
const BUCKETS_PER_OCTAVE: usize = 1 << BUCKETS_PER_OCTAVE_LOG2;
// The histogram grows by this many buckets.
const STEP: usize = BUCKETS_PER_OCTAVE / 4;
// Longest time of its own bucket; all longer times are in the last bucket.
const LONGEST: u64 = (1 << OCTAVES) * 1_000 - 1;
const LAST: usize = (OCTAVES << BUCKETS_PER_OCTAVE_LOG2) - 1;

/// A log-linear histogram of times.
///
/// Buckets exist for the range of recorded times only, in steps of a quarter octave: a connection's
/// round trips span one or two octaves, and a network has many connections.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Histogram {
    /// Index of the first bucket.
    first: u32,
    /// Position of the bucket that was counted last.
    last: u32,
    counts: Vec<u32>,
}

/// Exact values that the buckets do not contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactValues {
    pub minimum: Span,
    pub maximum: Span,
    /// Sum of all times in nanoseconds.
    pub sum: u64,
}

impl Histogram {
    /// Prefetches the bucket of the next count.
    #[inline]
    pub(crate) fn fetch(&self) {
        prefetch_index::prefetch_index(&self.counts, self.last as usize);
    }

    /// Counts a time.
    #[inline]
    pub(crate) fn record(&mut self, time: Span) {
        let bucket = bucket(time);
        let place = bucket.wrapping_sub(self.first as usize);
        match self.counts.get_mut(place) {
            Some(count) => {
                *count = count.saturating_add(1);
                self.last = place as u32;
            }
            None => {
                self.widen_and_add(bucket, 1);
                self.last = bucket as u32 - self.first;
            }
        }
    }

    /// Counts a time equal to the previous one.
    #[inline]
    pub(crate) fn record_again(&mut self) {
        if let Some(count) = self.counts.get_mut(self.last as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of another histogram.
    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, count) in other.counts() {
            if count > 0 {
                self.widen_and_add(bucket, count);
            }
        }
    }

    /// Returns the time of rank [`rank`]`(q, count)`; `exact` has the exact values.
    ///
    /// Minimum and maximum are exact. The other times are spread over their buckets by rank, on two
    /// lines per bucket, such that all add up to the known sum ([`Skew`]). Mean and quantiles
    /// therefore describe one distribution. Equal times, and up to three times, are exact;
    /// otherwise the result lies in the bucket of the true quantile, so it is off by less than
    /// 1/32, or by 1 us. From 264 s on there is one bucket.
    pub(crate) fn quantile(&self, q: f64, exact: ExactValues) -> Option<Span> {
        let total: u64 = self.counts().map(|(_, count)| u64::from(count)).sum();
        let rank = rank(q, total);
        if total == 0 || rank == 1 || rank == total {
            let extreme = if rank == 1 {
                exact.minimum
            } else {
                exact.maximum
            };
            return (total > 0).then_some(extreme);
        }
        let extremes = [exact.minimum, exact.maximum].map(Span::as_nanos);
        let others = (extremes.iter()).fold(exact.sum, |sum, extreme| sum.saturating_sub(*extreme));
        let skew = Skew::of(self.between(extremes), others.into());
        // The minimum comes before all parts.
        let mut before = 1;
        for part in self.between(extremes) {
            if rank <= before + part.count {
                return Some(Span::from_nanos(skew.value(rank - before, part)));
            }
            before += part.count;
        }
        Some(exact.maximum)
    }

    /// Returns the parts without the two extremes: counts and bounds per bucket.
    fn between(&self, [minimum, maximum]: [u64; 2]) -> impl Iterator<Item = Part> {
        let extremes = [minimum, maximum].map(|extreme| bucket(Span::from_nanos(extreme)));
        self.counts().filter_map(move |(bucket, count)| {
            let counted = extremes
                .iter()
                .filter(|extreme| **extreme == bucket)
                .count();
            let count = u64::from(count).saturating_sub(counted as u64);
            let end = if bucket == LAST {
                u64::MAX
            } else {
                start(bucket + 1) - 1
            };
            (count > 0).then(|| Part {
                low: start(bucket).max(minimum),
                high: end.min(maximum),
                count,
            })
        })
    }

    /// Iterates over bucket indices and counts.
    fn counts(&self) -> impl Iterator<Item = (usize, u32)> {
        (self.first as usize..).zip(self.counts.iter().copied())
    }

    #[cold]
    #[inline(never)]
    fn widen_and_add(&mut self, bucket: usize, count: u32) {
        let step = bucket - bucket % STEP;
        let before = if self.counts.is_empty() {
            step
        } else {
            self.first as usize
        };
        let first = before.min(step);
        let end = (before + self.counts.len()).max(step + STEP);
        if end - first > self.counts.len() {
            // Exact size, since growth is rare.
            let mut counts = vec![0; end - first];
            counts[before - first..][..self.counts.len()].copy_from_slice(&self.counts);
            self.first = first as u32;
            self.last += (before - first) as u32;
            self.counts = counts;
        }
        let slot = &mut self.counts[bucket - first];
        *slot = slot.saturating_add(count);
    }
}

/// Returns the bucket of a time: its octave in microseconds and the five bits after the leading
/// one.
#[inline]
fn bucket(time: Span) -> usize {
    // In units of 1/32 us, so that the first octave has 32 buckets as well.
    let scaled = (time.as_nanos().min(LONGEST) << BUCKETS_PER_OCTAVE_LOG2) / 1_000;
    let scaled = scaled.max(1 << BUCKETS_PER_OCTAVE_LOG2);
    let octave = scaled.ilog2() - BUCKETS_PER_OCTAVE_LOG2;
    let within = (scaled >> octave) as usize & (BUCKETS_PER_OCTAVE - 1);
    ((octave as usize) << BUCKETS_PER_OCTAVE_LOG2) + within
}

/// Returns the shortest time of a bucket in nanoseconds.
fn start(index: usize) -> u64 {
    if index == 0 {
        return 0;
    }
    let octave = index >> BUCKETS_PER_OCTAVE_LOG2;
    let within = index & (BUCKETS_PER_OCTAVE - 1);
    let scaled = ((BUCKETS_PER_OCTAVE + within) as u64) << octave;
    (scaled * 1_000).div_ceil(1 << BUCKETS_PER_OCTAVE_LOG2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_spans_only_the_recorded_range() {
        let mut histogram = Histogram::default();
        for milliseconds in [600, 610, 620] {
            histogram.record(Span::from_millis(milliseconds));
        }
        assert_eq!(histogram.counts.len(), STEP);
        histogram.record(Span::from_millis(2));
        histogram.record(Span::from_millis(1300));
        // From 2 (the last quarter of 1.024 to 2.048 ms) to 1300 (the first of 1049 to 2097 ms).
        assert_eq!(histogram.counts.len(), 9 * BUCKETS_PER_OCTAVE + 2 * STEP);
    }

    #[test]
    fn the_last_bucket_contains_all_longer_times() {
        for nanoseconds in [LONGEST, LONGEST + 1, u64::MAX] {
            assert_eq!(bucket(Span::from_nanos(nanoseconds)), LAST);
        }
        assert_eq!(
            bucket(Span::from_nanos(LONGEST / 64 * 63 - 1_000)),
            LAST - 1
        );
    }

    #[test]
    fn a_bucket_starts_with_its_first_time() {
        for index in 1..=LAST {
            let first = start(index);
            assert_eq!(bucket(Span::from_nanos(first)), index);
            assert_eq!(bucket(Span::from_nanos(first - 1)), index - 1);
        }
    }

    #[test]
    fn the_result_is_independent_of_the_order_of_samples() {
        let spans = [1, 900, 30_000, 31_000, 7_000_000_000, u64::MAX, 0].map(Span::from_nanos);
        let all = |spans: &[Span]| {
            let mut histogram = Histogram::default();
            for span in spans {
                histogram.record(*span);
            }
            histogram
        };
        let mut backwards = spans;
        backwards.reverse();
        let (one, other) = (all(&spans), all(&backwards));
        let mut sum = all(&spans[3..]);
        sum.add(&all(&spans[..3]));
        let exact = ExactValues {
            minimum: Span::ZERO,
            maximum: Span::from_nanos(u64::MAX),
            sum: u64::MAX,
        };
        for q in [0.0, 0.2, 0.5, 0.8, 1.0] {
            assert_eq!(one.quantile(q, exact), other.quantile(q, exact));
            assert_eq!(one.quantile(q, exact), sum.quantile(q, exact));
        }
        let counted: u32 = sum.counts().map(|(_, count)| count).sum();
        assert_eq!(counted as usize, spans.len());
    }
}
