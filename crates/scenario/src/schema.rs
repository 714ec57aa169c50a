//! The keys of the scenario file.
//!
//! `serde` reads the structs, and their comments are the scenario reference: the JSON Schema passes
//! them to editors and to the documentation. They hold the contents of a file; a
//! [`Scenario`](crate::Scenario) is the result with every default filled in.

mod access;
mod acks;
mod acm;
mod changes;
mod class;
mod congestion;
mod flow;
mod framing;
mod gateway;
pub(crate) mod hints;
mod json;
mod link;
mod mix;
mod named;
mod node;
mod probe;
mod randomness;
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
pub use framing::{FramingKind, LinkFraming};
pub use gateway::{
    AnticipationName, ClassFile, Close, GatewayFile, GatewayKind, ProcessingFile, SetUp,
};
pub use json::{json_schema, results_schema};
pub use link::{ArpFile, Between, DirectionFile, ErrorsFile, LinkFile};
pub use mix::{MixFile, ShareFile};
pub use named::{Name, Named};
pub use node::HostFile;
pub use probe::ProbesFile;
pub use randomness::RandomnessFile;
pub use tcp::{KeepAliveFile, MemoryFile, Profile, SlowStart, TcpFile};

/// A scenario of bentpipe: a network, its traffic, and what to record.
///
/// Quantities are strings with a unit ("1.536 Mbit/s", "250 ms", "64 KiB", "100 packets"); a bare
/// number is refused if a unit is needed. KB = 1000 B, KiB = 1024 B.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name of the results: letters, digits, "-" and "_".
    pub name: Name,
    /// Purpose of the scenario, in one or two sentences. `bentpipe list scenarios` prints it.
    pub description: Option<String>,
    /// Simulated time at which the run ends, finished or not. At most 72 h.
    pub duration: Length,
    /// Seed of all random draws. The same seed and file give the same result, byte for byte.
    #[serde(default = "one")]
    pub seed: u64,
    /// The IP version of all packets: a header of 20 bytes ("v4"), or of 40 ("v6"). Default: "v4".
    #[serde(default)]
    pub ip: IpName,
    /// Hosts: the ends of flows, by name. A host does not forward packets.
    pub hosts: Named<HostFile>,
    /// Gateways: they connect links and forward packets on the shortest route, by name.
    #[serde(default)]
    pub gateways: Named<GatewayFile>,
    /// Links between two nodes, by name.
    pub links: Named<LinkFile>,
    /// Carriers that links with capacity on demand share, by name.
    #[serde(default)]
    pub carriers: Named<CarrierFile>,
    /// Flows: applications that send between hosts, by name.
    pub flows: Named<FlowFile>,
    /// Multicast groups of hosts, by name: a flow may lead to a group.
    #[serde(default)]
    pub groups: Named<GroupFile>,
    /// Mixes: users who use several applications in sequence, by name.
    #[serde(default)]
    pub mixes: Named<MixFile>,
    /// Traffic classes, for queues that use classes, by name.
    #[serde(default)]
    pub classes: Named<TrafficClassFile>,
    /// Random behaviour of hosts, drawn from the seed.
    #[serde(default)]
    pub randomness: RandomnessFile,
    /// Series to record over time. Totals are always kept.
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
        /// IPv6: a header of 40 bytes; `mss` is 20 bytes less by default.
        V6 = "v6",
    }
}

fn one() -> u64 {
    1
}
