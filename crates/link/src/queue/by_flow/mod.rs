//! What queues that keep flows apart are made of: whose packet it is, where the packets of many queues wait, and
//! which of the queues is the longest.

mod flows;
mod longest;
mod slab;

pub(super) use flows::{Ends, Flows};
pub(super) use longest::{Claim, Claimant, Longest};
pub(super) use slab::{List, Slab};
