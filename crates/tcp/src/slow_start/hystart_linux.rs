//! HyStart as in Linux's CUBIC (Ha and Rhee 2008 and 2011; hystart_update in tcp_cubic.c). Slow
//! start ends immediately when the round-trip time increases, or when the acknowledgments of a
//! round are spread over half a round trip.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::SlowStart;
use crate::congestion_control::{AckSample, Congestion, Window};

// tcp_cubic.c: hystart_low_window, hystart_ack_delta_us, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN and
// HYSTART_DELAY_MAX; hystart_ack_delay for rates at which no buffer fills within a millisecond.
const LOW_WINDOW: u64 = 16;
const TRAIN_GAP: Span = Span::from_micros(2000);
const SAMPLES: u32 = 8;
const MINIMUM_THRESHOLD: Span = Span::from_millis(4);
const MAXIMUM_THRESHOLD: Span = Span::from_millis(16);
const TRAIN_ALLOWANCE: Span = Span::from_millis(1);

const INFINITY: Span = Span::from_nanos(u64::MAX);

/// Linux's HyStart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinuxHyStart {
    // delay_min: minimum round-trip time.
    minimum_rtt: Span,
    // Stream position whose acknowledgment ends the round; 0 before the first round.
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    // curr_rtt and sample_cnt.
    this_round: Span,
    samples: u32,
    finished: bool,
}

impl Default for LinuxHyStart {
    fn default() -> Self {
        Self {
            minimum_rtt: INFINITY,
            round_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            this_round: INFINITY,
            samples: 0,
            finished: false,
        }
    }
}

impl LinuxHyStart {
    /// hystart_update: whether slow start should end.
    ///
    /// Rounds are counted from the first acknowledgment on, whatever the window (Linux 6.14,
    /// "tcp_cubic: fix incorrect HyStart round start detection"). If they were counted from the
    /// first large enough window, each would begin in the middle of a flight, whose own queue would
    /// be mistaken for a longer round trip.
    fn should_end(&mut self, window: &Window, rtt: Span, sample: &AckSample) -> bool {
        let now = sample.now;
        if sample.unacknowledged > self.round_end {
            self.round_start = now;
            self.last_ack = now;
            self.round_end = sample.next;
            self.this_round = INFINITY;
            self.samples = 0;
        }
        if window.congestion_window < LOW_WINDOW * u64::from(window.segment) {
            return false;
        }
        // "Less than", because a kernel's gaps vary by some microseconds: the first longer one ends
        // a train whose gaps here all equal TRAIN_GAP (1500 bytes every 2 ms at 6 Mbit/s).
        if now.since(self.last_ack) < TRAIN_GAP {
            self.last_ack = now;
            if now.since(self.round_start) > (self.minimum_rtt + TRAIN_ALLOWANCE) / 2 {
                return true;
            }
        }
        self.this_round = self.this_round.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold = (self.minimum_rtt / 8).clamp(MINIMUM_THRESHOLD, MAXIMUM_THRESHOLD);
        self.this_round > self.minimum_rtt + threshold
    }
}

impl SlowStart for LinuxHyStart {
    fn growth(&mut self, _window: &mut Window, acknowledged: u64, _sample: &AckSample) -> u64 {
        acknowledged
    }

    fn sees_every_ack(&self) -> bool {
        true
    }

    /// cubictcp_acked: round-trip times are also measured in recovery, and while the receive window
    /// or the send buffer limits the sender.
    fn on_delivery(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        self.minimum_rtt = self.minimum_rtt.min(rtt);
        if !self.finished && window.in_slow_start() && self.should_end(window, rtt, sample) {
            self.finished = true;
            window.slow_start_threshold = window.congestion_window;
        }
    }

    /// cubictcp_state: a timeout resets the state. (Linux ignores samples for a second after a
    /// recovery; no slow start follows that they could end.)
    fn on_congestion(&mut self, event: Congestion) {
        if event == Congestion::Timeout {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// Returns an acknowledgment of two segments at `milliseconds`, the `number`th of ten in a
    /// round.
    fn sample(milliseconds: u64, rtt: u64, round: u64, number: u64) -> AckSample {
        let now = Time::ZERO + Span::from_millis(milliseconds);
        let mut sample = AckSample::at(now, 2 * SEGMENT);
        sample.unacknowledged = (20 * round + 2 * (number + 1)) * SEGMENT;
        sample.next = (20 * (round + 1)) * SEGMENT;
        sample.rtt = Some(Span::from_millis(rtt));
        sample
    }

    #[test]
    fn the_ninth_sample_that_is_an_eighth_longer_ends_slow_start() {
        for (longer, ends) in [(212, false), (217, true)] {
            let mut hystart = LinuxHyStart::default();
            let mut window = Window::new(SEGMENT as u32, 20 * SEGMENT, u64::MAX);
            hystart.on_delivery(&mut window, &sample(0, 200, 0, 0));
            for number in 0..10 {
                let next = sample(1000 + 3 * number, longer, 1, number);
                hystart.on_delivery(&mut window, &next);
                let ended = window.slow_start_threshold != u64::MAX;
                assert_eq!(ended, ends && number >= 8, "{longer} {number}");
            }
        }
    }

    #[test]
    fn an_ack_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = LinuxHyStart::default();
        let mut window = Window::new(SEGMENT as u32, 20 * SEGMENT, u64::MAX);
        for milliseconds in 0..=11 {
            let next = sample(milliseconds, 20, 0, 0);
            hystart.on_delivery(&mut window, &next);
            let ended = window.slow_start_threshold != u64::MAX;
            assert_eq!(ended, milliseconds > 10, "{milliseconds} ms");
        }
    }

    #[test]
    fn a_gap_of_two_milliseconds_ends_the_train() {
        for (gap, ends) in [(1_999, true), (2_000, false)] {
            let mut hystart = LinuxHyStart::default();
            let mut window = Window::new(SEGMENT as u32, 20 * SEGMENT, u64::MAX);
            let mut next = sample(0, 20, 0, 0);
            for _ in 0..10 {
                hystart.on_delivery(&mut window, &next);
                next.now += Span::from_micros(gap);
            }
            assert_eq!(window.slow_start_threshold != u64::MAX, ends, "{gap}");
        }
    }

    #[test]
    fn rounds_begin_with_a_flight_even_with_a_small_window() {
        let mut hystart = LinuxHyStart::default();
        let mut window = Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX);
        // Each flight doubles and queues behind itself: round trips take 200 ms, plus 3 ms for each
        // previous acknowledgment of the flight. None of these delays persists.
        let (mut start, mut flight) = (0, 10);
        for round in 0..3 {
            for number in 0..flight {
                let now = Time::ZERO + Span::from_millis(200 * round + 3 * number);
                let mut sample = AckSample::at(now, SEGMENT);
                sample.unacknowledged = (start + number + 1) * SEGMENT;
                sample.next = (start + flight + 2 * number) * SEGMENT;
                sample.rtt = Some(Span::from_millis(200 + 3 * number));
                hystart.on_delivery(&mut window, &sample);
                window.congestion_window += SEGMENT;
            }
            start += flight;
            flight *= 2;
        }
        assert_eq!(window.slow_start_threshold, u64::MAX);
    }

    #[test]
    fn a_small_window_stays_in_slow_start() {
        let mut hystart = LinuxHyStart::default();
        let mut window = Window::new(SEGMENT as u32, 15 * SEGMENT, u64::MAX);
        for number in 0..20 {
            hystart.on_delivery(&mut window, &sample(number, 20 + 20 * number, 0, 0));
        }
        assert_eq!(window.slow_start_threshold, u64::MAX);
    }
}
