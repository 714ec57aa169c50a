//! Connections that have ended and are in TIME-WAIT.

use std::collections::VecDeque;

use bentpipe_tcp::Config;
use bentpipe_types::{Span, Time};

/// Indices of ended connections, earliest first. The entry of a removed connection stays until its
/// TIME-WAIT would be over.
///
/// TIME-WAIT keeps old segments out of the next connection between the same endpoints, and answers
/// a FIN whose acknowledgment was lost. Both hosts of a split connection do this themselves, with
/// the same sequence numbers. So a gateway with many short connections need not keep each of them
/// for a minute.
#[derive(Debug)]
pub(super) struct EndedConnections {
    entries: VecDeque<(Time, u32)>,
    time_wait: Span,
}

impl EndedConnections {
    /// Returns an empty list, for connections with these two settings.
    pub(super) fn new(tcp: [&Config; 2]) -> Self {
        Self {
            entries: VecDeque::new(),
            time_wait: tcp[0].time_wait.max(tcp[1].time_wait),
        }
    }

    /// Adds a connection that has ended.
    pub(super) fn add(&mut self, index: u32, now: Time) {
        while self
            .entries
            .front()
            .is_some_and(|(at, _)| now.since(*at) > self.time_wait)
        {
            self.entries.pop_front();
        }
        self.entries.push_back((now, index));
    }

    /// Removes and returns the oldest entry. Its connection may be gone, and its index in use by
    /// another one.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.entries.pop_front().map(|(_, index)| index)
    }
}
