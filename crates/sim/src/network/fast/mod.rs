//! Fast paths: everything that the engine computes in another way than event by event.
//!
//! Contract:
//! - Equal to: the plain engine, byte for byte. Results, series, captures and the order of
//!   simultaneous events are the same.
//! - Disabled: where a capture or an every-change probe observes a direction or node. Chains also
//!   end at errors, gateways and devices. Hosts do not run ahead with an external clock, with
//!   broadcast links, or if their applications reach peers beside the network.
//! - Lookahead: a host runs ahead up to the horizon. That is the end of the run, the next sample,
//!   or one second after the next event, whichever is first. A deadline is processed if no packet
//!   can arrive before it.
//! - Catch up: code that reads the state of queues calls [`FastPaths::catch_up`] first. It reads
//!   packets in transit through [`FastPaths::read_outs`], since directions hold packets that reach
//!   them later.
//! - Tests: `tests/link_chains.rs` compares random networks with [`Network::without_chains`] and
//!   [`Network::without_lookahead`]; `tests/recording.rs` of the scenario crate compares runs that
//!   probes and captures observe.
//!
//! The plain engine calls these functions of [`FastPaths`], and nothing else of this module:
//!
//! | hook | called |
//! |---|---|
//! | [`begin`](FastPaths::begin) | when a run begins or continues |
//! | [`before_event`](FastPaths::before_event) | for the next event; hosts run ahead before it |
//! | [`on_enqueue`](FastPaths::on_enqueue) | after a drop-tail queue has accepted a packet |
//! | [`on_arrival`](FastPaths::on_arrival) | for the schedule entry of a direction |
//! | [`catch_up`](FastPaths::catch_up) | before state is read |
//! | [`sample`](FastPaths::sample) | for an interval probe of a direction |
//! | [`read_outs`](FastPaths::read_outs) | to read the present state of the network |
//! | [`disable`](FastPaths::disable) | when a direction is observed from now on, and by tests |
//!
//! | file | contents |
//! |---|---|
//! | `host_run_ahead` | hosts that process packets and deadlines ahead of the network's clock |
//! | `link_chain` | directions in a row: the passage of a packet is computed at once |
//! | `chained_queues` | queues other than drop-tail in such a chain |
//! | `queue_history` | backlog of a direction that holds packets that reach it later |
//! | `read_outs` | present state of directions that are ahead of time |
//! | `prefetch` | loads hosts and connections into the cache before their packets arrive |

mod chained_queues;
mod host_run_ahead;
mod link_chain;
mod prefetch;
mod queue_recording;
mod read_outs;

use bentpipe_link::Direction;
use bentpipe_types::{Bytes, PacketRef, Time};

use super::Network;
use super::shortcuts::{ANYWHERE, Shortcuts};
use super::slots::{DirectionSlot, NodeSlot};
use crate::probe::LinkQuantity;
use crate::schedule::ComponentId;
use host_run_ahead::Lookahead;
pub(super) use read_outs::DirectionState;

/// View of a network's present state.
pub(in crate::network) struct ReadOuts<'a>(&'a Network);

/// Argument of [`FastPaths::disable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Running ahead of the hosts at both ends of this direction.
    Around(u16),
    /// Running ahead of all hosts.
    RunAhead,
    /// Chains. For tests; before the run.
    Chains,
}

/// State of the fast paths of a network.
#[derive(Debug, Default)]
pub(super) struct FastPaths {
    /// Whether chains have been formed.
    begun: bool,
    /// Directions with a single upstream direction, from which chains are formed at the start of
    /// the run.
    upstream: Vec<(u16, u16)>,
    /// Directions of chains with queues other than drop-tail, which must be brought up to date
    /// before they are read.
    chained_queues: Vec<u16>,
    lookahead: Lookahead,
}

impl FastPaths {
    /// Creates the fast paths of a network. `upstream`: directions that receive all their packets
    /// from one other direction, and that direction.
    pub(super) fn new(upstream: Vec<(u16, u16)>) -> Self {
        Self {
            upstream,
            ..Self::default()
        }
    }

    /// Removes and returns the pairs given to [`new`](Self::new), for a network that is divided.
    pub(super) fn take_upstream(&mut self) -> Vec<(u16, u16)> {
        std::mem::take(&mut self.upstream)
    }

