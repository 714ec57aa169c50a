//! Capacity on demand, resolved.

use std::sync::Arc;

use bentpipe_link::TerminalSettings;
use bentpipe_types::{BitRate, Span};

/// How a direction gets capacity from a hub.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDemand {
    /// Carrier on which it sends.
    pub carrier: Carrier,
    /// Capacity of the terminal on the carrier.
    pub terminal: TerminalSettings,
}

impl OnDemand {
    /// Returns the time from a request until its grant is known, without the duration of frames.
    #[must_use]
    pub fn loop_delay(&self) -> Span {
        self.terminal.request_delay + self.carrier.processing + self.terminal.grant_delay
    }
}

/// A carrier shared by directions that request capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Carrier {
    /// Name, or `None` for the carrier of one direction only.
    pub name: Option<Arc<str>>,
    /// Total rate of all directions.
    pub rate: BitRate,
    /// Duration of a frame; above zero.
    pub frame: Span,
    /// Time that the hub takes from a request to the plan that answers it.
    pub processing: Span,
}
