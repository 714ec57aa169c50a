//! Capacity on demand, resolved.

use std::sync::Arc;

use bentpipe_types::{BitRate, Span};

/// How a direction that sends what a hub grants comes by it.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDemand {
    /// What it sends on.
    pub carrier: Carrier,
    /// Granted in each frame without being asked for.
    pub constant: Option<BitRate>,
    /// What it asks for by rate at most.
    pub rate_based: Option<BitRate>,
    /// It asks for the volume of what waits.
    pub volume_based: bool,
    /// It gets its share of what nobody has asked for.
    pub free: bool,
    /// How long a request takes to the hub.
    pub request_delay: Span,
    /// How long the hub's plan takes to the terminal.
    pub grant_delay: Span,
}

impl OnDemand {
    /// How long a request takes until its grant is known, frames aside.
    #[must_use]
    pub fn loop_delay(&self) -> Span {
        self.request_delay + self.carrier.processing + self.grant_delay
    }
}

/// What directions share that ask for capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Carrier {
    /// Its name; none: it is one direction's own.
    pub name: Option<Arc<str>>,
    /// What all send together at most.
    pub rate: BitRate,
    /// How long a frame is; above zero.
    pub frame: Span,
    /// What the hub takes between a request and the plan that heeds it.
    pub processing: Span,
}
