//! A flow, with every default filled in.

use std::sync::Arc;

use bentpipe_sim::Distribution;
use bentpipe_types::Time;

use crate::application::settings::App;

/// An application between two hosts, with its connections.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Name: `download-3` for the third flow of a counted host.
    pub name: String,
    /// Index of the host that begins.
    pub from: usize,
    /// Index of the other host.
    pub to: usize,
    /// For a flow to a group: the number of its table among all such tables. This flow is what one
    /// member receives of the data that the first flow of that table sends to the group.
    pub channel: Option<usize>,
    /// Start time, before the end of the run. `late` or `wait` are added to it.
    pub start: Time,
    /// Distribution of the delay after `start`, drawn in each run.
    pub late: Option<Distribution>,
    /// Distribution of the time after the start of the previous flow of the same table (for the
    /// first of them, after `start`), drawn in each run.
    pub wait: Option<Distribution>,
    /// Name of the table that it comes from.
    pub table: Arc<str>,
    /// Application.
    pub app: App,
    /// Whether its connections are QUIC connections.
    pub quic: bool,
}
