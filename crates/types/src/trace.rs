//! Time series for the probes that a scenario names.

use crate::Time;

/// Names one series of a [`Trace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeriesId(u32);

/// One probe's records as two columns of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The probe's name: `download.congestion_window`.
    pub name: String,
    /// Unit of `values`: `B`, `packets`, `bit/s`, `s`.
    pub unit: &'static str,
    /// When, in nanoseconds since the start; never decreasing.
    pub times_ns: Vec<u64>,
    /// What.
    pub values: Vec<f64>,
}

/// The time series of one run. A run without probes records nothing and allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    series: Vec<Series>,
}

impl Trace {
    /// Opens a series and names it.
    pub fn open(&mut self, name: impl Into<String>, unit: &'static str) -> SeriesId {
        let id = SeriesId(self.series.len() as u32);
        self.series.push(Series {
            name: name.into(),
            unit,
            ..Series::default()
        });
        id
    }

    /// Appends one record.
    pub fn record(&mut self, id: SeriesId, now: Time, value: f64) {
        let series = &mut self.series[id.0 as usize];
        series.times_ns.push(now.as_nanos());
        series.values.push(value);
    }

    /// The series so far, in the order they were opened.
    #[must_use]
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Takes the series out.
    #[must_use]
    pub fn into_series(self) -> Vec<Series> {
        self.series
    }
}
