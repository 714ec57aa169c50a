//! Time series of probes.

use crate::{Span, Time};

/// Identifies a series of a [`Trace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeriesId(u32);

/// The records of one probe, as two columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the probe: `download.congestion_window`.
    pub name: String,
    /// Unit of `values`: `B`, `packets`, `bit/s`, `s`.
    pub unit: &'static str,
    /// Times in nanoseconds since the start; never decreasing.
    pub times_ns: Vec<u64>,
    /// Values.
    pub values: Vec<f64>,
}

/// The time series of one run. A run without probes allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    series: Vec<Series>,
}

impl Trace {
    /// Opens a series.
    pub fn open(&mut self, name: impl Into<String>, unit: &'static str) -> SeriesId {
        let id = SeriesId(self.series.len() as u32);
        self.series.push(Series {
            name: name.into(),
            unit,
            ..Series::default()
        });
        id
    }

    /// Appends a record.
    pub fn record(&mut self, id: SeriesId, now: Time, value: f64) {
        let series = &mut self.series[id.0 as usize];
        series.times_ns.push(now.as_nanos());
        series.values.push(value);
    }

    /// Reduces a series to its records at multiples of `width`. `put_together` combines each with
    /// the last record before it that is removed, if any.
    pub fn coarsen(
        &mut self,
        id: SeriesId,
        width: Span,
        put_together: impl Fn(Option<f64>, f64) -> f64,
    ) {
        let series = &mut self.series[id.0 as usize];
        let (mut kept, mut between) = (0, None);
        for index in 0..series.values.len() {
            let (at, value) = (series.times_ns[index], series.values[index]);
            if at.is_multiple_of(width.as_nanos()) {
                series.times_ns[kept] = at;
                series.values[kept] = put_together(between.take(), value);
                kept += 1;
            } else {
                between = Some(value);
            }
        }
        series.times_ns.truncate(kept);
        series.values.truncate(kept);
    }

    /// Returns the series in the order in which they were opened.
    #[must_use]
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Returns the number of records of all series.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.series.iter().map(|s| s.times_ns.len() as u64).sum()
    }

    /// Returns the records since the previous call and removes them; the series continue.
    #[must_use]
    pub fn drain(&mut self) -> Vec<Series> {
        let drained = |series: &mut Series| Series {
            name: series.name.clone(),
            unit: series.unit,
            times_ns: std::mem::take(&mut series.times_ns),
            values: std::mem::take(&mut series.values),
        };
        self.series.iter_mut().map(drained).collect()
    }

    /// Returns all series.
    #[must_use]
    pub fn into_series(self) -> Vec<Series> {
        self.series
    }
}
