//! A carrier shared by terminals, and the terminals' access to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_types::Span;

use super::capacity::Capacity;
use super::constant::Granted;
use super::grant::{Grant, Request};
use super::hub::Hub;
use super::settings::{CarrierSettings, TerminalSettings};
use crate::changes::Rates;

/// A carrier shared by terminals.
#[derive(Clone, Debug)]
pub struct Carrier {
    hub: Arc<Mutex<Hub>>,
}

/// A terminal's access to a carrier.
#[derive(Clone, Debug)]
pub struct Access {
    pub(super) carrier: Carrier,
    pub(super) terminal: usize,
    pub(super) settings: TerminalSettings,
    pub(super) frame: Span,
    /// Time from a request's arrival until its plan reaches the terminals.
    pub(super) back: Span,
    pub(super) lag: u64,
}

impl Carrier {
    /// Creates the accesses of these terminals to a carrier. Bursts are in this order.
    #[must_use]
    pub fn shared(settings: CarrierSettings, terminals: &[TerminalSettings]) -> Vec<Access> {
        let hub = Hub::new(settings, terminals);
        let carrier = Self {
            hub: Arc::new(Mutex::new(hub)),
        };
        // The plan is common to all, so it is sent early enough for the most distant terminal.
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
    /// Returns how many frames after its own a request takes effect; at least one.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.lag
    }

    /// Sets the changing rate of the terminal's path.
    pub(super) fn follow(&self, rates: Rates) {
        self.carrier.hub().follow(self.terminal, rates, self.lag);
    }

    /// Returns the constant capacity granted in all frames before this one and in this one, which
    /// must be the latest that any terminal has entered. Returns `None` if all frames are equal.
    pub(super) fn constant(&self, frame: u64) -> Option<(Granted, Granted)> {
        self.carrier.hub().constant(self.terminal, frame)
    }

    /// Stores a request that the plan of `frame` includes.
    pub(super) fn ask(&self, frame: u64, request: Request) {
        self.carrier.hub().ask(frame, self.terminal, request);
    }

    /// Returns the grant of this frame, which must be the latest that any terminal has entered, and
    /// all volume granted so far.
    pub(super) fn enter(&self, frame: u64) -> (Grant, Capacity) {
        let mut hub = self.carrier.hub();
        hub.plan_until(frame);
        (hub.grant(self.terminal), hub.given(self.terminal))
    }
}
