//! What terminals have of each frame without asking.

use bentpipe_types::Span;

use super::capacity::Capacity;
use super::carrier::TerminalSettings;
use super::modes::{Mode, Modes};

/// What is granted, and what it takes of the carrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Granted {
    pub(super) bits: Capacity,
    pub(super) on_air: Capacity,
}

/// A terminal's constant capacity (CRA) in each frame, from a frame on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Constant {
    /// What it is to have.
    wanted: Capacity,
    /// What that takes of the carrier.
    needs: Capacity,
    /// What it has of the carrier, and what that is good for: by the plan, and as its path is.
    pub(super) on_air: Capacity,
    pub(super) planned: Capacity,
    pub(super) bits: Capacity,
    /// What it has had in all frames before this one.
    had: Granted,
    since: u64,
}

impl Constant {
    /// What it has had in all frames before this one.
    pub(super) fn before(&self, frame: u64) -> Granted {
        let frames = frame.saturating_sub(self.since);
        Granted {
            bits: self.had.bits + self.bits * frames,
            on_air: self.had.on_air + self.on_air * frames,
        }
    }

    /// What it has of a frame.
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

/// All of them. In clear sky they fit, since a scenario in which they do not is refused.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    frame: Span,
    carrier: Capacity,
    each: Vec<Constant>,
    /// What all need, and what they have of the carrier.
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

    /// From this frame on these have other modes: who has more or less of the carrier.
    ///
    /// What is constant is a rate, so that in a fade it takes more of the carrier, and at most all of the terminal's time.
    /// Where all together take more than the carrier has, each gets its part in proportion (SNS-3 stops the simulation: "CRAs
    /// don't fit to frame").
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
