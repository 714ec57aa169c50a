//! Was it a loss at all? Eifel detection by timestamps (RFC 3522), and detection by D-SACK (RFC
//! 3708). What to do then is RFC 4015's: the window rule takes its reduction back.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use crate::timestamp;

/// The retransmissions since the window was last reduced.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Undo {
    // Linux's undo_marker: SND.UNA when recovery began, while there is something to take back.
    marker: Option<u64>,
    // RFC 3522 section 3.2 step 2, RetransmitTS: the timestamp of the first retransmission that may
    // still be under way, of an earlier recovery, too (Linux's retrans_stamp): what that one fills
    // is not acknowledged by an original.
    retransmitted_at: Option<u32>,
    // Retransmissions of which no D-SACK says that they were needless; those of before the
    // reduction, too. None, before the first.
    unexplained: Option<u64>,
}

impl Undo {
    /// The window is about to be reduced, with `under_way` retransmissions in the network.
    pub(super) fn start(&mut self, unacknowledged: u64, under_way: u64) {
        *self = Self {
            marker: Some(unacknowledged),
            retransmitted_at: self.retransmitted_at.filter(|_| under_way > 0),
            unexplained: (under_way > 0).then_some(under_way),
        };
    }

    /// There is nothing to take back any more.
    pub(super) fn stop(&mut self) {
        self.marker = None;
        self.unexplained = None;
    }

    /// Where what may be taken back began.
    pub(super) const fn marker(&self) -> Option<u64> {
        self.marker
    }

    /// So many segments are sent again.
    pub(super) fn on_retransmitted(&mut self, now: Time, segments: u64) {
        if segments == 0 {
            return;
        }
        self.retransmitted_at.get_or_insert(timestamp(now));
        if self.marker.is_some() {
            self.unexplained = Some(self.unexplained.unwrap_or(0) + segments);
        }
    }

    /// What was sent again last was a probe, which needs no explanation.
    pub(super) fn uncount_probe(&mut self) {
        self.unexplained = self
            .unexplained
            .filter(|&count| count > 1)
            .map(|count| count - 1);
    }

    /// A D-SACK: what lies between these positions has arrived twice.
    pub(super) fn on_duplicate(&mut self, (start, end): (u64, u64), segment: u32) {
        if let (Some(marker), Some(unexplained)) = (self.marker, &mut self.unexplained)
            && end > marker
        {
            let segments = (end - start).div_ceil(u64::from(segment.max(1)));
            *unexplained = unexplained.saturating_sub(segments);
        }
    }

    /// RFC 3708 section 3: was every retransmission needless?
    pub(super) fn all_explained(&self) -> bool {
        self.marker.is_some() && self.unexplained == Some(0)
    }

    /// RFC 3522 section 3.2 step 4: does an acknowledgment of new data that echoes this answer the
    /// original transmission?
    pub(super) fn answers_original(&self, echo: Option<u32>) -> bool {
        match (self.retransmitted_at, echo) {
            (Some(at), Some(echo)) if self.marker.is_some() && echo != 0 => {
                (echo.wrapping_sub(at) as i32).is_negative()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Span;

    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    /// A D-SACK of a probe explains what was sent again in a recovery before.
    #[test]
    fn a_probe_is_not_counted_but_its_duplicate_is() {
        let mut undo = Undo::default();
        undo.start(1, 0);
        undo.on_retransmitted(at(100), 1);
        undo.uncount_probe();
        assert!(!undo.all_explained(), "nothing was sent again but a probe");
        undo.on_retransmitted(at(200), 1);
        undo.on_retransmitted(at(300), 1);
        undo.uncount_probe();
        assert!(!undo.all_explained());
        undo.on_duplicate((3001, 4001), 1000);
        assert!(undo.all_explained());
    }

    /// Two recoveries, one after the other, with a retransmission of the first under way: what it
    /// fills is acknowledged with its timestamp, older than the second's first retransmission.
    #[test]
    fn a_retransmission_of_before_is_no_original() {
        let mut undo = Undo::default();
        undo.start(1, 0);
        undo.on_retransmitted(at(100), 1);
        undo.stop();
        undo.start(5000, 1);
        undo.on_retransmitted(at(300), 1);
        assert!(!undo.answers_original(Some(timestamp(at(100)))));
        assert!(undo.answers_original(Some(timestamp(at(50)))));
        // None under way: what is older than the next retransmission is an original.
        undo.start(9000, 0);
        undo.on_retransmitted(at(500), 1);
        assert!(undo.answers_original(Some(timestamp(at(300)))));
    }
}
