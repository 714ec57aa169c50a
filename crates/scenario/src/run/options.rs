//! Options and output of a run.

use std::path::PathBuf;

use bentpipe_sim::WallClock;
use bentpipe_types::Series;

use crate::custom::CustomControls;
use crate::run::packet_log::PacketLog;
use crate::run::summary::Summary;

/// A capture to write during a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureRequest {
    /// `LINK`: the packets of its first node on that link. `LINK@NODE`: the packets of that node.
    pub place: String,
    /// The pcapng file.
    pub path: PathBuf,
}

/// Options of a run.
#[derive(Clone, Default, Debug)]
pub struct RunOptions {
    /// Seed in place of the scenario's.
    pub seed: Option<u64>,
    /// Captures to write.
    pub captures: Vec<CaptureRequest>,
    /// Start of the run in captures, in nanoseconds since the Unix epoch.
    pub captures_begin_ns: u64,
    /// Most bytes of each packet in captures, or `None` for all.
    pub snap_length: Option<u32>,
    /// Whether to record the default series of every flow and link if the scenario names none.
    pub default_probes: bool,
    /// Whether to record what the workbench shows: the default series and more of every flow and
    /// link, and those that the scenario names, all at the sampling of the default ones.
    pub workbench_probes: bool,
    /// Most packets to log at all link ends, or `None` for no log.
    pub packet_log: Option<usize>,
    /// Whether to record no series at all.
    pub no_series: bool,
    /// Most samples to keep, or `None` for [`MAX_RECORDS`](crate::limits::MAX_RECORDS).
    pub most_records: Option<u64>,
    /// Congestion control algorithms that are not built in.
    pub custom_controls: CustomControls,
    /// Most processors to use. The results do not depend on their number.
    pub cores: usize,
    /// Whether a network with fewer than [`LARGE_NETWORK`] flows stays whole.
    pub divide_only_large: bool,
    /// Clock that measures the windows of a divided network: see
    /// [`WindowTimes`](bentpipe_sim::WindowTimes). Only one part then runs at a time.
    pub measure_windows: Option<WallClock>,
}

/// Number of flows from which on a network is divided without being requested. Below, a window
/// contains so few events that the synchronisation costs more than the second processor gains.
pub const LARGE_NETWORK: usize = 1_000;

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// Summary.
    pub summary: Summary,
    /// Recorded series.
    pub series: Vec<Series>,
    /// The log of packets; empty if none was requested.
    pub packets: PacketLog,
}

/// Number of samples (16 MiB) at which
/// [`Run::advance`](crate::run::simulation::Run::advance) stops early, so that they can be taken.
pub const MANY_RECORDS: u64 = 1 << 20;
