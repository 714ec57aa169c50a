//! Changes of a link over time (`schedule`, `traces`, `outages`, `fading`), and changes of packets
//! other than losses.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::decibels::Decibels;
use crate::quantity::probability::Probability;
use crate::quantity::random::RandomLength;
use crate::quantity::scheduled::ScheduledRate;
use crate::quantity::time::{Delay, Length};

/// A step of a schedule. Keys that are absent leave their values unchanged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepFile {
    /// Time of the step since the start of the run, or of the period (`schedule_every`). At least
    /// 100 us after the previous step.
    pub at: Length,
    /// Rate of the transmitter. A packet in transmission continues at the new rate. "0 bit/s":
    /// nothing is sent. With `access`: the rate that the terminal's modulation and coding allow
    /// from the next frame on, at most the direction's `rate`, which is that in clear sky.
    pub rate: Option<ScheduledRate>,
    /// Attenuation of the signal, which `acm` subtracts from the Es/N0 in clear sky. At least 1 ms
    /// after the previous attenuation.
    pub attenuation: Option<Decibels>,
    /// Propagation delay of packets whose last bit is sent from then on.
    pub delay: Option<Delay>,
    /// Probability that a packet is lost, in addition to the losses of `errors`.
    pub packet_loss_rate: Option<Probability>,
    /// Probability that a bit is wrong, in addition to the bit errors of `errors`.
    pub bit_error_rate: Option<Probability>,
}

/// A file with the changes of a direction over time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Path of the file, relative to the scenario file's folder.
    pub file: String,
    /// Format of the file. Default: "csv" if the name ends in ".csv".
    pub format: Option<TraceFormat>,
    /// For an IRTT log: the column of this direction.
    pub column: Option<IrttColumn>,
    /// For a CSV file: period after which the file repeats. The other formats repeat at their end.
    /// Default: the last line holds until the end of the run.
    pub every: Option<Length>,
}

words! {
    /// Format of a trace file.
    TraceFormat {
        /// A table with names and units in its first line: "time (s), rate (Mbit/s), attenuation
        /// (dB), delay (ms), packet_loss_rate, bit_error_rate". An empty field leaves the value
        /// unchanged.
        Csv = "csv",
        /// The same table in a Parquet file with columns of numbers; an empty cell leaves the value
        /// unchanged.
        Parquet = "parquet",
        /// Mahimahi's packet-delivery trace: each line is a time in milliseconds at which 1500
        /// bytes may be sent.
        Mahimahi = "mahimahi",
        /// LeoReplayer's delays in milliseconds: a line for every 10 ms.
        LeoReplayer = "leoreplayer",
        /// OpenSAND's delays: lines of "time delay", in seconds and milliseconds, with linear
        /// interpolation between lines.
        OpenSand = "opensand",
        /// IRTT's log as CSV: "timestamp,rtt,uplink,downlink", in ns and ms; -1 is a lost packet.
        Irtt = "irtt",
    }
}

words! {
    /// A column of an IRTT log.
    IrttColumn {
        /// From the client to the server. Packets for which the direction of loss is unknown count
        /// as lost here.
        Uplink = "uplink",
        /// From the server to the client.
        Downlink = "downlink",
    }
}

/// An outage of a direction, and its effect on packets.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageFile {
    /// Start of the first outage.
    pub at: Length,
    /// Duration of an outage: at least 1 ms.
    pub lasts: Length,
    /// Period of repeated outages: at least 1 ms longer than `lasts`. Default: a single outage.
    pub every: Option<Length>,
    /// Effect on packets that would be sent during an outage. Default: "lost".
    pub sending: Option<SendingName>,
    /// Effect on packets in transit when an outage begins. Default: "lost".
    pub in_flight: Option<InFlightName>,
}

words! {
    /// Effect of an outage on packets that would be sent during it.
    SendingName {
        /// The transmitter is not aware of the outage and sends them: they are lost.
        Lost = "lost",
        /// They wait, and the queue fills. A packet in transmission continues afterwards.
        Held = "held",
    }
}

words! {
    /// Effect of an outage on packets in transit: those whose first bit has been sent and whose
    /// last bit has not arrived when it begins.
    InFlightName {
        /// They are lost.
        Lost = "lost",
        /// They arrive at the end of the outage (as in a handover that forwards them), or at their
        /// usual time if that is later.
        Held = "held",
        /// They arrive as if there were no outage.
        Arrive = "arrive",
    }
}

/// A link that alternates between clear and faded for random times (E. Lutz et al., IEEE
/// Transactions on Vehicular Technology 40(2), 1991). It begins clear.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FadingFile {
    /// Duration of clear periods: "exponential(30 s)", or a fixed time. At least 1 ms on average.
    pub clear: RandomLength,
    /// Duration of fades. At least 1 ms on average.
    pub faded: RandomLength,
    /// Rate of the transmitter in a fade, if that is below its current rate. With `access`: the
    /// rate that the terminal's modulation and coding then allow, from the next frame on.
    pub rate: Option<ScheduledRate>,
    /// Probability that a packet is lost in a fade. Default: 1, if neither `rate` nor
    /// `bit_error_rate` is given.
    pub packet_loss_rate: Option<Probability>,
    /// Probability that a bit is wrong in a fade.
    pub bit_error_rate: Option<Probability>,
}

/// Reordering: some packets are delayed, so that others overtake them.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderingFile {
    /// Share of packets that are delayed.
    pub probability: Probability,
    /// Additional delay of these packets: "20 ms", "uniform(1 ms, 30 ms)".
    pub late_by: RandomLength,
}
