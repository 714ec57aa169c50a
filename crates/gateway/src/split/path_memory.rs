//! Congestion state of the path over the facing link, learnt from earlier connections.

use std::sync::Arc;

use bentpipe_tcp::{Config, Connection};

/// Shared congestion window and slow-start threshold, from connections that have ended (temporal
/// sharing, RFC 9040 section 8) and from those that are still open (ensemble sharing,
/// RFC 9040 section 9).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathMemory {
    /// Moving averages, in bytes.
    window: Option<f64>,
    threshold: Option<f64>,
}

/// Weight of the latest value.
const GAIN: f64 = 0.25;
/// Connections that have carried fewer bytes than this are ignored.
pub(super) const MIN_BYTES_CARRIED: u64 = 64 << 10;

impl PathMemory {
    /// Learns from a connection that has ended or has doubled the bytes it carried.
    /// `largest_window` is its largest congestion window; at its end the window is often small
    /// again, after an idle period.
    pub(super) fn learn(&mut self, connection: &Connection, largest_window: u64) {
        if connection.acknowledged_offset() < MIN_BYTES_CARRIED {
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
        // A window above the threshold may have caused losses.
        self.window = mix(self.window, largest_window.min(threshold));
    }

    /// Applies the learnt values to a new connection, which shares the path equally with `sharing`
    /// open ones.
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
