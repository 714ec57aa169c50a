//! The gateway as an agent: its interface to the driver.

use std::mem;

use bentpipe_tcp::Payload;
use bentpipe_types::{
    Agent, Ctx, DropReason, Gauge, Holdings, Managed, PacketRef, Port, Processor, Routes,
    StreamCheck, Time,
};

use super::Split;
use super::multiplex::Multiplex;
use super::report::GAUGES;
use crate::crash::VolatileAgent;
use crate::refusal_notice::RefusalNotice;

/// Reported once. Without both directions of a connection, a gateway cannot split it.
const ASYMMETRIC_ROUTES: &str = "routes are asymmetric: hosts have received answers that did not pass this gateway, so that their connections fail (route both directions through it, or except these hosts)";

impl<P: Payload + 'static> VolatileAgent for Split<P> {
    fn lose_power(&mut self, cx: &mut Ctx<'_>) -> u64 {
        let waiting = self.pairs.active().filter_map(|pair| pair.syn);
        let carried = self.multiplex.iter().flat_map(|all| all.connections());
        for packet in waiting.chain(carried.filter_map(|one| one.syn)) {
            cx.discard(packet, DropReason::Down);
        }
        while let Some(packet) = self.processor.as_mut().and_then(Processor::abandon) {
            cx.discard(packet, DropReason::Down);
        }
        while let Some(packet) = self.rate_limits.abandon() {
            cx.discard(packet, DropReason::Down);
        }
        let sums = self.sums();
        let lost = self.counters.connections_lost(sums);
        let mut anew = Self::new(self.settings.clone());
        if let Some(multiplex) = &mut anew.multiplex {
            multiplex.announce_restart();
        }
        let before = mem::replace(self, anew);
        self.routes = before.routes;
        self.counters = before.counters;
        self.budget.keep_maxima_of(&before.budget);
        lost
    }
}

impl<P: Payload + 'static> Agent for Split<P> {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if self.rate_limits.is_idle() {
            self.process(from, packet, cx);
        } else if let Some(packet) = self.rate_limits.offer(from, packet, cx) {
            self.process(from, packet, cx);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some((from, packet)) = self.rate_limits.take(cx.now) {
            self.process(from, packet, cx);
        }
        while let Some((from, packet)) = self
            .processor
            .as_mut()
            .and_then(|processor| processor.take(cx.now))
        {
            self.handle(from, packet, cx);
        }
        self.pairs.now = cx.now;
        while let Some(index) = self.deadlines.due(cx.now) {
            let idle_timeout = self.settings.idle_timeout;
            let Some(pair) = self.pairs.get_mut(index) else {
                continue;
            };
            if !pair.has_ended && cx.now.since(pair.last_activity_at) >= idle_timeout {
                self.counters.idle += 1;
                self.abort(index, cx);
                continue;
            }
            self.update_window_limit(index, cx);
            if let Some(pair) = self.pairs.get_mut(index) {
                pair.on_deadline(cx);
            }
            self.advance(index, cx);
        }
        if self.multiplex.is_some() {
            self.with_multiplex(cx, Multiplex::on_deadline);
        }
        self.pairs
            .suspend_idle(&mut self.counters.round_trips, &mut self.budget);
        self.budget.set_suspended(self.pairs.suspended());
    }

    /// Resets both sides of every connection. Bytes that one host got acknowledged and the other
    /// has not received exist only here. A connection without such bytes cannot go on either, since
    /// the hosts have never seen each other's timestamps (RFC 7323 section 5.3) and window scales.
    /// Multiplexed connections are reset too; the other gateway notices when its trunks are reset.
    fn retire(&mut self, cx: &mut Ctx<'_>) {
        self.pairs.now = cx.now;
        for index in 0..self.pairs.end() {
            if let Some(pair) = self.pairs.get_mut(index)
                && !pair.has_ended
            {
                pair.aborted = true;
                self.abort(index, cx);
            }
        }
        if self.multiplex.is_some() {
            self.with_multiplex(cx, Multiplex::retire);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let processed = self.processor.as_ref().and_then(Processor::next);
        let streams = self.multiplex.as_ref().and_then(|all| all.next_deadline());
        let pairs = self.deadlines.next();
        let rest = self.pairs.next_check();
        let limited = self.rate_limits.next();
        [processed, pairs, streams, rest, limited]
            .into_iter()
            .flatten()
            .min()
    }

    fn holdings(&self) -> Holdings {
        let syns = self
            .pairs
            .active()
            .filter(|pair| pair.syn.is_some())
            .count() as u64;
        let carried = self.multiplex.as_ref().map_or(0, |all| all.syns());
        Holdings {
            packets: syns + carried + self.waiting(),
            bytes: self.budget.held,
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.report_counters(visit);
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        self.gauge_value(index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.check_streams()
    }

    fn remark(&self) -> Option<&'static str> {
        let of_the_other = self.multiplex.as_ref().and_then(|all| all.notice());
        match self.refusal_notice {
            RefusalNotice::Refusing => Some(
                "no memory left for more connections: new ones are forwarded unsplit (\"memory\" is the limit)",
            ),
            RefusalNotice::RefusingHalfOpen => Some(
                "too many connections wait for an answer, or too many of one source are open: new ones are forwarded unsplit",
            ),
            RefusalNotice::AcceptingAgain => {
                of_the_other.or(Some("memory is available again: new connections are split"))
            }
            RefusalNotice::None if self.counters.answers_around > 0 => {
                of_the_other.or(Some(ASYMMETRIC_ROUTES))
            }
            RefusalNotice::None => of_the_other,
        }
    }

    fn is_quiet(&self) -> bool {
        self.counters.open == 0
            && self.waiting() == 0
            && self.multiplex.as_ref().is_none_or(|all| all.is_quiet())
    }

    fn managed(&mut self) -> Option<&mut dyn Managed> {
        Some(self)
    }
}
