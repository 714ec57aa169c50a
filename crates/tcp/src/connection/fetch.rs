//! A connection to which a packet will come is asked for from memory, in steps: what hangs from it is known once it
//! is there itself, and whether it is one that sends.
//!
//! It only pays where nearly all of it is asked for: what is left out is waited for as long as all the rest would be. But
//! nor is it free to ask for what is not needed, and an end that is sent text needs a third of its connection.

use bentpipe_types::{fetch, fetch_behind};

use super::Connection;
use super::layout::{ALL, NEARLY_ALWAYS};

impl Connection {
    /// Asks for what nearly every segment needs of the connection itself.
    #[inline]
    pub fn fetch(&self) {
        self.fetch_lines(NEARLY_ALWAYS);
    }

    /// Asks for more, once that is there: for all the rest of a connection of which something is outstanding, and for what
    /// hangs from the other half of one of which nothing is.
    #[inline]
    pub fn fetch_more(&self) {
        if self.sends() {
            self.fetch_lines(ALL & !NEARLY_ALWAYS);
            return;
        }
        if let Some(sizing) = &self.receive.sizing {
            sizing.fetch();
        }
        self.receive.reassembly.fetch();
    }

    /// Asks for what hangs from the half that sends, once that is there: what an acknowledgment needs, after a loss, too.
    #[inline]
    pub fn fetch_senders(&self) {
        if self.sends() {
            if let Some(sizing) = &self.sender.send.sizing {
                sizing.fetch();
            }
            self.sender.statistics.rtt.fetch();
            self.sender.recovery.fetch();
            self.sender.scoreboard.fetch();
        }
    }

    /// Asks for what hangs from that.
    #[inline]
    pub fn fetch_last(&self) {
        if self.sends() {
            if let Some(sizing) = &self.sender.send.sizing {
                sizing.fetch_queues();
            }
            self.sender.scoreboard.fetch_queue();
        }
    }

    /// Asks for the timers, and for what is told of what they do.
    #[inline]
    pub fn fetch_timers(&self) {
        fetch(&self.sender.timers, 1);
        fetch(&self.events, 1);
    }

    /// Is something outstanding, so that what comes acknowledges it?
    #[inline]
    fn sends(&self) -> bool {
        !self.sender.send.is_idle()
    }

    /// Asks for these cache lines of it, a bit each.
    #[inline(always)]
    fn fetch_lines(&self, lines: u32) {
        for line in 0..u32::BITS {
            if lines & 1 << line != 0 {
                fetch_behind(&self.template, line as usize);
            }
        }
    }
}
