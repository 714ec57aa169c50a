//! Suspending idle connections: saving a connection with nothing outstanding in either direction.
//!
//! A program with many idle connections may keep them in serialized form. A connection serializes
//! completely, except its settings, which are shared by many connections.

use std::sync::Arc;

use super::Connection;
use crate::Config;

impl Connection {
    /// Whether nothing is outstanding, to be sent, to be read or missing. Until the next packet,
    /// call of the application or timer, such a connection does nothing.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.sender.send.is_idle()
            && self.readable() == 0
            && self.receive.reassembly.is_empty()
            && !self.receive.acknowledge_now
            && self.events.is_empty()
            && (!self.sender.send.has_unsent() || self.state == super::State::Closed)
    }

    /// The connection's settings, which are not serialized.
    #[must_use]
    pub fn settings(&self) -> &Arc<Config> {
        &self.sender.config
    }

    /// Restores the settings after deserialization.
    pub fn restore_settings(&mut self, settings: Arc<Config>) {
        self.sender.config = settings;
        self.invalidate_fast_path();
    }
}
