//! Adaptive jitter buffer: how long after it was sent each unit of media (a packet of speech, a
//! frame of video) is played.
//!
//! The delay is estimated by algorithm 4 of R. Ramjee, J. Kurose, D. Towsley and H. Schulzrinne,
//! "Adaptive playout mechanisms for packetized audio applications in wide-area networks", INFOCOM
//! 1994: moving averages of the delay and of its variation, with detection of spikes. The playout
//! delay is the average and four times the variation.
//!
//! The paper changes the playout delay between talkspurts only. These calls have no silences, so
//! the delay changes from unit to unit: playback is slowed down or sped up, as Y. Liang, N. Färber
//! and B. Girod, "Adaptive playout scheduling using time-scale modification in packet voice
//! communications", ICASSP 2001, do with packets of speech, to between half and twice their length.

use bentpipe_types::{Span, Time};

/// Weight of a new sample in both moving averages (0.875 is that of the old value in the paper).
const GAIN: f64 = 0.125;
/// The paper's clock: 8000 samples of speech a second.
const SAMPLE_NS: f64 = 125_000.0;
/// A spike begins when the delay changes by more than this plus twice the variation: 100 ms.
const SPIKE_BEGINS_NS: f64 = 800.0 * SAMPLE_NS;
/// A spike ends where the slope of the delay has come down to this.
const SPIKE_ENDS_NS: f64 = 63.0 * SAMPLE_NS;
/// Variations between the average and the playout delay.
const VARIATIONS: f64 = 4.0;

/// Moving estimates of the one-way delay, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct DelayEstimate {
    average: f64,
    variation: f64,
    in_spike: bool,
    /// Smoothed slope of the delay during a spike (`var` in the paper).
    slope: f64,
    last: f64,
    before_last: f64,
}

impl DelayEstimate {
    /// From the first delay, with a variation that holds the first unit back for `hold_back`.
    fn new(first: Span, hold_back: Span) -> Self {
        let first = first.as_nanos() as f64;
        Self {
            average: first,
            variation: hold_back.as_nanos() as f64 / VARIATIONS,
            in_spike: false,
            slope: 0.0,
            last: first,
            before_last: first,
        }
    }

    /// Takes in another delay.
    fn observe(&mut self, delay: Span) {
        let delay = delay.as_nanos() as f64;
        let change = delay - self.last;
        let mut spike_is_over = false;
        if self.in_spike {
            let slope = (2.0 * delay - self.last - self.before_last).abs() / 8.0;
            self.slope = self.slope / 2.0 + slope;
            spike_is_over = self.slope <= SPIKE_ENDS_NS;
            self.in_spike = !spike_is_over;
        } else if change.abs() > 2.0 * self.variation + SPIKE_BEGINS_NS {
            self.slope = 0.0;
            self.in_spike = true;
        }
        if !spike_is_over {
            self.average += if self.in_spike {
                change
            } else {
                GAIN * (delay - self.average)
            };
            self.variation += GAIN * ((delay - self.average).abs() - self.variation);
        }
        self.before_last = self.last;
        self.last = delay;
    }

    /// The playout delay, in whole samples, upwards.
    fn playout_delay(&self) -> Span {
        let nanoseconds = self.average + VARIATIONS * self.variation;
        Span::from_nanos(((nanoseconds / SAMPLE_NS).ceil() * SAMPLE_NS) as u64)
    }
}

/// When each unit of a stream is played. Units are sent at a fixed interval and numbered from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdaptivePlayout {
    interval: Span,
    /// When unit 0 was sent.
    origin: Time,
    estimate: DelayEstimate,
    /// The first unit that is still to be played.
    next: u64,
    /// From when that unit was sent to when it is played.
    delay: Span,
}

impl AdaptivePlayout {
    /// From the arrival at `now` of the first unit of a stream, sent at `sent`, which waits for
    /// `hold_back`.
    pub(super) fn new(index: u64, sent: Time, now: Time, interval: Span, hold_back: Span) -> Self {
        let before = (interval * index).as_nanos();
        let estimate = DelayEstimate::new(now.since(sent), hold_back);
        Self {
            interval,
            origin: Time::from_nanos(sent.as_nanos().saturating_sub(before)),
            estimate,
            next: 0,
            delay: estimate.playout_delay(),
        }
    }

    /// When unit `next` is played.
    fn due(&self) -> Time {
        self.origin + self.interval * self.next + self.delay
    }