    /// Called when a run begins or continues up to `until`, or with `None` for an external clock,
    /// which hosts must not run ahead of. Probes and captures are known by now.
    #[inline]
    pub(super) fn begin(network: &mut Network, until: Option<Time>) {
        if !std::mem::replace(&mut network.fast.begun, true) {
            network.record_sampled_maxima();
            network.make_chains();
        }
        match until {
            Some(until) => network.begin_lookahead(until),
            None => network.disable_all_run_ahead(),
        }
    }

    /// Lets hosts run ahead as far as they must before the next event, and returns that event.
    /// Returns `None` if no event is left up to `until`, or `left` events have been processed.
    /// Deducts all events from `left`.
    #[inline(always)]
    pub(super) fn before_event(
        network: &mut Network,
        until: Time,
        left: &mut u64,
    ) -> Option<(Time, ComponentId)> {
        while *left > 0 {
            let horizon = network.fast.lookahead.horizon;
            let first = network.schedule.first().filter(|(at, _)| *at <= horizon);
            if network.fast.lookahead.must_run_hosts(first) {
                *left = network.run_all_hosts(*left);
            } else if first.is_some() {
                if network.is_large() {
                    network.fetch_next_arrivals();
                }
                *left -= 1;
                return first;
            } else if !network.move_horizon(until) {
                break;
            }
        }
        None
    }

    /// Handles a packet that has just entered a drop-tail queue, and will arrive at the end of the
    /// direction at `arrival`. Returns false if that is an ordinary event.
    #[inline(always)]
    pub(super) fn on_enqueue(
        network: &mut Network,
        index: u16,
        arrival: Time,
        packet: PacketRef,
        length: Bytes,
    ) -> bool {
        let slot = &mut network.directions[usize::from(index)];
        debug_assert!(slot.upstream == ANYWHERE, "it has one upstream only");
        let Direction::Fifo(fifo) = &mut slot.direction else {
            return false;
        };
        match slot.shortcuts {
            Shortcuts::NONE => false,
            Shortcuts::LEADS_ON => {
                fifo.make_room(network.now);
                network.follow(index, arrival, packet, length);
                true
            }
            Shortcuts::RUNS_AHEAD => {
                if fifo.in_transit() == 1 {
                    network.fast.lookahead.register_arrival(index, arrival);
                }
                true
            }
            _ => network.enqueue_recorded(index, arrival, packet, length),
        }
    }

    /// Handles the schedule entry of a direction, unless it is an ordinary arrival.
    #[inline(always)]
    pub(super) fn on_arrival(network: &mut Network, index: u16) -> bool {
        let leads_on = network.directions[usize::from(index)].leads_on();
        if leads_on {
            network.on_chain_entry(index);
        }
        leads_on
    }

    /// Brings all queues, and the time of the last activity, up to a time.
    pub(super) fn catch_up(network: &mut Network, at: Time) {
        network.settle_chained_queues(at);
        network.last_activity = network
            .last_activity
            .max(network.fast.lookahead.last_activity);
    }

    /// Returns the value of a direction's quantity from its queue history, if that is recorded and
    /// contains it. For utilization: the seconds for which its transmitter has worked.
    pub(super) fn sample(
        network: &mut Network,
        index: usize,
        quantity: LinkQuantity,
    ) -> Option<f64> {
        let history = network.directions[index].rare.history.as_mut()?;
        history.read(quantity, network.now)
    }

    /// Returns the view of the network's present state.
    pub(super) fn read_outs(network: &Network) -> ReadOuts<'_> {
        ReadOuts(network)
    }

    /// Disables fast paths from now on, with the same results.
    pub(super) fn disable(network: &mut Network, scope: Scope) {
        match scope {
            Scope::Around(index) => network.disable_run_ahead_around(index),
            Scope::RunAhead => network.disable_all_run_ahead(),
            Scope::Chains => network.fast.upstream.clear(),
        }
    }
}

impl Network {
    /// Disables running ahead: every arrival at a host is an event, with the same results. For
    /// tests; before the run.
    pub fn without_lookahead(&mut self) {
        FastPaths::disable(self, Scope::RunAhead);
    }

    /// Disables chains: every arrival is an event, and probes observe every event, with the same
    /// results. For tests; before the run and before probes are added.
    pub fn without_chains(&mut self) {
        FastPaths::disable(self, Scope::Chains);
        self.probes.observe = true;
    }
}
