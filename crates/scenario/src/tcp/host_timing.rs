//! Clock phases and flow starts of hosts with Linux's profile, drawn from the seed.

use bentpipe_tcp::HostClock;
use bentpipe_types::{RandomStream, Span};

use crate::flow::settings::Flow;
use crate::scenario::settings::Scenario;

/// Upper bound of the delay of a flow's start.
const LATEST_START: Span = Span::from_millis(1);

/// Timing of a run's hosts. Each host and each flow draws from its own streams.
#[derive(Clone, Copy)]
pub(crate) struct HostTiming<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    /// Whether hosts draw their timing at all.
    pub(crate) drawn: bool,
}

impl HostTiming<'_> {
    /// Whether the host with this index draws its timing.
    pub(crate) fn is_drawn(&self, node: usize) -> bool {
        self.drawn && self.scenario.draws_timing(node)
    }

    /// Returns the clock of the host with this index, in a random phase of a tick.
    pub(crate) fn clock(&self, node: usize) -> HostClock {
        if !self.is_drawn(node) {
            return HostClock::default();
        }
        let name = &self.scenario.nodes[node].name;
        HostClock::ahead_by(self.draw(name, "clock", HostClock::TICK))
    }

    /// Returns the delay of a flow's start. A flow to several hosts starts at one time for all.
    pub(crate) fn lateness(&self, flow: &Flow) -> Span {
        let drawn = self.is_drawn(flow.from) || self.is_drawn(flow.to);
        if !drawn || flow.channel.is_some() {
            return Span::ZERO;
        }
        self.draw(&flow.name, "start within a millisecond", LATEST_START)
    }

    /// Draws a time below `most` from the stream for this purpose.
    fn draw(&self, component: &str, purpose: &str, most: Span) -> Span {
        let share = RandomStream::new(self.seed, component, purpose).uniform();
        Span::from_nanos((share * most.as_nanos() as f64) as u64)
    }
}
