//! What may be sent next: how long the next segment is, and what keeps it from being sent.

use super::Connection;
use super::known::{Known, Nothing};
use super::send::Send;
use crate::options::sack_length;

/// What the stream lets us send next.
pub(super) enum Next {
    /// This many bytes from SND.NXT on (none: the FIN alone).
    Send(u32),
    /// Nothing is left, or Nagle's algorithm holds it back.
    Nothing,
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window has no room for a segment worth sending.
    PeerWindow,
    /// The application said that there is more to come.
    Corked,
}

impl Connection {
    /// What may be sent next, if there is so much room in the congestion window. [`open`](Send::open_until) is how far
    /// both what was written and the peer's window go.
    #[inline(always)]
    pub(super) fn next_to_send<K: Known>(&self, room: u64, open: u64) -> Next {
        let send = &self.sender.send;
        let full = if K::PLAIN {
            self.sender.negotiated.segment
        } else {
            self.payload_limit()
        };
        if K::PLAIN && send.sequence.next + u64::from(full) <= open {
            return if room < u64::from(full) {
                Next::CongestionWindow
            } else {
                Next::Send(full)
            };
        }
        if send.unsent() < u64::from(full) || !K::PLAIN && !send.records.is_empty() {
            return self.short_next(full, room);
        }
        send.admits::<K>(full, room)
    }

    /// The same, where it need not be a full segment, or nothing is left.
    #[inline(never)]
    fn short_next(&self, full: u32, mut room: u64) -> Next {
        if self.sender.scoreboard.has_short() {
            // What has just left may have been short, and takes the room of a full one.
            let in_flight = self.sender.in_flight();
            room = room.min(self.sender.sending_window().saturating_sub(in_flight));
        }
        let send = &self.sender.send;
        let sequence = &send.sequence;
        let Some(length) = self.next_length(full) else {
            return Next::Nothing;
        };
        if length == 0
            && self.sender.config.habits.counts_fin
            && self.sender.recovery_phase() == crate::RecoveryPhase::AfterTimeout
        {
            let segment = u64::from(self.sender.negotiated.segment.max(1));
            if self.sender.in_flight().div_ceil(segment) >= self.sender.sending_window() / segment {
                return Next::CongestionWindow;
            }
        }
        let next = send.admits::<Nothing>(length, room);
        if !matches!(next, Next::Send(admitted) if admitted == length) {
            return next;
        }
        // Nagle (RFC 9293 section 3.7.4) as Minshall has it and Linux does: only a small segment
        // waits, and only for an earlier small one. Unlike the RFC's, the end of a transfer doesn't
        // wait for the full segments before it. What was sent before does not wait at all.
        let last = sequence.next + u64::from(length) == send.end;
        if length < full && last && sequence.next >= sequence.highest && !send.fin {
            if send.more || send.cork {
                return Next::Corked;
            }
            if self.sender.config.nagle && send.small_end > sequence.unacknowledged {
                return Next::Nothing;
            }
        }
        next
    }

    /// What may be sent next as a tail loss probe (RFC 8985 section 7.3): what the peer's window admits of what waits,
    /// whatever it waits for.
    pub(super) fn next_probe(&self) -> Option<u32> {
        let length = self.next_length(self.payload_limit())?;
        match self.sender.send.admits::<Nothing>(length, u64::MAX) {
            Next::Send(length) => Some(length),
            _ => None,
        }
    }

    /// How much one segment would take of what is unsent.
    fn next_length(&self, full: u32) -> Option<u32> {
        let send = &self.sender.send;
        let unsent = send.unsent_of_record().unwrap_or(send.unsent());
        send.has_unsent()
            .then(|| unsent.min(u64::from(full)) as u32)
    }

    /// Payload of a full segment now: SACK blocks take their room from it (RFC 6691 section 2).
    #[inline]
    pub(super) fn payload_limit(&self) -> u32 {
        let segment = self.sender.negotiated.segment;
        if !self.receive.has_blocks() {
            return segment;
        }
        segment - u32::from(self.sack_room_in_data())
    }

    /// The most that SACK blocks take of a segment with data: nothing, if that would be a good part
    /// of it.
    fn sack_room_in_data(&self) -> u8 {
        if self.sender.config.habits.fits_blocks {
            return self.room_of_blocks();
        }
        let room = sack_length(self.maximum_sack_blocks());
        if self.sender.negotiated.sack && self.sender.negotiated.segment > 4 * u32::from(room) {
            room
        } else {
            0
        }
    }

    /// What the blocks take that there are now.
    #[inline(never)]
    fn room_of_blocks(&self) -> u8 {
        let most = self.maximum_sack_blocks();
        let blocks = match self.receive.duplicate {
            _ if !self.sender.negotiated.sack => return 0,
            None => self.receive.sack_blocks().unwrap_or_default(),
            Some(duplicate) => self.receive.sack_blocks_after(duplicate, most),
        };
        let room = sack_length(blocks.as_slice().len().min(most));
        // (Something is left of any segment.)
        let spare = self.sender.negotiated.segment.saturating_sub(1);
        room.min(u8::try_from(spare).unwrap_or(u8::MAX))
    }

    /// RFC 2018 section 3: 40 bytes of options hold four, or three beside timestamps.
    pub(super) fn maximum_sack_blocks(&self) -> usize {
        if self.sender.negotiated.timestamps {
            3
        } else {
            4
        }
    }
}

impl Send {
    /// What of the next `length` bytes the windows let out, if there is so much room in the congestion window.
    #[inline(always)]
    fn admits<K: Known>(&self, length: u32, room: u64) -> Next {
        let wanted = u64::from(length);
        let usable = self.usable();
        // RFC 9293 section 3.8.6.2.1, rule 1, and where D <= U rule 2: silly windows are avoided
        if usable < wanted {
            // Rule 3: Fs = 1/2
            let waits = K::PLAIN || self.sequence.outstanding() > 0;
            if waits || usable == 0 || usable < self.window_maximum / 2 {
                return Next::PeerWindow;
            }
            return Next::Send(usable.min(room.max(1)) as u32);
        }
        // RFC 5681 section 3.1: only what fits into the congestion window
        if room < wanted {
            return Next::CongestionWindow;
        }
        Next::Send(length)
    }
}
