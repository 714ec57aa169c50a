//! Variables of the sending half.

use std::collections::VecDeque;

use bentpipe_types::{Seq, Time};
use serde::{Deserialize, Serialize};

use crate::Config;
use crate::recovery::SendSequence;
use crate::send_buffer_autotuning::SendBufferAutotuning;

/// The send sequence variables of RFC 9293 section 3.3.1, and what the rules for sending need.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct SendState {
    /// SND.UNA, SND.NXT and the highest position ever sent.
    pub(super) sequence: SendSequence,
    /// SND.WND, in bytes.
    pub(super) window: u64,
    /// The largest window the peer has advertised: Max(SND.WND).
    pub(super) window_maximum: u64,
    /// Position after the last byte written; the FIN's position, if there is one.
    pub(super) end: u64,
    /// SND.WL1: sequence number of the segment that last updated the window.
    pub(super) window_sequence: Seq,
    /// Initial send sequence number (ISS).
    pub(super) initial: Seq,
    /// Maximum outstanding in the current window of data (see `validation_mark`).
    pub(super) outstanding_maximum: u64,
    /// The current window of data for window validation ends when this position is acknowledged.
    pub(super) validation_mark: u64,
    /// Time at which a segment with payload was last sent.
    pub(super) last_sent_at: Time,
    /// RFC 6298 section 3 (Karn's algorithm): data below this position may have been sent twice,
    /// and gives no round-trip sample.
    pub(super) ambiguous_below: u64,
    /// Timeouts, or unanswered probes, since the peer last acknowledged anything.
    pub(super) attempts: u32,
    /// Timeouts among `attempts` that were due to a missing route (RFC 6069).
    pub(super) excused: u32,
    /// The application has closed: a FIN follows the data.
    pub(super) fin: bool,
    /// The last transmission consisted of several buffers (Linux's bursts, see `send_buffer`).
    pub(super) left_in_parts: bool,
    /// The congestion window limited the sender in the current window of data.
    pub(super) window_limited: bool,
    /// A write was cut short.
    pub(super) writer_waits: bool,
    /// The next segment is the last of a burst.
    pub(super) ends_burst: bool,
    /// Number of retransmissions of our SYN.
    pub(super) syns_lost: u8,
    /// The current write announces more data.
    pub(super) more: bool,
    /// The connection is corked: partial segments wait.
    pub(super) cork: bool,
    /// The send buffer with Linux's memory accounting and autotuning, in place of `buffer`.
    pub(super) sizing: Option<Box<SendBufferAutotuning>>,
    /// Position up to which the application wants prompt delivery (PSH).
    pub(super) pushed: u64,
    /// Data below this position was outstanding at the last timeout.
    pub(super) timed_out_below: u64,
    /// Position after the last segment shorter than a full one.
    pub(super) small_end: u64,
    /// Time of the original transmission before the first of `attempts`.
    pub(super) attempts_since: Time,
    pub(super) buffer: u64,
    /// Ends of the unacknowledged records. No segment spans two records.
    pub(super) records: VecDeque<u64>,
}

impl SendState {
    /// Number of buffers that the current write may send; 0: no limit.
    #[inline]
    pub(super) fn buffer_limit(&self) -> u16 {
        self.sizing
            .as_deref()
            .map_or(0, SendBufferAutotuning::buffer_limit)
    }

    pub(super) fn new(initial: Seq, config: &Config, segment: u32) -> Self {
        let sizing = config.send_sizes.map(|sizes| {
            let mut sizing = SendBufferAutotuning::new(sizes);
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
            // The limit keeps positions far from the end of 64 bits.
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

    /// Room in the send buffer, in bytes.
    #[inline]
    pub(super) fn buffer_room(&self) -> u64 {
        // A FIN that is acknowledged is no byte.
        let held = self.end.saturating_sub(self.sequence.unacknowledged.max(1));
        self.buffer.saturating_sub(held)
    }

    /// Whether data, and not only a SYN or FIN, was sent and is not acknowledged.
    pub(super) fn has_outstanding_data(&self) -> bool {
        self.sequence.unacknowledged.max(1) < self.sequence.highest.min(self.end)
    }

    /// Whether our FIN has been acknowledged.
    pub(super) fn fin_acknowledged(&self) -> bool {
        self.fin && self.sequence.unacknowledged > self.end
    }

    /// Whether the stream has data or a FIN to send or retransmit from SND.NXT on.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.sequence.next < self.end + u64::from(self.fin)
    }

    /// Bytes of the stream to send or retransmit from SND.NXT on.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.sequence.next)
    }

    /// RFC 9293 section 3.8.6.2.1: the usable window, U.
    #[inline]
    pub(super) fn usable(&self) -> u64 {
        // RFC 9293 section 3.8.6, RFC 7323 section 2.4: 0 if the window has shrunk below the data
        // sent; nothing new is sent then.
        self.edge().saturating_sub(self.sequence.next)
    }

    /// Right edge of the peer's window. Data sent with Fast Open before our SYN is acknowledged
    /// does not consume window.
    #[inline]
    fn edge(&self) -> u64 {
        self.sequence.unacknowledged.max(1) + self.window
    }

    /// Position up to which data is written and the peer's window is open.
    #[inline]
    pub(super) fn open_until(&self) -> u64 {
        self.end.min(self.edge())
    }

    /// Unsent bytes of the record that is sent next; `None` without records.
    #[inline]
    pub(super) fn unsent_of_record(&self) -> Option<u64> {
        let next = self.sequence.next;
        let ended = self.records.partition_point(|&end| end <= next);
        self.records.get(ended).map(|end| end - next)
    }

    /// Whether nothing is unacknowledged.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.sequence.highest == self.sequence.unacknowledged
    }
}
