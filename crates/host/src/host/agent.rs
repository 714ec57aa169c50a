//! The host as a node.

use std::fmt;

use bentpipe_types::{
    Agent, Ctx, Gauge, Holdings, PacketRef, Port, Routes, StreamCheck, Time, WithProcessor,
};

use super::{BATCH, Host};
use crate::account::Account;
use crate::table::Timer;
use crate::{ApplicationId, ConnectionKeys};

/// Gauges that probes may read.
pub const HOST_GAUGES: &[Gauge] = &[
    Gauge::new("connections", "connections", "Open connections."),
    Gauge::new(
        "buffered",
        "B",
        "Stream data that the host's connections hold.",
    ),
];

/// Gauges of a host with a processor (see [`WithProcessor`]).
pub const PROCESSED_HOST_GAUGES: &[Gauge] =
    &[WithProcessor::GAUGES[0], HOST_GAUGES[0], HOST_GAUGES[1]];

impl<P: ConnectionKeys> Agent for Host<P> {
    fn routes(&mut self, routes: Routes) {
        self.sockets.routes = routes;
    }

    #[inline]
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if self.sleeps() {
            self.hear_when_awake(from, packet, cx);
        } else {
            self.hear(from, packet, cx);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        if self.sleeps() {
            self.wake(cx);
        }
        for _ in 0..BATCH {
            let Some(number) = self.sockets.deadlines.due(cx.now) else {
                return;
            };
            match Timer::of(number) {
                Timer::Application(id) => self.run_application(id, cx),
                Timer::Socket(place) => {
                    let Some(slot) = self.sockets.at_mut(place) else {
                        continue;
                    };
                    slot.armed = Time::NEVER;
                    let deadline = slot.socket.next_deadline();
                    if deadline.is_some_and(|deadline| deadline <= cx.now) {
                        slot.socket.on_deadline(cx);
                        self.acted(cx.now);
                    }
                    self.settle(place, cx);
                    self.fetch_next_due();
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.sockets.deadlines.next()
    }

    fn holdings(&self) -> Holdings {
        Holdings {
            packets: self.packets_held() as u64,
            bytes: self.sockets.all().map(|slot| slot.socket.buffered()).sum(),
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("connections_opened", self.sockets.opened);
        visit("no_connection", self.counters.no_connection);
        visit("table_full", self.counters.table_full);
        visit("half_open_full", self.counters.half_open_full);
    }

    fn gauges(&self) -> &'static [Gauge] {
        HOST_GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        match index {
            0 => self.sockets.open as f64,
            1 => self.holdings().bytes as f64,
            _ => f64::NAN,
        }
    }

    fn stream_check(&self) -> StreamCheck {
        let mut check = StreamCheck::default();
        let mut add = |other: StreamCheck| {
            check.ranges += other.ranges;
            check.mismatches += other.mismatches;
        };
        for account in &self.sockets.accounts {
            if let Some(totals) = &account.totals {
                add(Account::check_of(totals));
            }
            if let Some(retired) = &account.retired {
                add(Account::check_of(retired.statistics()));
            }
        }
        for slot in self.sockets.all() {
            add(slot.socket.stream_check());
        }
        check
    }

    fn is_quiet(&self) -> bool {
        let over = |index| self.is_over(ApplicationId(index as u32));
        let waking = self.sockets.waking.as_ref();
        waking.is_none_or(|waking| waking.is_idle()) && (0..self.applications.len()).all(over)
    }
}

impl<P: ConnectionKeys> Host<P> {
    /// Whether the host [models wake-up order](Self::sleep_when_idle).
    #[inline]
    #[must_use]
    pub fn sleeps(&self) -> bool {
        self.sockets.waking.is_some()
    }

    /// Processes a packet for a host that does not [sleep](Self::sleeps), like
    /// [`Agent::on_packet`].
    //
    // Inlined into the loop that delivers many packets to a host, so that fewer cache lines of code
    // are needed per packet.
    #[inline(always)]
    pub fn hear(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if !cx.packets.get(packet).is_tcp() {
            self.on_datagram(packet, cx);
            return;
        }
        let key = P::key(cx.packets, packet);
        if let Some(place) = self.sockets.find(key)
            && let Some(slot) = self.sockets.at_mut(place)
        {
            slot.socket.on_packet(packet, cx);
            if slot.socket.has_events() {
                self.settle(place, cx);
            } else if let Some(at) = slot.socket.next_deadline_before(slot.armed) {
                slot.armed = at;
                self.sockets.arm_at(Timer::Socket(place), at);
            }
            return;
        }
        self.on_stranger(from, packet, cx);
    }

    /// Processes a packet, or holds it until the host has woken up, like [`Agent::on_packet`] of a
    /// host that [sleeps](Self::sleeps).
    #[inline(never)]
    pub fn hear_when_awake(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let waking = self.sockets.waking.as_mut();
        match waking.and_then(|waking| waking.hold(from, packet, cx.now)) {
            Some(at) => self.sockets.deadlines.look_at(at),
            None => self.hear_now(from, packet, cx),
        }
    }

    /// Processes held packets and application events once the host has woken up.
    #[inline(never)]
    fn wake(&mut self, cx: &mut Ctx<'_>) {
        while let Some((from, packet)) =
            (self.sockets.waking.as_mut()).and_then(|waking| waking.take(cx.now))
        {
            self.hear_now(from, packet, cx);
        }
        while let Some(place) = self.sockets.awake(cx.now) {
            self.settle_awake(place, cx);
        }
    }

    #[inline(never)]
    fn hear_now(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.hear(from, packet, cx);
    }

    /// Records activity that was not caused by a packet.
    pub(super) fn acted(&mut self, now: Time) {
        if let Some(waking) = &mut self.sockets.waking {
            waking.acted(now);
        }
    }

    fn packets_held(&self) -> usize {
        let waking = self.sockets.waking.as_ref();
        waking.map_or(0, |waking| waking.packets())
    }
}

impl<P: ConnectionKeys> fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("connections", &self.sockets.open)
            .field("applications", &self.applications.len())
            .field("listeners", &self.listeners.keys())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
