//! The acknowledgments of a flow so far, and the classification of its next packet.

use bentpipe_types::{Flags, PacketRef, PacketStore, Seq};

use crate::ack::{KeepReason, rules};

/// Number of duplicates that signal a loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// The acknowledgments of a flow up to the last packet that was queued.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acknowledged {
    /// The highest acknowledgment number and its window.
    highest: Option<(Seq, u16)>,
    /// Number of packets that repeated that number.
    repeats: u32,
}

impl Acknowledged {
    /// Classifies a packet: by how much it advances, or why it must be kept. Zero means that it
    /// repeats a number more often than needed to signal a loss. Without SACK blocks, `duplicates`
    /// repetitions are kept.
    pub(super) fn classify(
        &mut self,
        packet: PacketRef,
        duplicates: u32,
        packets: &PacketStore,
    ) -> Result<u32, KeepReason> {
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
        let (highest, last_window) = seen.ok_or(KeepReason::First)?;
        if acknowledgment.before(highest) {
            Err(KeepReason::Stale)
        } else if acknowledgment == highest && window != last_window {
            Err(KeepReason::WindowUpdate)
        } else if acknowledgment == highest {
            // A SACK sender uses the blocks of further duplicates, and the next duplicate covers
            // them. Without SACK every duplicate inflates the window (RFC 5681 section 3.2).
            let kept = if record.has_sack_blocks() {
                DUPLICATE_THRESHOLD
            } else {
                duplicates.max(DUPLICATE_THRESHOLD)
            };
            if self.repeats >= kept {
                Ok(0)
            } else {
                self.repeats += 1;
                Err(KeepReason::Duplicate)
            }
        } else {
            Ok(acknowledgment - highest)
        }
    }
}
