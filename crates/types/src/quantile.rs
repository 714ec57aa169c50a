//! Ranks of quantiles, and values estimated from buckets with known sum.

/// Returns the rank of the quantile `share` among `count` sorted values, counted from 1: the
/// smallest value such that at least a share of `share` is not larger. Share 0 gives rank 1, share
/// 1 gives `count`.
///
/// ```
/// assert_eq!(bentpipe_types::rank(0.95, 100), 95);
/// assert_eq!(bentpipe_types::rank(0.5, 3), 2);
/// ```
#[must_use]
pub fn rank(share: f64, count: u64) -> u64 {
    // 0.07 x 100 is slightly above 7 in floating point; the correction avoids the next rank.
    let place = share * count as f64 * (1.0 - 4.0 * f64::EPSILON);
    (place.ceil() as u64).clamp(1, count.max(1))
}

/// A number of values between two inclusive bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub low: u64,
    pub high: u64,
    pub count: u64,
}

/// Distribution of values between bucket bounds: 0 if all are at the lower bound, 1 if all are at
/// the upper bound, 1/2 if they are uniform.
///
/// Sorted values follow two lines that meet after a share of 1 - `Skew` of the values, at `Skew` of
/// the bucket's width. Their mean is therefore also at `Skew` of the width.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Skew(f64);

impl Skew {
    /// Computes the skew for which the values of all parts add up to `sum`.
    pub(crate) fn of(parts: impl Iterator<Item = Part>, sum: u128) -> Self {
        let (mut low, mut width) = (0, 0);
        for part in parts {
            low += u128::from(part.low) * u128::from(part.count);
            width += u128::from(part.high - part.low) * u128::from(part.count);
        }
        if width == 0 {
            return Self(0.5);
        }
        Self((sum.saturating_sub(low) as f64 / width as f64).min(1.0))
    }

    /// Returns the value with this rank (from 1) in a part: the mean of the values it stands for.
    pub(crate) fn value(self, rank: u64, part: Part) -> u64 {
        let count = part.count as f64;
        let share = self.mean((rank - 1) as f64 / count, rank as f64 / count);
        let way = (part.high - part.low) as f64 * share;
        part.high.min(part.low.saturating_add(way.round() as u64))
    }

    /// Returns the mean position of the values between two shares.
    fn mean(self, from: f64, to: f64) -> f64 {
        let Self(skew) = self;
        let knee = 1.0 - skew;
        let lower = |share: f64| share * skew / knee;
        let upper = |share: f64| skew + (share - knee) * knee / skew;
        if to <= knee {
            lower(f64::midpoint(from, to))
        } else if from >= knee {
            upper(f64::midpoint(from, to))
        } else {
            let below = (knee - from) * lower(f64::midpoint(from, knee));
            let above = (to - knee) * upper(f64::midpoint(knee, to));
            (below + above) / (to - from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_of_a_share_is_between_one_and_the_count() {
        for percent in 1..=100 {
            assert_eq!(
                rank(f64::from(percent) / 100.0, 100),
                u64::from(percent as u32)
            );
        }
        assert_eq!(rank(0.0, 7), 1);
        assert_eq!(rank(1.0, 7), 7);
        assert_eq!(rank(0.5, 7), 4);
        assert_eq!(rank(0.5, 8), 4);
        assert_eq!(rank(0.501, 1000), 501);
        assert_eq!(rank(f64::NAN, 5), 1);
        assert_eq!(rank(0.5, 0), 1);
    }

    #[test]
    fn interpolated_values_add_up_to_the_recorded_sum() {
        for (count, sum) in [(1, 70), (2, 2), (7, 333), (50, 2_500), (50, 4_999), (50, 0)] {
            let part = Part {
                low: 0,
                high: 100_000,
                count,
            };
            let sum = sum * 1_000;
            let skew = Skew::of([part].into_iter(), sum);
            let values: Vec<u64> = (1..=count).map(|rank| skew.value(rank, part)).collect();
            let told: u64 = values.iter().sum();
            assert!(
                u128::from(told).abs_diff(sum) <= u128::from(count),
                "{values:?}"
            );
            assert!(values.is_sorted(), "{values:?}");
        }
    }

    #[test]
    fn quantiles_of_an_even_bucket_are_evenly_spaced() {
        let part = Part {
            low: 1_000,
            high: 2_000,
            count: 10,
        };
        let skew = Skew::of([part].into_iter(), 15_000);
        assert_eq!(skew, Skew(0.5));
        assert_eq!(
            [1, 5, 10].map(|rank| skew.value(rank, part)),
            [1_050, 1_450, 1_950]
        );
    }
}
