//! A carrier that terminals share, and their places on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;
use super::constant::Granted;
use super::hub::Hub;
use crate::changes::Rates;

/// A carrier, or a group of carriers that are planned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CarrierSettings {
    /// What all terminals send together at most.
    pub rate: BitRate,
    /// How long a frame is; above zero. The first begins at the start of the run, at every terminal.
    pub frame: Span,
    /// How long the hub takes from a request's arrival to sending out the plan that heeds it.
    pub processing: Span,
}

/// What a terminal may ask of a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalSettings {
    /// At which it sends in clear sky: more than this times a frame it is never granted.
    pub rate: BitRate,
    /// Granted in each frame without being asked for (CRA). All terminals' together are at most the carrier's rate.
    pub constant: Option<BitRate>,
    /// What it may ask for by rate at most (RBDC), besides what is constant.
    pub rate_based: Option<BitRate>,
    /// It asks for the volume of what waits (VBDC).
    pub volume_based: bool,
    /// It gets its share of what nobody wants (FCA).
    pub free: bool,
    /// How long a request takes to the hub.
    pub request_delay: Span,
    /// How long the hub's plan takes to the terminal.
    pub grant_delay: Span,
}

/// What a terminal asks for at a frame's beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Request {
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
}

/// What a terminal has of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Grant {
    pub(super) constant: Capacity,
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
    pub(super) free: Capacity,
    /// How long after the frame's beginning its burst begins.
    pub(super) begins: Span,
    /// At which it is sent; none where its path carries nothing, or the plan has no mode for it.
    pub(super) rate: Option<BitRate>,
    /// Its path carries something.
    pub(super) reaches: bool,
    /// What the plan has besides, in a mode that its path no longer allows.
    pub(super) faded: Capacity,
    /// What that by rate and by volume takes of the carrier.
    pub(super) on_air: Capacity,
}

impl Grant {
    pub(super) fn all(&self) -> Capacity {
        self.constant + self.by_rate + self.by_volume + self.free
    }
}

/// A carrier that terminals share.
#[derive(Clone, Debug)]
pub struct Carrier {
    hub: Arc<Mutex<Hub>>,
}

/// A terminal's place on a carrier.
#[derive(Clone, Debug)]
pub struct Access {
    pub(super) carrier: Carrier,
    pub(super) terminal: usize,
    pub(super) settings: TerminalSettings,
    pub(super) frame: Span,
    /// What a plan takes from a request's arrival to the terminals.
    pub(super) back: Span,
    pub(super) lag: u64,
}

impl Carrier {
    /// The places of these terminals on a carrier, in their order, which is that of their bursts.
    #[must_use]
    pub fn shared(settings: CarrierSettings, terminals: &[TerminalSettings]) -> Vec<Access> {
        let hub = Hub::new(settings, terminals);
        let carrier = Self {
            hub: Arc::new(Mutex::new(hub)),
        };
        // One plan for all: it leaves early enough for the terminal that it takes longest to.
        let farthest = terminals.iter().map(|terminal| terminal.grant_delay).max();
        let back = settings.processing + farthest.unwrap_or_default();
        let terminals = terminals.iter().enumerate();
        terminals
            .map(|(terminal, of)| Access {
                carrier: carrier.clone(),
                terminal,
                settings: *of,
                frame: settings.frame,
                back,
                lag: (of.request_delay + back)
                    .as_nanos()
                    .div_ceil(settings.frame.as_nanos())
                    .max(1),
            })
            .collect()
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access {
    /// How many frames after the one at whose beginning it is made a request is heeded: one at least.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.lag
    }

    /// Its rate changes as these say.
    pub(super) fn follow(&self, rates: Rates) {
        self.carrier.hub().follow(self.terminal, rates, self.lag);
    }

    /// What it has been granted as constant capacity in all frames before this one, which is the last that anybody has
    /// entered, and what it has of this one; `None` where all frames are the same.
    pub(super) fn constant(&self, frame: u64) -> Option<(Granted, Granted)> {
        self.carrier.hub().constant(self.terminal, frame)
    }

    /// A request that the plan of `frame` heeds.
    pub(super) fn ask(&self, frame: u64, request: Request) {
        self.carrier.hub().ask(frame, self.terminal, request);
    }

    /// What it has of this frame, which is the last that anybody has entered, and what it has ever been given by volume.
    pub(super) fn enter(&self, frame: u64) -> (Grant, Capacity) {
        let mut hub = self.carrier.hub();
        hub.plan_until(frame);
        (hub.grant(self.terminal), hub.given(self.terminal))
    }
}
