//! Acknowledgments on a return link that is too slow for them.

mod counters;
mod expand;
#[cfg(test)]
mod properties;
mod queue;
mod reconstruct;
mod rules;
mod space;

pub use counters::AckCounters;
pub use expand::{Expander, ExpanderCounters, ExpanderSettings, Refusal};
pub use queue::{FilterQueue, Method, ThinningQueue, WaterMarks};
pub use reconstruct::{Reconstructor, ReconstructorCounters, ReconstructorSettings};
pub use rules::Kept;
pub use space::Spacing;
