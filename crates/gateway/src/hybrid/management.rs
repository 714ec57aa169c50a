//! The interface of a hybrid gateway for its operator.

use std::any::Any;
use std::mem::discriminant;
use std::ops::ControlFlow;

use bentpipe_types::{ConnectionReport, LegReport, Managed, Time, check_unchanged, of_same_kind};

use super::Hybrid;
use super::tracked_connection::{Phase, TrackedConnection};

impl Managed for Hybrid {
    fn connections(
        &self,
        now: Time,
        visit: &mut dyn FnMut(&ConnectionReport) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for slot in 0..self.table.end() {
            if let Some(tracked) = self.table.get(slot)
                && !matches!(tracked.phase, Phase::Closed { .. })
            {
                visit(&report_of(tracked, now))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn dependent_connections(&self) -> u64 {
        self.totals.open
    }

    fn set_draining(&mut self, draining: bool) {
        self.is_draining = draining;
    }

    fn adopt_settings(&mut self, other: &mut dyn Managed) -> Result<(), String> {
        let other = of_same_kind::<Self>(other)?;
        let (new, old) = (&other.settings, &self.settings);
        check_unchanged(&[
            ("facing", new.facing == old.facing),
            ("connections", new.connections == old.connections),
            ("processing", new.processing == old.processing),
            (
                "tcp",
                discriminant(&new.recovery) == discriminant(&old.recovery),
            ),
        ])?;
        self.sender = new.sender().into();
        self.settings = new.clone();
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn more_counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("connections.passed_draining", self.passed_draining);
    }
}

/// Describes a connection. The first leg is the one towards the host, over the satellite.
fn report_of(tracked: &TrackedConnection, now: Time) -> ConnectionReport {
    let Phase::Open(relay) = &tracked.phase else {
        return ConnectionReport {
            opener: tracked.key.source,
            responder: tracked.key.destination,
            treatment: "tracked",
            age: None,
            idle: Some(now.since(tracked.last_packet_at)),
            legs: [None; 2],
        };
    };
    let sender = relay.sender.as_ref();
    let to_host = LegReport {
        is_facing: true,
        state: "established",
        delivered: relay.acknowledged.saturating_sub(1),
        congestion_window: sender.map_or(0, |sender| sender.congestion_window()),
        in_flight: sender.map_or(0, |sender| sender.in_flight()),
        peer_window: relay.host_window,
        smoothed_rtt: sender.and_then(|sender| sender.smoothed_rtt()),
        ..LegReport::default()
    };
    let to_server = LegReport {
        state: "established",
        received: relay.receive_next.saturating_sub(1),
        held: relay.receive_next.saturating_sub(relay.acknowledged),
        peer_window: relay.server_window.into(),
        advertised_window: relay.window_edge.saturating_sub(relay.receive_next),
        ..LegReport::default()
    };
    ConnectionReport {
        opener: tracked.key.source,
        responder: tracked.key.destination,
        treatment: "tracked",
        age: None,
        idle: Some(now.since(tracked.last_packet_at)),
        legs: [Some(to_host), Some(to_server)],
    }
}
