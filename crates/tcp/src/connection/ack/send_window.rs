//! Update of the send window by an acknowledgment.

use bentpipe_types::{Flags, Packet};

use crate::connection::Sender;

impl Sender {
    /// RFC 9293 section 3.10.7.4 step 5: updates SND.WND, unless the segment is older than the one
    /// of the last update. As in Linux also if it acknowledges new data, whatever its sequence
    /// number: a single forged segment must not freeze the window. SND.WL2 is not kept, because
    /// here it is never after SEG.ACK. `SCALED`: the segment is no SYN.
    #[inline]
    pub(in crate::connection) fn update_window<const SCALED: bool>(
        &mut self,
        packet: &Packet,
        advances: bool,
    ) {
        if advances
            || self.send.window_sequence.at_or_before(packet.sequence)
                && !self.window_stays::<SCALED>(packet)
        {
            // RFC 7323 section 2.2: the window field of a SYN is never scaled.
            let shift = if !SCALED && packet.flags.has(Flags::SYN) {
                0
            } else {
                self.negotiated.send_shift
            };
            self.set_window(packet, shift);
        }
    }

    /// Whether the window stays, because this segment is no newer than the last update and would
    /// only shrink the window, not close it.
    #[inline]
    fn window_stays<const SCALED: bool>(&self, packet: &Packet) -> bool {
        packet.sequence == self.send.window_sequence
            && packet.window > 0
            && self.quirks().acceptance.ignores_window_shrink
            && (SCALED || !packet.flags.has(Flags::SYN))
            && u64::from(packet.window) << self.negotiated.send_shift < self.send.window
    }

    /// Records a window update that repeats the current window.
    #[inline]
    pub(in crate::connection) fn record_same_window(&mut self, packet: &Packet) {
        let send = &mut self.send;
        if send.window_sequence.at_or_before(packet.sequence) {
            send.window_sequence = packet.sequence;
        }
    }

    /// Sets SND.WND from this segment.
    #[inline]
    pub(in crate::connection) fn set_window(&mut self, packet: &Packet, shift: u8) {
        let send = &mut self.send;
        // RFC 9293 section 3.1: the window is unsigned, and computed with more than 32 bits.
        // RFC 7323 section 2.3: the field of a segment that is no SYN is shifted left.
        send.window = u64::from(packet.window) << shift;
        if send.window > send.window_maximum {
            send.window_maximum = send.window;
        }
        send.window_sequence = packet.sequence;
    }
}
