//! A node, with every default filled in.

use std::sync::Arc;

use bentpipe_tcp::congestion::SavedPath;

use crate::gateway::dispatch::Gateway;
use crate::node::processing::Processing;
use crate::quic::settings::QuicHostSettings;
use crate::tcp::settings::TcpSettings;

/// A host or a gateway.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Name: `client-3` for the third of `count`.
    pub name: String,
    /// Host or gateway.
    pub kind: NodeKind,
}

/// Kind of a node, with its settings.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// A host, which starts and ends flows, and does not forward. Hosts of one `count` share
    /// settings.
    Host(HostSettings),
    /// A gateway, which forwards packets.
    Gateway(Gateway),
}

/// Settings of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSettings {
    /// TCP.
    pub tcp: Arc<TcpSettings>,
    /// QUIC, if its table is given.
    pub quic: Option<Arc<QuicHostSettings>>,
    /// Parameters of the path from an earlier connection.
    pub resume: Option<SavedPath>,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
}
