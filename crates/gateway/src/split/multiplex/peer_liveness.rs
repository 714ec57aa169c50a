//! Liveness of the other gateway, checked on each trunk.
//!
//! TCP alone detects a dead peer too late. The retransmission timer backs off for a quarter of an
//! hour (RFC 9293 section 3.8.3), and an idle connection misses nothing. So the peer is also probed
//! with keep-alive segments (RFC 1122 section 4.2.3.6), whether data is outstanding or not. A peer
//! that has lost its state answers them with a RST.
//!
//! Silence has consequences in two steps, because the two possible mistakes differ in cost:
//!
//! * **Suspected down**: something has waited for an answer for [`ANSWER_TIMEOUT`]. All trunks are
//!   then suspected, and no new stream is opened on a suspected trunk until something arrives on
//!   it. Then everything outstanding is retransmitted at once. If the suspicion was wrong, no
//!   connection is lost.
//! * **Given up**: as many probes as `keep_alive` allows had no answer. The connections that the
//!   trunk carries are reset. This takes about a minute, because an outage that the hosts' own TCP
//!   would have survived must not reset them.
//!
//! An ICMP error that reports a segment as undeliverable makes the peer suspected at once.
//!
//! When one trunk is reset, the peer has restarted or ended, so all other trunks are probed at
//! once. A gateway that has restarted opens a trunk by itself, without waiting for a probe.

use bentpipe_tcp::{Connection, KeepAlive, Rings, Socket};
use bentpipe_types::{Ctx, Span, Time};

/// Default for `keep_alive`. A probe and its answer take 52 bytes in each direction, with
/// timestamps: 9.4 kB per hour, 0.2% of 9.6 kbit/s. An outage of up to a minute resets no
/// connection.
pub(super) const KEEP_ALIVE: KeepAlive = KeepAlive {
    idle: Span::from_secs(20),
    interval: Span::from_secs(5),
    probes: 12,
};
/// Time to wait for an answer before the peer is suspected down. At least two retransmission
/// timeouts, since the queue of a slow link may take longer.
pub(super) const ANSWER_TIMEOUT: Span = Span::from_secs(3);

/// Liveness of the peer, as seen on one trunk.
#[derive(Debug)]
pub(super) struct PeerLiveness {
    /// Time of the last acceptable segment, as of the last update.
    pub(super) last_accepted_at: Time,
    /// Time of the last segment of any kind. A probe from the peer shows that it is alive, not that
    /// it receives what this gateway sends.
    pub(super) last_arrival_at: Time,
    /// Time since which data or a probe is unanswered.
    pub(super) waiting_since: Option<Time>,
    /// Probes sent since the last acceptable segment.
    pub(super) unanswered_probes: u32,
    /// Time of the last probe.
    pub(super) last_probe_at: Time,
    /// No new stream is opened on this trunk until something arrives.
    pub(super) suspected_down: bool,
    /// An answer is overdue on this trunk itself, or a router has reported the peer unreachable.
    pub(super) answer_overdue: bool,
}

impl PeerLiveness {
    pub(super) fn new(now: Time) -> Self {
        Self {
            last_accepted_at: now,
            last_arrival_at: now,
            waiting_since: None,
            unanswered_probes: 0,
            last_probe_at: now,
            suspected_down: false,
            answer_overdue: false,
        }
    }

    /// Notes that a segment of any kind has arrived.
    pub(super) fn on_arrival(&mut self, now: Time) {
        self.last_arrival_at = now;
    }

    /// Returns true if the peer is suspected down.
    pub(super) fn is_suspected_down(&self) -> bool {
        self.suspected_down
    }

    /// Returns true if a probe is unanswered.
    pub(super) fn is_probing(&self) -> bool {
        self.unanswered_probes > 0
    }

    /// Updates the state from the connection's. Returns true if the peer was suspected down and has
    /// answered.
    pub(super) fn update(&mut self, tcp: &Connection, now: Time) -> bool {
        let mut back = false;
        if tcp.last_received_at() > self.last_accepted_at {
            back = self.suspected_down;
            *self = Self {
                last_accepted_at: tcp.last_received_at(),
                ..Self::new(now)
            };
        }
        if !tcp.is_idle() {
            self.waiting_since.get_or_insert(now);
        } else if self.unanswered_probes == 0 {
            self.waiting_since = None;
        }
        back
    }

    pub(super) fn probe(&mut self, socket: &mut Socket<Rings>, cx: &mut Ctx<'_>) {
        self.unanswered_probes = self.unanswered_probes.saturating_add(1);
        self.last_probe_at = cx.now;
        self.waiting_since.get_or_insert(cx.now);
        socket.act(cx, Connection::send_keep_alive_probe);
    }

    /// Time at which an answer becomes overdue; `None` if nothing is unanswered, or if one is
    /// overdue already.
    pub(super) fn answer_deadline(&self, tcp: &Connection) -> Option<Time> {
        let patience = ANSWER_TIMEOUT.max(tcp.rto_without_backoff() * 2);
        (!self.answer_overdue).then_some(self.waiting_since? + patience)
    }

    /// Time of the next probe, if one is unanswered.
    pub(super) fn next_probe_at(&self, tcp: &Connection, every: Span) -> Option<Time> {
        (self.unanswered_probes > 0)
            .then(|| self.last_probe_at + every.max(tcp.rto_without_backoff()))
    }
}
