//! A part of a divided network, as a network.

use bentpipe_link::Direction;
use bentpipe_types::{Agent, Time};

use crate::network::Network;
use crate::network::fast::FastPaths;
use crate::node::Node;
use crate::stand_in::Crossing;

/// A deadline of an agent at which its part is quiet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Pause {
    pub(super) at: Time,
    node: u16,
}

impl Network {
    /// Whether nothing can happen any more in this part: see `Network::is_quiet`.
    pub(super) fn part_is_quiet(&self) -> bool {
        self.nothing_in_transit() && self.nodes.iter().all(|slot| slot.node.is_quiet())
    }

    /// Processes events up to and including `until`, without ending the run. Stops at the deadline
    /// of an agent, except the one `passed`, if the part is then quiet.
    pub(super) fn run_window(
        &mut self,
        until: Time,
        passed: &mut Option<Pause>,
    ) -> (u64, Option<Pause>) {
        self.begin(Some(until));
        let nodes = self.directions.len() as u16;
        let mut left = u64::MAX;
        while let Some((at, component)) = FastPaths::before_event(self, until, &mut left) {
            self.now = at;
            let Some(node) = component.0.checked_sub(nodes) else {
                self.on_arrival(component.0);
                continue;
            };
            let pause = Pause { at, node };
            if self.nodes[usize::from(node)].node.is_custom()
                && passed.take_if(|passed| *passed == pause).is_none()
                && self.part_may_end_now()
            {
                return (u64::MAX - left, Some(pause));
            }
            self.on_deadline(node);
        }
        (u64::MAX - left, None)
    }

    /// As `Network::may_end_now`, as far as this part is concerned.
    fn part_may_end_now(&mut self) -> bool {
        if !self.nothing_in_transit() {
            return false;
        }
        FastPaths::catch_up(self, self.now);
        self.part_is_quiet() && !self.awaits_capacity()
    }

    /// Moves the packets for a node of another part to `into`.
    pub(super) fn take_crossings(&mut self, node: u16, into: &mut Vec<Crossing>) {
        if let Node::StandIn(far) = self.nodes[usize::from(node)].node_mut() {
            far.take(into);
        }
    }

    /// Returns the stand-ins for nodes of other parts that directions lead to, and their parts.
    pub(super) fn stand_ins(&self, part_of: &[usize]) -> Vec<(u16, usize)> {
        let nodes = self.nodes.iter().zip(part_of).zip(0..);
        nodes
            .filter(|((slot, _), _)| matches!(&slot.node, Node::StandIn(far) if far.is_reached()))
            .map(|((_, part), index)| (index, *part))
            .collect()
    }

    /// Returns a time before which nothing happens in this part, or `None` if nothing will.
    pub(super) fn next_time(&self) -> Option<Time> {
        let ahead = FastPaths::read_outs(self).next_unscheduled_arrival();
        self.next_event().into_iter().chain(ahead).min()
    }

    /// Takes a packet from another part.
    pub(super) fn take_crossing(&mut self, crossing: Crossing) {
        let packet = self.packets.move_in(crossing.packet);
        self.add_arrival(crossing.direction, crossing.at, packet);
    }

    /// States that no packet will arrive from these directions before a time, except those taken
    /// already.
    pub(super) fn nothing_crosses_before(&mut self, directions: &[u16], at: Time) {
        for direction in directions {
            if let Direction::Fifo(fifo) = &mut self.directions[usize::from(*direction)].direction {
                fifo.nothing_arrives_before(at);
            }
        }
    }
}
