//! Linux's windowed maximum filter (`lib/win_minmax.c`).

use serde::{Deserialize, Serialize};

use super::Bandwidth;

/// A value and the round in which it was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Sample {
    round: u64,
    value: Bandwidth,
}

/// Maximum over the last `N` rounds and the current one, estimated from three samples. They are the
/// largest, the largest since a quarter of the window, and the largest since half of it. When the
/// first expires, the second replaces it, even if earlier samples were larger.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunningMaximum<const N: u64> {
    best: [Sample; 3],
}

impl<const N: u64> RunningMaximum<N> {
    /// Linux's minmax_get.
    pub(super) const fn get(&self) -> Bandwidth {
        self.best[0].value
    }

    /// Linux's minmax_running_max: adds `value` in `round`, the current round or a later one.
    pub(super) fn update(&mut self, round: u64, value: Bandwidth) {
        let sample = Sample { round, value };
        let best = &mut self.best;
        if value >= best[0].value || round - best[2].round > N {
            *best = [sample; 3];
            return;
        }
        if value >= best[1].value {
            best[1] = sample;
            best[2] = sample;
        } else if value >= best[2].value {
            best[2] = sample;
        }
        self.update_subwindows(sample);
    }

    /// Linux's minmax_subwin_update.
    fn update_subwindows(&mut self, sample: Sample) {
        let best = &mut self.best;
        let age = sample.round - best[0].round;
        if age > N {
            *best = [best[1], best[2], sample];
            if sample.round - best[0].round > N {
                *best = [best[1], best[2], sample];
            }
        } else if best[1].round == best[0].round && age > N / 4 {
            best[1] = sample;
            best[2] = sample;
        } else if best[2].round == best[1].round && age > N / 2 {
            best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the maximum after each of these samples, one sample per round.
    fn maxima(values: &[u64]) -> Vec<u64> {
        let mut maximum = RunningMaximum::<10>::default();
        let rounds = values.iter().zip(1..);
        let each = rounds.map(|(&value, round)| {
            maximum.update(round, value);
            maximum.get()
        });
        each.collect()
    }

    #[test]
    fn a_maximum_expires_after_ten_rounds() {
        let mut values = vec![50];
        values.extend([40; 12]);
        let seen = maxima(&values);
        assert_eq!(seen[..11], [50; 11]);
        assert_eq!(seen[11..], [40; 2]);
    }

    /// The second-best sample is chosen after a quarter of the window: 80 in the fourth round,
    /// although the second and third had 90.
    #[test]
    fn samples_of_the_first_quarter_are_not_kept() {
        let mut values = vec![100, 90, 90, 80];
        values.extend([10; 10]);
        assert_eq!(maxima(&values)[10..], [100, 80, 80, 80]);
    }

    #[test]
    fn a_new_maximum_replaces_all_samples() {
        assert_eq!(maxima(&[10, 5, 20, 7, 30])[4], 30);
        let mut maximum = RunningMaximum::<10>::default();
        maximum.update(1, 30);
        maximum.update(40, 5);
        assert_eq!(maximum.get(), 5);
    }
}
