//! Independent bit errors.

use bentpipe_types::{Bytes, RandomStream, Trials};

/// No bit error will occur.
const NEVER: u64 = u64::MAX;

/// Independent bit errors with equal probability.
///
/// A packet of L bits survives with probability (1 - rate)^L. Instead of drawing per packet, the
/// model draws the number of good bits before the next bad one (geometric) and counts down: the
/// same distribution with one draw per loss.
#[derive(Clone, Debug)]
pub struct BitErrors {
    /// Per bit: success is an error.
    trials: Trials,
    good_bits: u64,
    random: RandomStream,
}

impl BitErrors {
    /// Creates bit errors at `rate`, in [0, 1].
    #[must_use]
    pub fn new(rate: f64, mut random: RandomStream) -> Self {
        let trials = Trials::new(rate);
        let good_bits = random.failures_before_success(trials);
        Self {
            trials,
            good_bits,
            random,
        }
    }

    /// Whether bit errors can occur.
    pub(super) fn ever_loses(&self) -> bool {
        self.trials.ever_succeed()
    }

    /// Returns the number of good bits that come next.
    pub(super) fn sure_bits(&self) -> u64 {
        self.good_bits
    }

    /// Lends good bits, for packets that are not checked individually.
    pub(super) fn lend(&mut self) -> u32 {
        let bits = u32::try_from(self.good_bits).unwrap_or(u32::MAX);
        self.good_bits -= if self.good_bits == NEVER {
            0
        } else {
            u64::from(bits)
        };
        bits
    }

    /// Takes back unused bits.
    pub(super) fn give_back(&mut self, bits: u32) {
        self.good_bits += if self.good_bits == NEVER {
            0
        } else {
            u64::from(bits)
        };
    }

    /// Whether the next packet has a bit error.
    pub fn loses(&mut self, length: Bytes) -> bool {
        let bits = length.bits();
        if self.good_bits >= bits {
            if self.good_bits != NEVER {
                self.good_bits -= bits;
            }
            return false;
        }
        // The process is memoryless: the bits after this packet start afresh.
        self.good_bits = self.random.failures_before_success(self.trials);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss_rate(rate: f64, length: u64, packets: u32) -> f64 {
        let mut model = BitErrors::new(rate, RandomStream::new(3, "test", "bit errors"));
        let lost = (0..packets)
            .filter(|_| model.loses(Bytes::new(length)))
            .count();
        lost as f64 / f64::from(packets)
    }

    #[test]
    fn the_loss_rate_follows_from_the_length() {
        // 1 - (1 - 1e-5)^12000 = 0.11308; the standard error of 400,000 packets is 0.0005.
        assert!((loss_rate(1e-5, 1500, 400_000) - 0.113_08).abs() < 0.002);
        assert!((loss_rate(1e-5, 40, 400_000) - 0.003_195).abs() < 0.000_4);
        assert_eq!(loss_rate(0.0, 1500, 1_000), 0.0);
        assert_eq!(loss_rate(1.0, 40, 1_000), 1.0);
    }
}
