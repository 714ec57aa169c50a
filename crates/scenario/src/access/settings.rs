//! Capacity on demand, resolved.

use std::sync::Arc;

use bentpipe_types::{BitRate, Span};

/// How a direction gets capacity from a hub.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDemand {
    /// Carrier on which it sends.
    pub carrier: Carrier,
    /// Rate granted in each frame without a request.
    pub constant: Option<BitRate>,
    /// Highest rate that it requests.
    pub rate_based: Option<BitRate>,
    /// Whether it requests the volume of its backlog.
    pub volume_based: bool,
    /// Whether it gets a share of the capacity that no terminal has requested.
    pub free: bool,
    /// Delay of a request on the way to the hub.
    pub request_delay: Span,
    /// Delay of the hub's plan on the way to the terminal.
    pub grant_delay: Span,
}

impl OnDemand {
    /// Returns the time from a request until its grant is known, without the duration of frames.
    #[must_use]
    pub fn loop_delay(&self) -> Span {
        self.request_delay + self.carrier.processing + self.grant_delay
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
