//! What earlier connections have learnt of the path over the link that the gateway faces.

use std::sync::Arc;

use bentpipe_tcp::{Config, Connection};

/// RFC 9040: what earlier connections have found (temporal sharing, section 8), and what those that are
/// still there have found so far (ensemble sharing, section 9), of the window and the slow-start threshold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathMemory {
    /// Averages over connections that have ended, in bytes.
    window: Option<f64>,
    threshold: Option<f64>,
}

/// The weight of the latest.
const GAIN: f64 = 0.25;
/// A connection that has carried less has learnt nothing.
pub(super) const LEAST_CARRIED: u64 = 64 << 10;

impl PathMemory {
    /// A connection over the link has ended, or has carried a good deal more than when it was last looked
    /// at; `widest`: its congestion window, at most. (At the end
    /// it is often small again, after an idle time.)
    pub(super) fn learn(&mut self, connection: &Connection, widest: u64) {
        if connection.acknowledged_offset() < LEAST_CARRIED {
            return;
        }
        let mix = |known: Option<f64>, new: u64| {
            let new = new as f64;
            Some(known.map_or(new, |known| known + GAIN * (new - known)))
        };
        let threshold = connection.slow_start_threshold();
        if threshold < u64::from(u32::MAX) {
            self.threshold = mix(self.threshold, threshold);
        }
        // What went beyond the threshold may have been lost.
        self.window = mix(self.window, widest.min(threshold));
    }

    /// Lets a new connection begin where earlier ones have ended; `sharing` are there already, and
    /// have their share of the path.
    pub(super) fn apply(&self, config: &mut Arc<Config>, sharing: usize) {
        if self.window.is_none() && self.threshold.is_none() {
            return;
        }
        let config = Arc::make_mut(config);
        let segment = f64::from(config.mss.max(1));
        if let Some(window) = self.window {
            let share = window / (sharing + 1) as f64 / segment;
            config.initial_window = config.initial_window.max(share as u32);
        }
        if let Some(threshold) = self.threshold {
            let threshold = (threshold / (sharing + 1) as f64).max(2.0 * segment);
            config.initial_slow_start_threshold = Some(threshold as u64);
        }
    }
}
