//! States of the state machine (section 5.1).

use serde::{Deserialize, Serialize};

use super::ProbeRttTimer;
use super::phase::Phase;

/// State of the BBR state machine (section 5.1). Each has its own file.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// Doubles the rate each round trip until the pipe is full or losses are too high.
    Startup,
    /// Drains the queue that Startup built. The field is the round in which Drain began.
    Drain(u64),
    /// Probes for bandwidth, in a cycle of four phases.
    ProbeBw(Phase),
    /// Halves the data in flight, to measure the round-trip time without queues.
    ProbeRtt(ProbeRttTimer),
}
