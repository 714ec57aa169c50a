//! Connections that are over, of which TIME-WAIT alone is left.

use std::collections::VecDeque;

use bentpipe_tcp::Config;
use bentpipe_types::{Span, Time};

/// Those that are over, the earliest first, by index. One that is gone leaves its entry, for as long as TIME-WAIT lasts.
///
/// TIME-WAIT keeps old segments of a connection from the next one between the same ends, and answers a FIN whose
/// acknowledgment was lost. Both ends of a split connection do that themselves, in the same sequence numbers; so where many
/// connections come and go, a gateway need not remember each for a minute.
#[derive(Debug)]
pub(super) struct Ended {
    of: VecDeque<(Time, u32)>,
    time_wait: Span,
}

impl Ended {
    /// None yet, of connections of these two kinds.
    pub(super) fn new(tcp: [&Config; 2]) -> Self {
        Self {
            of: VecDeque::new(),
            time_wait: tcp[0].time_wait.max(tcp[1].time_wait),
        }
    }

    /// One is over.
    pub(super) fn add(&mut self, index: u32, now: Time) {
        while self
            .of
            .front()
            .is_some_and(|(at, _)| now.since(*at) > self.time_wait)
        {
            self.of.pop_front();
        }
        self.of.push_back((now, index));
    }

    /// The one that has been over for longest, or what has taken its place.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.of.pop_front().map(|(_, index)| index)
    }
}
