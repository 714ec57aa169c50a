//! A connection at rest: nothing is under way, in either direction, and nothing waits.
//!
//! Whoever has many of them may keep them as bytes: all that a connection is, it says to serde, but for
//! its settings, which many share.

use std::sync::Arc;

use super::Connection;
use crate::Config;

impl Connection {
    /// Is nothing outstanding, or to be sent, or to be read, or missing? Nothing happens then before
    /// somebody says something, or a timer runs out that is for that.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.sender.send.is_idle()
            && self.readable() == 0
            && self.receive.reassembly.is_empty()
            && !self.receive.acknowledge_now
            && self.events.is_empty()
            && (!self.sender.send.has_unsent() || self.state == super::State::Closed)
    }

    /// Its settings, which are not among what it says to serde,
    #[must_use]
    pub fn settings(&self) -> &Arc<Config> {
        &self.sender.config
    }

    /// and have to be put back into one that comes from there.
    pub fn put_settings(&mut self, settings: Arc<Config>) {
        self.sender.config = settings;
        self.changed();
    }
}
