//! `[hosts.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::node::processing::ProcessingFile;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::quic::schema::QuicFile;
use crate::tcp::schema::TcpFile;

/// Parameters of a path, saved from an earlier connection (RFC 9959).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeFile {
    /// Congestion window of the earlier connection. The new one starts from half of it, after one
    /// round-trip time.
    pub window: Size,
    /// Minimum round-trip time of the earlier connection. It is used if the new one is at least
    /// half and at most ten times as long.
    pub rtt: Length,
    /// Time from the start of the run until which the parameters are valid. Default: for ever.
    pub expires: Option<Length>,
}

/// A host: it runs the TCP at one end of each of its flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Creates this many hosts, NAME-1 to NAME-count. A link or a flow that names NAME is then
    /// created once for each of them: LINK-1 to LINK-count, FLOW-1 to FLOW-count. Default: one
    /// host, NAME.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// TCP settings. Default: current Linux, as far as it is modelled.
    #[serde(default)]
    pub tcp: TcpFile,
    /// QUIC settings, for flows with `transport = "quic"`. Default: those of quinn.
    pub quic: Option<QuicFile>,
    /// Parameters of the path that the host has saved from an earlier connection: it starts from
    /// them (careful resume, RFC 9959), over TCP and over QUIC with an algorithm of TCP. Default:
    /// it starts from the initial window.
    pub resume: Option<ResumeFile>,
    /// Time that the host's processor takes for each packet that arrives or leaves (an IP service
    /// rate), one packet at a time. If its queue is full, a packet that the host sends is lost as
    /// on a link. Default: no time.
    pub processing: Option<ProcessingFile>,
}
