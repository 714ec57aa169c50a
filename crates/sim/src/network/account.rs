//! What became of everything, and whether everything is accounted for.

use bentpipe_types::Time;

use super::{FlowSlot, Network};
use crate::{DirectionOutcome, FlowOutcome, Outcome, Violation};

impl Network {
    /// What the run has come to so far, and its series, which are taken out.
    ///
    /// A debug build checks that every packet is accounted for.
    #[must_use]
    pub fn outcome(&mut self) -> Outcome {
        debug_assert_eq!(self.violations(), [], "not every packet is accounted for");
        let ended = self.ended.unwrap_or(self.now);
        let directions = self
            .directions
            .iter()
            .map(|slot| DirectionOutcome {
                name: slot.name.clone(),
                counters: slot.direction.counters(),
                utilization: share(slot.direction.busy(ended).as_secs_f64(), ended),
                in_transit: slot.direction.in_transit() as u64,
            })
            .collect();
        Outcome {
            ended,
            packet_hops: self.packet_hops,
            discards: self.discards,
            flows: self
                .flows
                .iter()
                .map(|flow| self.flow_outcome(flow))
                .collect(),
            directions,
            series: std::mem::take(&mut self.trace).into_series(),
        }
    }

    fn flow_outcome(&self, flow: &FlowSlot) -> FlowOutcome {
        let statistics = |end| {
            self.connection(end)
                .map(|connection| connection.statistics().clone())
        };
        let receiver = statistics(flow.receiver);
        let finish = receiver
            .as_ref()
            .filter(|receiver| {
                flow.size
                    .is_some_and(|size| receiver.bytes_delivered >= size)
            })
            .and_then(|receiver| receiver.last_delivery_at.or(Some(flow.start)));
        FlowOutcome {
            name: flow.name.clone(),
            start: flow.start,
            size: flow.size,
            finish,
            sender: statistics(flow.sender),
            receiver,
        }
    }

    /// Packets that are not accounted for, and bytes out of place: none, unless the engine is wrong.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut all_in_transit = 0;
        for slot in &self.directions {
            let counters = slot.direction.counters();
            let in_transit = slot.direction.in_transit() as u64;
            let held_back = slot.direction.held_back() as u64;
            all_in_transit += in_transit + held_back;
            let left = counters.delivered
                + counters.lost
                + counters.dropped
                + counters.removed
                + counters.undecodable;
            if counters.offered != left + in_transit
                || counters.delivered + counters.made
                    != counters.passed_on + counters.released + held_back
            {
                found.push(Violation::Direction {
                    name: slot.name.clone(),
                    counters,
                    in_transit,
                    held_back,
                });
            }
        }
        let held = self.packets.held() as u64;
        if held != all_in_transit {
            found.push(Violation::Store {
                held,
                in_transit: all_in_transit,
            });
        }
        for flow in &self.flows {
            let misplaced = |end| {
                self.connection(end)
                    .is_some_and(|end| end.statistics().payload_mismatches > 0)
            };
            if misplaced(flow.receiver) || misplaced(flow.sender) {
                found.push(Violation::Stream {
                    flow: flow.name.clone(),
                });
            }
        }
        found
    }
}

fn share(busy_s: f64, ended: Time) -> f64 {
    if ended == Time::ZERO {
        0.0
    } else {
        (busy_s / ended.as_secs_f64()).min(1.0)
    }
}
