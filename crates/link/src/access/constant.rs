//! Constant capacity (CRA) of terminals.

use bentpipe_types::Span;

use super::capacity::Capacity;
use super::modes::{Mode, Modes};
use super::settings::TerminalSettings;

/// Granted capacity, and the carrier time that it takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Granted {
    pub(super) bits: Capacity,
    pub(super) on_air: Capacity,
}

/// A terminal's constant capacity (CRA) per frame, from a frame on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Constant {
    /// Configured capacity.
    wanted: Capacity,
    /// Carrier time that it needs.
    needs: Capacity,
    /// Carrier time that it gets, with the resulting capacity by the plan and by its path.
    pub(super) on_air: Capacity,
    pub(super) planned: Capacity,
    pub(super) bits: Capacity,
    /// Capacity granted in all frames before this one.
    had: Granted,
    since: u64,
}

impl Constant {
    /// Returns the capacity granted in all frames before this one.
    pub(super) fn before(&self, frame: u64) -> Granted {
        let frames = frame.saturating_sub(self.since);
        Granted {
            bits: self.had.bits + self.bits * frames,
            on_air: self.had.on_air + self.on_air * frames,
        }
    }

    /// Returns the capacity granted per frame.
    pub(super) fn of_each(&self) -> Granted {
        Granted {
            bits: self.bits,
            on_air: self.on_air,
        }
    }

    fn becomes(&mut self, frame: u64, mode: Mode, on_air: Capacity) {
        (self.had, self.since) = (self.before(frame), frame);
        self.on_air = on_air;
        self.planned = mode.planned(on_air).min(self.wanted);
        self.bits = mode.left_of(self.planned);
    }
}

/// The constant capacity of all terminals. It fits in clear sky; other scenarios are refused.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    frame: Span,
    carrier: Capacity,
    each: Vec<Constant>,
    /// Carrier time that all need, and carrier time that they get.
    needed: Capacity,
    pub(super) on_air: Capacity,
}

impl Constants {
    pub(super) fn new(frame: Span, carrier: Capacity, terminals: &[TerminalSettings]) -> Self {
        let each = terminals.iter().map(|of| {
            let wanted = (of.constant).map_or(Capacity::ZERO, |rate| Capacity::of(rate, frame));
            Constant {
                wanted,
                needs: wanted,
                on_air: wanted,
                planned: wanted,
                bits: wanted,
                ..Constant::default()
            }
        });
        let each: Vec<Constant> = each.collect();
        let all = each
            .iter()
            .fold(Capacity::ZERO, |sum, one| sum + one.wanted);
        Self {
            frame,
            carrier,
            each,
            needed: all,
            on_air: all,
        }
    }

    pub(super) fn of(&self, terminal: usize) -> &Constant {
        &self.each[terminal]
    }

    /// Applies the changed modes of terminals from this frame on. Returns the terminals whose share
    /// of the carrier changes.
    ///
    /// Constant capacity is a rate, so in a fade it takes more carrier time, at most all of the
    /// terminal's time. If the total exceeds the carrier, each gets a proportional share (SNS-3
    /// stops the simulation: "CRAs don't fit to frame").
    pub(super) fn change(&mut self, frame: u64, changed: &[usize], modes: &Modes) -> Vec<usize> {
        let fitted = self.needed <= self.carrier;
        for terminal in changed {
            let (one, mode) = (&mut self.each[*terminal], modes.of(*terminal));
            let before = one.needs;
            one.needs = mode.on_air(one.wanted.min(mode.most(self.frame)));
            self.needed = (self.needed - before) + one.needs;
        }
        let fits = self.needed <= self.carrier;
        let all: Vec<usize>;
        let concerned = if fitted && fits {
            changed
        } else {
            all = (0..self.each.len()).collect();
            &all
        };
        let mut others = Vec::new();
        for terminal in concerned {
            let one = &mut self.each[*terminal];
            let before = one.on_air;
            let on_air = if fits {
                one.needs
            } else {
                self.carrier.in_proportion(one.needs, self.needed)
            };
            one.becomes(frame, modes.of(*terminal), on_air);
            self.on_air = (self.on_air + on_air) - before;
            if on_air != before {
                others.push(*terminal);
            }
        }
        others
    }
}
