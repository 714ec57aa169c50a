//! HyStart++ (RFC 9406): slow start that ends when the round-trip time increases.

use bentpipe_types::Span;
use serde::{Deserialize, Serialize};

use super::SlowStart;
use crate::congestion_control::{AckSample, Congestion, Window};

/// Constants of RFC 9406 section 4.3.
const MINIMUM_THRESHOLD: Span = Span::from_millis(4);
const MAXIMUM_THRESHOLD: Span = Span::from_millis(16);
const RTT_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Infinity of RFC 9406, longer than any round trip.
const INFINITY: Span = Span::from_nanos(u64::MAX);

/// HyStart++ as in RFC 9406. Linux's CUBIC has the older HyStart, which also evaluates the spacing
/// of acknowledgments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HyStart {
    limit_segments: u32,
    phase: Phase,
    // Stream position whose acknowledgment ends the round; 0 before the first round.
    round_end: u64,
    last_round: Span,
    this_round: Span,
    samples: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Phase {
    SlowStart,
    /// Conservative Slow Start.
    Conservative {
        baseline: Span,
        rounds: u32,
    },
    /// Detection has ended. RFC 9406 section 4.3: only the initial slow start ends by delay,
    /// because later ones have a threshold.
    Finished,
}

impl HyStart {
    /// Creates a rule with a growth of at most `limit_segments` per acknowledgment: L in RFC 9406.
    #[must_use]
    pub const fn new(limit_segments: u32) -> Self {
        Self {
            limit_segments,
            phase: Phase::SlowStart,
            round_end: 0,
            last_round: INFINITY,
            this_round: INFINITY,
            samples: 0,
        }
    }

    /// RFC 9406 section 4.2: at the start of each round.
    fn begin_round(&mut self, window: &mut Window, sample: &AckSample) {
        self.round_end = sample.next;
        self.last_round = self.this_round;
        self.this_round = INFINITY;
        self.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                // RFC 9406 section 4.2: "enter congestion avoidance by setting the ssthresh to the
                // current cwnd".
                self.phase = Phase::Finished;
                window.slow_start_threshold = window.congestion_window;
            }
        }
    }

    /// RFC 9406 section 4.2: for each acknowledgment with an RTT sample.
    fn add_sample(&mut self, rtt: Span) {
        self.this_round = self.this_round.min(rtt);
        self.samples += 1;
        if self.samples < SAMPLES {
            return;
        }
        match self.phase {
            Phase::SlowStart if self.last_round != INFINITY => {
                let threshold =
                    (self.last_round / RTT_DIVISOR).clamp(MINIMUM_THRESHOLD, MAXIMUM_THRESHOLD);
                if self.this_round >= self.last_round + threshold {
                    self.phase = Phase::Conservative {
                        baseline: self.this_round,
                        // The current round is the first.
                        rounds: 0,
                    };
                }
            }
            // RFC 9406 section 4.2: "resume slow start".
            Phase::Conservative { baseline, .. } if self.this_round < baseline => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }
}

impl SlowStart for HyStart {
    fn growth(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) -> u64 {
        if self.phase != Phase::Finished {
            if sample.unacknowledged > self.round_end {
                self.begin_round(window, sample);
            }
            if let Some(rtt) = sample.rtt {
                self.add_sample(rtt);
            }
        }
        let limit = u64::from(self.limit_segments) * u64::from(window.segment);
        let counted = acknowledged.min(limit);
        match self.phase {
            Phase::Conservative { .. } => counted / GROWTH_DIVISOR,
            _ => counted,
        }
    }

    fn on_congestion(&mut self, _event: Congestion) {
        self.phase = Phase::Finished;
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Time;

    use super::*;

    const SEGMENT: u64 = 1000;

    /// Simulates a round of ten acknowledgments of one segment each, with round-trip times that
    /// increase by `step`. Returns the bytes counted.
    fn round(hystart: &mut HyStart, window: &mut Window, number: u64, rtt: u64, step: u64) -> u64 {
        let mut counted = 0;
        for n in 0..10 {
            let mut sample = AckSample::at(Time::ZERO, SEGMENT);
            sample.unacknowledged = (10 * number + n + 1) * SEGMENT;
            sample.next = (10 * (number + 1) + n) * SEGMENT;
            sample.rtt = Some(Span::from_micros(rtt + n * step));
            counted += hystart.growth(window, SEGMENT, &sample);
        }
        counted
    }

    fn window() -> Window {
        Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX)
    }

    #[test]
    fn constant_round_trips_do_not_end_slow_start() {
        let (mut hystart, mut window) = (HyStart::new(8), window());
        for number in 0..20 {
            assert_eq!(round(&mut hystart, &mut window, number, 100_000, 0), 10_000);
        }
        assert_eq!(window.slow_start_threshold, u64::MAX);
    }

    #[test]
    fn longer_round_trips_end_slow_start_after_five_conservative_rounds() {
        // An eighth of 100 ms is 12.5 ms.
        for (longer, ends) in [(112_400, false), (112_500, true)] {
            let (mut hystart, mut window) = (HyStart::new(8), window());
            round(&mut hystart, &mut window, 0, 100_000, 0);
            // From the eighth acknowledgment on, a quarter counts.
            let counted = round(&mut hystart, &mut window, 1, longer, 0);
            assert_eq!(counted, if ends { 7_000 + 3 * 250 } else { 10_000 });
            for number in 2..6 {
                let counted = round(&mut hystart, &mut window, number, longer, 0);
                assert_eq!(counted, if ends { 2_500 } else { 10_000 });
                assert_eq!(window.slow_start_threshold, u64::MAX);
            }
            round(&mut hystart, &mut window, 6, longer, 0);
            let expected = if ends {
                window.congestion_window
            } else {
                u64::MAX
            };
            assert_eq!(window.slow_start_threshold, expected);
        }
    }

    #[test]
    fn threshold_is_between_4_and_16_ms() {
        for (first, longer, ends) in [
            (10_000, 13_900, false),
            (10_000, 14_000, true),
            (600_000, 615_900, false),
            (600_000, 616_000, true),
        ] {
            let (mut hystart, mut window) = (HyStart::new(8), window());
            round(&mut hystart, &mut window, 0, first, 0);
            let counted = round(&mut hystart, &mut window, 1, longer, 0);
            assert_eq!(counted < 10_000, ends, "{first} {longer}");
        }
    }

    #[test]
    fn jitter_resumes_slow_start() {
        let (mut hystart, mut window) = (HyStart::new(8), window());
        round(&mut hystart, &mut window, 0, 100_000, 0);
        round(&mut hystart, &mut window, 1, 130_000, 0);
        assert_eq!(round(&mut hystart, &mut window, 2, 130_000, 0), 2_500);
        round(&mut hystart, &mut window, 3, 110_000, 0);
        assert_eq!(round(&mut hystart, &mut window, 4, 110_000, 0), 10_000);
    }

    #[test]
    fn only_the_initial_slow_start_ends_by_delay() {
        let (mut hystart, mut window) = (HyStart::new(8), window());
        hystart.on_congestion(Congestion::Loss);
        for (number, rtt) in [(0, 100_000), (1, 900_000), (2, 900_000)] {
            assert_eq!(round(&mut hystart, &mut window, number, rtt, 0), 10_000);
        }
    }
}
