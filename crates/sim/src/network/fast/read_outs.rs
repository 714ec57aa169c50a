//! Present state of the network, where directions are ahead of time.

use bentpipe_link::{Counters, Direction};
use bentpipe_types::{PacketRef, Span, Time};
use rustc_hash::FxHashSet;

use super::{ANYWHERE, DirectionSlot, ReadOuts};

/// Present state of a direction's packets.
#[derive(Debug)]
pub(in crate::network) struct DirectionState {
    pub(in crate::network) counters: Counters,
    pub(in crate::network) in_transit: usize,
    /// Time for which the transmitter has worked.
    pub(in crate::network) busy: Span,
}

impl ReadOuts<'_> {
    /// Whether packets remain to be delivered whose arrivals are not in the schedule.
    pub(in crate::network) fn has_unscheduled_arrivals(&self) -> bool {
        self.0.fast.lookahead.has_later_arrivals()
    }

    /// Returns the first arrival that is not in the schedule.
    pub(in crate::network) fn next_unscheduled_arrival(&self) -> Option<Time> {
        self.0.fast.lookahead.next_arrival()
    }

    /// Whether a direction holds a packet.
    pub(in crate::network) fn has_packets_in_transit(&self) -> bool {
        self.0.directions.iter().any(DirectionSlot::has_events)
    }

    /// Returns the latest time that a node has reached.
    pub(in crate::network) fn latest_clock(&self) -> Time {
        let clocks = self.0.nodes.iter().map(|slot| slot.clock);
        clocks.fold(self.0.now, Time::max)
    }

    /// Returns the present state of each direction, with its transmitter's work up to `ended`, and
    /// the number of packet-hops.
    pub(in crate::network) fn direction_states(&self, ended: Time) -> (Vec<DirectionState>, u64) {
        let now = self.0.now;
        let ahead = self.ahead();
        let hops = self.0.packet_hops - ahead.iter().map(|each| *each as u64).sum::<u64>();
        let state = |(slot, ahead): (&DirectionSlot, usize)| match &slot.direction {
            Direction::Fifo(fifo) => {
                let in_transit = match &slot.chain_routing {
                    // A packet due right now is still here until its event.
                    Some(chain_routing) => {
                        fifo.arriving_after(now).count() + chain_routing.exits_due(now)
                    }
                    None => fifo.in_transit(),
                } - ahead;
                DirectionState {
                    counters: fifo.counters_without(ahead, in_transit),
                    in_transit,
                    busy: fifo.busy_without(ahead, ended),
                }
            }
            other => DirectionState {
                counters: other.counters(),
                in_transit: other.in_transit(),
                busy: other.busy(ended),
            },
        };
        let all = self.0.directions.iter().zip(ahead).map(state).collect();
        (all, hops)
    }

    /// Returns, for each direction, how many packets it contains that reach it after the current
    /// time.
    fn ahead(&self) -> Vec<usize> {
        let (directions, now) = (&self.0.directions, self.0.now);
        let not_left = |slot: &DirectionSlot| match (&slot.chain_routing, &slot.direction) {
            (Some(_), Direction::Fifo(fifo)) => fifo.arriving_after(now).collect(),
            (Some(_), Direction::Queued(queued)) => queued.in_flight().collect(),
            _ => FxHashSet::default(),
        };
        let not_left: Vec<FxHashSet<PacketRef>> = directions.iter().map(not_left).collect();
        let ahead = |slot: &DirectionSlot| match &slot.direction {
            Direction::Fifo(fifo) if slot.upstream != ANYWHERE => {
                let before = &not_left[usize::from(slot.upstream)];
                let coming = fifo.arriving_after(now);
                coming.take_while(|packet| before.contains(packet)).count()
            }
            Direction::Queued(queued) => queued.expected(),
            _ => 0,
        };
        directions.iter().map(ahead).collect()
    }
}
