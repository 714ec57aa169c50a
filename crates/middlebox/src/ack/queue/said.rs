//! What a flow's packets have said, and what the next one is to that.

use bentpipe_types::{Flags, PacketRef, PacketStore, Seq};

use crate::ack::{Kept, rules};

/// Duplicates that mark a loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// What a flow's packets have said so far, up to the last one that was queued.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// The highest acknowledgment number, and the window that came with it.
    highest: Option<(Seq, u16)>,
    /// Packets that repeat that number.
    repeats: u32,
}

impl Said {
    /// What the packet is to its flow: by how much it advances, or why it has to be kept. Zero: it
    /// repeats a number once more than it takes to mark a loss. Without SACK blocks, `duplicates` of those
    /// are kept.
    pub(super) fn classify(
        &mut self,
        packet: PacketRef,
        duplicates: u32,
        packets: &PacketStore,
    ) -> Result<u32, Kept> {
        let plain = rules::plain(packets, packet);
        let record = packets.get(packet);
        let (acknowledgment, window) = (record.acknowledgment, record.window);
        let seen = self.highest;
        if record.flags.has(Flags::ACK)
            && seen.is_none_or(|(highest, _)| acknowledgment.at_or_after(highest))
        {
            self.highest = Some((acknowledgment, window));
        }
        if seen.is_none_or(|(highest, _)| acknowledgment.after(highest)) {
            self.repeats = 0;
        }
        plain?;
        let (highest, last_window) = seen.ok_or(Kept::First)?;
        if acknowledgment.before(highest) {
            Err(Kept::Stale)
        } else if acknowledgment == highest && window != last_window {
            Err(Kept::WindowUpdate)
        } else if acknowledgment == highest {
            // What a SACK sender takes from more duplicates is in their blocks, and the next one's
            // cover them. Others inflate their window with each (RFC 5681 section 3.2).
            let kept = if record.has_sack_blocks() {
                DUPLICATE_THRESHOLD
            } else {
                duplicates.max(DUPLICATE_THRESHOLD)
            };
            if self.repeats >= kept {
                Ok(0)
            } else {
                self.repeats += 1;
                Err(Kept::Duplicate)
            }
        } else {
            Ok(acknowledgment - highest)
        }
    }
}
