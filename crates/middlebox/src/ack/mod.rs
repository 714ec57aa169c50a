//! Treatment of acknowledgments on a slow return link.

mod counters;
mod expand;
mod expander_counters;
#[cfg(test)]
mod properties;
mod queue;
mod reconstruct;
mod rules;
mod space;

pub use counters::AckCounters;
pub use expand::{Expander, ExpanderSettings};
pub use expander_counters::{ExpanderCounters, Refusal};
pub use queue::{FilterQueue, Method, ThinningQueue, WaterMarks};
pub use reconstruct::{Reconstructor, ReconstructorCounters, ReconstructorSettings};
pub use rules::KeepReason;
pub use space::Spacing;
