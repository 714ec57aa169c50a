//! Probes: which quantities are recorded as time series, and when.

use bentpipe_types::{SeriesId, Span};

/// A kind of quantity: each with its name in scenario files and its unit. All that is known of one
/// stands here, but for how it is read.
macro_rules! quantities {
    ($(#[$of:meta])* $type:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal in $unit:literal,)+
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// Every quantity.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in scenario files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The unit of its values, as [`Trace`](bentpipe_types::Trace) has it; "1" for a share.
            #[must_use]
            pub fn unit(self) -> &'static str {
                match self {
                    $(Self::$variant => $unit,)+
                }
            }
        }
    };
}

quantities! {
    /// A quantity of a flow.
    FlowQuantity {
        /// The sender's congestion window.
        CongestionWindow = "congestion_window" in "B",
        /// The sender's slow start threshold.
        SlowStartThreshold = "slow_start_threshold" in "B",
        /// Bytes sent and not yet acknowledged, as the sender's loss recovery counts them.
        InFlight = "in_flight" in "B",
        /// Bits delivered in order a second.
        Goodput = "goodput" in "bit/s",
        /// Stream offset after the last byte sent for the first time.
        Sent = "sent" in "B",
        /// Stream offset of every retransmitted segment.
        Retransmitted = "retransmitted" in "B",
        /// Stream offset after the last byte acknowledged, at the sender.
        Acknowledged = "acknowledged" in "B",
        /// Stream offset after the last byte delivered in order to the receiving application.
        Delivered = "delivered" in "B",
        /// Smoothed round-trip time.
        SmoothedRtt = "smoothed_rtt" in "s",
        /// Mean deviation of round-trip times.
        RttDeviation = "rtt_deviation" in "s",
        /// Retransmission timeout.
        RetransmissionTimeout = "retransmission_timeout" in "s",
        /// The rate at which the sender paces, where it does.
        PacingRate = "pacing_rate" in "bit/s",
        /// The window that the receiver last advertised to the sender.
        PeerWindow = "peer_window" in "B",
        /// The time that its application measured last: an answer's, a page's, a packet's delay.
        ResponseTime = "response_time" in "s",
    }
}

impl FlowQuantity {
    /// Is it read at the receiving host?
    pub(crate) fn is_receivers(self) -> bool {
        matches!(self, Self::Delivered | Self::Goodput)
    }

    /// Is each value an average since the last? Such a quantity has no value at an instant: it is always
    /// sampled.
    #[must_use]
    pub fn is_average(self) -> bool {
        self == Self::Goodput
    }
}

quantities! {
    /// A quantity of a link direction.
    LinkQuantity {
        /// Packets that wait.
        Queue = "queue" in "packets",
        /// Most packets that have waited since the last record.
        QueueMax = "queue_max" in "packets",
        /// Bytes that wait.
        QueueBytes = "queue_bytes" in "B",
        /// Share of the time since the last record during which the transmitter works.
        Utilization = "utilization" in "1",
        /// Packets that the full queue dropped so far.
        Dropped = "dropped" in "packets",
        /// Packets lost to errors so far.
        Lost = "lost" in "packets",
        /// Acknowledgments removed from the queue so far.
        AcksRemoved = "acks_removed" in "packets",
        /// Acknowledgments that the far end has restored so far.
        AcksRegenerated = "acks_regenerated" in "packets",
        /// Acknowledgments that the far end has held back so far, to space them out.
        AcksDelayed = "acks_delayed" in "packets",
        /// Acknowledgments that the far end holds back.
        AcksHeld = "acks_held" in "packets",
    }
}

impl LinkQuantity {
    /// Is each value an average, or the most, since the last? Such a quantity has no value at an instant:
    /// it is always sampled.
    #[must_use]
    pub fn is_average(self) -> bool {
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
