//! States of the state machine.

use serde::{Deserialize, Serialize};

use super::ProbeRttTimer;
use super::gain_cycle::Cycle;

/// State of the BBR state machine. Each has its own file.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// Doubles the rate each round trip until the pipe is full.
    Startup,
    /// Drains the queue that Startup built.
    Drain,
    /// Probes for bandwidth, in a cycle of gains.
    ProbeBw(Cycle),
    /// Sends almost nothing, to measure the round-trip time without queues.
    ProbeRtt(ProbeRttTimer),
}
