//! What is lost and like what was just sent again goes again as copies of one segment.
//!
//! Of a window that overflows a queue, hundreds of thousands of segments are lost, and go again at once. What the first of
//! them takes and is over when it has left (timers, what is said of the window, whether it is an answer) is not
//! done again; what is counted is counted all the same. Nor are those made that the queue has no
//! [room](bentpipe_types::Room) for: they are sent, and dropped, as far as anybody can tell.

use bentpipe_types::{Ctx, Flags, Packet, Port};

use super::known::Nothing;
use super::prediction::Way;
use super::{Connection, Sender};
use crate::recovery::{LossRecovery, Recovery};

impl Connection {
    /// A segment has been sent again just now. Sends again what is lost behind it, as far as it is full segments, the windows
    /// let it, and it is no more than `allowance`. Returns how many bytes.
    pub(super) fn retransmit_alike(
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
        // (Where it belongs follows.)
        self.fill_in(&mut model, 1, full, Flags::ACK, cx.now);
        let most = allowance / u64::from(full);
        let count = self
            .sender
            .retransmit_copies(&model, self.egress, window, most, cx);
        if count > 0 {
            Way::Alike.taken();
            // (That the first one carried an acknowledgment may have changed what is an answer.)
            self.notice_answer::<Nothing>(cx.now);
        }
        count * u64::from(full)
    }
}

impl Sender {
    /// Returns how many were sent.
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
        // All of it was sent before, the peer's window takes it, and there is text behind it.
        let edge = (send.sequence.unacknowledged + send.window)
            .min(send.sequence.next)
            .min(send.end.saturating_sub(1));
        let full = self.negotiated.segment;
        let most = most.min(recovery.fit_again(window, full, &send.sequence, board));
        // (Those that were emitted in this call stand before them.)
        let mut room = cx.room.packets.saturating_sub(cx.outbox.len() as u64);
        let count = recovery.send_again(full, edge, most, cx.now, board, |position| {
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
