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

use std::mem::take;

use bentpipe_tcp::{Connection, KeepAlive, Payload, Rings, Socket};
use bentpipe_types::{Ctx, IcmpError, Span, Time};

use super::trunk::Trunk;
use super::{GatewayContext, Multiplex, PeerNotice};
use crate::icmp::IcmpReport;

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
    last_accepted_at: Time,
    /// Time of the last segment of any kind. A probe from the peer shows that it is alive, not that
    /// it receives what this gateway sends.
    last_arrival_at: Time,
    /// Time since which data or a probe is unanswered.
    waiting_since: Option<Time>,
    /// Probes sent since the last acceptable segment.
    unanswered_probes: u32,
    /// Time of the last probe.
    last_probe_at: Time,
    /// No new stream is opened on this trunk until something arrives.
    suspected_down: bool,
    /// An answer is overdue on this trunk itself, or a router has reported the peer unreachable.
    answer_overdue: bool,
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

    fn probe(&mut self, socket: &mut Socket<Rings>, cx: &mut Ctx<'_>) {
        self.unanswered_probes = self.unanswered_probes.saturating_add(1);
        self.last_probe_at = cx.now;
        self.waiting_since.get_or_insert(cx.now);
        socket.act(cx, Connection::send_keep_alive_probe);
    }

    /// Time at which an answer becomes overdue; `None` if nothing is unanswered, or if one is
    /// overdue already.
    fn answer_deadline(&self, tcp: &Connection) -> Option<Time> {
        let patience = ANSWER_TIMEOUT.max(tcp.rto_without_backoff() * 2);
        (!self.answer_overdue).then_some(self.waiting_since? + patience)
    }

    /// Time of the next probe, if one is unanswered.
    fn next_probe_at(&self, tcp: &Connection, every: Span) -> Option<Time> {
        (self.unanswered_probes > 0)
            .then(|| self.last_probe_at + every.max(tcp.rto_without_backoff()))
    }
}

/// Returns the trunk if it is established. The handshake has its own timer.
fn established(trunk: &Option<Trunk>) -> Option<&Trunk> {
    trunk.as_ref().filter(|trunk| trunk.is_established())
}

/// Returns true if the error reports that the destination is unreachable, whatever the segment's
/// length and options.
const fn means_unreachable(error: IcmpError) -> bool {
    match error {
        IcmpError::TooBig { .. } | IcmpError::ParameterProblem => false,
        IcmpError::NetworkUnreachable
        | IcmpError::HostUnreachable
        | IcmpError::ProtocolUnreachable
        | IcmpError::PortUnreachable
        | IcmpError::Prohibited
        | IcmpError::TimeExceeded => true,
    }
}

impl Trunk {
    /// Returns true if new streams may be opened on the trunk.
    pub(super) fn is_usable(&self) -> bool {
        self.is_established() && !self.liveness.is_suspected_down()
    }

    fn suspect(&mut self, cx: &mut Ctx<'_>) {
        self.liveness.suspected_down = true;
        if !self.liveness.is_probing() {
            self.liveness.probe(&mut self.socket, cx);
        }
    }
}

impl<P: Payload> Multiplex<P> {
    /// Returns true if new streams may be opened on at least one trunk.
    pub(super) fn has_usable_trunk(&self) -> bool {
        self.trunks.iter().flatten().any(Trunk::is_usable)
    }

    /// Returns true if there are established trunks and all of them are suspected down.
    pub(super) fn all_trunks_suspected(&self) -> bool {
        !self.has_usable_trunk() && self.trunks.iter().any(|trunk| established(trunk).is_some())
    }

    /// Time of the next probe of an idle trunk, and which trunk it is.
    ///
    /// If all trunks are idle, one probe for all of them is sent on the trunk that has been silent
    /// longest, and the next one on the next trunk. If others are busy, an idle one may stay silent
    /// as long as if trunks took turns. So the cost does not grow with the number of trunks. One of
    /// the two gateways sends the probes; the other one does so only if no probe arrives.
    fn next_idle_probe(&self) -> Option<(Time, usize)> {
        // The gateway that probes first counts only acceptable segments, because anybody can send
        // others.
        let silent = |trunk: &Trunk| {
            let PeerLiveness {
                last_accepted_at,
                last_arrival_at,
                ..
            } = trunk.liveness;
            if trunk.probes_first {
                last_accepted_at
            } else {
                last_accepted_at.max(last_arrival_at)
            }
        };
        let open = || {
            let trunks = self.trunks.iter().enumerate();
            trunks.filter_map(|(slot, trunk)| Some((slot, established(trunk)?)))
        };
        let is_idle = |(_, trunk): &(usize, &Trunk)| trunk.liveness.waiting_since.is_none();
        let (slot, next) = (open().filter(is_idle)).min_by_key(|(_, trunk)| silent(trunk))?;
        let idle = self.keep_alive.idle;
        let wait = if next.probes_first {
            idle
        } else {
            idle + idle / 2
        };
        let turn = silent(next) + wait * open().count() as u64;
        let latest = open().map(|(_, trunk)| silent(trunk)).max()?;
        let all = open().all(|each| is_idle(&each));
        Some((if all { turn.min(latest + wait) } else { turn }, slot))
    }

