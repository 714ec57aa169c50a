//! Probes: which quantities are recorded as time series, and when.

use bentpipe_link::Direction;
use bentpipe_tcp::Connection;
use bentpipe_types::{SeriesId, Span};

/// A kind of quantity: each with its name in scenario files and its unit, and how it is read at an instant.
/// One without is of a time, or of more than one end, and `network/probing.rs` reads it.
macro_rules! quantities {
    ($(#[$of:meta])* $type:ident of $read_from:ty {
        $(
            $(#[$doc:meta])*
            $variant:ident = $name:literal in $unit:literal $(=> |$from:ident| $read:expr)?,
        )+
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

            /// Its value now; `None` where there is none yet, and of one that is not read at an instant.
            pub(crate) fn read(self, read_from: &$read_from) -> Option<f64> {
                match self {
                    $(Self::$variant => quantities!(@read read_from $(|$from| $read)?),)+
                }
            }
        }
    };
    (@read $read_from:ident) => { None };
    (@read $read_from:ident |$from:ident| $read:expr) => {{
        let $from = $read_from;
        Some($read)
    }};
}

quantities! {
    /// A quantity of a flow.
    FlowQuantity of Connection {
        /// The sender's congestion window.
        CongestionWindow = "congestion_window" in "B" => |connection| connection.congestion_window() as f64,
        /// The sender's slow start threshold.
        SlowStartThreshold = "slow_start_threshold" in "B" => |connection| {
            // "Infinite" until the first loss: nothing to plot.
            let threshold = connection.slow_start_threshold();
            (threshold < u64::from(u32::MAX)).then_some(threshold as f64)?
        },
        /// Bytes sent and not yet acknowledged, as the sender's loss recovery counts them.
        InFlight = "in_flight" in "B" => |connection| connection.in_flight() as f64,
        /// Bits delivered in order a second.
        Goodput = "goodput" in "bit/s",
        /// Stream offset after the last byte sent for the first time.
        Sent = "sent" in "B" => |connection| connection.sent_offset() as f64,
        /// Stream offset of every retransmitted segment.
        Retransmitted = "retransmitted" in "B",
        /// Stream offset of every segment with data that the sender's host sends.
        SentSegment = "sent_segment" in "B",
        /// Stream offset of every segment with data that reaches the receiver's host.
        ReceivedSegment = "received_segment" in "B",
        /// Of every segment with data that reaches the receiver's host, the time since the sender's host last
        /// sent its first byte: whatever gateways have done with it in between.
        SegmentDelay = "segment_delay" in "s",
        /// Stream offset after the last byte acknowledged, at the sender.
        Acknowledged = "acknowledged" in "B" => |connection| connection.acknowledged_offset() as f64,
        /// Stream offset after the last byte delivered in order to the receiving application.
        Delivered = "delivered" in "B",
        /// Round-trip times that the sender has measured since the last record: their mean.
        MeasuredRtt = "measured_rtt" in "s",
        /// Smoothed round-trip time.
        SmoothedRtt = "smoothed_rtt" in "s" => |connection| connection.smoothed_rtt()?.as_secs_f64(),
        /// Mean deviation of round-trip times.
        RttDeviation = "rtt_deviation" in "s" => |connection| connection.rtt_deviation()?.as_secs_f64(),
        /// Retransmission timeout.
        RetransmissionTimeout = "retransmission_timeout" in "s" => |connection| connection.rto().as_secs_f64(),
        /// The rate at which the sender paces, where it does.
        PacingRate = "pacing_rate" in "bit/s" => |connection| connection.pacing_rate()?.bits_per_second() as f64,
        /// The window that the receiver last advertised to the sender.
        PeerWindow = "peer_window" in "B" => |connection| connection.peer_window() as f64,
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
        matches!(self, Self::Goodput | Self::MeasuredRtt)
    }

    /// Is it recorded for segments, whenever there is one?
    pub(crate) fn is_of_segments(self) -> bool {
        matches!(
            self,
            Self::Retransmitted | Self::SentSegment | Self::ReceivedSegment | Self::SegmentDelay
        )
    }
}

quantities! {
    /// A quantity of a link direction.
    LinkQuantity of Direction {
        /// Packets that wait.
        Queue = "queue" in "packets" => |direction| direction.waiting_packets() as f64,
        /// Most packets that have waited since the last record.
        QueueMax = "queue_max" in "packets",
        /// Bytes that wait.
        QueueBytes = "queue_bytes" in "B" => |direction| direction.waiting_bytes() as f64,
        /// Share of the time since the last record during which the transmitter works.
        Utilization = "utilization" in "1",
        /// Of a direction with capacity on demand, bits that the hub has granted a second.
        Granted = "granted" in "bit/s",
        /// Packets that the full queue dropped so far.
        Dropped = "dropped" in "packets" => |direction| direction.dropped() as f64,
        /// Packets that the queue has marked so far (ECN).
        Marked = "marked" in "packets" => |direction| direction.count("marked") as f64,
        /// Packets lost on the way so far.
        Lost = "lost" in "packets" => |direction| direction.lost() as f64,
        /// Acknowledgments removed from the queue so far.
        AcksRemoved = "acks_removed" in "packets" => |direction| direction.counters().removed as f64,
        /// Acknowledgments that the far end has restored so far.
        AcksRegenerated = "acks_regenerated" in "packets" => |direction| direction.counters().made as f64,
        /// Acknowledgments that the far end has held back so far, to space them out.
        AcksDelayed = "acks_delayed" in "packets" => |direction| direction.count("acks_delayed") as f64,
        /// Acknowledgments that the far end holds back.
        AcksHeld = "acks_held" in "packets" => |direction| direction.held_back() as f64,
    }
}

impl LinkQuantity {
    /// Is each value an average, or the most, since the last? Such a quantity has no value at an instant:
    /// it is always sampled.
    #[must_use]
    pub fn is_average(self) -> bool {
        matches!(self, Self::Utilization | Self::Granted | Self::QueueMax)
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
    /// As often as the run's length allows: every `finest` at first. After `most` times the interval doubles, and of what was
    /// recorded each two become one, as if it had been that long from the start.
    AsItLasts {
        /// How often at first.
        finest: Span,
        /// How often at most in all, an even number.
        most: u32,
    },
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
    /// For means, how many samples there were at the last look, and all of them together.
    pub(crate) until: (u64, Span),
}
