//! A connection to which a packet will come is asked for from memory, in two steps: what hangs from it is known once it
//! is there itself.
//!
//! It only pays where nearly all of it is asked for: what is left out is waited for as long as all the rest would be.

use bentpipe_types::fetch;

use super::Connection;

impl Connection {
    /// Asks for the connection itself.
    #[inline]
    pub fn fetch(&self) {
        fetch(
            &self.template,
            size_of::<Self>() / size_of_val(&self.template),
        );
    }

    /// Asks for what hangs from it, once it is there: what a segment needs that brings or acknowledges something, and
    /// one that comes after a loss.
    #[inline]
    pub fn fetch_more(&self) {
        if let Some(sizing) = &self.receive.sizing {
            sizing.fetch();
        }
        if let Some(sizing) = &self.sender.send.sizing {
            sizing.fetch();
        }
        self.receive.reassembly.fetch();
        self.sender.statistics.rtt.fetch();
        self.sender.recovery.fetch();
        self.sender.scoreboard.fetch();
    }
}
