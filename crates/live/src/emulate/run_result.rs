//! Results of a run, before they are summarized.

use bentpipe_sim::FlowOutcome;
use bentpipe_types::Time;

use super::tcp_info::SenderSamples;

/// Results of the flows or commands.
#[derive(Debug, Default)]
pub(super) struct RunResult {
    /// Results by flow, as in a simulation.
    pub(super) outcomes: Vec<FlowOutcome>,
    /// Further results by flow.
    pub(super) flows: Vec<FlowResult>,
    pub(super) status: Option<i32>,
    pub(super) ended: Time,
}

/// Results of an emulated flow that a simulation does not have.
#[derive(Debug, Default)]
pub(super) struct FlowResult {
    /// Whether its sender uses kernel sockets.
    pub(super) kernel_sends: bool,
    pub(super) samples: SenderSamples,
    /// Points in time, and bytes that its receiver had read until then.
    pub(super) curve: Vec<(Time, u64)>,
    /// Retransmission timeouts and fast recoveries of its host, if no other flow uses that host.
    pub(super) timeouts: Option<u64>,
    pub(super) recoveries: Option<u64>,
    /// Stream offset at which received bytes first differed from those sent.
    pub(super) mismatch: Option<u64>,
    /// Number of datagrams that were lengthened to hold their label.
    pub(super) lengthened: u64,
}
