//! Queue disciplines: which packets wait for the transmitter, and which are dropped.

mod classes;
mod discipline;
mod drop_tail;
mod early_random_drop;
mod fair;
mod limit;
mod red;
mod waiting;

pub use classes::{
    ClassSettings, Classes, ClassesSettings, Ends as FlowEnd, FlowEnds, Service, TrafficClass,
};
pub use discipline::{ClassCounts, GivenUp, QueueCtx, QueueDiscipline};
pub use drop_tail::{DropTail, DropTailQueue};
pub use early_random_drop::{EarlyRandomDrop, EarlyRandomDropSettings};
pub use fair::{Fair, FairSettings};
pub use limit::Limit;
pub use red::{Measure, Red, RedSettings};
pub(crate) use waiting::Waiting;

/// What a queue does with a packet that arrives at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits.
    Queued,
    /// It is discarded.
    Dropped,
}
