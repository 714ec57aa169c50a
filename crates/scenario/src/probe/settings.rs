//! The series to record, with every default filled in.

use bentpipe_sim::{FlowQuantity, LinkQuantity};
use bentpipe_types::Span;

use crate::link::settings::Way;
use crate::orbit::path::PathQuantity;
use crate::quantity::time::Interval;

/// Series to record over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Probes {
    /// The series, each once, in the order of the file.
    pub series: Vec<Probe>,
    /// Recording interval.
    pub interval: Interval,
    /// Recording interval of averages: `interval`, if it is a length of time.
    pub averages_every: Span,
}

/// A series to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Name: `download-3.goodput`.
    pub name: String,
    /// Quantity that is recorded.
    pub of: Series,
}

/// Subject and quantity of a series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Series {
    /// Index of a flow, and its quantity.
    Flow(usize, FlowQuantity),
    /// Index of a link, its direction, and its quantity.
    Link(usize, Way, LinkQuantity),
    /// Index of a link with a path over satellites, and the path's quantity.
    Path(usize, PathQuantity),
    /// A gateway or a host: the index of its node, the index of its gauge, and the gauge's unit.
    Node(usize, usize, &'static str),
}

impl Series {
    /// Returns the unit as in a [`Trace`](bentpipe_types::Trace); "1" for a share.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Flow(_, series) => series.unit(),
            Self::Link(_, _, series) => series.unit(),
            Self::Path(_, series) => series.unit(),
            Self::Node(_, _, unit) => unit,
        }
    }

    /// Whether it is sampled at an interval even if every change is recorded: an average or a
    /// maximum since the last sample, which is undefined at an instant, or a quantity of a path,
    /// which changes all the time.
    #[must_use]
    pub fn is_average(self) -> bool {
        match self {
            Self::Flow(_, series) => series.is_average(),
            Self::Link(_, _, series) => series.is_average(),
            Self::Path(..) => true,
            Self::Node(..) => false,
        }
    }
}
