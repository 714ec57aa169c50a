//! Operations for a gateway that splits a connection into two. Its advertised windows depend on the
//! other connection's buffer, it acknowledges a FIN only when the other side has done so, and it
//! keeps the hosts' original sequence numbers.

use bentpipe_types::{Ctx, Seq, Span, Time};

use super::timers::Purpose;
use super::{Connection, State};

impl Connection {
    /// Limits the advertised window to this stream offset, whatever the receive buffer. Window that
    /// was advertised before stays valid (RFC 9293 section 3.8.6).
    pub fn set_window_limit(&mut self, offset: u64) {
        self.receive.limit = offset.saturating_add(1);
        self.receive.invalidate_window_field();
    }

    /// Sends a window update if the window has grown by enough.
    pub fn offer_window(&mut self, cx: &mut Ctx<'_>) {
        if self.state.can_receive() && self.receive.owes_window_update() {
            self.receive.acknowledge_now = true;
            self.output(cx);
        }
    }

    /// Stream offset of the right edge of the advertised window.
    #[must_use]
    pub fn offered_offset(&self) -> u64 {
        // A SYN and a FIN are no bytes of the stream.
        self.receive.edge.clamp(1, self.receive.fin) - 1
    }

    /// With `true`, the peer's FIN is not acknowledged on arrival: it raises
    /// [`Events::PEER_CLOSED`](super::Events::PEER_CLOSED), and
    /// [`confirm_close`](Self::confirm_close) acknowledges it. Until then the peer retransmits it.
    pub fn set_holds_close(&mut self, holds: bool) {
        self.receive.holds_fin = holds;
    }

    /// Acknowledges the peer's held FIN, if it and all data before it have arrived.
    pub fn confirm_close(&mut self, cx: &mut Ctx<'_>) {
        if !self.is_close_held() {
            return;
        }
        self.receive.holds_fin = false;
        if self.fin_in_order() {
            self.on_peer_fin(cx);
            self.output(cx);
        }
    }

    /// Whether the peer's FIN has arrived and is not acknowledged yet.
    #[must_use]
    pub fn is_close_held(&self) -> bool {
        self.receive.holds_fin
            && self.receive.next == self.receive.fin
            && self.state != State::Closed
    }

    /// Whether the peer has closed and all its data has arrived.
    #[must_use]
    pub fn is_peer_done(&self) -> bool {
        self.receive.next >= self.receive.fin
    }

    /// Whether the peer has acknowledged our FIN.
    #[must_use]
    pub fn is_close_confirmed(&self) -> bool {
        self.sender.send.fin_acknowledged()
    }

    /// Sends a keep-alive probe, if nothing is outstanding. A host without this connection answers
    /// with a RST.
    pub fn send_keep_alive_probe_if_idle(&mut self, cx: &mut Ctx<'_>) {
        if self.sender.send.is_idle() {
            self.send_keep_alive_probe(cx);
        }
    }

    /// Sends a keep-alive probe also while data is outstanding. Its answer does not depend on the
    /// backed-off retransmission timer.
    pub fn send_keep_alive_probe(&mut self, cx: &mut Ctx<'_>) {
        if self.is_kept_alive() {
            self.send_empty_probe(cx);
        }
    }

    /// Arrival time of the last acceptable segment.
    #[must_use]
    pub fn last_received_at(&self) -> Time {
        self.receive.last_received_at
    }

    /// Whether nothing is unacknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sender.send.is_idle()
    }

    /// The retransmission timeout without backoff: how long an answer to a segment sent now may
    /// take.
    #[must_use]
    pub fn rto_without_backoff(&self) -> Span {
        self.sender.rtt.rto_without_backoff()
    }

    /// Ends the backoff because the path works again, as the answer to a probe shows. Outstanding
    /// data is retransmitted at the next deadline. RFC 6069 does the same where an ICMP error
    /// showed that a timeout was due to a broken path and not to congestion.
    pub fn on_path_restored(&mut self, now: Time) {
        let sender = &mut self.sender;
        if sender.send.attempts > 0 && !sender.send.is_idle() && sender.timers.retransmits() {
            sender.rtt.reset_backoff();
            sender.timers.set(Purpose::Retransmit, now);
        }
    }

    /// Sequence number of our SYN.
    #[must_use]
    pub fn initial_sequence(&self) -> Seq {
        self.sender.send.wire(0)
    }

    /// Latest timestamp of the peer, if both ends send timestamps.
    #[must_use]
    pub fn peer_timestamp(&self) -> Option<u32> {
        (self.sender.negotiated.timestamps).then_some(self.receive.timestamp_recent)
    }

    /// Sequence number of the peer's SYN, once received.
    #[must_use]
    pub fn peer_initial_sequence(&self) -> Option<Seq> {
        (self.receive.next > 0).then_some(self.receive.initial)
    }
}
