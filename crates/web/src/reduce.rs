//! Reduces series to the resolution of a plot.

use bentpipe_scenario::RecordedSeries;

/// Numbers per sample of a reduced series: time in seconds, minimum, maximum.
pub const NUMBERS: usize = 3;

/// Appends the samples of a series within a range of time: for each column of pixels its time in
/// seconds, and the minimum and maximum there. A range with at most two samples per column is
/// appended as it is, so that zooming in shows every sample.
///
/// The sample before the range and the one after it are included, so that lines reach the edges of
/// the plot. The time of a column is that of its first sample.
pub fn reduce(series: &RecordedSeries, range_ns: [u64; 2], columns: usize, to: &mut Vec<f64>) {
    let [from, until] = range_ns;
    let times = &series.times_ns;
    let first = times.partition_point(|at| *at < from).saturating_sub(1);
    let last = (times.partition_point(|at| *at <= until) + 1).min(times.len());
    if first >= last {
        return;
    }
    let mut push = |at: u64, low: f64, high: f64| to.extend([at as f64 / 1e9, low, high]);
    let columns = columns.max(1);
    if last - first <= 2 * columns {
        let samples = times.iter().zip(&series.values);
        for (at, value) in samples.take(last).skip(first) {
            push(*at, *value, *value);
        }
        return;
    }
    let width = ((until - from) / columns as u64).max(1);
    let column_of = |at: u64| (at.saturating_sub(from)) / width;
    let mut index = first;
    while index < last {
        let column = column_of(times[index]);
        let start = index;
        let (mut low, mut high) = (series.values[index], series.values[index]);
        while index < last && column_of(times[index]) == column {
            low = low.min(series.values[index]);
            high = high.max(series.values[index]);
            index += 1;
        }
        push(times[start], low, high);
    }
}

/// Appends the averages of a series within a range of time: for each column its start in seconds,
/// and twice the average over it. Each value of the series is an average since the previous one, as
/// of a rate; a column without a sample has none.
pub fn average(series: &RecordedSeries, range_ns: [u64; 2], columns: usize, to: &mut Vec<f64>) {
    let [from, until] = range_ns;
    let times = &series.times_ns;
    let width = ((until - from) / columns.max(1) as u64).max(1);
    let mut index = times.partition_point(|at| *at <= from);
    while index < times.len() && times[index] <= until {
        // A sample is in the column in which its interval ends.
        let column = (times[index] - from - 1) / width;
        let (mut sum, mut length) = (0.0, 0.0);
        while index < times.len() && (times[index] - from - 1) / width == column {
            let since = index.checked_sub(1).map_or(0, |before| times[before]);
            let lasted = (times[index] - since) as f64;
            sum += series.values[index] * lasted;
            length += lasted;
            index += 1;
        }
        let mean = if length > 0.0 { sum / length } else { 0.0 };
        to.extend([(from + column * width) as f64 / 1e9, mean, mean]);
    }
}

/// Returns the last value at or before an instant.
#[must_use]
pub fn value_at(series: &RecordedSeries, at_ns: u64) -> Option<f64> {
    let after = series.times_ns.partition_point(|at| *at <= at_ns);
    series.values.get(after.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(values: Vec<f64>) -> RecordedSeries {
        RecordedSeries {
            times_ns: (0..values.len() as u64).map(|n| n * 1_000).collect(),
            values,
            ..RecordedSeries::default()
        }
    }

    #[test]
    fn few_samples_are_returned_as_they_are() {
        let mut reduced = Vec::new();
        reduce(&series(vec![1.0, 5.0, 2.0]), [0, 2_000], 2, &mut reduced);
        assert_eq!(reduced, [0.0, 1.0, 1.0, 1e-6, 5.0, 5.0, 2e-6, 2.0, 2.0]);
    }

    #[test]
    fn the_value_at_an_instant_is_the_last_one() {
        let series = series(vec![1.0, 5.0]);
        assert_eq!(value_at(&series, 999), Some(1.0));
        assert_eq!(value_at(&series, 1_000), Some(5.0));
        assert_eq!(value_at(&RecordedSeries::default(), 5), None);
    }

    #[test]
    fn averages_weigh_values_by_their_intervals() {
        let series = RecordedSeries {
            times_ns: vec![10, 40, 100, 200],
            values: vec![1.0, 5.0, 2.0, 7.0],
            ..RecordedSeries::default()
        };
        let mut averages = Vec::new();
        average(&series, [0, 200], 2, &mut averages);
        let first = (10.0 * 1.0 + 30.0 * 5.0 + 60.0 * 2.0) / 100.0;
        assert_eq!(averages, [0.0, first, first, 1e-7, 7.0, 7.0]);
    }

    proptest! {
        #[test]
        fn extremes_are_kept_and_columns_bound_the_length(
            values in prop::collection::vec(-1e6..1e6f64, 1..3_000),
            columns in 1..200usize,
            from in 0..1_500u64,
            length in 1..3_000u64,
        ) {
            let series = series(values);
            let range = [from * 1_000, (from + length) * 1_000];
            let mut reduced = Vec::new();
            reduce(&series, range, columns, &mut reduced);
            let samples: Vec<&[f64]> = reduced.chunks(NUMBERS).collect();
            prop_assert!(samples.len() <= 2 * columns + 2);
            prop_assert!(samples.windows(2).all(|pair| pair[0][0] < pair[1][0]));
            let inside = |at: &u64| range[0] <= *at && *at <= range[1];
            let within = || {
                let pairs = series.times_ns.iter().zip(&series.values);
                pairs.filter(|(at, _)| inside(at)).map(|(_, value)| *value)
            };
            if let Some(highest) = within().reduce(f64::max) {
                prop_assert!(samples.iter().any(|sample| sample[2] >= highest));
                let lowest = within().fold(f64::MAX, f64::min);
                prop_assert!(samples.iter().any(|sample| sample[1] <= lowest));
            }
        }
    }
}
