//! What stands at the two ends of a direction.

use crate::{Divider, FarEnd, Framing};

/// What stands at the two ends of a direction, besides queue and transmitter.
#[derive(Debug, Default)]
pub struct Ends {
    /// What cuts packets in front of the queue.
    pub divider: Option<Box<dyn Divider>>,
    /// What turns packets into what is on the link, and back; the first is the innermost.
    pub framings: Vec<Box<dyn Framing>>,
    /// What works on the packets that arrived.
    pub far_end: Option<Box<dyn FarEnd>>,
}

impl Ends {
    /// Is there nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.divider.is_none() && self.framings.is_empty() && self.far_end.is_none()
    }
}
