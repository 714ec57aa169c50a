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
mod acm;
mod application;
mod changes;
mod class;
pub mod congestion;
mod custom;
mod directory;
mod document;
mod error;
mod fault;
mod flow;
mod gateway;
mod group;
mod hints;
mod ip;
pub mod limits;
mod link;
mod load;
mod mix;
mod named;
mod node;
mod orbit;
mod probe;
pub mod quantity;
pub mod queue;
mod quic;
mod run;
mod scenario;
pub mod schema;
mod settings_table;
mod station;
mod station_error;
mod suggest;
mod tcp;
mod traces;

pub use access::settings::{Carrier, OnDemand};
pub use access::summary::AccessSummary;
pub use acks::schema::{AcksKind, FilterMode, Spacing};
pub use acks::settings::{Acks, WaterMarks};
pub use acm::modcod;
pub use application::schema::AppKind;
pub use application::settings::{App, ApplicationFacts, Role};
pub use application::summary::{
    ActivitySummary, ApplicationSummary, CallSummary, EchoesSummary, HeardSummary, MessagesSummary,
    PageSummary, Quantiles, ResponsesSummary, SeenSummary, TransfersSummary, VideoCallSummary,
    VideoSummary,
};
pub use bentpipe_gateway::split::HostSecret;
pub use bentpipe_sim::{End, FlowQuantity, LinkQuantity, Progress};
pub use bentpipe_tcp::congestion::WindowRule;
pub use bentpipe_tcp::{AvoidanceKind, IdleRestart, RecoveryKind, RtoRule};
pub use bentpipe_types::Series as RecordedSeries;
pub use class::settings::PacketClass;
pub use class::summary::ClassSummary;
pub use custom::CustomControls;
pub use document::parsed::key_lines;
pub use error::ScenarioError;
pub use fault::{KeyPath, Segment};
pub use flow::limited::LimitedSummary;
pub use flow::settings::Flow;
pub use flow::summary::{FlowSummary, PathMtuSummary, RttSummary};
pub use flow::table_summary::GroupSummary;
pub use gateway::dispatch::Gateway;
pub use gateway::hybrid::{Anticipation, HybridGateway};
pub use gateway::nat::NatGateway;
pub use gateway::parts::Crash;
pub use gateway::router::RouterGateway;
pub use gateway::schema::GatewayKind;
pub use gateway::settings::{Addresses, GatewayFacts, TrafficClass};
pub use gateway::split::{Multiplex, RealEnds, SplitGateway};
pub use gateway::summary::GatewaySummary;
pub use ip::IpName;
pub use link::compression::Compression;
pub use link::settings::{Arp, Direction, Errors, Link, RandomErrors, Way};
pub use link::summary::{Counted, CountersSummary, LinkSummary};
pub use node::processing::Processing;
pub use node::settings::{HostSettings, Node, NodeKind};
pub use orbit::path::PathQuantity;
pub use orbit::report::{OrbitColumn, OrbitReport, OrbitTable};
pub use orbit::resolve::constellations;
pub use orbit::settings::{LinkPath, NamedConstellation, Orbits};
pub use orbit::variation::{Variation, variations};
pub use probe::settings::{Probe, Probes, Series};
pub use quantity::{DelayedAck, Interval, Pacing, QueueLimit, Redundancy, Window};
pub use queue::{Queue, QueueKind};
pub use quic::settings::{QuicControlName, QuicHostSettings};
pub use quic::summary::{QuicEndSummary, QuicSummary};
pub use run::engine::Cores;
pub use run::error::RunError;
pub use run::options::{CaptureRequest, LARGE_NETWORK, MANY_RECORDS, RunOptions, RunOutput};
pub use run::outside::{Closing, Outside};
pub use run::packet_log::{LoggedPacket, PacketLog};
pub use run::simulation::Run;
pub use run::summary::{RESULTS_VERSION, Summary};
pub use scenario::json_schema::{json_schema, results_schema};
pub use scenario::kinds::kinds;
pub use scenario::routes::Route;
pub use scenario::settings::Scenario;
pub use station::part::Station;
pub use station::side::Side;
pub use station_error::StationError;
pub use suggest::suggest;
pub use tcp::congestion::CongestionControlName;
pub use tcp::schema::SlowStart;
pub use tcp::settings::TcpSettings;
pub use traces::files::FileReader;
#[doc(hidden)]
pub use traces::formats::check_trace;
pub use traces::parquet::{ParquetReader, read_parquet_with};
