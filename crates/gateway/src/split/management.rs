//! The interface of a split gateway for its operator.

use std::any::Any;
use std::ops::ControlFlow;

use bentpipe_tcp::{Payload, Socket, State};
use bentpipe_types::{
    ConnectionChange, ConnectionReport, LegReport, Managed, RoundTripHistogram, Time,
    check_unchanged, of_same_kind,
};

use super::leg_settings::LegSettingsCache;
use super::split_connection::{OPENER, RESPONDER, SplitConnection};
use super::{Settings, Split};

impl<P: Payload + 'static> Managed for Split<P> {
    fn connections(
        &self,
        now: Time,
        visit: &mut dyn FnMut(&ConnectionReport) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for pair in self.pairs.all() {
            if !pair.has_ended {
                visit(&self.report_of(&pair, now))?;
            }
        }
        if let Some(multiplex) = &self.multiplex {
            for carried in multiplex.connections().filter(|one| !one.has_ended) {
                visit(&carried.report(now))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn dependent_connections(&self) -> u64 {
        self.counters.open
    }

    fn set_draining(&mut self, draining: bool) {
        self.is_draining = draining;
    }

    fn adopt_settings(&mut self, other: &mut dyn Managed) -> Result<(), String> {
        let other = of_same_kind::<Self>(other)?;
        let (new, old) = (&other.settings, &self.settings);
        check_unchanged(&[
            ("facing", new.facing == old.facing),
            ("multiplex", new.multiplex == old.multiplex),
            ("processing", new.processing == old.processing),
        ])?;
        self.budget.set_total(new.memory);
        self.rate_limits.replace(new.rate_limits.clone());
        self.settings = Settings {
            suspend_after: old.suspend_after,
            secret: old.secret,
            ..new.clone()
        };
        self.leg_settings = LegSettingsCache::default();
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn more_counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("connections.passed_draining", self.counters.passed_draining);
        visit("packets.answered_around", self.counters.answers_around);
    }

    fn take_connection_changes(&mut self, changes: &mut Vec<ConnectionChange>) {
        changes.extend(self.changes.iter_mut().flat_map(|own| own.drain(..)));
    }

    fn round_trips(&self) -> [RoundTripHistogram; 2] {
        self.counters.round_trips
    }
}

impl<P: Payload> Split<P> {
    fn report_of(&self, pair: &SplitConnection<P>, now: Time) -> ConnectionReport {
        let leg = |side: usize| {
            let is_facing = pair.ports[side] == self.settings.facing;
            let held = pair.streams[side].held;
            pair.legs[side]
                .as_ref()
                .map(|leg| leg_report(leg, is_facing, held))
        };
        ConnectionReport {
            opener: pair.key.source,
            responder: pair.key.destination,
            treatment: "split",
            age: Some(now.since(pair.opened_at)),
            idle: Some(now.since(pair.last_activity_at)),
            legs: [leg(OPENER), leg(RESPONDER)],
        }
    }
}

/// Returns the state of a leg that has received `held` bytes which the other host lacks.
pub(super) fn leg_report<P: Payload>(leg: &Socket<P>, is_facing: bool, held: u64) -> LegReport {
    let tcp = leg.connection();
    let statistics = tcp.statistics();
    LegReport {
        is_facing,
        state: match leg.state() {
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::Established => "established",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::CloseWait => "close-wait",
            State::Closing => "closing",
            State::LastAck => "last-ack",
            State::TimeWait => "time-wait",
            State::Closed => "closed",
        },
        received: tcp.received_offset(),
        delivered: tcp.acknowledged_offset(),
        held,
        in_flight: tcp.in_flight(),
        congestion_window: tcp.congestion_window(),
        peer_window: tcp.peer_window(),
        advertised_window: tcp.advertised_window(),
        smoothed_rtt: tcp.smoothed_rtt(),
        retransmitted: statistics.segments_retransmitted,
        timeouts: statistics.timeouts,
    }
}
