//! TCP Fast Open (RFC 7413): data on a SYN.
//!
//! Cookies are the host's matter: it makes them, checks them and remembers the servers'. A connection
//! carries them.

use std::sync::Arc;

use bentpipe_types::{Ctx, Endpoint, FastOpen, Packet, Port, Seq, Time};
use serde::{Deserialize, Serialize};

use super::{Connection, Events, State};
use crate::Config;

/// What a listening host does with a SYN, as far as Fast Open goes (RFC 7413 section 4.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PassiveFastOpen {
    /// As without it: text on the SYN is not taken.
    #[default]
    Ignore,
    /// The SYN+ACK carries a cookie for next time.
    Offer(FastOpen),
    /// The cookie is good: text is taken, and the application may have the connection at once.
    Take,
}

/// What an active open does with Fast Open (RFC 7413 section 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActiveFastOpen {
    /// The server's cookie, or the wish for one. Data goes on the SYN without it, too: the application
    /// knows that the server takes it, and that it may arrive twice (section 6.1).
    pub option: Option<FastOpen>,
    /// Bytes of the stream to send with the SYN.
    pub bytes: u64,
    /// Bytes that have room on it: the server's MSS, as far as it is known, less what options take.
    pub room: u16,
}

/// What every connection begins with.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// Its settings: many connections have the same.
    pub config: &'a Arc<Config>,
    /// This end.
    pub local: Endpoint,
    /// The other.
    pub remote: Endpoint,
    /// Where its segments go out.
    pub egress: Port,
    /// ISS
    pub initial_sequence: Seq,
}

/// What the connection knows of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct FastOpening {
    /// Bytes of our stream on our SYN, until it is answered.
    pub(super) on_syn: u32,
    /// Where the text ended that was on our SYN: sent again, it is no small segment for Nagle's
    /// algorithm.
    pub(super) text_end: u64,
    /// Text that was on our SYN goes again.
    pub(super) again: bool,
    /// The first SYN had text, and it was all acknowledged with it; or the peer's had, and it was
    /// taken.
    pub(super) succeeded: bool,
    /// Passive: the cookie was good.
    pub(super) taken: bool,
}

impl Connection {
    /// Like [`connect`](Self::connect), with Fast Open. Returns how many bytes of the stream the send
    /// buffer took with the SYN.
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

    /// A connection whose SYN has not been sent: what is written before it is [launched](Self::launch) may go with it.
    #[must_use]
    pub fn prepare(opening: &Opening<'_>) -> Self {
        Self::new(opening)
    }

    /// Sends the SYN of a connection that was [prepared](Self::prepare), with what has been written as far as there is
    /// room.
    pub fn launch(&mut self, fast: ActiveFastOpen, cx: &mut Ctx<'_>) {
        debug_assert_eq!(self.sender.send.sequence.highest, 0, "it was sent");
        let on_syn = (self.sender.send.end - 1).min(u64::from(fast.room));
        self.fast_open.on_syn = on_syn as u32;
        self.fast_open.text_end = 1 + on_syn;
        self.offered.fast_open = fast.option;
        self.send_syn(cx);
        // RFC 7413 section 4.2.1 and Linux: a SYN that has to go again goes without.
        self.offered.fast_open = None;
    }

    /// The application waits for the connection, to write more at once. Linux then lets the data
    /// acknowledge the peer's SYN.
    pub fn announce_write(&mut self) {
        self.sender.send.writer_waits = true;
        self.changed();
    }

    /// Was text on the SYN taken at once, ours or the peer's?
    #[must_use]
    pub fn fast_open_succeeded(&self) -> bool {
        self.fast_open.succeeded
    }

    /// The Fast Open option that the peer's SYN+ACK carried.
    #[must_use]
    pub fn offered_cookie(&self) -> Option<FastOpen> {
        self.peer_fast_open
    }

    /// The MSS that the peer has announced.
    #[must_use]
    pub fn peer_mss(&self) -> Option<u16> {
        self.peer_mss
    }

    /// How much of our SYN and its text does this acknowledge? `None`: of what was never sent.
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

    /// Our SYN is acknowledged up to `position`: what of its text isn't is new again (RFC 7413
    /// section 4.2.1).
    pub(super) fn settle_syn_text(&mut self, position: u64) {
        if self.fast_open.on_syn == 0 {
            return;
        }
        self.fast_open.succeeded = position == u64::from(self.fast_open.on_syn) + 1;
        self.fast_open.again = !self.fast_open.succeeded;
        self.fast_open.on_syn = 0;
        let sequence = &mut self.sender.send.sequence;
        sequence.highest = sequence.highest.max(position);
    }

    /// Segments outstanding whose text was on our SYN before.
    pub(super) fn syn_text_again(&self) -> u64 {
        if !self.fast_open.again {
            return 0;
        }
        let sequence = &self.sender.send.sequence;
        let end = self.fast_open.text_end.min(sequence.highest);
        let left = end.saturating_sub(sequence.unacknowledged);
        left.div_ceil(u64::from(self.sender.negotiated.segment.max(1)))
    }

    /// The SYN's text is taken, and the application may have the connection (RFC 7413 section 4.2.2).
    pub(super) fn take_syn_text(&mut self, packet: &Packet, now: Time) {
        self.fast_open.taken = true;
        let length = u64::from(packet.payload_length).min(self.receive.window());
        self.receive.next += length;
        self.receive.reconsider_window();
        self.receive.data_at = now;
        if length > 0 {
            self.fast_open.succeeded = true;
            self.events |= Events::READABLE;
        }
    }

    /// May data go out before the handshake is over?
    pub(super) fn sends_early(&self) -> bool {
        self.fast_open.taken && self.state == State::SynReceived
    }
}
