//! The processing at the two ends of a direction.

use crate::{Divider, FarEnd, Framing};

/// Processing at the two ends of a direction, besides queue and transmitter.
#[derive(Debug, Default)]
pub struct Ends {
    /// Fragmentation in front of the queue.
    pub divider: Option<Box<dyn Divider>>,
    /// Framings, innermost first.
    pub framings: Vec<Box<dyn Framing>>,
    /// Processing of arrived packets.
    pub far_end: Option<Box<dyn FarEnd>>,
}

impl Ends {
    /// Whether there is no processing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.divider.is_none() && self.framings.is_empty() && self.far_end.is_none()
    }
}
