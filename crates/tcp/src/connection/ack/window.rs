//! What an acknowledgment says of the peer's window.

use bentpipe_types::{Flags, Packet};

use crate::connection::Sender;

impl Sender {
    /// RFC 9293 section 3.10.7.4 step 5: SND.WND, unless the segment is older than the last one
    /// that said anything of it. As in Linux also when it acknowledges new data, whatever its
    /// sequence number: one false segment must not fix the window for ever. SND.WL2 is not kept,
    /// because here it is never after SEG.ACK. `SCALED`: the segment is no SYN.
    #[inline]
    pub(in crate::connection) fn update_window<const SCALED: bool>(
        &mut self,
        packet: &Packet,
        advances: bool,
    ) {
        if advances
            || self.send.window_sequence.at_or_before(packet.sequence)
                && !self.keeps_window::<SCALED>(packet)
        {
            // RFC 7323 section 2.2: never scaled in a SYN
            let shift = if !SCALED && packet.flags.has(Flags::SYN) {
                0
            } else {
                self.negotiated.send_shift
            };
            self.set_window(packet, shift);
        }
    }

    /// Does the window stay as it is, because this segment is no newer than what told of it, and would not close it?
    #[inline]
    fn keeps_window<const SCALED: bool>(&self, packet: &Packet) -> bool {
        packet.sequence == self.send.window_sequence
            && packet.window > 0
            && self.config.habits.keeps_window
            && (SCALED || !packet.flags.has(Flags::SYN))
            && u64::from(packet.window) << self.negotiated.send_shift < self.send.window
    }

    /// The same, of a segment that says the window that is known.
    #[inline]
    pub(in crate::connection) fn note_same_window(&mut self, packet: &Packet) {
        let send = &mut self.send;
        if send.window_sequence.at_or_before(packet.sequence) {
            send.window_sequence = packet.sequence;
        }
    }

    /// SND.WND is what this segment says.
    #[inline]
    pub(in crate::connection) fn set_window(&mut self, packet: &Packet, shift: u8) {
        let send = &mut self.send;
        send.window = u64::from(packet.window) << shift;
        if send.window > send.window_maximum {
            send.window_maximum = send.window;
        }
        send.window_sequence = packet.sequence;
    }
}
