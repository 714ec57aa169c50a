//! Parts of queues with a queue per flow: flow assignment, storage of packets, and the longest
//! queue.

mod flows;
mod longest;
mod slab;

pub(super) use flows::{Ends, Flows};
pub(super) use longest::{Claim, Claimant, Longest};
pub(super) use slab::{List, Slab};
