//! A carrier that terminals share, and the hub that plans its frames.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;
use super::sharing::{evenly, in_proportion};

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
    /// At which it sends: more than this times a frame it is never granted.
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
    pub(super) lag: u64,
}

impl Carrier {
    /// The places of these terminals on a carrier, in their order, which is that of their bursts.
    #[must_use]
    pub fn shared(settings: CarrierSettings, terminals: &[TerminalSettings]) -> Vec<Access> {
        let hub = Hub {
            frame: settings.frame,
            capacity: Capacity::of(settings.rate, settings.frame),
            terminals: terminals.to_vec(),
            owed: vec![Capacity::ZERO; terminals.len()],
            given: vec![Capacity::ZERO; terminals.len()],
            requests: BTreeMap::new(),
            next: 0,
            plan: Vec::new(),
        };
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

    /// A request that the plan of `frame` heeds.
    pub(super) fn ask(&self, frame: u64, request: Request) {
        let mut hub = self.carrier.hub();
        let requests = hub.requests.entry(frame).or_default();
        requests.push((self.terminal, request));
    }

    /// What it has of this frame, which is the last that anybody has entered, and what it has ever been given by volume.
    pub(super) fn enter(&self, frame: u64) -> (Grant, Capacity) {
        let mut hub = self.carrier.hub();
        hub.plan_until(frame);
        let grant = hub.plan.get(self.terminal).copied();
        (grant.unwrap_or_default(), hub.given[self.terminal])
    }
}

/// What the hub knows.
#[derive(Debug)]
struct Hub {
    frame: Span,
    capacity: Capacity,
    terminals: Vec<TerminalSettings>,
    /// What was asked for by volume and has not been given: it stays owed.
    owed: Vec<Capacity>,
    given: Vec<Capacity>,
    /// By the first frame whose plan heeds them.
    requests: BTreeMap<u64, Vec<(usize, Request)>>,
    /// The frame that is planned next.
    next: u64,
    /// The plan of the one before.
    plan: Vec<Grant>,
}

impl Hub {
    /// Plans all frames up to this one. Where nobody has asked for anything, plans are the same, and one will do.
    fn plan_until(&mut self, frame: u64) {
        while self.next <= frame {
            let asked_for = match self.requests.first_key_value() {
                _ if self.owed.iter().any(|owed| !owed.is_zero()) => self.next,
                Some((first, _)) => self.next.max(*first),
                None => frame,
            };
            let planned = asked_for.min(frame);
            self.plan(planned);
            self.next = planned + 1;
        }
    }

    fn plan(&mut self, frame: u64) {
        let mut rates = vec![Capacity::ZERO; self.terminals.len()];
        while let Some(requests) = self.requests.first_entry()
            && *requests.key() <= frame
        {
            for (terminal, request) in requests.remove() {
                // A later request for a rate takes the place of one before it; volumes add up.
                rates[terminal] = request.by_rate;
                self.owed[terminal] += request.by_volume;
            }
        }
        let span = self.frame;
        let carries =
            |rate: Option<BitRate>| rate.map_or(Capacity::ZERO, |rate| Capacity::of(rate, span));
        // What each may still be given in this frame, and what is left of the carrier.
        let mut room: Vec<Capacity> = (self.terminals.iter())
            .map(|terminal| carries(Some(terminal.rate)))
            .collect();
        let mut left = self.capacity;
        let mut take = |given: &[Capacity], room: &mut [Capacity]| {
            for (room, given) in room.iter_mut().zip(given) {
                *room = *room - *given;
                left = left - *given;
            }
            left
        };
        let wanted = |wants: &[Capacity], room: &[Capacity]| -> Vec<Capacity> {
            let both = wants.iter().zip(room);
            both.map(|(want, room)| *want.min(room)).collect()
        };
        let constant: Vec<Capacity> = (self.terminals.iter())
            .map(|terminal| carries(terminal.constant))
            .collect();
        let still = take(&constant, &mut room);
        let by_rate = in_proportion(&wanted(&rates, &room), still);
        let still = take(&by_rate, &mut room);
        let by_volume = evenly(&wanted(&self.owed, &room), still);
        let still = take(&by_volume, &mut room);
        let takers: Vec<Capacity> = (self.terminals.iter().zip(&room))
            .map(|(terminal, room)| if terminal.free { *room } else { Capacity::ZERO })
            .collect();
        let free = evenly(&takers, still);
        self.plan.clear();
        let mut begins = Span::ZERO;
        for (terminal, settings) in self.terminals.iter().enumerate() {
            self.owed[terminal] = self.owed[terminal] - by_volume[terminal];
            self.given[terminal] += by_volume[terminal];
            let grant = Grant {
                constant: constant[terminal],
                by_rate: by_rate[terminal],
                by_volume: by_volume[terminal],
                free: free[terminal],
                begins,
            };
            let ends = (begins + grant.all().time_at(settings.rate)).as_nanos();
            begins = Span::from_nanos(ends % span.as_nanos());
            self.plan.push(grant);
        }
    }
}
