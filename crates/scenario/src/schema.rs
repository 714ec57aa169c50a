//! The scenario file, key by key.
//!
//! The structs are what `serde` reads, and their comments are the scenario reference: the JSON
//! Schema carries them to editors and to the documentation. They hold what a file says; what it
//! means, with every default filled in, is a [`Scenario`](crate::Scenario).

mod access;
mod acks;
mod acm;
mod changes;
mod class;
mod congestion;
mod flow;
mod gateway;
pub(crate) mod hints;
mod json;
mod link;
mod mix;
mod named;
mod node;
mod probe;
mod settings;
mod tcp;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::Length;
use bentpipe_types::words;

pub use crate::queue::{QueueFile, QueueKind};
pub use access::{AccessFile, AccessKind, CarrierFile};
pub use acks::{AcksFile, AcksKind, Compression, FilterMode, Spacing};
pub use acm::{AcmFile, ModesName};
pub use changes::{
    FadingFile, InFlightName, IrttColumn, OutageFile, ReorderingFile, SendingName, StepFile,
    TraceFile, TraceFormat,
};
pub use class::TrafficClassFile;
pub use congestion::{CongestionControlName, HyblaFile, WestwoodFile};
pub use flow::{
    AppFile, AppKind, CodecName, DirectionName, EchoName, FlowFile, FtpModeName, GroupFile,
    HttpName, PageName, TlsName, TransportName,
};
pub use gateway::{
    AnticipationName, ClassFile, Close, GatewayFile, GatewayKind, ProcessingFile, SetUp,
};
pub use json::{json_schema, results_schema};
pub use link::{ArpFile, Between, DirectionFile, ErrorsFile, LinkFile, LinkFraming};
pub use mix::{MixFile, ShareFile};
pub use named::{Name, Named};
pub use node::HostFile;
pub use probe::ProbesFile;
pub use tcp::{KeepAliveFile, MemoryFile, Profile, SlowStart, TcpFile};

/// A network, what flows through it, and what to record: one scenario of bentpipe.
///
/// Quantities are strings with a unit ("1.536 Mbit/s", "250 ms", "64 KiB", "100 packets"); a bare
/// number is refused where a unit is meant. KB = 1000 B, KiB = 1024 B.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// What the results are called: letters, digits, "-" and "_".
    pub name: Name,
    /// What this scenario shows, in a sentence or two. `bentpipe list scenarios` prints it.
    pub description: Option<String>,
    /// Simulated time at which the run ends, finished or not. At most 72 h.
    pub duration: Length,
    /// Key of all randomness. The same seed and file give the same result, byte for byte.
    #[serde(default = "one")]
    pub seed: u64,
    /// The IP version of all packets: a header of 20 bytes ("v4"), or of 40 ("v6"). Default: "v4".
    #[serde(default)]
    pub ip: IpName,
    /// Where flows begin and end. A host does not forward packets.
    pub hosts: Named<HostFile>,
    /// What stands between links and forwards packets on the shortest route.
    #[serde(default)]
    pub gateways: Named<GatewayFile>,
    /// What joins two nodes.
    pub links: Named<LinkFile>,
    /// What links share on which capacity is asked for, by name.
    #[serde(default)]
    pub carriers: Named<CarrierFile>,
    /// Who sends what to whom.
    pub flows: Named<FlowFile>,
    /// Hosts that are sent to together, by name: a flow may lead to a group.
    #[serde(default)]
    pub groups: Named<GroupFile>,
    /// What users do who do not one thing all the time, by name.
    #[serde(default)]
    pub mixes: Named<MixFile>,
    /// Classes of traffic, by name, for queues that know classes.
    #[serde(default)]
    pub classes: Named<TrafficClassFile>,
    /// What to record over time. Totals are always kept.
    #[serde(default)]
    pub probes: ProbesFile,
}

words! {
    /// A version of IP.
    #[derive(Default)]
    IpName {
        /// IPv4: a header of 20 bytes.
        #[default]
        V4 = "v4",
        /// IPv6: a header of 40 bytes; `mss` is 20 bytes less, unless it is given.
        V6 = "v6",
    }
}

fn one() -> u64 {
    1
}
