//! One persistent connection between two gateways ("trunk"), and its transmission queues.

use std::collections::VecDeque;

use bentpipe_tcp::{Rings, Socket, Source, State};
use bentpipe_types::{Ctx, Flags, Packet, Span, Time};
use rustc_hash::FxHashMap;

use super::frame::{self, Frame, MAX_CONTROL, MAX_SYN_DATA, ResetReason};
use super::peer_liveness::{ANSWER_TIMEOUT, PeerLiveness};

/// Limit of written but unsent segments, beyond which no more data is written. It bounds the time
/// that a stream waits for its turn by one frame of each other stream, not by the backlog of an
/// earlier one.
const MAX_UNSENT_SEGMENTS: u64 = 4;

/// Limit of reset frames that wait to be sent. A peer that opens streams without reading their
/// resets is not a gateway.
pub(super) const MAX_PENDING_RESETS: usize = 1 << 16;

/// Interval between connection attempts to an unresponsive peer, while connections want a trunk.
/// The SYN's own timer doubles each time, and would wait ever longer.
pub(super) const CONNECT_RETRY_INTERVAL: Span = Span::from_secs(10);

/// A persistent connection.
#[derive(Debug)]
pub(super) struct Trunk {
    pub(super) socket: Socket<Rings>,
    /// Time at which this attempt to open it began.
    connect_started_at: Time,
    /// Until then, connections wait for it to be established. By then its SYN has been sent three
    /// times, with the usual initial timeout of a second. `None` if it has been established, or if
    /// nothing waits any more.
    pub(super) wait_deadline: Option<Time>,
    /// Whether it was ever established. If so, frames written to it may have reached the peer.
    pub(super) was_established: bool,
    /// Liveness of the peer, as seen on this trunk.
    pub(super) liveness: PeerLiveness,
    /// Whether this gateway is the one that sends liveness probes first.
    pub(super) probes_first: bool,
    /// Received bytes of a frame that is not complete yet.
    pub(super) partial_frame: Vec<u8>,
    /// Multiplexed connection by stream number.
    pub(super) streams: FxHashMap<u32, u32>,
    /// Number of the next stream opened from here; `None` if the numbers are used up.
    pub(super) next_stream: Option<u32>,
    /// Number of the latest stream that the peer has opened.
    pub(super) latest_peer_stream: Option<u32>,
    /// Streams that have frames other than data to send.
    pub(super) control_queue: VecDeque<u32>,
    /// Streams that have data to send, in round-robin order.
    pub(super) data_queue: VecDeque<u32>,
    /// Reset frames to send, for streams that no longer exist here.
    pub(super) pending_resets: VecDeque<(u32, ResetReason)>,
    /// Memory reserved for its buffers.
    pub(super) reserved: u64,
    /// Bytes held in its buffers, as last counted.
    pub(super) held: u64,
}

impl Trunk {
    /// Returns a trunk whose handshake has begun. `first` is the number of the first stream opened
    /// from here; one gateway uses odd numbers, the other even ones.
    pub(super) fn new(socket: Socket<Rings>, first: u32, reserved: u64, now: Time) -> Self {
        Self {
            socket,
            connect_started_at: now,
            wait_deadline: Some(now + ANSWER_TIMEOUT),
            was_established: false,
            liveness: PeerLiveness::new(now),
            probes_first: first == 1,
            partial_frame: Vec::new(),
            streams: FxHashMap::default(),
            next_stream: Some(first),
            latest_peer_stream: None,
            control_queue: VecDeque::new(),
            data_queue: VecDeque::new(),
            pending_resets: VecDeque::new(),
            reserved,
            held: 0,
        }
    }

    /// Returns true if the connection is established.
    pub(super) fn is_established(&self) -> bool {
        self.socket.state().is_synchronized()
    }

    /// Notes that the connection is established. Returns true the first time.
    pub(super) fn note_establishment(&mut self) -> bool {
        let begins = !self.was_established && self.is_established();
        if begins {
            self.was_established = true;
            self.wait_deadline = None;
        }
        begins
    }

    /// Returns true if nothing was written to it that could have reached the peer. Its streams may
    /// then still move elsewhere.
    pub(super) fn has_sent_nothing(&self) -> bool {
        !self.was_established && self.socket.connection().written_offset() == 0
    }

    /// Returns true if this packet completes the handshake. Frames can then be sent with its last
    /// segment.
    pub(super) fn is_established_by(&self, packet: &Packet) -> bool {
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

    /// Returns true if the SYN has been unanswered for so long that its next retransmission comes
    /// too late for new connections. Not if the peer's SYN has arrived: then the peer retransmits.
    pub(super) fn needs_new_attempt(&self, now: Time) -> bool {
        self.socket.state() == State::SynSent
            && now.since(self.connect_started_at) >= CONNECT_RETRY_INTERVAL
    }

    /// Allocates the number of a stream opened from here.
    pub(super) fn allocate_stream(&mut self) -> Option<u32> {
        let number = self.next_stream?;
        self.next_stream = number.checked_add(2);
        Some(number)
    }

    /// Returns true if there is buffer space for all frames other than data that a stream may
    /// write.
    pub(super) fn has_control_space(&self) -> bool {
        self.socket.writable() >= (MAX_CONTROL + MAX_SYN_DATA) as u64
    }

    /// Returns the bytes that a data frame may take, header included; `None` if data has to wait.
    pub(super) fn data_space(&self) -> Option<usize> {
        let tcp = self.socket.connection();
        let unsent = tcp.written_offset() - tcp.sent_offset();
        let most = MAX_UNSENT_SEGMENTS * u64::from(tcp.segment_size());
        // Reserved for the control frames of other streams.
        let spare = (MAX_CONTROL + MAX_SYN_DATA) as u64;
        let room = self.socket.writable().saturating_sub(spare);
        (unsent < most && room > MAX_CONTROL as u64).then_some(room as usize)
    }

    /// Writes complete frames, for which there must be space. With `at_once`, they do not wait for
    /// a full segment.
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

    /// Writes the pending reset frames, as far as there is space.
    pub(super) fn write_resets(&mut self, scratch: &mut Vec<u8>, cx: &mut Ctx<'_>) {
        while self.has_control_space()
            && let Some((stream, reason)) = self.pending_resets.pop_front()
        {
            scratch.clear();
            frame::write(scratch, stream, &Frame::Reset(reason));
            self.write(scratch, true, cx);
        }
    }

    /// Removes a stream, and queues a reset frame for the peer.
    pub(super) fn queue_reset(&mut self, stream: u32, reason: ResetReason) {
        self.streams.remove(&stream);
        self.pending_resets.push_back((stream, reason));
    }

    /// Bytes held in its buffers, as far as memory is reserved for them.
    pub(super) fn holds(&self) -> u64 {
        (self.socket.buffered() + self.partial_frame.len() as u64).min(self.reserved)
    }
}
