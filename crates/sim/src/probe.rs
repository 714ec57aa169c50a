//! Probes: the quantities recorded as time series, and their sampling.

use bentpipe_host::TransportState;
use bentpipe_link::Direction;
use bentpipe_tcp::Connection;
use bentpipe_types::{SeriesId, Span, Time};

/// Declares quantities with name, unit, and how they are read at an instant. Quantities without a
/// reader concern an interval or several ends, and are computed in `network/probing.rs`.
macro_rules! quantities {
    ($(#[$of:meta])* $type:ident of $read_from:ty {
        $(
            $(#[doc = $doc:literal])+
            $variant:ident = $name:literal in $unit:literal $(=> |$from:ident| $read:expr)?,
        )+
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $type {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $type {
            /// All quantities.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in scenario files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the unit, as in [`Trace`](bentpipe_types::Trace); "1" for a share.
            #[must_use]
            pub fn unit(self) -> &'static str {
                match self {
                    $(Self::$variant => $unit,)+
                }
            }

            /// Returns the meaning, in a sentence or two: the documentation of the variant.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }

            /// Returns the current value, or `None` if there is none or the quantity is not read at
            /// an instant.
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
            // Infinite until the first loss, so there is nothing to plot.
            let threshold = connection.slow_start_threshold();
            (threshold < u64::from(u32::MAX)).then_some(threshold as f64)?
        },
        /// Bytes sent and not yet acknowledged, as the sender's loss recovery counts them.
        InFlight = "in_flight" in "B" => |connection| connection.in_flight() as f64,
        /// Rate of delivery in order to the receiving application, since the last sample.
        Goodput = "goodput" in "bit/s",
        /// Stream offset after the last byte sent for the first time.
        Sent = "sent" in "B" => |connection| connection.sent_offset() as f64,
        /// Stream offset of every retransmitted segment.
        Retransmitted = "retransmitted" in "B",
        /// Stream offset of every segment with data that the sender's host sends.
        SentSegment = "sent_segment" in "B",
        /// Stream offset of every segment with data that reaches the receiver's host.
        ReceivedSegment = "received_segment" in "B",
        /// Delay of every segment with data that reaches the receiver's host: the time since the
        /// sender's host last sent its first byte, gateways included.
        SegmentDelay = "segment_delay" in "s",
        /// Stream offset after the last byte acknowledged, at the sender.
        Acknowledged = "acknowledged" in "B" => |connection| connection.acknowledged_offset() as f64,
        /// Stream offset after the last byte delivered in order to the receiving application.
        Delivered = "delivered" in "B",
        /// Bytes of the stream that reached the receiver, in order or not, each counted once.
        Received = "received" in "B",
        /// Mean of the round-trip times that the sender has measured since the last sample.
        MeasuredRtt = "measured_rtt" in "s",
        /// Smoothed round-trip time.
        SmoothedRtt = "smoothed_rtt" in "s" => |connection| connection.smoothed_rtt()?.as_secs_f64(),
        /// Mean deviation of round-trip times.
        RttDeviation = "rtt_deviation" in "s" => |connection| connection.rtt_deviation()?.as_secs_f64(),
        /// Retransmission timeout.
        RetransmissionTimeout = "retransmission_timeout" in "s" => |connection| connection.rto().as_secs_f64(),
        /// Pacing rate of the sender, if it paces.
        PacingRate = "pacing_rate" in "bit/s" => |connection| connection.pacing_rate()?.bits_per_second() as f64,
        /// Window that the receiver last advertised to the sender.
        PeerWindow = "peer_window" in "B" => |connection| connection.peer_window() as f64,
        /// The limit of the sender: 0 nothing to send, 1 congestion window in slow
        /// start, 2 congestion window, 3 receive window, 4 send buffer, 5 application, 6 pacing, 7
        /// loss recovery.
        LimitedBy = "limited_by" in "code" => |connection| f64::from(connection.statistics().limited.current() as u8),
        /// Time that the application last measured: of a response, a page, or a packet's delay.
        ResponseTime = "response_time" in "s",
    }
}

impl FlowQuantity {
    /// Returns its value for a transport protocol over datagrams, or `None` if it has none there.
    pub(crate) fn of_transport(self, state: &TransportState) -> Option<f64> {
        match self {
            Self::CongestionWindow => Some(state.congestion_window as f64),
            Self::SlowStartThreshold => state.slow_start_threshold.map(|bytes| bytes as f64),
            Self::InFlight => Some(state.in_flight as f64),
            Self::SmoothedRtt => state.smoothed_rtt.map(Span::as_secs_f64),
            Self::PacingRate => state.pacing_rate.map(|rate| rate as f64),
            Self::LimitedBy => Some(f64::from(state.limit as u8)),
            _ => None,
        }
    }

    /// Whether it is read at the receiving host.
    pub(crate) fn is_receivers(self) -> bool {
        matches!(self, Self::Delivered | Self::Received | Self::Goodput)
    }

    /// Whether each value is an average since the previous one. Such a quantity has no value at an
    /// instant and is always sampled.
    #[must_use]
    pub fn is_average(self) -> bool {
        matches!(self, Self::Goodput | Self::MeasuredRtt)
    }

    /// Whether it is recorded per segment.
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
        /// Packets waiting.
        Queue = "queue" in "packets" => |direction| direction.waiting_packets() as f64,
        /// Maximum number of packets waiting since the last sample.
        QueueMax = "queue_max" in "packets",
        /// Bytes waiting.
        QueueBytes = "queue_bytes" in "B" => |direction| direction.waiting_bytes() as f64,
        /// Share of the time since the last sample during which the transmitter was busy, 0 to 1.
        Utilization = "utilization" in "1",
        /// Rate granted by the hub, with capacity on demand.
        Granted = "granted" in "bit/s",
        /// Packets dropped at the queue so far.
        Dropped = "dropped" in "packets" => |direction| direction.dropped() as f64,
        /// Packets that the queue has marked so far (ECN).
        Marked = "marked" in "packets" => |direction| direction.count("marked") as f64,
        /// Packets lost to errors so far.
        Lost = "lost" in "packets" => |direction| direction.lost() as f64,
        /// Acknowledgments removed from the queue so far.
        AcksRemoved = "acks_removed" in "packets" => |direction| direction.counters().removed as f64,
        /// Acknowledgments that the far end has restored so far.
        AcksRegenerated = "acks_regenerated" in "packets" => |direction| direction.counters().made as f64,
        /// Acknowledgments that the far end has held back so far, to space them out.
        AcksDelayed = "acks_delayed" in "packets" => |direction| direction.count("acks_delayed") as f64,
        /// Acknowledgments that the far end holds back now.
        AcksHeld = "acks_held" in "packets" => |direction| direction.held_back() as f64,
    }
}

impl LinkQuantity {
    /// Whether each value is an average or maximum since the previous one. Such a quantity has no
    /// value at an instant and is always sampled.
    #[must_use]
    pub fn is_average(self) -> bool {
        matches!(self, Self::Utilization | Self::Granted | Self::QueueMax)
    }
}

/// Subject of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeTarget {
    /// A flow, by its index.
    Flow(usize, FlowQuantity),
    /// The total goodput of flows: first index and number.
    Goodput(usize, usize),
    /// A link direction, by its index.
    Direction(usize, LinkQuantity),
    /// A node, by its index, and one of its gauges.
    Node(usize, usize),
    /// A function of time, by its index
    /// ([`Network::add_known`](crate::Network::add_known)). It is always sampled.
    Known(usize),
}

/// A quantity that is known as a function of time, such as the elevation of a satellite.
pub type KnownQuantity = Box<dyn Fn(Time) -> Option<f64> + Send>;

/// A probe: a named series of one quantity.
#[derive(Clone, Debug)]
pub struct Probe {
    /// `download.congestion_window`, `satellite.forward.queue`.
    pub name: String,
    /// Subject.
    pub target: ProbeTarget,
}

/// Sampling of probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// At an interval.
    Interval(Span),
    /// At an interval that adapts to the run's length: `finest` at first. After `most` samples the
    /// interval doubles, and each two records are merged into one, as if it had been that long from
    /// the start.
    AsItLasts {
        /// Initial interval.
        finest: Span,
        /// Maximum number of samples; even.
        most: u32,
    },
    /// At every change; rates at an interval.
    EveryChange {
        /// Interval of rates.
        rates: Span,
    },
}

/// A probe during a run.
#[derive(Clone, Debug)]
pub(crate) struct ActiveProbe {
    pub(crate) target: ProbeTarget,
    pub(crate) series: SeriesId,
    /// Last recorded value; for rates, the last total.
    pub(crate) last: Option<f64>,
    /// For means: number and sum of samples at the last record.
    pub(crate) until: (u64, Span),
}
