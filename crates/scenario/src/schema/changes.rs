//! `schedule`, `traces`, `outages`, `fading` and what else a link does to packets besides losing them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{Decibels, Delay, Length, Probability, RandomLength, ScheduledRate};
use bentpipe_types::words;

/// A step of a schedule. What it does not say stays as it was.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepFile {
    /// From when on: since the start of the run, or of the round (`schedule_every`). 100 us or more
    /// after the step before it.
    pub at: Length,
    /// Rate of the transmitter. A packet that is being sent goes on at the new rate. "0 bit/s": nothing
    /// is sent. Beside `access`, what the terminal's modulation and coding allow, from the next frame on: at most the
    /// direction's `rate`, which it has in clear sky.
    pub rate: Option<ScheduledRate>,
    /// Attenuation of the signal, which `acm` takes off the Es/N0 in clear sky. 1 ms or more after the
    /// attenuation before it.
    pub attenuation: Option<Decibels>,
    /// Propagation delay of packets whose last bit is sent from then on.
    pub delay: Option<Delay>,
    /// Probability that a packet is lost, besides what `errors` loses.
    pub packet_loss_rate: Option<Probability>,
    /// Probability that a bit is wrong, besides what `errors` says.
    pub bit_error_rate: Option<Probability>,
}

/// A file that says how a direction changes with time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file, relative to the scenario file's folder.
    pub file: String,
    /// What kind of file. Default: "csv" of a name that ends in ".csv".
    pub format: Option<TraceFormat>,
    /// Of an IRTT log: which of its columns this direction has.
    pub column: Option<IrttColumn>,
    /// Of a CSV file: it begins again that often. The other formats begin again at their end. Default: the
    /// last line holds until the end.
    pub every: Option<Length>,
}

words! {
    /// A kind of trace file.
    TraceFormat {
        /// A table with names and units in its first line: "time (s), rate (Mbit/s), attenuation (dB), delay (ms),
        /// packet_loss_rate, bit_error_rate". An empty field leaves the value as it was.
        Csv = "csv",
        /// The same table in a Parquet file, of columns of numbers; an empty cell leaves the value as it was.
        Parquet = "parquet",
        /// Mahimahi's packet-delivery trace: a line for each 1500 bytes that may go, in milliseconds.
        Mahimahi = "mahimahi",
        /// LeoReplayer's delays: a line for each 10 ms, in milliseconds.
        LeoReplayer = "leoreplayer",
        /// OpenSAND's delays: "time delay", in seconds and milliseconds, straight from line to line.
        OpenSand = "opensand",
        /// IRTT's log as CSV: "timestamp,rtt,uplink,downlink", in ns and ms; -1 is a lost packet.
        Irtt = "irtt",
    }
}

words! {
    /// A column of an IRTT log.
    IrttColumn {
        /// From the client to the server. Packets that were lost nobody knows which way are lost here.
        Uplink = "uplink",
        /// From the server to the client.
        Downlink = "downlink",
    }
}

/// When a direction goes away, and what becomes of packets.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageFile {
    /// When it first goes away.
    pub at: Length,
    /// For how long: 1 ms or more.
    pub lasts: Length,
    /// How often: 1 ms or more longer than it lasts. Default: once.
    pub every: Option<Length>,
    /// What becomes of packets that are to be sent meanwhile. Default: "lost".
    pub sending: Option<SendingName>,
    /// What becomes of packets that are on their way when it begins. Default: "lost".
    pub in_flight: Option<InFlightName>,
}

words! {
    /// What becomes of packets that are to be sent during an outage.
    SendingName {
        /// The transmitter does not know, and sends them: they are lost.
        Lost = "lost",
        /// They wait, and the queue fills. A packet that is being sent goes on afterwards.
        Held = "held",
    }
}

words! {
    /// What becomes of packets whose first bit has been sent and whose last has not arrived when an
    /// outage begins.
    InFlightName {
        /// They are lost.
        Lost = "lost",
        /// They arrive when it is over (a handover that forwards them), unless it is later anyway.
        Held = "held",
        /// They arrive as if nothing had happened.
        Arrive = "arrive",
    }
}

/// A link that is clear or faded, by turns, for random times (E. Lutz et al., IEEE Transactions on
/// Vehicular Technology 40(2), 1991). It begins clear.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FadingFile {
    /// How long it is clear: "exponential(30 s)", or a fixed time. 1 ms or more on average.
    pub clear: RandomLength,
    /// How long it is faded.
    pub faded: RandomLength,
    /// Rate of the transmitter in a fade, if that is below what it has. Beside `access`, what the terminal's modulation and
    /// coding then allow, from the next frame on.
    pub rate: Option<ScheduledRate>,
    /// Probability that a packet is lost in a fade. Default: 1, where neither `rate` nor
    /// `bit_error_rate` is there.
    pub packet_loss_rate: Option<Probability>,
    /// Probability that a bit is wrong in a fade.
    pub bit_error_rate: Option<Probability>,
}

/// Packets that others overtake.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderingFile {
    /// The share of the packets.
    pub probability: Probability,
    /// How much later than else they arrive: "20 ms", "uniform(1 ms, 30 ms)".
    pub late_by: RandomLength,
}
