//! Segments that pass every check of the general path.
//!
//! Such a segment needs none of the steps of RFC 9293 section 3.10.7.4 for resets, SYN and FIN.

use bentpipe_types::{Ctx, Flags, Packet, SackBlocks};

use crate::connection::receive::UNSET;
use crate::connection::{Accepted, Connection, State};

/// Flags that a segment on the fast path must not have.
const SPECIAL_FLAGS: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::URG.0);

impl Connection {
    /// Processes a segment that passes every check, like
    /// [`process_by_rfc_steps`](Self::process_by_rfc_steps).
    #[inline]
    pub(super) fn process_ordinary_segment(
        &mut self,
        packet: &Packet,
        start: i64,
        sack: Option<&SackBlocks>,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let mut accepted = None;
        let asks = self.reconsiders_delayed_ack(packet);
        if self.acknowledgment(packet, sack, cx.now) {
            self.update_timestamp(packet, start, cx.now);
            if self.sender.send.fin_acknowledged() {
                self.fin_acknowledged(cx);
            }
            if self.receive.reader_gone && packet.payload_length > 0 {
                self.reset_for_data(packet, cx);
            } else if packet.payload_length > 0 {
                accepted = self.accept_data(packet, start, cx.now);
            }
            if asks {
                self.reconsider_delayed_ack(cx.now);
            }
        }
        self.output(cx);
        accepted
    }

    /// Header prediction: checks that the connection is established, that the segment is in the
    /// window or is an acknowledgment, and that it has no other features except SACK blocks. Such a
    /// segment passes every check of the general path. Returns its distance from RCV.NXT.
    #[inline]
    pub(super) fn check_ordinary(&self, packet: &Packet) -> Option<i64> {
        let timestamps = match packet.timestamps() {
            Some((value, _)) => {
                self.sender.negotiated.timestamps
                    && value.wrapping_sub(self.receive.timestamp_recent) as i32 >= 0
            }
            None => !self.sender.negotiated.timestamps,
        };
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));
        let end = start + i64::from(packet.payload_length);
        let ordinary = self.sender.config.header_prediction
            && matches!(self.state, State::Established | State::FinWait1)
            && !packet.flags.has(SPECIAL_FLAGS)
            && !self.sender.ecn.is_on()
            && packet.flags.has(Flags::ACK)
            && start >= 0
            && end <= self.receive.window() as i64
            && self.receive.fin == UNSET
            && timestamps
            && (self.sender.negotiated.sack || !packet.has_sack_blocks());
        ordinary.then_some(start)
    }
}
