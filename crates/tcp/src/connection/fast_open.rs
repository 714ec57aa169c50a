//! TCP Fast Open (RFC 7413): data on a SYN.
//!
//! The host creates, checks and caches cookies. A connection only carries them.

use std::sync::Arc;

use bentpipe_types::{Ctx, Endpoint, FastOpen, Packet, Port, Seq, Time};
use serde::{Deserialize, Serialize};

use super::{Connection, Events, State};
use crate::Config;

/// Handling of Fast Open for a received SYN (RFC 7413 section 4.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PassiveFastOpen {
    /// No Fast Open: data on the SYN is not accepted.
    #[default]
    Ignore,
    /// The SYN+ACK carries a cookie for later connections.
    Offer(FastOpen),
    /// The cookie is valid: data on the SYN is accepted, and the application may use the connection
    /// at once.
    Accept,
}

/// Fast Open parameters of an active open (RFC 7413 section 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActiveFastOpen {
    /// The server's cookie, or a cookie request. Data may be sent on the SYN without it, if the
    /// application knows that the server accepts it and that it may arrive twice
    /// (RFC 7413 section 6.1).
    pub option: Option<FastOpen>,
    /// Bytes of the stream to send with the SYN.
    pub bytes: u64,
    /// Payload that fits on the SYN: the server's MSS, if cached, less the options.
    pub room: u16,
}

/// Parameters of a new connection.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// Settings, which many connections share.
    pub config: &'a Arc<Config>,
    /// The local endpoint.
    pub local: Endpoint,
    /// The remote endpoint.
    pub remote: Endpoint,
    /// Port to which segments are sent.
    pub egress: Port,
    /// Initial send sequence number (ISS).
    pub initial_sequence: Seq,
}

/// Fast Open state of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct FastOpenState {
    /// Bytes of our stream on our SYN, until the SYN is answered.
    pub(super) on_syn: u32,
    /// End of the data sent on our SYN. When retransmitted, it is no small segment for Nagle's
    /// algorithm.
    pub(super) text_end: u64,
    /// Data that was on our SYN is being retransmitted.
    pub(super) again: bool,
    /// All data on our first SYN was acknowledged with it, or the data on the peer's SYN was
    /// accepted.
    pub(super) succeeded: bool,
    /// Passive open: the cookie was valid.
    pub(super) taken: bool,
}

impl Connection {
    /// Like [`connect`](Self::connect), with Fast Open. Also returns how many bytes of the stream
    /// the send buffer took with the SYN.
    pub fn connect_fast(
        opening: &Opening<'_>,
        fast: ActiveFastOpen,
        cx: &mut Ctx<'_>,
    ) -> (Self, u64) {
        let mut connection = Self::prepare(opening);
        let taken = (fast.bytes.min(connection.sender.send.buffer)).min(u64::from(fast.room));
        connection.sender.send.end += taken;
        connection.sender.send.pushed = connection.sender.send.end;
        connection.launch(fast, cx);
        (connection, taken)
    }

    /// Creates a connection without sending its SYN. Data written before [`launch`](Self::launch)
    /// may be sent with the SYN.
    #[must_use]
    pub fn prepare(opening: &Opening<'_>) -> Self {
        Self::new(opening)
    }

    /// Sends the SYN of a [prepared](Self::prepare) connection, with as much written data as fits.
    pub fn launch(&mut self, fast: ActiveFastOpen, cx: &mut Ctx<'_>) {
        debug_assert_eq!(
            self.sender.send.sequence.highest, 0,
            "the SYN was sent before"
        );
        let on_syn = (self.sender.send.end - 1).min(u64::from(fast.room));
        self.fast_open.on_syn = on_syn as u32;
        self.fast_open.text_end = 1 + on_syn;
        self.offered.fast_open = fast.option;
        self.send_syn(cx);
        // RFC 7413 section 4.2.1 and Linux: a retransmitted SYN carries no Fast Open option.
        self.offered.fast_open = None;
    }

    /// Announces that the application will write as soon as the connection is established. Linux
    /// then lets the data acknowledge the peer's SYN.
    pub fn announce_write(&mut self) {
        self.sender.send.writer_waits = true;
        self.invalidate_fast_path();
    }

    /// Whether data on our SYN or the peer's SYN was accepted.
    #[must_use]
    pub fn fast_open_succeeded(&self) -> bool {
        self.fast_open.succeeded
    }

    /// The Fast Open option of the peer's SYN+ACK.
    #[must_use]
    pub fn offered_cookie(&self) -> Option<FastOpen> {
        self.peer_fast_open
    }

    /// The MSS that the peer announced.
    #[must_use]
    pub fn peer_mss(&self) -> Option<u16> {
        self.peer_mss
    }

    /// Position up to which the segment acknowledges our SYN and the data on it. `None`: it
    /// acknowledges data that was never sent.
    pub(super) fn syn_acknowledged(&self, packet: &Packet) -> Option<u64> {
        let position = i64::from(
            packet
                .acknowledgment
                .distance_from(self.sender.send.initial),
        );
        let most = i64::from(self.fast_open.on_syn) + 1;
        let sent = most.max(self.sender.send.sequence.highest as i64);
        (1..=sent).contains(&position).then_some(position as u64)
    }

    /// Records that our SYN is acknowledged up to `position`. Unacknowledged data of the SYN counts
    /// as new (RFC 7413 section 4.2.1).
    pub(super) fn settle_syn_data(&mut self, position: u64) {
        if self.fast_open.on_syn == 0 {
            return;
        }
        self.fast_open.succeeded = position == u64::from(self.fast_open.on_syn) + 1;
        self.fast_open.again = !self.fast_open.succeeded;
        self.fast_open.on_syn = 0;
        let sequence = &mut self.sender.send.sequence;
        sequence.highest = sequence.highest.max(position);
    }

    /// Number of outstanding segments whose data was on our SYN before.
    pub(super) fn resent_syn_segments(&self) -> u64 {
        if !self.fast_open.again {
            return 0;
        }
        let sequence = &self.sender.send.sequence;
        let end = self.fast_open.text_end.min(sequence.highest);
        let left = end.saturating_sub(sequence.unacknowledged);
        left.div_ceil(u64::from(self.sender.negotiated.segment.max(1)))
    }

    /// Accepts the data on the SYN; the application may use the connection
    /// (RFC 7413 section 4.2.2).
    pub(super) fn accept_syn_data(&mut self, packet: &Packet, now: Time) {
        self.fast_open.taken = true;
        let length = u64::from(packet.payload_length).min(self.receive.window());
        self.receive.next += length;
        self.receive.invalidate_window_field();
        self.receive.data_at = now;
        if length > 0 {
            self.fast_open.succeeded = true;
            self.events |= Events::READABLE;
        }
    }

    /// Whether data may be sent before the handshake is complete.
    pub(super) fn may_send_before_established(&self) -> bool {
        self.fast_open.taken && self.state == State::SynReceived
    }
}
