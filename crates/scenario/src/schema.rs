//! The keys of the scenario file.
//!
//! `serde` reads the structs, and their comments are the scenario reference: the JSON Schema passes
//! them to editors and to the documentation. They hold the contents of a file; a
//! [`Scenario`](crate::Scenario) is the result with every default filled in. The keys of each topic
//! are in its folder.

pub use crate::access::schema::{AccessFile, AccessKind, CarrierFile};
pub use crate::acks::schema::{AcksFile, AcksKind, FilterMode, Spacing};
pub use crate::acm::schema::{AcmFile, ModesName};
pub use crate::application::schema::{AppFile, AppKind};
pub use crate::application::words::{
    CodecName, DirectionName, EchoName, FtpModeName, HttpName, PageName, TlsName, TransportName,
};
pub use crate::changes::schema::{
    FadingFile, InFlightName, IrttColumn, OutageFile, ReorderingFile, SendingName, StepFile,
    TraceFile, TraceFormat,
};
pub use crate::class::schema::TrafficClassFile;
pub use crate::flow::schema::FlowFile;
pub use crate::gateway::schema::{
    AnticipationName, ClassFile, Close, CrashFile, GatewayFile, GatewayKind, SetUp,
};
pub use crate::group::schema::GroupFile;
pub use crate::ip::IpName;
pub use crate::link::compression::Compression;
pub use crate::link::framing::{FramingKind, LinkFraming};
pub use crate::link::schema::{ArpFile, Between, DirectionFile, ErrorsFile, LinkFile};
pub use crate::mix::schema::{MixFile, ShareFile};
pub use crate::named::{Name, Named};
pub use crate::node::processing::ProcessingFile;
pub use crate::node::schema::HostFile;
pub use crate::orbit::schema::{
    ConstellationFile, MaskFile, OverName, PathFile, PatternName, SelectName, SiteFile, SiteNames,
};
pub use crate::probe::schema::ProbesFile;
pub use crate::queue::schema::{QueueFile, QueueKind};
pub use crate::scenario::json_schema::{json_schema, results_schema};
pub use crate::scenario::schema::{RandomnessFile, ScenarioFile};
pub use crate::tcp::congestion::{CongestionControlName, HyblaFile, WestwoodFile};
pub use crate::tcp::schema::{KeepAliveFile, MemoryFile, Profile, SlowStart, TcpFile};
