//! Linux's CUBIC: the rules of `tcp_cubic.c` and of `tcp_cong_avoid_ai` in `tcp_cong.c`, Linux
//! 6.18, in the kernel's whole numbers.
//!
//! The curve is that of Ha, Rhee and Xu 2008, which RFC 9438 describes. With small windows its
//! rounding decides: windows and targets are whole segments, times are ticks of the kernel's clock,
//! and the window grows by one segment per whole number of acknowledged ones. Linux lacks two parts
//! of [RFC 9438](super::Cubic): the faster Reno beyond the window before the loss (section 4.3),
//! and the full undo of a reduction (section 4.9).

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use super::{AvoidanceKind, CongestionSettings};
use crate::HostClock;
use crate::linux_ticks::HZ;

/// BICTCP_HZ: the curve's time is in units of 2^-10 s.
const CURVE_SHIFT: u32 = 10;

/// BICTCP_BETA_SCALE and the parameter `beta`: 0.7, in 1024ths.
const BETA_SCALE: u64 = 1024;
const BETA: u64 = 717;

/// The parameter `bic_scale` times ten: C = 0.4 segments per cubic second, in 1024ths.
const SCALE: u64 = 41 * 10;

/// `beta_scale`: eight times the acknowledged segments, per segment of the window, after which Reno
/// with this beta grows by one. 15; RFC 9438's alpha is 8 / 15.12.
const RENO_SCALE: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);

/// Most acknowledged segments per segment of growth before the first loss.
const MAXIMUM_COUNT_BEFORE_LOSS: u64 = 20;
/// Fewest acknowledged segments per segment of growth.
const MINIMUM_COUNT: u64 = 2;

/// Ticks after which the target is computed again if the window has not changed.
const UPDATE_INTERVAL: u64 = HZ / 32;

/// Linux's CUBIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinuxCubic {
    avoidance: AvoidanceKind,
    clock: HostClock,
    // last_max_cwnd, in segments: the window before the last reduction, or less by fast
    // convergence. 0: unknown.
    window_maximum: u64,
    // delay_min: the shortest round trip, in microseconds. 0: unknown.
    minimum_rtt: u64,
    // epoch_start
    epoch: Option<Epoch>,
    // cnt: segments to acknowledge for one of growth
    count: u64,
    // snd_cwnd_cnt: segments acknowledged since the last growth
    counted: u64,
    // Acknowledged bytes of an incomplete segment.
    bytes: u64,
    // last_cwnd and last_time: of what window, and when, the target was looked up last.
    last_update: (u64, u64),
}

/// Congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Epoch {
    // epoch_start, in ticks
    start: u64,
    // bic_K, in 2^-10 s, and bic_origin_point, in segments
    inflection: u64,
    origin: u64,
    // ack_cnt and tcp_cwnd: what Reno would have, and the segments that count towards its next
    acknowledged: u64,
    reno: u64,
}

impl Epoch {
    fn begin(start: u64, window: u64, window_maximum: u64) -> Self {
        let (inflection, origin) = if window_maximum > window {
            let factor = (1 << (10 + 3 * CURVE_SHIFT)) / SCALE;
            let cube = factor.saturating_mul(window_maximum - window);
            (cube_root(cube), window_maximum)
        } else {
            (0, window)
        };
        Self {
            start,
            inflection,
            origin,
            acknowledged: 0,
            reno: window,
        }
    }

    /// bic_target: the window that the curve has a shortest round trip after `now`.
    fn target(&self, now: u64, minimum_rtt: u64) -> u64 {
        // usecs_to_jiffies rounds up.
        let rtt_ticks = (minimum_rtt * HZ).div_ceil(1_000_000);
        let time = (now.saturating_sub(self.start).saturating_add(rtt_ticks) << CURVE_SHIFT) / HZ;
        let distance = u128::from(time.abs_diff(self.inflection));
        // (In 64 bits Linux's would overflow after six minutes without a loss.)
        let cubed = (u128::from(SCALE) * distance)
            .saturating_mul(distance)
            .saturating_mul(distance);
        let change = u64::try_from(cubed >> (10 + 3 * CURVE_SHIFT)).unwrap_or(u64::MAX);
        if time < self.inflection {
            self.origin.saturating_sub(change)
        } else {
            self.origin.saturating_add(change)
        }
    }

    /// Updates the window that Reno would have, from the segments acknowledged.
    fn advance_reno(&mut self, window: u64) {
        let per_segment = window.saturating_mul(RENO_SCALE) >> 3;
        if self.acknowledged > per_segment {
            let grown = (self.acknowledged - 1) / per_segment.max(1);
            self.acknowledged -= grown * per_segment;
            self.reno = self.reno.saturating_add(grown);
        }
    }
}

impl LinuxCubic {
    /// With what counts as progress in congestion avoidance, and the host's clock.
    #[must_use]
    pub const fn new(avoidance: AvoidanceKind, clock: HostClock) -> Self {
        Self {
            avoidance,
            clock,
            window_maximum: 0,
            minimum_rtt: 0,
            epoch: None,
            count: 0,
            counted: 0,
            bytes: 0,
            last_update: (0, 0),
        }
    }

