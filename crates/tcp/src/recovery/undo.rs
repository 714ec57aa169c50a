//! Detection of spurious loss recovery, by timestamps (Eifel, RFC 3522) and by D-SACK (RFC 3708).
//! The window rule then undoes its reduction (RFC 4015).

use serde::{Deserialize, Serialize};

/// Retransmissions since the last window reduction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Undo {
    // Linux's undo_marker: SND.UNA when recovery began, while an undo is possible.
    marker: Option<u64>,
    // RFC 3522 section 3.2 step 2: RetransmitTS, the timestamp of the first retransmission that may
    // still be in flight, including those of an earlier recovery (Linux's retrans_stamp).
    // Acknowledgments of data that it delivered are not taken for ones of the original
    // transmission.
    retransmitted_at: Option<u32>,
    // Retransmissions not yet reported as unnecessary by a D-SACK, including those before the
    // reduction. `None` before the first retransmission.
    unexplained: Option<u64>,
}

impl Undo {
    /// Prepares for an undo of the next reduction, with `under_way` retransmissions in flight.
    pub(super) fn start(&mut self, unacknowledged: u64, under_way: u64) {
        *self = Self {
            marker: Some(unacknowledged),
            retransmitted_at: self.retransmitted_at.filter(|_| under_way > 0),
            unexplained: (under_way > 0).then_some(under_way),
        };
    }

    /// Makes an undo impossible.
    pub(super) fn stop(&mut self) {
        self.marker = None;
        self.unexplained = None;
    }

    /// SND.UNA at the start of the recovery that may be undone.
    pub(super) const fn marker(&self) -> Option<u64> {
        self.marker
    }

    /// Records retransmitted segments.
    pub(super) fn on_retransmitted(&mut self, stamp: u32, segments: u64) {
        if segments == 0 {
            return;
        }
        self.retransmitted_at.get_or_insert(stamp);
        if self.marker.is_some() {
            self.unexplained = Some(self.unexplained.unwrap_or(0) + segments);
        }
    }

    /// Removes the last retransmission from the count, because it was a probe, which needs no
    /// D-SACK.
    pub(super) fn exclude_probe(&mut self) {
        self.unexplained = self
            .unexplained
            .filter(|&count| count > 1)
            .map(|count| count - 1);
    }

    /// Processes a D-SACK for the data between these positions.
    pub(super) fn on_duplicate(&mut self, (start, end): (u64, u64), segment: u32) {
        if let (Some(marker), Some(unexplained)) = (self.marker, &mut self.unexplained)
            && end > marker
        {
            let segments = (end - start).div_ceil(u64::from(segment.max(1)));
            *unexplained = unexplained.saturating_sub(segments);
        }
    }

    /// RFC 3708 section 3: whether a D-SACK has reported every retransmission as unnecessary.
    pub(super) fn all_explained(&self) -> bool {
        self.marker.is_some() && self.unexplained == Some(0)
    }

    /// RFC 3522 section 3.2 step 4: whether an acknowledgment of new data with this echo answers
    /// the original transmission.
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
    use bentpipe_types::{Span, Time};

    use super::*;
    use crate::HostClock;

    fn at(milliseconds: u64) -> u32 {
        HostClock::default().timestamp(Time::ZERO + Span::from_millis(milliseconds))
    }

    #[test]
    fn nothing_is_undone_after_a_stop() {
        let mut undo = Undo::default();
        undo.start(1, 0);
        undo.on_retransmitted(at(100), 1);
        undo.on_duplicate((1, 1001), 1000);
        assert!(undo.all_explained());
        assert!(undo.answers_original(Some(at(50))));
        undo.stop();
        assert!(!undo.all_explained());
        assert!(!undo.answers_original(Some(at(50))));
        assert_eq!(undo.marker(), None);
    }

    /// A D-SACK of a probe explains a retransmission of an earlier recovery.
    #[test]
    fn a_probe_is_not_counted_but_its_dsack_is() {
        let mut undo = Undo::default();
        undo.start(1, 0);
        undo.on_retransmitted(at(100), 1);
        undo.exclude_probe();
        assert!(!undo.all_explained(), "nothing was sent again but a probe");
        undo.on_retransmitted(at(200), 1);
        undo.on_retransmitted(at(300), 1);
        undo.exclude_probe();
        assert!(!undo.all_explained());
        undo.on_duplicate((3001, 4001), 1000);
        assert!(undo.all_explained());
    }

    /// Two recoveries in a row, with a retransmission of the first in flight. The acknowledgment of
    /// the data that it delivers echoes its timestamp, which is older than the second recovery's
    /// first retransmission.
    #[test]
    fn an_earlier_retransmission_is_no_original() {
        let mut undo = Undo::default();
        undo.start(1, 0);
        undo.on_retransmitted(at(100), 1);
        undo.stop();
        undo.start(5000, 1);
        undo.on_retransmitted(at(300), 1);
        assert!(!undo.answers_original(Some(at(100))));
        assert!(undo.answers_original(Some(at(50))));
        // None in flight: an echo older than the next retransmission shows an original
        // transmission.
        undo.start(9000, 0);
        undo.on_retransmitted(at(500), 1);
        assert!(undo.answers_original(Some(at(300))));
    }
}
