//! Update of the scoreboard by an acknowledgment.

use bentpipe_types::{Packet, SackBlock, Time};

use super::SackReport;
use crate::connection::Sender;
use crate::recovery::{Arrival, LossRecovery};

impl Sender {
    /// Updates the scoreboard with the data that the acknowledgment reports (RFC 6675 section 5).
    /// `ADVANCES`: SND.UNA has moved.
    #[inline(always)]
    pub(super) fn update_scoreboard<const ADVANCES: bool>(
        &mut self,
        packet: &Packet,
        report: SackReport<'_>,
        now: Time,
    ) {
        if let SackReport::OneMore(covered) = report {
            // A segment sent once needs no decision about which transmission arrived.
            self.scoreboard.begin_in_order(now);
            self.scoreboard.sack_one_more(covered);
            self.timers.request_review();
            return;
        }
        let selective = self.recovery.uses_sack();
        let arrival = if selective && self.scoreboard.has_retransmitted() {
            Arrival {
                now,
                echo: self.echo(packet),
                minimum_rtt: self.recovery.minimum_rtt(),
            }
        } else {
            Arrival {
                now,
                ..Arrival::default()
            }
        };
        let sequence = &self.send.sequence;
        if ADVANCES {
            self.scoreboard
                .acknowledge(sequence.unacknowledged, arrival);
        } else {
            self.scoreboard.begin(arrival);
        }
        if !selective {
            return;
        }
        if let SackReport::Blocks(Some(blocks)) = report {
            self.process_sack_blocks(packet, blocks);
        }
        self.timers.request_review();
    }

    /// Updates the scoreboard with the SACK blocks.
    #[inline(never)]
    fn process_sack_blocks(&mut self, packet: &Packet, blocks: &[SackBlock]) {
        let again = self.dsack_of_sacked_retransmission(packet, blocks);
        let (from, to) = (
            self.send.sequence.unacknowledged,
            self.send.sequence.highest,
        );
        let board = &mut self.scoreboard;
        board.sack(blocks, from, packet.acknowledgment, to);
        self.statistics.sack_blocks_ignored = board.ignored_blocks();
        if let Some(start) = again {
            board.set_late_duplicate_at(start);
        }
        if board.delivered().is_reordered() {
            board.measure_reordering();
        }
    }

    /// Start of the first block, if it may be a D-SACK (RFC 2883 section 4) for data that was both
    /// SACKed and retransmitted before.
    fn dsack_of_sacked_retransmission(&self, packet: &Packet, blocks: &[SackBlock]) -> Option<u64> {
        let (first, rest) = blocks.split_first()?;
        let distance = i64::from(first.start.distance_from(packet.acknowledgment));
        let inside = |second: &SackBlock| {
            second.start.at_or_before(first.start) && first.end.at_or_before(second.end)
        };
        if !self.scoreboard.has_retransmitted()
            || !self.quirks().recovery.learns_reordering_from_dsack
            || distance >= 0 && !rest.first().is_some_and(inside)
        {
            return None;
        }
        let start = (self.send.sequence.unacknowledged).checked_add_signed(distance)?;
        (self.scoreboard.is_sacked_retransmission(start)).then_some(start)
    }
}
