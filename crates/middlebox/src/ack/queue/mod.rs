//! Queues for a slow return link: drop-tail queues that remove acknowledgments which a later one
//! replaces. Two methods decide which, each a queue of its own over the same list.

mod acknowledged;
mod filter;
mod flow_queue;
mod list;
mod thinning;

use bentpipe_link::{Limit, QueueDiscipline};

pub use self::filter::FilterQueue;
pub use self::thinning::{ThinningQueue, WaterMarks};

/// Method by which acknowledgments are removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// ACK suppression (samaraweera1999, section 5).
    Suppression(WaterMarks),
    /// ACK compaction (section 6): the remaining acknowledgment states how many it replaces, at
    /// most 255 with 65,535 bytes. Beyond that, a new run begins.
    Compaction(WaterMarks),
    /// The ACK filter of Linux's CAKE.
    Filter {
        /// `ack-filter-aggressive`: keeps one acknowledgment where `ack-filter` keeps two.
        aggressive: bool,
    },
}

impl Method {
    /// Creates an empty queue with this limit and a table for `flows` flows. When the table is
    /// full, the flow idle for longest is evicted; packets of a flow without an entry pass as
    /// through a drop-tail queue.
    #[must_use]
    pub fn queue(self, limit: Limit, flows: usize) -> Box<dyn QueueDiscipline> {
        match self {
            Self::Suppression(marks) => Box::new(ThinningQueue::suppressing(marks, limit, flows)),
            Self::Compaction(marks) => Box::new(ThinningQueue::compacting(marks, limit, flows)),
            Self::Filter { aggressive } => Box::new(FilterQueue::new(aggressive, limit, flows)),
        }
    }
}

#[cfg(test)]
mod tests;
