//! Probes: which quantities are recorded as time series, and when.

use bentpipe_types::{SeriesId, Span};

/// A quantity of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowQuantity {
    /// The sender's congestion window.
    CongestionWindow,
    /// The sender's slow start threshold.
    SlowStartThreshold,
    /// Bytes sent and not yet acknowledged, as the sender's loss recovery sees it.
    InFlight,
    /// Stream offset after the last byte sent for the first time.
    Sent,
    /// Stream offset of every retransmitted segment.
    Retransmitted,
    /// Stream offset after the last byte acknowledged.
    Acknowledged,
    /// Stream offset after the last byte delivered in order to the receiving application.
    Delivered,
    /// Rate at which bytes are delivered.
    Goodput,
    /// Smoothed round-trip time.
    SmoothedRtt,
    /// Mean deviation of round-trip times.
    RttDeviation,
    /// Retransmission timeout.
    RetransmissionTimeout,
    /// The rate at which the sender paces.
    PacingRate,
    /// The window that the receiver last advertised to the sender.
    PeerWindow,
    /// The time that its application measured last: an answer's, a page's, a packet's delay.
    ResponseTime,
}

impl FlowQuantity {
    /// Every quantity, with its name in scenario files and its unit.
    pub const ALL: [(Self, &'static str, &'static str); 14] = [
        (Self::CongestionWindow, "congestion_window", "B"),
        (Self::SlowStartThreshold, "slow_start_threshold", "B"),
        (Self::InFlight, "in_flight", "B"),
        (Self::Sent, "sent", "B"),
        (Self::Retransmitted, "retransmitted", "B"),
        (Self::Acknowledged, "acknowledged", "B"),
        (Self::Delivered, "delivered", "B"),
        (Self::Goodput, "goodput", "bit/s"),
        (Self::SmoothedRtt, "smoothed_rtt", "s"),
        (Self::RttDeviation, "rtt_deviation", "s"),
        (Self::RetransmissionTimeout, "retransmission_timeout", "s"),
        (Self::PacingRate, "pacing_rate", "bit/s"),
        (Self::PeerWindow, "peer_window", "B"),
        (Self::ResponseTime, "response_time", "s"),
    ];

    /// Is it read at the receiving host?
    pub(crate) fn is_receivers(self) -> bool {
        matches!(self, Self::Delivered | Self::Goodput)
    }

    /// A rate has no value at an instant: it is always sampled.
    pub(crate) fn is_rate(self) -> bool {
        self == Self::Goodput
    }
}

/// A quantity of a link direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkQuantity {
    /// Packets waiting.
    Queue,
    /// Most packets that have waited since the last sample.
    QueueMax,
    /// Bytes waiting.
    QueueBytes,
    /// Share of the time since the last sample during which it transmitted.
    Utilization,
    /// Packets dropped by the queue since the start.
    Dropped,
    /// Packets lost to errors since the start.
    Lost,
    /// Acknowledgments removed from the queue since the start.
    AcksRemoved,
    /// Acknowledgments that the far end has made since the start.
    AcksRegenerated,
    /// Packets that the far end has held back since the start.
    AcksDelayed,
    /// Packets that the far end holds back now.
    AcksHeld,
}

impl LinkQuantity {
    /// Every quantity, with its name in scenario files and its unit.
    pub const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Queue, "queue", "packets"),
        (Self::QueueMax, "queue_max", "packets"),
        (Self::QueueBytes, "queue_bytes", "B"),
        (Self::Utilization, "utilization", "1"),
        (Self::Dropped, "dropped", "packets"),
        (Self::Lost, "lost", "packets"),
        (Self::AcksRemoved, "acks_removed", "packets"),
        (Self::AcksRegenerated, "acks_regenerated", "packets"),
        (Self::AcksDelayed, "acks_delayed", "packets"),
        (Self::AcksHeld, "acks_held", "packets"),
    ];

    /// A rate, or a maximum over some time, has no value at an instant: it is always sampled.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Self::Utilization | Self::QueueMax)
    }
}

/// What a probe looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeTarget {
    /// A flow, by its index.
    Flow(usize, FlowQuantity),
    /// The goodput of several flows together, from this index on so many.
    Goodput(usize, usize),
    /// A link direction, by its index.
    Direction(usize, LinkQuantity),
    /// A node, by its index, and one of its gauges.
    Node(usize, usize),
}

/// A named series of one quantity.
#[derive(Clone, Debug)]
pub struct Probe {
    /// `download.congestion_window`, `satellite.forward.queue`.
    pub name: String,
    /// What it looks at.
    pub target: ProbeTarget,
}

/// When probes record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// Every so often.
    Interval(Span),
    /// At every change; rates every so often.
    EveryChange {
        /// How often rates are sampled.
        rates: Span,
    },
}

/// A probe at work.
#[derive(Clone, Debug)]
pub(crate) struct ActiveProbe {
    pub(crate) target: ProbeTarget,
    pub(crate) series: SeriesId,
    /// The last value recorded; for rates, the last total.
    pub(crate) last: Option<f64>,
}
