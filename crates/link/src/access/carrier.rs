//! A carrier shared by terminals, and the terminals' access to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;
use super::constant::Granted;
use super::hub::Hub;
use crate::changes::Rates;

/// Settings of a carrier, or of a group of carriers planned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CarrierSettings {
    /// Maximum total rate of all terminals.
    pub rate: BitRate,
    /// Frame length, above zero. The first frame begins at the start of the run, at every terminal.
    pub frame: Span,
    /// Time from a request's arrival at the hub to sending the plan that includes it.
    pub processing: Span,
}

/// A terminal's entitlements on a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalSettings {
    /// Transmission rate in clear sky. Grants per frame never exceed this rate times the frame.
    pub rate: BitRate,
    /// Rate granted in each frame without request (CRA). The sum over all terminals is at most the
    /// carrier's rate.
    pub constant: Option<BitRate>,
    /// Maximum rate that it may request (RBDC), in addition to the constant rate.
    pub rate_based: Option<BitRate>,
    /// Whether it requests the volume of its backlog (VBDC).
    pub volume_based: bool,
    /// Whether it receives a share of unrequested capacity (FCA).
    pub free: bool,
    /// Delay of a request to the hub.
    pub request_delay: Span,
    /// Delay of the hub's plan to the terminal.
    pub grant_delay: Span,
}

/// A terminal's request at a frame's beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Request {
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
}

/// A terminal's grant in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Grant {
    pub(super) constant: Capacity,
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
    pub(super) free: Capacity,
    /// Start of its burst, relative to the frame.
    pub(super) begins: Span,
    /// Transmission rate, or `None` if the path carries nothing or the plan has no mode for it.
    pub(super) rate: Option<BitRate>,
    /// Whether its path carries anything.
    pub(super) reaches: bool,
    /// Capacity planned in a mode that the path no longer supports.
    pub(super) faded: Capacity,
    /// Carrier time taken by the rate-based and volume-based parts.
    pub(super) on_air: Capacity,
}

impl Grant {
    pub(super) fn all(&self) -> Capacity {
        self.constant + self.by_rate + self.by_volume + self.free
    }
}

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
