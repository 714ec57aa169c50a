//! How often what was measured.

use serde::{Deserialize, Serialize};

use crate::Span;

// 1 us to 2^28 us (268 s), 32 buckets an octave: within 1.6% of the true value.
const OCTAVES: usize = 28;
const BUCKETS_PER_OCTAVE_LOG2: u32 = 5;
const BUCKETS_PER_OCTAVE: usize = 1 << BUCKETS_PER_OCTAVE_LOG2;
// It grows by so many.
const STEP: usize = BUCKETS_PER_OCTAVE / 4;
// In the last bucket, with all that is longer.
const LONGEST: u64 = (1 << OCTAVES) * 1_000 - 1;

/// A log-linear histogram of times.
///
/// It has buckets for the times that it has seen and those between, a quarter of an octave more or less: the
/// round trips of a connection are in one octave or two, those of one that says little in less, and a network
/// has many connections.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Histogram {
    /// The number of the first bucket.
    first: u32,
    /// The place of the bucket that was counted in last.
    last: u32,
    counts: Vec<u32>,
}

impl Histogram {
    /// Asks for what the next count needs.
    #[inline]
    pub(crate) fn fetch(&self) {
        prefetch_index::prefetch_index(&self.counts, self.last as usize);
    }

    /// Counts one.
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

    /// Counts one that is as long as the last one.
    #[inline]
    pub(crate) fn record_again(&mut self) {
        if let Some(count) = self.counts.get_mut(self.last as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Takes in another's counts.
    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, count) in other.counts() {
            if count > 0 {
                self.widen_and_add(bucket, count);
            }
        }
    }

    /// The time that a share `q` of all do not exceed, within 1.6%.
    pub(crate) fn quantile(&self, q: f64) -> Option<Span> {
        let total: u64 = self.counts().map(|(_, count)| u64::from(count)).sum();
        let rank = ((total as f64 * q) as u64).min(total.saturating_sub(1));
        let mut seen = 0;
        self.counts().find_map(|(bucket, count)| {
            seen += u64::from(count);
            (seen > rank).then(|| middle(bucket))
        })
    }

    /// The buckets by number, and how often each.
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
            // Exactly so many: it seldom happens again.
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

/// The bucket of a time: its octave in microseconds, and the five bits below the leading one.
#[inline]
fn bucket(time: Span) -> usize {
    // In 1/32 us, so that the first octave too has its 32 buckets.
    let scaled = (time.as_nanos().min(LONGEST) << BUCKETS_PER_OCTAVE_LOG2) / 1_000;
    let scaled = scaled.max(1 << BUCKETS_PER_OCTAVE_LOG2);
    let octave = scaled.ilog2() - BUCKETS_PER_OCTAVE_LOG2;
    let within = (scaled >> octave) as usize & (BUCKETS_PER_OCTAVE - 1);
    ((octave as usize) << BUCKETS_PER_OCTAVE_LOG2) + within
}

/// The middle of a bucket.
fn middle(index: usize) -> Span {
    let octave = index >> BUCKETS_PER_OCTAVE_LOG2;
    let within = index & (BUCKETS_PER_OCTAVE - 1);
    // Twice the value in 1/32 us, to keep the half.
    let twice = (2 * (BUCKETS_PER_OCTAVE as u64 + within as u64) + 1) << octave;
    Span::from_nanos((twice * 1_000) >> (BUCKETS_PER_OCTAVE_LOG2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_wide_as_what_it_has_seen() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for milliseconds in [600, 610, 620] {
            histogram.record(Span::from_millis(milliseconds));
        }
        assert_eq!(histogram.counts.len(), STEP);
        histogram.record(Span::from_millis(2));
        histogram.record(Span::from_millis(1300));
        // From 2 (in the last quarter from 1.024 to 2.048 ms) to 1300 (in the first from 1049 to 2097 ms).
        assert_eq!(histogram.counts.len(), 9 * BUCKETS_PER_OCTAVE + 2 * STEP);
    }

    #[test]
    fn the_last_bucket_has_all_that_is_longer() {
        let last = (OCTAVES << BUCKETS_PER_OCTAVE_LOG2) - 1;
        for nanoseconds in [LONGEST, LONGEST + 1, u64::MAX] {
            assert_eq!(bucket(Span::from_nanos(nanoseconds)), last);
        }
        assert_eq!(
            bucket(Span::from_nanos(LONGEST / 64 * 63 - 1_000)),
            last - 1
        );
    }

    #[test]
    fn the_order_of_samples_makes_no_difference() {
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
        for q in [0.0, 0.2, 0.5, 0.8, 1.0] {
            assert_eq!(one.quantile(q), other.quantile(q));
            assert_eq!(one.quantile(q), sum.quantile(q));
        }
        let counted: u32 = sum.counts().map(|(_, count)| count).sum();
        assert_eq!(counted as usize, spans.len());
    }
}
