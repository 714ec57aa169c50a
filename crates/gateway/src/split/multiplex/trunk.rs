//! One persistent connection between two gateways, and what waits to go out on it.

use std::collections::VecDeque;

use bentpipe_tcp::{Rings, Socket, Source, State};
use bentpipe_types::{Ctx, Flags, Packet, Span, Time};
use rustc_hash::FxHashMap;

use super::frame::{self, Frame, MOST_CONTROL, MOST_ON_SYN, Reason};
use super::vigil::{PATIENCE, Vigil};

/// Segments written and not yet sent, beyond which no more data is written: what waits longest to be
/// sent is a stream's turn, and not everything that an earlier stream had.
const MOST_UNSENT_SEGMENTS: u64 = 4;

/// Streams that were reset and whose other side doesn't know yet, at most. A gateway that opens streams,
/// and doesn't read what becomes of them, is none.
pub(super) const MOST_RESETS: usize = 1 << 16;

/// So long after it was first asked in vain, the other gateway is asked anew, if somebody wants it: the SYN's timer, doubled
/// each time, would wait longer and longer.
pub(super) const ASKED_ANEW: Span = Span::from_secs(10);

/// A persistent connection.
#[derive(Debug)]
pub(super) struct Trunk {
    pub(super) socket: Socket<Rings>,
    /// When it was asked for.
    since: Time,
    /// Until then those that it is to carry wait for it to be there: by then its SYN has gone three times, by the usual timer
    /// of a second. `None`: it was there, or they no longer wait.
    pub(super) awaited_until: Option<Time>,
    /// It was there: what was said on it may have reached the other gateway.
    pub(super) began: bool,
    /// Does the other gateway live?
    pub(super) vigil: Vigil,
    /// Of the two gateways this is the one that asks.
    pub(super) asks_first: bool,
    /// The beginning of a frame whose end hasn't come.
    pub(super) inbox: Vec<u8>,
    /// By their number: the connections that it carries.
    pub(super) streams: FxHashMap<u32, u32>,
    /// The number of the next stream that is opened from here; `None`: there is none left.
    pub(super) next_stream: Option<u32>,
    /// The latest that the other side has opened.
    pub(super) latest: Option<u32>,
    /// Streams that have something to say besides data,
    pub(super) speaking: VecDeque<u32>,
    /// and those that have data, in turns.
    pub(super) sending: VecDeque<u32>,
    /// Streams that are no more, as the other side has still to hear.
    pub(super) resets: VecDeque<(u32, Reason)>,
    /// Memory set aside for what it holds.
    pub(super) reserved: u64,
    /// Bytes that it held when they were last counted.
    pub(super) held: u64,
}

impl Trunk {
    /// `first`: the number of the first stream that is opened from here. The two sides' are odd and even.
    pub(super) fn new(socket: Socket<Rings>, first: u32, reserved: u64, now: Time) -> Self {
        Self {
            socket,
            since: now,
            awaited_until: Some(now + PATIENCE),
            began: false,
            vigil: Vigil::new(now),
            asks_first: first == 1,
            inbox: Vec::new(),
            streams: FxHashMap::default(),
            next_stream: Some(first),
            latest: None,
            speaking: VecDeque::new(),
            sending: VecDeque::new(),
            resets: VecDeque::new(),
            reserved,
            held: 0,
        }
    }

    /// Is it there, as both gateways know it?
    pub(super) fn is_open(&self) -> bool {
        self.socket.state().is_synchronized()
    }

    /// Notes whether it is there now. Is that news?
    pub(super) fn note_beginning(&mut self) -> bool {
        let begins = !self.began && self.is_open();
        if begins {
            self.began = true;
            self.awaited_until = None;
        }
        begins
    }

    /// Was nothing said on it yet that could reach the other gateway? What it is to carry may then go another way.
    pub(super) fn is_unsaid(&self) -> bool {
        !self.began && self.socket.connection().written_offset() == 0
    }

    /// Will it be there once this packet has come? What there is to say can then go with the last step of
    /// the handshake.
    pub(super) fn begins_with(&self, packet: &Packet) -> bool {
        let flags = packet.flags;
        let step = match self.socket.state() {
            State::SynSent => flags.has(Flags::SYN),
            State::SynReceived => true,
            _ => false,
        };
        step && flags.has(Flags::ACK)
            && !flags.has(Flags::RST)
            && packet.acknowledgment == self.socket.connection().initial_sequence() + 1
    }

    /// Has its SYN been on the way for so long that the next one goes too late for who wants it now? (Where the other
    /// gateway's has come, that one sees to it.)
    pub(super) fn is_to_be_asked_anew(&self, now: Time) -> bool {
        self.socket.state() == State::SynSent && now.since(self.since) >= ASKED_ANEW
    }

    /// A number for a stream that is opened from here.
    pub(super) fn number(&mut self) -> Option<u32> {
        let number = self.next_stream?;
        self.next_stream = number.checked_add(2);
        Some(number)
    }

    /// Is there room for whatever a stream may say, besides data?
    pub(super) fn has_room(&self) -> bool {
        self.socket.writable() >= (MOST_CONTROL + MOST_ON_SYN) as u64
    }

    /// May data be written? Then as many bytes, of what stands in front of it too.
    pub(super) fn room_for_data(&self) -> Option<usize> {
        let tcp = self.socket.connection();
        let unsent = tcp.written_offset() - tcp.sent_offset();
        let most = MOST_UNSENT_SEGMENTS * u64::from(tcp.segment_size());
        // What is left for the rest of the streams to say.
        let spare = (MOST_CONTROL + MOST_ON_SYN) as u64;
        let room = self.socket.writable().saturating_sub(spare);
        (unsent < most && room > MOST_CONTROL as u64).then_some(room as usize)
    }

    /// Writes frames, all of which fit. `at_once`: nothing is to wait for a full segment.
    pub(super) fn write(&mut self, frames: &[u8], at_once: bool, cx: &mut Ctx<'_>) {
        if frames.is_empty() {
            return;
        }
        let source = Source::Bytes(frames);
        let written = if at_once {
            self.socket.write(source, cx)
        } else {
            self.socket.write_more(source, cx)
        };
        debug_assert_eq!(written, frames.len() as u64, "there was room");
    }

    /// Tells of streams that are no more, as far as there is room.
    pub(super) fn tell_resets(&mut self, scratch: &mut Vec<u8>, cx: &mut Ctx<'_>) {
        while self.has_room()
            && let Some((stream, reason)) = self.resets.pop_front()
        {
            scratch.clear();
            frame::write(scratch, stream, &Frame::Reset(reason));
            self.write(scratch, true, cx);
        }
    }

    /// A stream is no more; the other side is to hear why.
    pub(super) fn reset(&mut self, stream: u32, reason: Reason) {
        self.streams.remove(&stream);
        self.resets.push_back((stream, reason));
    }

    /// Bytes of streams that it holds, as far as memory is set aside for them.
    pub(super) fn holds(&self) -> u64 {
        (self.socket.buffered() + self.inbox.len() as u64).min(self.reserved)
    }
}
