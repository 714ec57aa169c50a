//! What terminals can send at: in clear sky all they have, in a fade less of it for the same time on the air.

use std::collections::BTreeSet;

use bentpipe_types::{BitRate, Span, Time};

use super::capacity::Capacity;
use crate::changes::Rates;

/// At which rates a terminal may send in a frame, in bit/s.
///
/// Its modulation and coding are those of the plan, and the plan knows of a fade what the terminal's requests and bursts
/// told when the hub last heard of it: as many frames before as a request takes to be heeded (OpenSAND's terminals
/// tell their C/N with each request, `Sac::setAcm`; SNS-3's hub measures it by burst). The path is what it is in
/// the frame.
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

    /// Has the plan a mode for it? Without one it is given nothing, as by OpenSAND's `DamaCtrlRcs2::buildTTP`.
    pub(super) fn is_known(self) -> bool {
        self.known > 0
    }

    /// Does its path carry anything?
    pub(super) fn reaches(self) -> bool {
        self.path > 0
    }

    /// What it can send in a frame, by the plan.
    pub(super) fn most(self, frame: Span) -> Capacity {
        BitRate::new(self.known).map_or(Capacity::ZERO, |rate| Capacity::of(rate, frame))
    }

    /// What it sends at: no faster than the plan's mode, and no faster than its path allows.
    pub(super) fn rate(self) -> Option<BitRate> {
        BitRate::new(self.known.min(self.path))
    }

    /// What so much takes of the carrier. Capacity is counted as in clear sky, so that it is time on the air: SNS-3
    /// counts symbols, of the waveform that the terminal's C/N0 allows (`satellite-frame-allocator.cc`).
    pub(super) fn on_air(self, bits: Capacity) -> Capacity {
        if self.is_known() {
            bits.scaled_up(self.own, self.known)
        } else {
            Capacity::ZERO
        }
    }

    /// What so much of the carrier is good for, by the plan.
    pub(super) fn planned(self, on_air: Capacity) -> Capacity {
        on_air.scaled(self.known, self.own)
    }

    /// What is left of what the plan says, where it has faded since.
    pub(super) fn left_of(self, planned: Capacity) -> Capacity {
        if self.path < self.known {
            planned.scaled(self.path, self.known)
        } else {
            planned
        }
    }
}

/// A terminal's path, and what the hub knows of it.
#[derive(Clone, Debug)]
struct Sky {
    now: Rates,
    known: Rates,
    lag: u64,
}

/// Every terminal's mode in the frame that was entered last.
#[derive(Clone, Debug)]
pub(super) struct Modes {
    frame: Span,
    modes: Vec<Mode>,
    skies: Vec<Option<Box<Sky>>>,
    any_changes: bool,
    /// When whose mode may next be another.
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

    /// Does any terminal's rate change?
    pub(super) fn change(&self) -> bool {
        self.any_changes
    }

    /// From now on its rate is what these say. The hub knows what it was so many frames before, and from the start what it
    /// is then.
    pub(super) fn follow(&mut self, terminal: usize, rates: Rates, lag: u64) {
        self.skies[terminal] = Some(Box::new(Sky {
            known: rates.clone(),
            now: rates,
            lag,
        }));
        self.any_changes = true;
        self.due.insert((0, terminal));
    }

    /// The first frame up to this one in which any terminal's mode may be another than before.
    pub(super) fn next(&self, frame: u64) -> Option<u64> {
        let first = self.due.first().map(|(due, _)| *due);
        first.filter(|due| *due <= frame)
    }

    /// Enters this frame: whose mode is another.
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
