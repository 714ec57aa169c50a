//! The keys of the scenario file.
//!
//! `serde` reads the structs, and their comments are the scenario reference: the JSON Schema passes
//! them to editors and to the documentation. They hold the contents of a file; a
//! [`Scenario`](crate::Scenario) is the result with every default filled in.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::schema::CarrierFile;
use crate::class::schema::TrafficClassFile;
use crate::flow::schema::FlowFile;
use crate::gateway::schema::GatewayFile;
use crate::group::schema::GroupFile;
use crate::ip::IpName;
use crate::link::schema::LinkFile;
use crate::mix::schema::MixFile;
use crate::named::{Name, Named};
use crate::node::schema::HostFile;
use crate::orbit::schema::{ConstellationFile, SiteFile};
use crate::probe::schema::ProbesFile;
use crate::quantity::time::Length;

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
    /// Constellations of satellites, for the `path` of links, by name.
    #[serde(default)]
    pub constellations: Named<ConstellationFile>,
    /// Places from which satellites are seen, for the `path` of links, by name.
    #[serde(default)]
    pub sites: Named<SiteFile>,
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

fn one() -> u64 {
    1
}

/// Random behaviour of hosts, drawn from the seed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RandomnessFile {
    /// Whether hosts with `profile` "linux" draw their timing from the seed, as it is random in a
    /// real host: the phase of the clock in a tick of 4 ms, the wake-up delays of packets and
    /// applications, and the start of flows within a millisecond. `bentpipe run --seeds` shows how
    /// far results differ. `false`: all clocks begin together, wake-up delays are fixed, and flows
    /// start exactly at their `start`. Default: true.
    pub host_timing: bool,
}

impl Default for RandomnessFile {
    fn default() -> Self {
        Self { host_timing: true }
    }
}
