//! Retransmission of a run of equal lost segments as copies of one packet.
//!
//! When a window overflows a queue, hundreds of thousands of segments may be lost and retransmitted
//! at once. Work that the first of them completes (timers, window field, interactive-mode
//! detection) is not repeated for the others; counters are updated. Packets for which the queue has
//! no [room](bentpipe_types::Room) are not created: they count as sent and dropped.

use bentpipe_types::{Ctx, Flags, Packet, Port};

use super::TakenPath;
use crate::connection::specialization::General;
use crate::connection::{Connection, Sender};
use crate::recovery::{LossRecovery, Recovery};

impl Connection {
    /// Retransmits the lost segments that follow the one just retransmitted, as long as they are
    /// full segments, the windows admit them, and `allowance` is not exceeded. Returns how many
    /// bytes were sent.
    pub(in crate::connection) fn retransmit_equal_segments(
        &mut self,
        window: u64,
        allowance: u64,
        cx: &mut Ctx<'_>,
    ) -> u64 {
        let sender = &self.sender;
        let alike = sender.config.header_prediction
            && sender.send.records.is_empty()
            && !sender.ecn.is_on()
            && !sender.is_paced()
            && !self.receive.has_blocks();
        let full = sender.negotiated.segment;
        if !alike || full == 0 {
            return 0;
        }
        let mut model = self.template;
        // `retransmit_copies` fills in the position.
        self.fill_segment(&mut model, 1, full, Flags::ACK, cx.now);
        let most = allowance / u64::from(full);
        let count = self
            .sender
            .retransmit_copies(&model, self.egress, window, most, cx);
        if count > 0 {
            TakenPath::Alike.count();
            // The first segment carried an acknowledgment, which may affect interactive-mode
            // detection.
            self.detect_answer::<General>(cx.now);
        }
        count * u64::from(full)
    }
}

impl Sender {
    /// Retransmits up to `most` lost segments as copies of `model`. Returns how many were sent.
    #[inline(never)]
    fn retransmit_copies(
        &mut self,
        model: &Packet,
        egress: Port,
        window: u64,
        most: u64,
        cx: &mut Ctx<'_>,
    ) -> u64 {
        let Recovery::Selective(recovery) = &mut self.recovery else {
            return 0;
        };
        let (send, board) = (&self.send, &mut self.scoreboard);
        // All of it was sent before, the peer's window admits it, and data follows it.
        let edge = (send.sequence.unacknowledged + send.window)
            .min(send.sequence.next)
            .min(send.end.saturating_sub(1));
        let full = self.negotiated.segment;
        let most = most.min(recovery.retransmissions_that_fit(window, full, &send.sequence, board));
        // Packets already emitted in this call are ahead in the queue.
        let mut room = cx.room.packets.saturating_sub(cx.outbox.len() as u64);
        let count = recovery.retransmit_run(full, edge, most, cx.now, board, |position| {
            if room == 0 {
                cx.room.unmade += 1;
                return;
            }
            room -= 1;
            let (reference, packet) = cx.packets.insert_copy(model);
            packet.sequence = send.wire(position);
            packet.payload_offset = position - 1;
            cx.outbox.push((egress, reference));
        });
        recovery.on_sent(count * u64::from(full));
        self.statistics.segments_sent += count;
        self.statistics.segments_retransmitted += count;
        count
    }
}
