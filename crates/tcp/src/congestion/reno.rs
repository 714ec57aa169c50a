//! Reno: additive increase, multiplicative decrease (RFC 5681).

use serde::{Deserialize, Serialize};

use super::built_in::AfterOneLoss;
use super::{AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window};
use super::{AvoidanceKind, CongestionSettings};

/// RFC 5681's window rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reno {
    avoidance: AvoidanceKind,
    // Bytes counted towards the next segment of growth.
    credit: u64,
}

impl Reno {
    /// Creates a rule; `avoidance` is how growth in congestion avoidance is counted.
    #[must_use]
    pub const fn new(avoidance: AvoidanceKind) -> Self {
        Self {
            avoidance,
            credit: 0,
        }
    }
}

impl BuiltIn for Reno {
    const HAS_OWN_SLOW_START: bool = false;
    // RFC 5681 equation 4: half of the data in flight.
    const AFTER_LOSS: AfterOneLoss = AfterOneLoss::Share(0.5);
    const LOSS_LAW: Option<&'static str> = Some("reno");

    fn from_settings(settings: &CongestionSettings) -> Self {
        Self::new(settings.avoidance)
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, _sample: &AckSample) {
        let segment = u64::from(window.segment);
        // RFC 5681 section 3.1: a segment per round trip. Instead of equation 3, cwnd += SMSS *
        // SMSS / cwnd, the bytes are accumulated up to a whole window. The growth is the same,
        // without a division per acknowledgment and without its rounding, which would stop the
        // growth of a large window.
        self.credit += match self.avoidance {
            AvoidanceKind::PerAcknowledgment => segment,
            // RFC 3465 section 2.1, and RFC 5681 section 5: robust against divided acknowledgments.
            AvoidanceKind::ByteCounting => acknowledged,
        };
        while self.credit >= window.congestion_window {
            self.credit -= window.congestion_window;
            window.congestion_window += segment;
        }
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        // RFC 5681 section 4.3: also where an advanced recovery follows.
        window.slow_start_threshold = half(sample.flight_size, window);
        window.congestion_window = match sample.event {
            // RFC 5681 section 3.2 step 3, without inflation by three segments: recovery subtracts
            // them from the flight.
            Congestion::Loss | Congestion::Ecn => window.slow_start_threshold,
            // RFC 5681 section 3.1: the loss window.
            Congestion::Timeout => u64::from(window.segment),
        };
        self.credit = 0;
    }

    fn on_repeated_timeout(&mut self, window: &mut Window, flight_size: Option<u64>) {
        if let Some(flight_size) = flight_size {
            // RFC 5681 section 3.1: the threshold "MUST be set to no more than" equation 4.
            let most = half(flight_size, window);
            window.slow_start_threshold = window.slow_start_threshold.min(most);
        }
    }
}

/// RFC 5681 equation 4: half of the bytes in flight, at least two segments.
fn half(flight_size: u64, window: &Window) -> u64 {
    (flight_size / 2).max(2 * u64::from(window.segment))
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Time;

    use super::*;

    const SAMPLE: AckSample = AckSample::at(Time::ZERO, 0);

    fn window(segments: u64) -> Window {
        Window::new(1000, segments * 1000, 0)
    }

    #[test]
    fn window_grows_by_one_segment_per_round_trip() {
        for (avoidance, acknowledgments, bytes) in [
            (AvoidanceKind::PerAcknowledgment, 20, 2000),
            (AvoidanceKind::ByteCounting, 10, 2000),
        ] {
            let mut reno = Reno::new(avoidance);
            let mut window = window(20);
            for n in 0..acknowledgments {
                assert_eq!(window.congestion_window, 20_000, "{avoidance:?} {n}");
                reno.on_ack(&mut window, bytes, &SAMPLE);
            }
            assert_eq!(window.congestion_window, 21_000);
        }
    }

    #[test]
    fn a_window_of_any_size_grows() {
        let mut reno = Reno::new(AvoidanceKind::PerAcknowledgment);
        let mut window = window(1_000_000);
        for _ in 0..1_000_000 {
            reno.on_ack(&mut window, 1000, &SAMPLE);
        }
        assert_eq!(window.congestion_window, 1_000_001_000);
    }

    #[test]
    fn congestion_halves_the_flight_size() {
        let mut reno = Reno::new(AvoidanceKind::ByteCounting);
        let mut lost = window(20);
        reno.on_congestion(
            &mut lost,
            &CongestionSample::new(Congestion::Loss, 12_000, Time::ZERO),
        );
        assert_eq!(
            (lost.congestion_window, lost.slow_start_threshold),
            (6000, 6000)
        );
        let mut late = window(20);
        reno.on_congestion(
            &mut late,
            &CongestionSample::new(Congestion::Timeout, 3_000, Time::ZERO),
        );
        assert_eq!(
            (late.congestion_window, late.slow_start_threshold),
            (1000, 2000)
        );
    }
}
