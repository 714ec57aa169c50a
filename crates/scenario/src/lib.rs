//! Scenario files: reads TOML, checks it, and resolves it to a network.
//!
//! ```
//! let text = r#"
//!     name = "t1"
//!     duration = "60 s"
//!     hosts = { server = {}, client = {} }
//!     flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
//!
//!     [links.satellite]
//!     between = ["server", "client"]
//!     rate = "1.536 Mbit/s"
//!     delay = "250 ms"
//! "#;
//! let scenario = bentpipe_scenario::Scenario::parse(text, "t1.toml", &[])?;
//! assert_eq!(scenario.links[0].forward.rate.bits_per_second(), 1_536_000);
//!
//! let wrong = [("hosts.server.tcp.mss", "1448")];
//! let error = bentpipe_scenario::Scenario::parse(text, "t1.toml", &wrong).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     r#"--set hosts.server.tcp.mss=1448: expected a size such as "64 KiB", got 1448"#
//! );
//! # Ok::<(), bentpipe_scenario::ScenarioError>(())
//! ```
//!
//! A [`Scenario`] has indices in place of names, and every default filled in except for the probes
//! of a file that names none. The keys of a file are in [`schema`]. Every error is one line, a
//! [`ScenarioError`].

mod access;
mod acks;
mod class;
pub mod congestion;
mod custom;
mod document;
mod error;
mod gateway;
mod load;
pub mod modcod;
pub mod quantity;
pub mod queue;
mod resolve;
mod routes;
mod run;
mod scalar;
mod scenario;
pub mod schema;
mod serialize;
mod station;
mod suggest;
mod tcp_settings;
mod traces;
mod window_limit;

pub use access::{Carrier, OnDemand};
pub use acks::{Acks, WaterMarks};
pub use bentpipe_sim::{FlowQuantity, LinkQuantity, Progress};
pub use bentpipe_tcp::congestion::WindowRule;
pub use bentpipe_tcp::{AvoidanceKind, IdleRestart, RecoveryKind, RtoRule};
pub use bentpipe_types::Series as RecordedSeries;
pub use class::PacketClass;
pub use custom::CustomControls;
pub use document::{KeyPath, Segment, key_lines};
pub use error::ScenarioError;
pub use gateway::{
    Addresses, Anticipation, Crash, Gateway, HybridGateway, Multiplex, Processing, RealEnds,
    SplitGateway, TrafficClass,
};
pub use quantity::{DelayedAck, Interval, Pacing, QueueLimit, Redundancy, Window};
pub use queue::Queue;
pub use resolve::limits;
pub use routes::Route;
pub use run::{
    AccessSummary, ActivitySummary, ApplicationSummary, CallSummary, CaptureRequest, ClassSummary,
    Closing, Counted, CountersSummary, EchoesSummary, FlowSummary, GatewaySummary, GroupSummary,
    HeardSummary, LimitedSummary, LinkSummary, MANY_RECORDS, MessagesSummary, Outside, PageSummary,
    PathMtuSummary, Quantiles, RESULTS_VERSION, ResponsesSummary, RttSummary, Run, RunError,
    RunOptions, RunOutput, SeenSummary, Summary, TransfersSummary, VideoCallSummary, VideoSummary,
};
pub use scenario::{
    App, Arp, Direction, Errors, Flow, HostSettings, Link, Node, NodeKind, Probe, Probes,
    RandomErrors, Scenario, Series, Way,
};
pub use schema::{
    AcksKind, AppKind, Compression, CongestionControlName, FilterMode, GatewayKind, IpName,
    QueueKind, SlowStart, Spacing, json_schema, results_schema,
};
pub use station::{Side, Station, StationError};
pub use tcp_settings::TcpSettings;
#[doc(hidden)]
pub use traces::check_trace;
pub use traces::{ParquetReader, read_parquet_with};
