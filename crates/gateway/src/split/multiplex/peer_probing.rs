//! Probes of the peer, and the reaction to its silence.

use std::mem::take;

use bentpipe_tcp::Payload;
use bentpipe_types::{Ctx, IcmpError, Time};

use super::peer_liveness::PeerLiveness;
use super::trunk::Trunk;
use super::{GatewayContext, Multiplex, PeerNotice};
use crate::icmp::IcmpReport;

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
