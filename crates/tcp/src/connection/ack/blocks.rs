//! Update of the scoreboard by an acknowledgment.

use bentpipe_types::{Packet, SackBlock, Time};

use super::Told;
use crate::connection::Sender;
use crate::recovery::{Arrival, LossRecovery};

impl Sender {
    /// Updates the scoreboard with the data that the acknowledgment reports. `ADVANCES`: SND.UNA
    /// has moved.
    #[inline(always)]
    pub(super) fn update_scoreboard<const ADVANCES: bool>(
        &mut self,
        packet: &Packet,
        told: Told<'_>,
        now: Time,
    ) {
        if let Told::OneMore(covered) = told {
            // A segment sent once needs no decision about which transmission arrived.
            self.scoreboard.begin_plainly(now);
            self.scoreboard.sack_one_more(covered);
            self.timers.look();
            return;
        }
        let selective = self.recovery.hears_blocks();
        let arrival = if selective && self.scoreboard.has_sent_again() {
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
        if let Told::Blocks(Some(blocks)) = told {
            self.take_blocks(packet, blocks);
        }
        self.timers.look();
    }

    /// Updates the scoreboard with the SACK blocks.
    #[inline(never)]
    fn take_blocks(&mut self, packet: &Packet, blocks: &[SackBlock]) {
        let again = self.sent_again_and_sacked(packet, blocks);
        let (from, to) = (
            self.send.sequence.unacknowledged,
            self.send.sequence.highest,
        );
        let board = &mut self.scoreboard;
        board.sack(blocks, from, packet.acknowledgment, to);
        self.statistics.sack_blocks_ignored = board.ignored_blocks();
        if let Some(start) = again {
            board.note_late_twice(start);
        }
        if board.delivered().is_reordered() {
            board.measure_reordering();
        }
    }

    /// Start of the first block, if it may be a D-SACK (RFC 2883 section 4) for data that was both
    /// SACKed and retransmitted before.
    fn sent_again_and_sacked(&self, packet: &Packet, blocks: &[SackBlock]) -> Option<u64> {
        let (first, rest) = blocks.split_first()?;
        let distance = i64::from(first.start.distance_from(packet.acknowledgment));
        let inside = |second: &SackBlock| {
            second.start.at_or_before(first.start) && first.end.at_or_before(second.end)
        };
        if !self.scoreboard.has_sent_again()
            || !self.config.habits.learns_from_duplicates
            || distance >= 0 && !rest.first().is_some_and(inside)
        {
            return None;
        }
        let start = (self.send.sequence.unacknowledged).checked_add_signed(distance)?;
        (self.scoreboard.is_sacked_and_sent_again(start)).then_some(start)
    }
}
