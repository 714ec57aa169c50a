//! Modes of terminals: the full rate in clear sky, and less in a fade for the same carrier time.

use std::collections::BTreeSet;

use bentpipe_types::{BitRate, Span, Time};

use super::capacity::Capacity;
use crate::changes::Rates;

/// A terminal's possible rates in a frame, in bit/s.
///
/// Modulation and coding are those of the plan. The plan knows a fade from the terminal's requests
/// and bursts, with the delay after which a request takes effect (OpenSAND's terminals report their
/// C/N with each request, `Sac::setAcm`; SNS-3's hub measures it per burst). The path is that of
/// the frame itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    own: u64,
    known: u64,
    path: u64,
}

impl Mode {
    pub(super) fn clear(own: BitRate) -> Self {
        let own = own.bits_per_second();
        Self {
            own,
            known: own,
            path: own,
        }
    }

    /// Whether the plan has a mode for it. Without one it gets no grants, as in OpenSAND's
    /// `DamaCtrlRcs2::buildTTP`.
    pub(super) fn is_known(self) -> bool {
        self.known > 0
    }

    /// Whether its path carries anything.
    pub(super) fn reaches(self) -> bool {
        self.path > 0
    }

    /// Returns the maximum capacity per frame, by the plan.
    pub(super) fn most(self, frame: Span) -> Capacity {
        BitRate::new(self.known).map_or(Capacity::ZERO, |rate| Capacity::of(rate, frame))
    }

    /// Returns its transmission rate: at most that of the plan's mode and that of its path.
    pub(super) fn rate(self) -> Option<BitRate> {
        BitRate::new(self.known.min(self.path))
    }

    /// Returns the carrier time for a capacity, as clear-sky capacity. SNS-3 counts symbols of the
    /// waveform that the terminal's C/N0 permits (`satellite-frame-allocator.cc`).
    pub(super) fn on_air(self, bits: Capacity) -> Capacity {
        if self.is_known() {
            bits.scaled_up(self.own, self.known)
        } else {
            Capacity::ZERO
        }
    }

    /// Returns the capacity for a share of the carrier, by the plan.
    pub(super) fn planned(self, on_air: Capacity) -> Capacity {
        on_air.scaled(self.known, self.own)
    }

    /// Returns what is left of a planned capacity, if the path has faded since.
    pub(super) fn left_of(self, planned: Capacity) -> Capacity {
        if self.path < self.known {
            planned.scaled(self.path, self.known)
        } else {
            planned
        }
    }
}

/// A terminal's path, and the hub's knowledge of it.
#[derive(Clone, Debug)]
struct Sky {
    now: Rates,
    known: Rates,
    lag: u64,
}

/// Modes of all terminals in the frame entered last.
#[derive(Clone, Debug)]
pub(super) struct Modes {
    frame: Span,
    modes: Vec<Mode>,
    skies: Vec<Option<Box<Sky>>>,
    any_changes: bool,
    /// Frames at which terminals' modes may change.
    due: BTreeSet<(u64, usize)>,
}

impl Modes {
    pub(super) fn new(frame: Span, rates: impl Iterator<Item = BitRate>) -> Self {
        let modes: Vec<Mode> = rates.map(Mode::clear).collect();
        Self {
            frame,
            skies: modes.iter().map(|_| None).collect(),
            modes,
            any_changes: false,
            due: BTreeSet::new(),
        }
    }

    pub(super) fn of(&self, terminal: usize) -> Mode {
        self.modes[terminal]
    }

    /// Whether any terminal's rate changes.
    pub(super) fn change(&self) -> bool {
        self.any_changes
    }

    /// Sets a terminal's changing rate. The hub knows it `lag` frames late, and its initial value
    /// from the start.
    pub(super) fn follow(&mut self, terminal: usize, rates: Rates, lag: u64) {
        self.skies[terminal] = Some(Box::new(Sky {
            known: rates.clone(),
            now: rates,
            lag,
        }));
        self.any_changes = true;
        self.due.insert((0, terminal));
    }

    /// Returns the first frame up to this one in which any mode may change.
    pub(super) fn next(&self, frame: u64) -> Option<u64> {
        let first = self.due.first().map(|(due, _)| *due);
        first.filter(|due| *due <= frame)
    }

    /// Enters a frame. Returns the terminals whose modes change.
    pub(super) fn enter(&mut self, frame: u64) -> Vec<usize> {
        let mut changed = Vec::new();
        while let Some((due, terminal)) = self.due.first().copied()
            && due <= frame
        {
            self.due.pop_first();
            let Some(sky) = &mut self.skies[terminal] else {
                continue;
            };
            let begins = |frame: u64| Time::ZERO + self.frame * frame;
            let (now, now_until) = sky.now.at(begins(frame));
            let (known, known_until) = sky.known.at(begins(frame.saturating_sub(sky.lag)));
            let first_from = |at: Time| at.as_nanos().div_ceil(self.frame.as_nanos());
            let until = [
                now_until.map(first_from),
                known_until.map(|until| first_from(until).saturating_add(sky.lag)),
            ];
            if let Some(next) = until.into_iter().flatten().min() {
                self.due.insert((next, terminal));
            }
            let mode = &mut self.modes[terminal];
            let next = Mode {
                known: known.min(mode.own),
                path: now.min(mode.own),
                ..*mode
            };
            if next != *mode {
                *mode = next;
                changed.push(terminal);
            }
        }
        changed
    }
}
