//! Selection of the next segment to send: its length, or the reason why none may be sent.

use super::Connection;
use super::send_state::SendState;
use super::specialization::{General, Specialization};
use crate::options::sack_length;

/// The next segment, or the limit that prevents it.
pub(super) enum NextSegment {
    /// This many bytes from SND.NXT on (0: a FIN without data).
    Send(u32),
    /// Nothing is left to send, or Nagle's algorithm holds it back.
    Nothing,
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window has no room for a segment worth sending.
    PeerWindow,
    /// The application has announced more data.
    Corked,
}

impl Connection {
    /// Determines the next segment, given `room` bytes in the congestion window. `open`: the
    /// [limit](SendState::open_until) of both the written data and the peer's window.
    #[inline(always)]
    pub(super) fn next_segment<K: Specialization>(&self, room: u64, open: u64) -> NextSegment {
        let send = &self.sender.send;
        let full = if K::NEW_DATA_ONLY {
            self.sender.negotiated.segment
        } else {
            self.payload_limit()
        };
        if K::NEW_DATA_ONLY && send.sequence.next + u64::from(full) <= open {
            // RFC 9293 section 3.9.1.2: a full-sized segment whenever possible.
            return if room < u64::from(full) {
                NextSegment::CongestionWindow
            } else {
                NextSegment::Send(full)
            };
        }
        if send.unsent() < u64::from(full) || !K::NEW_DATA_ONLY && !send.records.is_empty() {
            return self.next_short_segment(full, room);
        }
        // RFC 6675 section 4: NextSeg () rule 2, within the receive window.
        send.admits::<K>(full, room)
    }

    /// Determines the next segment where it may be shorter than a full one, or nothing is left.
    #[inline(never)]
    fn next_short_segment(&self, full: u32, mut room: u64) -> NextSegment {
        if self.sender.scoreboard.has_short() {
            // Short segments that were just sent count as full ones.
            let in_flight = self.sender.in_flight();
            room = room.min(self.sender.sending_window().saturating_sub(in_flight));
        }
        let send = &self.sender.send;
        let sequence = &send.sequence;
        let Some(length) = self.next_length(full) else {
            return NextSegment::Nothing;
        };
        if length == 0
            && self.quirks().sending.fin_waits_for_window
            && self.sender.recovery_phase() == crate::RecoveryPhase::AfterTimeout
        {
            let segment = u64::from(self.sender.negotiated.segment.max(1));
            if self.sender.in_flight().div_ceil(segment) >= self.sender.sending_window() / segment {
                return NextSegment::CongestionWindow;
            }
        }
        let next = send.admits::<General>(length, room);
        if !matches!(next, NextSegment::Send(admitted) if admitted == length) {
            return next;
        }
        // RFC 9293 section 3.7.4: Nagle's algorithm, in Minshall's variant as in Linux. Only a
        // small segment waits, and only for an earlier small one. Unlike with the RFC's, the end of
        // a transfer does not wait for the full segments before it. Retransmissions do not wait.
        let last = sequence.next + u64::from(length) == send.end;
        if length < full && last && sequence.next >= sequence.highest && !send.fin {
            if send.more || send.cork {
                return NextSegment::Corked;
            }
            if self.sender.config.nagle && send.small_end > sequence.unacknowledged {
                return NextSegment::Nothing;
            }
        }
        next
    }

    /// Length of a tail loss probe of new data (RFC 8985 section 7.3): as much as the peer's window
    /// admits, whatever else holds it back.
    pub(super) fn next_probe_length(&self) -> Option<u32> {
        let length = self.next_length(self.payload_limit())?;
        match self.sender.send.admits::<General>(length, u64::MAX) {
            NextSegment::Send(length) => Some(length),
            _ => None,
        }
    }

    /// Payload of the next segment with respect to the unsent data.
    fn next_length(&self, full: u32) -> Option<u32> {
        let send = &self.sender.send;
        let unsent = send.unsent_of_record().unwrap_or(send.unsent());
        send.has_unsent()
            .then(|| unsent.min(u64::from(full)) as u32)
    }

    /// Payload of a full segment at present: SACK blocks reduce it (RFC 6691 section 2).
    #[inline]
    pub(super) fn payload_limit(&self) -> u32 {
        let segment = self.sender.negotiated.segment;
        if !self.receive.has_blocks() {
            return segment;
        }
        segment - u32::from(self.sack_room_in_data())
    }

    /// Room reserved for SACK blocks in a data segment; 0 if that were a large part of it.
    fn sack_room_in_data(&self) -> u8 {
        if self.quirks().acks.fits_sack_blocks {
            return self.sack_block_room();
        }
        let room = sack_length(self.maximum_sack_blocks());
        if self.sender.negotiated.sack && self.sender.negotiated.segment > 4 * u32::from(room) {
            room
        } else {
            0
        }
    }

    /// Room that the current SACK blocks need.
    #[inline(never)]
    fn sack_block_room(&self) -> u8 {
        let most = self.maximum_sack_blocks();
        let blocks = match self.receive.duplicate {
            _ if !self.sender.negotiated.sack => return 0,
            None => self.receive.sack_blocks().unwrap_or_default(),
            Some(duplicate) => self.receive.dsack_and_sack_blocks(duplicate, most),
        };
        let room = sack_length(blocks.as_slice().len().min(most));
        // At least one byte of payload remains.
        let spare = self.sender.negotiated.segment.saturating_sub(1);
        room.min(u8::try_from(spare).unwrap_or(u8::MAX))
    }

    /// RFC 2018 section 3: 40 bytes of options hold four blocks, or three with timestamps.
    pub(super) fn maximum_sack_blocks(&self) -> usize {
        if self.sender.negotiated.timestamps {
            3
        } else {
            4
        }
    }
}

impl SendState {
    /// Part of the next `length` bytes that both windows admit, given `room` bytes in the
    /// congestion window.
    #[inline(always)]
    fn admits<K: Specialization>(&self, length: u32, room: u64) -> NextSegment {
        let wanted = u64::from(length);
        let usable = self.usable();
        // RFC 9293 section 3.8.6.2.1, rules 1 and 2 (D <= U): silly window avoidance.
        if usable < wanted {
            // RFC 9293 section 3.8.6.2.1, rule 3, with Fs = 1/2.
            let waits = K::NEW_DATA_ONLY || self.sequence.outstanding() > 0;
            if waits || usable == 0 || usable < self.window_maximum / 2 {
                return NextSegment::PeerWindow;
            }
            return NextSegment::Send(usable.min(room.max(1)) as u32);
        }
        // RFC 5681 section 2: "At any given time, a TCP MUST NOT send data with a sequence number
        // higher than the sum of the highest acknowledged sequence number and the minimum of cwnd
        // and rwnd." RFC 5681 section 3: nor more aggressively than cwnd allows.
        if room < wanted {
            return NextSegment::CongestionWindow;
        }
        NextSegment::Send(length)
    }
}
