//! Queue disciplines.

#[cfg(test)]
mod bench;
mod by_flow;
mod classes;
mod codel;
mod discipline;
mod drop_tail;
mod early_random_drop;
mod fair;
mod fq_codel;
mod limit;
mod pie;
mod red;
mod waiting;

pub use classes::{
    ClassSettings, Classes, ClassesSettings, Ends as FlowEnd, FlowEnds, Service, TrafficClass,
};
pub use codel::{Codel, CodelSettings, DelayBounds};
pub use discipline::{Backlog, ClassCounts, GivenUp, QueueCtx, QueueDiscipline};
pub use drop_tail::{DropTail, DropTailQueue};
pub use early_random_drop::{EarlyRandomDrop, EarlyRandomDropSettings};
pub use fair::{Fair, FairSettings};
pub use fq_codel::{FqCodel, FqCodelSettings};
pub use limit::Limit;
pub use pie::{Pie, PieSettings};
pub use red::{Measure, Red, RedSettings};
pub(crate) use waiting::{TimedWaiting, Waiting};

/// Length of a full packet on most networks, IP header included: Linux uses the link's MTU.
const FULL_PACKET: u64 = 1500;

/// Decision about an offered packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is queued.
    Queued,
    /// It is dropped.
    Dropped,
}
