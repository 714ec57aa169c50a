//! Queue disciplines: which packets wait for the transmitter, and which are dropped.

mod discipline;
mod drop_tail;

pub use discipline::{GivenUp, QueueCtx, QueueDiscipline};
pub use drop_tail::{DropTail, Limit};

/// What a queue does with a packet that arrives at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits.
    Queued,
    /// It is discarded.
    Dropped,
}
