//! What a gateway needs that ends a connection in the middle of its path, and has another one to the
//! other end: windows that depend on what the other one holds, an end of the stream that it confirms
//! only when the other end has, the hosts' own sequence numbers.

use bentpipe_types::{Ctx, Seq, Span, Time};

use super::timers::Purpose;
use super::{Connection, State};

impl Connection {
    /// From now on nothing beyond this stream offset is offered to the peer, whatever the receive
    /// buffer. What was offered before stays offered (RFC 9293 section 3.8.6).
    pub fn set_window_limit(&mut self, offset: u64) {
        self.receive.limit = offset.saturating_add(1);
        self.receive.reconsider_window();
    }

    /// Tells the peer of a window that has grown by enough to be worth an acknowledgment.
    pub fn offer_window(&mut self, cx: &mut Ctx<'_>) {
        if self.state.can_receive() && self.receive.owes_window_update() {
            self.receive.acknowledge_now = true;
            self.output(cx);
        }
    }

    /// Stream offset up to which the peer may send, as far as it was told.
    #[must_use]
    pub fn offered_offset(&self) -> u64 {
        // A SYN and a FIN are no bytes of the stream.
        self.receive.edge.clamp(1, self.receive.fin) - 1
    }

    /// With `true`, the peer's FIN is not acknowledged when it comes:
    /// [`Events::PEER_CLOSED`](super::Events::PEER_CLOSED) tells of it, and
    /// [`confirm_close`](Self::confirm_close) confirms it. Meanwhile the peer sends it again, as often
    /// as its retransmission timer says.
    pub fn set_holds_close(&mut self, holds: bool) {
        self.receive.holds_fin = holds;
    }

    /// Acknowledges the peer's FIN, if it has come and all before it, and was held.
    pub fn confirm_close(&mut self, cx: &mut Ctx<'_>) {
        if !self.is_close_held() {
            return;
        }
        self.receive.holds_fin = false;
        if self.fin_in_order() {
            self.peer_closed(cx);
            self.output(cx);
        }
    }

    /// Has the peer's FIN come, and does it wait to be confirmed?
    #[must_use]
    pub fn is_close_held(&self) -> bool {
        self.receive.holds_fin
            && self.receive.next == self.receive.fin
            && self.state != State::Closed
    }

    /// Has the peer sent all it will, and has all of it arrived?
    #[must_use]
    pub fn is_peer_done(&self) -> bool {
        self.receive.next >= self.receive.fin
    }

    /// Has the peer confirmed our FIN?
    #[must_use]
    pub fn is_close_confirmed(&self) -> bool {
        self.sender.send.fin_acknowledged()
    }

    /// Asks the peer for a sign of life, as keep-alive does, if nothing else is outstanding: whoever knows nothing of this
    /// connection answers with a RST.
    pub fn ask(&mut self, cx: &mut Ctx<'_>) {
        if self.sender.send.is_idle() {
            self.ask_beside(cx);
        }
    }

    /// The same beside what is outstanding, which the retransmission timer sends again ever more seldom: the answer to a
    /// question does not wait for that.
    pub fn ask_beside(&mut self, cx: &mut Ctx<'_>) {
        if self.is_kept_alive() {
            self.send_empty_probe(cx);
        }
    }

    /// When the peer last said something that could be accepted.
    #[must_use]
    pub fn heard_at(&self) -> Time {
        self.receive.heard_at
    }

    /// Is nothing unacknowledged?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sender.send.is_idle()
    }

    /// The retransmission timeout, as if no timer had expired: how long an answer to something that is sent now may take.
    #[must_use]
    pub fn first_rto(&self) -> Span {
        self.sender.rtt.first_rto()
    }

    /// The path is there again, as an answer to a question tells that acknowledges nothing new: what the retransmission timer
    /// had been backed off for is over, and what is outstanding goes again when the driver next asks for deadlines. RFC 6069
    /// does the same where an ICMP error has told that a timeout was due to a path that was away, and not to
    /// congestion.
    pub fn path_is_back(&mut self, now: Time) {
        let sender = &mut self.sender;
        if sender.send.attempts > 0 && !sender.send.is_idle() && sender.timers.retransmits() {
            sender.rtt.forget_back_off();
            sender.timers.set(Purpose::Retransmit, now);
        }
    }

    /// The sequence number of the SYN from here.
    #[must_use]
    pub fn initial_sequence(&self) -> Seq {
        self.sender.send.wire(0)
    }

    /// The sequence number of the peer's SYN, once it has come.
    #[must_use]
    pub fn peer_initial_sequence(&self) -> Option<Seq> {
        (self.receive.next > 0).then_some(self.receive.initial)
    }
}
