//! The sending half's variables.

use std::collections::VecDeque;

use bentpipe_types::{Seq, Time};
use serde::{Deserialize, Serialize};

use crate::Config;
use crate::recovery::SendSequence;
use crate::send_sizing::SendSizing;

/// RFC 9293 section 3.3.1's send sequence variables, and what the rules for sending need.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct Send {
    /// SND.UNA, SND.NXT and the highest ever sent.
    pub(super) sequence: SendSequence,
    /// SND.WND, in bytes.
    pub(super) window: u64,
    /// The largest window the peer has advertised: Max(SND.WND).
    pub(super) window_maximum: u64,
    /// The position after the last byte written; the FIN's, if there is one.
    pub(super) end: u64,
    /// SND.WL1: sequence number of the segment that last updated the window.
    pub(super) window_sequence: Seq,
    /// ISS.
    pub(super) initial: Seq,
    /// The most that was outstanding in it.
    pub(super) outstanding_maximum: u64,
    /// It ends when this position is acknowledged.
    pub(super) validation_mark: u64,
    /// When a segment with payload was last sent.
    pub(super) last_sent_at: Time,
    /// Everything below has been sent twice, or might have been: no round trip is measured by it
    /// (Karn's algorithm, RFC 6298 section 3).
    pub(super) ambiguous_below: u64,
    /// Timeouts, or unanswered probes, since the peer last acknowledged anything.
    pub(super) attempts: u32,
    /// Of them, those that were lost for want of a route (RFC 6069).
    pub(super) excused: u32,
    /// The application has closed: a FIN follows the data.
    pub(super) fin: bool,
    /// What was sent last were several buffers at a time (Linux's, `room.rs`).
    pub(super) left_in_parts: bool,
    /// Was the congestion window what stopped the sender, in this window of data?
    pub(super) window_limited: bool,
    /// A write was cut short.
    pub(super) writer_waits: bool,
    /// The next segment is the last of several that leave at once.
    pub(super) ends_burst: bool,
    /// How often our SYN was sent again for want of an acknowledgment.
    pub(super) syns_lost: u8,
    /// This write says that more is to come at once.
    pub(super) more: bool,
    /// Segments that aren't full wait.
    pub(super) cork: bool,
    /// The buffer as Linux grows it, instead.
    pub(super) sizing: Option<Box<SendSizing>>,
    /// Up to here, the application wants the peer's to have it at once: PSH.
    pub(super) pushed: u64,
    /// Everything below this was outstanding at the last timeout.
    pub(super) timed_out_below: u64,
    /// After the last segment smaller than a full one.
    pub(super) small_end: u64,
    /// When what is sent again had been sent before the first of `attempts`.
    pub(super) attempts_since: Time,
    pub(super) buffer: u64,
    /// Where records end, none of whose segments go into another's; those not acknowledged.
    pub(super) records: VecDeque<u64>,
}

impl Send {
    /// How many buffers a call that goes on lets leave; 0: as many as may.
    #[inline]
    pub(super) fn lets_leave(&self) -> u16 {
        self.sizing.as_deref().map_or(0, SendSizing::lets_leave)
    }

    pub(super) fn new(initial: Seq, config: &Config, segment: u32) -> Self {
        let sizing = config.send_sizes.map(|sizes| {
            let mut sizing = SendSizing::new(sizes);
            sizing.set_low_water(config.unsent_low_water);
            Box::new(sizing)
        });
        Self {
            sequence: SendSequence {
                unacknowledged: 0,
                next: 0,
                highest: 0,
                segment,
            },
            end: 1,
            fin: false,
            window: 0,
            window_maximum: 0,
            window_sequence: Seq::default(),
            ambiguous_below: 0,
            timed_out_below: 0,
            small_end: 0,
            last_sent_at: Time::ZERO,
            left_in_parts: false,
            window_limited: false,
            outstanding_maximum: 0,
            validation_mark: 0,
            attempts: 0,
            excused: 0,
            syns_lost: 0,
            pushed: 1,
            records: VecDeque::new(),
            more: false,
            cork: false,
            attempts_since: Time::ZERO,
            writer_waits: false,
            // Positions stay far from the end of 64 bits.
            buffer: config.send_buffer.min(1 << 48),
            sizing,
            ends_burst: false,
            initial,
        }
    }

    /// The sequence number of a position.
    #[inline]
    pub(super) fn wire(&self, position: u64) -> Seq {
        self.initial + position as u32
    }

    /// The stream offset of a position: neither SYN nor FIN counts.
    pub(super) fn offset(&self, position: u64) -> u64 {
        position.clamp(1, self.end) - 1
    }

    /// Bytes that the send buffer has room for.
    #[inline]
    pub(super) fn buffer_room(&self) -> u64 {
        // (A FIN that is acknowledged is no byte.)
        let held = self.end.saturating_sub(self.sequence.unacknowledged.max(1));
        self.buffer.saturating_sub(held)
    }

    /// Has our FIN been acknowledged?
    pub(super) fn fin_acknowledged(&self) -> bool {
        self.fin && self.sequence.unacknowledged > self.end
    }

    /// Is there anything in the stream that has not been sent, or is to be sent again?
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.sequence.next < self.end + u64::from(self.fin)
    }

    /// Bytes of the stream that are still to be sent, or sent again.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.sequence.next)
    }

    /// What the peer's window leaves: RFC 9293 section 3.8.6.2.1's usable window, U.
    #[inline]
    pub(super) fn usable(&self) -> u64 {
        self.edge().saturating_sub(self.sequence.next)
    }

    /// Where the peer's window ends. (With Fast Open, data may go before our SYN is acknowledged: it takes none of the
    /// window.)
    #[inline]
    fn edge(&self) -> u64 {
        self.sequence.unacknowledged.max(1) + self.window
    }

    /// Up to here there is something to send, and the peer's window open.
    #[inline]
    pub(super) fn open_until(&self) -> u64 {
        self.end.min(self.edge())
    }

    /// What of the record that is sent next is unsent; none where records don't matter.
    #[inline]
    pub(super) fn unsent_of_record(&self) -> Option<u64> {
        let next = self.sequence.next;
        let ended = self.records.partition_point(|&end| end <= next);
        self.records.get(ended).map(|end| end - next)
    }

    /// Is nothing unacknowledged?
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.sequence.highest == self.sequence.unacknowledged
    }
}
