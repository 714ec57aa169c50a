//! Undo of a spurious loss recovery (section 5.5.11).

use serde::{Deserialize, Serialize};

use super::phase::Phase;
use super::{Bandwidth, Bbr3, State};
use crate::congestion::Window;

/// State before the last loss recovery.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Undo {
    // BBR.undo_state.
    state: Option<State>,
    bandwidth: Option<Bandwidth>,
    inflight_short: Option<u64>,
    inflight_long: Option<u64>,
}

impl Undo {
    /// Records the state that a loss ended.
    pub(super) fn record_state(&mut self, state: State) {
        self.state = Some(state);
    }
}

/// Returns the larger of two bounds; `None` means unbounded.
fn larger(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.max(other))
}

impl Bbr3 {
    /// SaveStateUponLoss.
    pub(super) fn save_state(&mut self, window: &Window) {
        self.save_window(window);
        self.undo = Undo {
            state: None,
            bandwidth: self.short_term.bandwidth,
            inflight_short: self.short_term.inflight,
            inflight_long: self.long_term.inflight,
        };
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn handle_spurious(&mut self, window: &mut Window) {
        self.restore_window(window);
        self.short_term.loss_in_round = false;
        self.full_pipe.reset(0);
        let short = &mut self.short_term;
        short.bandwidth = larger(short.bandwidth, self.undo.bandwidth);
        short.inflight = larger(short.inflight, self.undo.inflight_short);
        self.long_term.inflight = larger(self.long_term.inflight, self.undo.inflight_long);
        let probes_rtt = matches!(self.state, State::ProbeRtt(_));
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if !probes_rtt {
                    self.enter_startup();
                }
            }
            Some(up @ State::ProbeBw(Phase::Up)) if self.state != up && !probes_rtt => {
                self.start_refill(self.rounds.delivered());
            }
            _ => {}
        }
    }
}
