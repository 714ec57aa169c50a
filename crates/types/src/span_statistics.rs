//! How long something took, many times over.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;
use crate::histogram::Histogram;

/// How lengths of time are distributed: exact extremes and mean, and quantiles from a
/// log-linear histogram.
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
    /// Asks for what the next sample needs.
    #[inline]
    pub fn fetch(&self) {
        self.histogram.fetch();
    }

    /// Counts one sample.
    #[inline]
    pub fn record(&mut self, span: Span) {
        if span == self.last && self.count > 0 {
            // Most often, round trips are as long as the one before.
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

    /// Takes in another's samples.
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

    /// Samples taken.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All samples together.
    #[must_use]
    pub fn sum(&self) -> Span {
        Span::from_nanos(self.sum)
    }

    /// The shortest.
    #[must_use]
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(self.minimum)
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.maximum)
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(self.count).map(Span::from_nanos)
    }

    /// The sample that 95 of 100 do not exceed, within 1.6%.
    #[must_use]
    pub fn p95(&self) -> Option<Span> {
        self.quantile(0.95)
    }

    /// The sample that a share `q` of all do not exceed, within 1.6%.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let middle = self.histogram.quantile(q)?;
        Some(middle.clamp(self.minimum, self.maximum))
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
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut statistics = SpanStatistics::default();
        for milliseconds in 1..=1000 {
            statistics.record(Span::from_millis(milliseconds));
        }
        assert_eq!(statistics.min(), Some(Span::from_millis(1)));
        assert_eq!(statistics.max(), Some(Span::from_millis(1000)));
        assert_eq!(statistics.mean(), Some(Span::from_micros(500_500)));
        let p95 = statistics.p95().unwrap().as_millis_f64();
        assert!((p95 / 950.0 - 1.0).abs() < 0.02, "{p95}");
    }

    #[test]
    fn extremes_stay_inside_the_histogram() {
        let mut statistics = SpanStatistics::default();
        assert_eq!(statistics.p95(), None);
        statistics.record(Span::ZERO);
        statistics.record(Span::from_nanos(u64::MAX >> 6));
        statistics.record(Span::from_nanos(u64::MAX));
        assert!(statistics.quantile(0.0).is_some());
        assert!(statistics.quantile(1.0).is_some());
    }

    #[test]
    fn a_single_value_is_its_own_quantile() {
        let mut statistics = SpanStatistics::default();
        statistics.record(Span::from_millis(600));
        assert_eq!(statistics.p95(), Some(Span::from_millis(600)));
    }
}
