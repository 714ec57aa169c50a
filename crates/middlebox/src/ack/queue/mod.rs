//! Queues in front of a slow return link: drop-tail, but for the acknowledgments that a later one makes
//! superfluous. Two algorithms decide which those are, each a queue of its own over the same list.

mod filter;
mod flow_queue;
mod list;
mod said;
mod thinning;

use bentpipe_link::{Limit, QueueDiscipline};

pub use self::filter::FilterQueue;
pub use self::thinning::{ThinningQueue, WaterMarks};

/// Which acknowledgments are removed, and what is left in their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// ACK suppression (samaraweera1999, section 5).
    Suppression(WaterMarks),
    /// ACK compaction (section 6): the one that is left says how many there were. Removes at most 255
    /// in favour of one, and 65,535 bytes: what follows starts anew.
    Compaction(WaterMarks),
    /// The ACK filter of Linux's CAKE.
    Filter {
        /// `ack-filter-aggressive`: keeps one where `ack-filter` keeps two.
        aggressive: bool,
    },
}

impl Method {
    /// An empty queue in which so much may wait. It keeps count of so many flows: one more, and the flow
    /// longest idle is forgotten; packets of a flow that finds no room pass as through any drop-tail
    /// queue.
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