    /// Plays units below `end` that are due before `now`: calls `play` with each one's number and
    /// delay.
    ///
    /// The delay moves towards the estimate by at most one interval upwards (the unit lasts twice
    /// as long) and half an interval downwards (it lasts half as long).
    pub(super) fn play_until(&mut self, now: Time, end: u64, mut play: impl FnMut(u64, Span)) {
        while self.next < end && self.due() < now {
            play(self.next, self.delay);
            self.next += 1;
            let least = self.delay.saturating_sub(self.interval / 2);
            let most = self.delay + self.interval;
            self.delay = self.estimate.playout_delay().clamp(least, most);
        }
    }

    /// Whether the turn of this unit is over.
    pub(super) fn has_passed(&self, index: u64) -> bool {
        index < self.next
    }

    /// Takes in the one-way delay of a unit that has arrived.
    pub(super) fn observe(&mut self, delay: Span) {
        self.estimate.observe(delay);
    }

    /// A time at which unit `index` has been played, unless delays grow further.
    pub(super) fn played_by(&self, index: u64) -> Time {
        self.origin + self.interval * index + self.delay.max(self.estimate.playout_delay())
    }

    /// The playout delay of the next unit.
    pub(super) fn delay(&self) -> Span {
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Span = Span::from_millis(20);

    /// Plays a stream whose packets take `delays` ms, on a path that keeps their order. Returns
    /// which were late, and the delay of each.
    fn stream(delays: &[u64]) -> (Vec<u64>, Vec<Span>) {
        let mut last = Time::ZERO;
        let arrivals: Vec<_> = (delays.iter().zip(0..))
            .map(|(delay, index)| {
                let sent = Time::ZERO + PACKET * index;
                last = last.max(sent + Span::from_millis(*delay));
                (last, index, sent)
            })
            .collect();
        let (mut late, mut played) = (Vec::new(), vec![Span::ZERO; delays.len()]);
        let (now, index, sent) = arrivals[0];
        let mut playout = AdaptivePlayout::new(index, sent, now, PACKET, Span::from_millis(60));
        for (now, index, sent) in arrivals {
            playout.play_until(now, delays.len() as u64, |index, delay| {
                played[index as usize] = delay;
            });
            if playout.has_passed(index) {
                late.push(index);
            }
            playout.observe(now.since(sent));
        }
        playout.play_until(Time::LAST, delays.len() as u64, |index, delay| {
            played[index as usize] = delay;
        });
        (late, played)
    }

    #[test]
    fn playout_delay_without_jitter_shrinks_to_the_network_delay() {
        let (late, played) = stream(&[300; 200]);
        assert!(late.is_empty());
        assert_eq!(played[0], Span::from_millis(360));
        // To a sample: what is left of the variation is rounded up.
        assert_eq!(played[199], Span::from_micros(300_125));
        assert!(played.is_sorted_by(|a, b| a >= b));
        // Never faster than twice: 10 ms a packet.
        let steps = played.windows(2).map(|two| two[0].abs_diff(two[1]));
        assert!(steps.max().expect("some") <= PACKET / 2);
    }

    #[test]
    fn playout_follows_a_delay_step_at_the_time_scaling_rate() {
        // 200 ms more. By the time packet 100 arrives, ten packets have missed their turn. From
        // there on the delay grows by 20 ms a packet: ten more are late until it has caught up.
        let delays: Vec<u64> = (0..300).map(|n| if n < 100 { 100 } else { 300 }).collect();
        let (late, played) = stream(&delays);
        assert!(played[99] <= Span::from_micros(100_125), "{:?}", played[99]);
        assert!((19..=20).contains(&late.len()), "{late:?}");
        assert!(late.iter().copied().eq(100..100 + late.len() as u64));
        let growth = played.windows(2).map(|two| two[1].saturating_sub(two[0]));
        assert!(growth.max().expect("some") <= PACKET);
        // And back down, without a loss.
        assert!(played[299] < Span::from_millis(310), "{:?}", played[299]);
        let falling: Vec<u64> = (0..300).map(|n| if n < 100 { 300 } else { 100 }).collect();
        let (late, played) = stream(&falling);
        assert!(late.is_empty(), "{late:?}");
        assert!(played[299] < Span::from_millis(110), "{:?}", played[299]);
    }

    #[test]
    fn regular_jitter_is_within_the_buffer() {
        // Delays of 100 and 120 ms by turns: no packet overtakes another. With a gain of 1/8 the
        // average settles at 110 ms plus and minus 10/15 ms, and the variation at 10 - 10/15 ms.
        // The playout delay is the average and four times the variation: 146.7 or 148 ms.
        let delays: Vec<u64> = (0..400).map(|n| 100 + 20 * (n % 2)).collect();
        let (late, played) = stream(&delays);
        assert!(late.is_empty(), "{late:?}");
        let delay = played[399].as_millis_f64();
        assert!((146.5..148.2).contains(&delay), "{delay}");
    }
}