    /// bictcp_update: sets for how many acknowledged segments the window grows by one.
    fn update(&mut self, window: u64, acknowledged: u64, now: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acknowledged = epoch.acknowledged.saturating_add(acknowledged);
        }
        let (last_window, last_time) = self.last_update;
        if last_window == window && now.saturating_sub(last_time) <= UPDATE_INTERVAL {
            return;
        }
        // The curve is evaluated at most once per tick, Reno's window each time.
        let evaluate_curve = self.epoch.is_none() || now != last_time;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            acknowledged,
            ..Epoch::begin(now, window, self.window_maximum)
        });
        if evaluate_curve {
            self.last_update = (window, now);
            let target = epoch.target(now, self.minimum_rtt);
            self.count = match target.checked_sub(window) {
                Some(missing) if missing > 0 => window / missing,
                _ => window.saturating_mul(100),
            };
            if self.window_maximum == 0 {
                self.count = self.count.min(MAXIMUM_COUNT_BEFORE_LOSS);
            }
        }
        epoch.advance_reno(window);
        if epoch.reno > window {
            self.count = self.count.min(window / (epoch.reno - window));
        }
        self.count = self.count.max(MINIMUM_COUNT);
    }

    /// tcp_cong_avoid_ai: the segments to grow by.
    fn additive_increase(&mut self, acknowledged: u64) -> u64 {
        let per_segment = self.count.max(1);
        let mut growth = 0;
        // Segments counted while `count` was larger make one segment, however many they are.
        if self.counted >= per_segment {
            self.counted = 0;
            growth = 1;
        }
        self.counted = self.counted.saturating_add(acknowledged);
        growth += self.counted / per_segment;
        self.counted %= per_segment;
        growth
    }

    /// bictcp_reset: discards everything measured on the path.
    fn reset(&mut self) {
        *self = Self {
            counted: self.counted,
            bytes: self.bytes,
            ..Self::new(self.avoidance, self.clock)
        };
    }
}

impl BuiltIn for LinuxCubic {
    const HAS_OWN_SLOW_START: bool = false;

    fn from_settings(settings: &CongestionSettings) -> Self {
        Self::new(settings.avoidance, settings.clock)
    }
}

impl CongestionControl for LinuxCubic {
    /// cubictcp_acked: the shortest round trip.
    fn on_delivery(&mut self, _window: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        // Not right after a recovery.
        if let Some(epoch) = &self.epoch
            && self.clock.ticks(sample.now).saturating_sub(epoch.start) < HZ
        {
            return;
        }
        let microseconds = (rtt.as_nanos() / 1_000).max(1);
        if self.minimum_rtt == 0 || microseconds < self.minimum_rtt {
            self.minimum_rtt = microseconds;
        }
    }

    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        let segment = u64::from(window.segment);
        let acknowledged = match self.avoidance {
            AvoidanceKind::PerAcknowledgment => 1,
            AvoidanceKind::ByteCounting => {
                self.bytes += acknowledged;
                let segments = self.bytes / segment;
                self.bytes %= segment;
                segments
            }
        };
        let size = window.congestion_window / segment;
        self.update(size, acknowledged, self.clock.ticks(sample.now));
        let growth = self.additive_increase(acknowledged);
        window.congestion_window = window
            .congestion_window
            .saturating_add(growth.saturating_mul(segment));
    }

    /// cubictcp_cwnd_event: the curve waits while nothing is sent.
    fn on_idle_end(&mut self, last_sent: Time, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            let ticks = self.clock.ticks(now);
            let idle = ticks.saturating_sub(self.clock.ticks(last_sent));
            epoch.start = (epoch.start + idle).min(ticks);
        }
    }

    /// cubictcp_recalc_ssthresh.
    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        let segment = u64::from(window.segment);
        let size = window.congestion_window / segment;
        self.epoch = None;
        self.counted = 0;
        // Fast convergence (RFC 9438 section 4.7)
        self.window_maximum = if size < self.window_maximum {
            size * (BETA_SCALE + BETA) / (2 * BETA_SCALE)
        } else {
            size
        };
        let reduced = (size * BETA / BETA_SCALE).max(2) * segment;
        window.slow_start_threshold = reduced;
        window.congestion_window = match sample.event {
            Congestion::Loss | Congestion::Ecn => reduced,
            Congestion::Timeout => segment,
        };
        if sample.event == Congestion::Timeout {
            self.reset();
        }
    }

    /// TCP_CA_Loss is entered anew.
    fn on_repeated_timeout(&mut self, _window: &mut Window, _flight_size: Option<u64>) {
        self.counted = 0;
        self.reset();
    }

    fn sees_every_ack(&self) -> bool {
        true
    }
}

/// Returns the largest whole number whose cube does not exceed `cube`. Linux uses a table and one
/// step of Newton's method, which is 0.2% off on average.
fn cube_root(cube: u64) -> u64 {
    let mut root = 0;
    for bit in (0..22).rev() {
        let candidate: u64 = root | 1 << bit;
        let fits = candidate
            .checked_pow(3)
            .is_some_and(|product| product <= cube);
        if fits {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests;