    /// Time of the next liveness timer.
    pub(super) fn next_check(&self) -> Option<Time> {
        let trunks = self.trunks.iter().filter_map(established);
        let each = trunks.flat_map(|trunk| {
            let (liveness, tcp) = (&trunk.liveness, trunk.socket.connection());
            [
                liveness.answer_deadline(tcp),
                liveness.next_probe_at(tcp, self.keep_alive.interval),
            ]
        });
        let idle = self.next_idle_probe().map(|(at, _)| at);
        let begins = self.announce_restart.then_some(Time::ZERO);
        each.flatten().chain(idle).chain(begins).min()
    }

    /// Makes this gateway announce itself: the peer may still have trunks to an instance that has
    /// failed.
    pub(in super::super) fn announce_restart(&mut self) {
        self.announce_restart = true;
    }

    /// Sends the probes that are due, and gives up trunks whose probes were not answered.
    pub(super) fn check_liveness(&mut self, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        if take(&mut self.announce_restart) && self.trunks.iter().all(Option::is_none) {
            // This SYN is the quickest way to make the peer check its old trunk
            // (RFC 9293 section 3.5.1): a RST then clears that one after one round trip.
            self.connect_trunk(0, context, cx);
        }
        for slot in 0..self.trunks.len() {
            let Some(trunk) = self.trunks[slot]
                .as_mut()
                .filter(|trunk| trunk.is_established())
            else {
                continue;
            };
            let due = |at: Option<Time>| at.is_some_and(|at| at <= cx.now);
            let tcp = trunk.socket.connection();
            let (overdue, probes) = (
                due(trunk.liveness.answer_deadline(tcp)),
                due(trunk.liveness.next_probe_at(tcp, self.keep_alive.interval)),
            );
            if probes && trunk.liveness.unanswered_probes >= self.keep_alive.probes {
                self.give_up(slot, context, cx);
                continue;
            }
            if probes {
                trunk.liveness.probe(&mut trunk.socket, cx);
            }
            if overdue {
                trunk.liveness.answer_overdue = true;
                self.suspect_all(cx);
                self.open_fallbacks(slot, cx);
            }
        }
        if let Some((_, slot)) = self.next_idle_probe().filter(|(at, _)| *at <= cx.now)
            && let Some(trunk) = &mut self.trunks[slot]
        {
            trunk.liveness.probe(&mut trunk.socket, cx);
        }
    }

    /// Processes an ICMP error about a segment of a trunk. An unreachable error is the quickest
    /// sign that the peer is down, but it may be wrong, forged or transient. So it makes the peer
    /// suspected down, and resets nothing.
    pub(super) fn on_trunk_icmp(
        &mut self,
        slot: usize,
        report: &IcmpReport,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        let believed = trunk
            .socket
            .connection()
            .concerns_outstanding_data(report.sequence);
        let unreachable = believed && means_unreachable(report.error);
        if !trunk.is_established() && unreachable {
            // The handshake goes on: the peer may have received the SYN all the same, and answer
            // late.
            self.stop_waiting(slot, context, cx);
            return;
        }
        trunk.socket.on_icmp(report.error, report.sequence, cx);
        if unreachable && !trunk.liveness.answer_overdue {
            trunk.liveness.answer_overdue = true;
            self.suspect_all(cx);
            self.open_fallbacks(slot, cx);
        }
        self.on_trunk_event(slot, context, cx);
    }

    /// Marks the peer as suspected down on all established trunks, and probes each of them.
    pub(super) fn suspect_all(&mut self, cx: &mut Ctx<'_>) {
        let had = self.has_usable_trunk();
        for trunk in self.trunks.iter_mut().flatten() {
            if trunk.is_established() {
                trunk.suspect(cx);
            }
        }
        if had {
            self.notice = Some(PeerNotice::Silent);
        }
    }

    /// Probes all idle trunks, before another trunk is opened. If the new SYN is not answered, it
    /// is then known whether the others work.
    pub(super) fn probe_idle_trunks(&mut self, cx: &mut Ctx<'_>) {
        for trunk in self.trunks.iter_mut().flatten() {
            if trunk.is_established() && trunk.liveness.waiting_since.is_none() {
                trunk.liveness.probe(&mut trunk.socket, cx);
            }
        }
    }

    /// A trunk that was suspected down has received something.
    pub(super) fn on_recovery(&mut self, slot: usize, cx: &mut Ctx<'_>) {
        self.peer_absent = false;
        self.notice = Some(PeerNotice::Recovered);
        if let Some(trunk) = &mut self.trunks[slot] {
            (trunk.socket).act(cx, |tcp, cx| tcp.on_path_restored(cx.now));
        }
    }

    /// Gives up a trunk whose probes were not answered.
    fn give_up(&mut self, slot: usize, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        trunk.socket.abort(cx);
        context.counters.trunks_silent += 1;
        self.on_trunk_failure(slot, context, cx);
        self.slot_lost[slot] = true;
        self.peer_absent = !self.has_usable_trunk();
        self.notice = Some(PeerNotice::Lost);
    }
}
