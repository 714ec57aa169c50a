//! Settings of the window rules.

use bentpipe_types::{BitRate, Span, words};
use serde::{Deserialize, Serialize};

use crate::HostClock;
use crate::slow_start::SlowStartKind;

/// The part of a connection's configuration that concerns its congestion window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CongestionSettings {
    /// Unit of progress in congestion avoidance.
    pub(crate) avoidance: AvoidanceKind,
    /// Rule of slow start.
    pub(crate) slow_start: SlowStartKind,
    /// Initial slow-start threshold in bytes, if there is one.
    pub(crate) initial_slow_start_threshold: Option<u64>,
    /// The window may grow beyond the threshold by slow start, as in Linux.
    pub(crate) tcp_linux: bool,
    /// CUBIC computes as Linux does, in integers.
    pub(crate) integer_cubic: bool,
    /// The host's clock.
    pub(crate) clock: HostClock,
    /// Settings of both Hyblas.
    pub(crate) hybla: HyblaSettings,
    /// Settings of both Westwoods.
    pub(crate) westwood: WestwoodSettings,
    /// Enhanced Hybla: the capacity of the channel.
    pub(crate) channel_capacity: Option<BitRate>,
    /// Filter of the measured bandwidth, if it is not the rule's own.
    pub(crate) bandwidth_filter: Option<BandwidthFilter>,
}

words! {
    /// Unit of progress in congestion avoidance.
    #[schemars(rename = "CongestionAvoidance")]
    #[derive(Default)]
    AvoidanceKind {
        /// Each acknowledgment counts as one segment (RFC 5681 equation 3): with delayed
        /// acknowledgments, the window grows by one segment in two round trips.
        PerAcknowledgment = "per-acknowledgment",
        /// Acknowledged bytes count (RFC 3465): the window grows by one segment per round trip, as
        /// in Linux.
        #[default]
        ByteCounting = "byte-counting",
    }
}

/// Settings of Hybla.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyblaSettings {
    /// RTT0: round-trip time of the reference connection. 25 ms in the paper and in Linux.
    pub reference_rtt: Span,
    /// Initial slow-start threshold.
    pub initial_threshold: InitialThreshold,
    /// Enhanced Hybla's capacity of the channel.
    pub channel_capacity: ChannelCapacity,
    /// Reaction to a lost segment.
    pub after_loss: AfterLoss,
    /// Window after a timeout.
    pub after_timeout: AfterTimeout,
}

impl Default for HyblaSettings {
    fn default() -> Self {
        Self {
            reference_rtt: Span::from_millis(25),
            initial_threshold: InitialThreshold::Configured,
            channel_capacity: ChannelCapacity::Configured,
            after_loss: AfterLoss::Half,
            after_timeout: AfterTimeout::OneSegment,
        }
    }
}

words! {
    /// Hybla's initial slow-start threshold.
    InitialThreshold {
        /// The value of `initial_slow_start_threshold`.
        Configured = "configured",
        /// The minimum round-trip time times the bandwidth estimated from the spacing of the first
        /// acknowledgments (Hoe 1996), or `initial_slow_start_threshold` if that is lower.
        BandwidthEstimate = "bandwidth-estimate",
    }
}

words! {
    /// Enhanced Hybla's capacity of the channel.
    ChannelCapacity {
        /// The value of `channel_capacity`.
        Configured = "configured",
        /// The median rate of the first 31 pairs of consecutive acknowledgments, which are spaced
        /// by the bottleneck (packet pairs: Keshav 1991). `channel_capacity` is ignored.
        PacketPairs = "packet-pairs",
    }
}

words! {
    /// Hybla's reaction to a lost segment.
    AfterLoss {
        /// Halves the window, as NewReno does (the Hybla paper, and Linux).
        Half = "half",
        /// Sets the threshold to half of the window, and the window to a quarter (vanzara2014,
        /// section III.B).
        Quarter = "quarter",
    }
}

words! {
    /// Hybla's window after a timeout.
    AfterTimeout {
        /// One segment (RFC 5681, and Linux).
        OneSegment = "one-segment",
        /// rho segments (vanzara2014, section III.B).
        Rho = "rho",
    }
}

words! {
    /// Westwood's window after a loss.
    #[derive(Default)]
    WestwoodAfterLoss {
        /// The measured bandwidth times the minimum round-trip time, however small (Casetti and
        /// others 2001, Grieco and Mascolo 2004, and Linux).
        #[default]
        Pipe = "pipe",
        /// The same, but at least half of the bytes in flight, which is also the threshold (ns-2's
        /// TCP-Linux, with Linux 2.6.22's module).
        AtLeastHalf = "at-least-half",
    }
}

/// Settings of both Westwoods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WestwoodSettings {
    /// Window after a loss.
    pub after_loss: WestwoodAfterLoss,
    /// Time constant of the filter of 2001.
    pub time_constant: Span,
}

impl Default for WestwoodSettings {
    fn default() -> Self {
        Self {
            after_loss: WestwoodAfterLoss::default(),
            time_constant: Span::from_millis(500),
        }
    }
}

words! {
    /// Filter of bandwidth samples.
    BandwidthFilter {
        /// No filter: the last sample is the estimate.
        LastSample = "last-sample",
        /// Two low-pass filters in series, each with weight 7/8 for the old value: Westwood+ in
        /// Linux.
        Westwood = "westwood",
    }
}
