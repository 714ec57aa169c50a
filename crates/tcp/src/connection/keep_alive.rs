//! Keep-alive: probing of an idle peer (RFC 9293 section 3.8.4).

use bentpipe_types::{Ctx, Packet, Span, Time};

use super::timers::Purpose;
use super::{Connection, Events, State};
use crate::config::KeepAlive;
use crate::receive_buffer_autotuning::ReceiveBufferAutotuning;

/// Limit of the probe counter.
const MAXIMUM_PROBES: u32 = u16::MAX as u32;

impl Connection {
    /// Turns keep-alive on or off: the socket option SO_KEEPALIVE.
    pub fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>, cx: &mut Ctx<'_>) {
        let before = self.sender.config.keep_alive;
        self.sender.config_mut().keep_alive = keep_alive;
        if self.quirks().timers.kernel_keep_alive_timer
            && let Some(new) = keep_alive
        {
            match before {
                None => {
                    self.set_keep_alive_timer(new.idle, cx.now);
                }
                Some(old) if old.idle != new.idle => {
                    // tcp_sock_set_keepidle_locked
                    let left = (self.receive.last_received_at + new.idle).since(cx.now);
                    self.set_keep_alive_timer(left, cx.now);
                }
                Some(_) => return,
            }
        }
        self.unanswered_probes = 0;
        if self.sender.timers.runs(Purpose::KeepAlive) {
            self.sender.timers.stop();
        }
        if self.sender.send.is_idle() && self.sender.timers.is_stopped() {
            self.start_keep_alive_timer(cx.now);
        }
    }

    /// Records an acknowledgment from the peer, of new data or not, which shows that it is alive.
    #[inline]
    pub(super) fn note_peer_alive(&mut self, now: Time) {
        self.receive.last_received_at = now;
        self.unanswered_probes = 0;
    }

    /// Whether the segment does not count as an answer to a keep-alive probe. Linux's header
    /// prediction does not process the acknowledgment of in-order data that acknowledges nothing
    /// new: tcp_rcv_established does not call tcp_ack. Probes then still count as unanswered,
    /// except for the first data, before receive memory is set up. To be called before the packet
    /// is processed.
    #[inline]
    pub(super) fn is_no_probe_answer(&self, packet: &Packet) -> bool {
        self.unanswered_probes > 0 && self.is_predicted_text(packet)
    }

    #[cold]
    fn is_predicted_text(&self, packet: &Packet) -> bool {
        let send = &self.sender.send;
        self.quirks().timers.kernel_keep_alive_timer
            && packet.payload_length > 0
            && (self.receive.sizing.as_deref()).is_some_and(ReceiveBufferAutotuning::has_received)
            && packet.acknowledgment == send.wire(send.sequence.unacknowledged)
            && !self.deviates_from_linux_prediction(packet)
    }

    /// Starts the keep-alive timer when nothing is outstanding.
    #[inline]
    pub(super) fn start_keep_alive_timer(&mut self, now: Time) {
        if let Some(keep_alive) = self.sender.config.keep_alive
            && self.is_kept_alive()
        {
            let at = if self.quirks().timers.kernel_keep_alive_timer {
                self.keep_alive_timer(keep_alive, now)
            } else {
                self.receive.last_received_at + keep_alive.idle
            };
            self.sender.timers.set(Purpose::KeepAlive, at.max(now));
        }
    }

    /// Next expiry of Linux's keep-alive timer, which runs whether or not data is outstanding.
    fn keep_alive_timer(&mut self, keep_alive: KeepAlive, now: Time) -> Time {
        if self.keep_alive_tick == 0 {
            self.set_keep_alive_timer(keep_alive.idle, now);
        }
        let mut at = self.sender.config.clock.nearest(self.keep_alive_tick, now);
        while at <= now && keep_alive.idle > Span::ZERO {
            at = self.set_keep_alive_timer(keep_alive.idle, at);
        }
        at
    }

    fn set_keep_alive_timer(&mut self, wait: Span, now: Time) -> Time {
        let clock = self.sender.config.clock;
        let at = clock.expiry(now, wait);
        self.keep_alive_tick = clock.number(at);
        at
    }

    /// Sets the keep-alive timer to expire after `wait`.
    fn set_keep_alive_after(&mut self, wait: Span, now: Time) {
        let at = if self.quirks().timers.kernel_keep_alive_timer {
            self.set_keep_alive_timer(wait, now)
        } else {
            now + wait
        };
        self.sender.timers.set(Purpose::KeepAlive, at);
    }

    /// Whether keep-alive applies. Not before the connection is established
    /// (RFC 9293 section 3.8.4: only on an idle connection), and not in states that end by
    /// themselves.
    pub(super) fn is_kept_alive(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::CloseWait | State::FinWait2
        )
    }

    /// Handles the keep-alive timer: sends a probe, or closes the connection after too many.
    pub(super) fn on_keep_alive_timer(&mut self, cx: &mut Ctx<'_>) {
        self.sender.timers.stop();
        let Some(keep_alive) = self
            .sender
            .config
            .keep_alive
            .filter(|_| self.is_kept_alive())
        else {
            return;
        };
        let silent = cx.now.since(self.receive.last_received_at);
        if silent < keep_alive.idle {
            self.set_keep_alive_after(keep_alive.idle - silent, cx.now);
            return;
        }
        // RFC 9293 section 3.8.4: "it MUST NOT interpret failure to respond to any specific probe
        // as a dead connection." As in Linux, a user timeout replaces the number of probes.
        let over = match self.sender.config.user_timeout {
            Some(limit) => self.unanswered_probes > 0 && silent >= limit,
            None => u32::from(self.unanswered_probes) >= keep_alive.probes.min(MAXIMUM_PROBES),
        };
        if over {
            self.send_reset(self.sender.send.wire(self.acceptable_position()), true, cx);
            self.enter_closed(Events::TIMED_OUT, cx.now);
            return;
        }
        self.unanswered_probes = self.unanswered_probes.saturating_add(1);
        self.sender.statistics.keep_alive_probes += 1;
        // RFC 9293 section 3.8.4: SEG.SEQ = SND.NXT - 1, without the "one garbage octet", which is
        // only for erroneous peers.
        self.send_empty_probe(cx);
        self.set_keep_alive_after(keep_alive.interval, cx.now);
    }
}
