//! Random draws from one seed.

use bentpipe_types::{RandomStream, Span};

/// A random stream with the draws that cases need.
#[derive(Debug)]
pub(super) struct Dice(RandomStream);

impl Dice {
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        Self(RandomStream::new(seed, "hostile", purpose))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Draws from 0 to `end` - 1.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end.max(1)
    }

    /// Draws from `start` to `end` - 1.
    pub(super) fn between(&mut self, start: u64, end: u64) -> u64 {
        start + self.below(end - start)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.0.bits() >> 63 == 1
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.happens(probability)
    }

    /// Returns zero in half the cases, otherwise a share up to `most`.
    pub(super) fn share(&mut self, most: f64) -> f64 {
        if self.coin() {
            0.0
        } else {
            most * self.0.uniform()
        }
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }

    pub(super) fn millis(&mut self, end: u64) -> Span {
        Span::from_millis(self.below(end))
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
