//! Prefetching of a connection into the cache before its packet arrives.
//!
//! Prefetching proceeds in steps, because pointers to further parts are only known once the
//! connection itself is in the cache, as is whether it is sending. It pays only if nearly all
//! needed lines are prefetched: a single missing line costs as much time as all of them. Unneeded
//! lines are not free, and a data receiver needs only a third of its connection.

use bentpipe_types::{fetch, fetch_behind};

use crate::connection::Connection;

impl Connection {
    /// Prefetches the fields of the connection that nearly every segment needs.
    #[inline]
    pub fn prefetch(&self) {
        self.prefetch_lines(Self::LINES_NEARLY_ALWAYS);
    }

    /// Second step: prefetches the rest of a connection with outstanding data, or the heap parts of
    /// the receiving half of any other.
    #[inline]
    pub fn prefetch_more(&self) {
        if self.sends() {
            self.prefetch_lines(Self::ALL_LINES & !Self::LINES_NEARLY_ALWAYS);
            return;
        }
        if let Some(sizing) = &self.receive.sizing {
            sizing.prefetch();
        }
        self.receive.reassembly.prefetch();
    }

    /// Third step: prefetches the heap parts of the sending half that an acknowledgment needs, also
    /// after a loss.
    #[inline]
    pub fn prefetch_senders(&self) {
        if self.sends() {
            if let Some(sizing) = &self.sender.send.sizing {
                sizing.prefetch();
            }
            self.sender.statistics.rtt.fetch();
            self.sender.recovery.prefetch();
            self.sender.scoreboard.prefetch();
        }
    }

    /// Fourth step: prefetches the queues that the parts of the third step point to.
    #[inline]
    pub fn prefetch_last(&self) {
        if self.sends() {
            if let Some(sizing) = &self.sender.send.sizing {
                sizing.prefetch_queues();
            }
            self.sender.scoreboard.prefetch_queue();
        }
    }

    /// Prefetches the timers, and the events that they raise.
    #[inline]
    pub fn prefetch_timers(&self) {
        fetch(&self.sender.timers, 1);
        fetch(&self.events, 1);
    }

    /// Whether data is outstanding, so that the next segment is an acknowledgment.
    #[inline]
    fn sends(&self) -> bool {
        !self.sender.send.is_idle()
    }

    /// Prefetches the cache lines of this bit mask.
    #[inline(always)]
    fn prefetch_lines(&self, lines: u32) {
        for line in 0..u32::BITS {
            if lines & 1 << line != 0 {
                fetch_behind(&self.template, line as usize);
            }
        }
    }
}
