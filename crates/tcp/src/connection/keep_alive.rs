//! Keep-alive: is a peer that says nothing still there? (RFC 9293 section 3.8.4)

use bentpipe_types::{Ctx, Time};

use super::timers::Purpose;
use super::{Connection, Events, State};
use crate::config::KeepAlive;

impl Connection {
    /// Keep-alive from now on, or none: the socket option SO_KEEPALIVE.
    pub fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>, cx: &mut Ctx<'_>) {
        self.sender.config_mut().keep_alive = keep_alive;
        self.unanswered_probes = 0;
        if self.sender.timers.runs(Purpose::KeepAlive) {
            self.sender.timers.stop();
        }
        if self.sender.send.is_idle() && self.sender.timers.is_stopped() {
            self.rest(cx.now);
        }
    }

    /// The peer has acknowledged something, new or not: it lives.
    #[inline]
    pub(super) fn heard(&mut self, now: Time) {
        self.receive.heard_at = now;
        self.unanswered_probes = 0;
    }

    /// Nothing is outstanding: the main timer has nothing to do, or waits for the peer to be silent
    /// for too long.
    #[inline]
    pub(super) fn rest(&mut self, now: Time) {
        if let Some(keep_alive) = self.sender.config.keep_alive
            && self.is_kept_alive()
        {
            let at = self.receive.heard_at + keep_alive.idle;
            self.sender.timers.set(Purpose::KeepAlive, at.max(now));
        }
    }

    /// Not before the connection is established (RFC 9293: only on an idle connection), and in no
    /// state that ends by itself.
    fn is_kept_alive(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::CloseWait | State::FinWait2
        )
    }

    /// The time has come, unless the peer has said something since.
    pub(super) fn keep_alive(&mut self, cx: &mut Ctx<'_>) {
        self.sender.timers.stop();
        let Some(keep_alive) = self
            .sender
            .config
            .keep_alive
            .filter(|_| self.is_kept_alive())
        else {
            return;
        };
        let silent = cx.now.since(self.receive.heard_at);
        if silent < keep_alive.idle {
            let at = self.receive.heard_at + keep_alive.idle;
            self.sender.timers.set(Purpose::KeepAlive, at);
            return;
        }
        // "It MUST NOT be interpreted as a dead connection" that one probe is not answered. As in Linux,
        // a user timeout counts instead of the number of probes.
        let over = match self.sender.config.user_timeout {
            Some(limit) => self.unanswered_probes > 0 && silent >= limit,
            None => self.unanswered_probes >= keep_alive.probes,
        };
        if over {
            self.send_reset(self.sender.send.wire(self.acceptable_position()), true, cx);
            self.closed(Events::TIMED_OUT, cx.now);
            return;
        }
        self.unanswered_probes += 1;
        self.sender.statistics.keep_alive_probes += 1;
        // SEG.SEQ = SND.NXT - 1, and no byte with it: "MAY contain one garbage octet" is for peers that
        // are in error.
        self.send_empty_probe(cx);
        self.sender
            .timers
            .set(Purpose::KeepAlive, cx.now + keep_alive.interval);
    }
}
