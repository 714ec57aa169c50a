//! Independent packet losses.

use bentpipe_types::{RandomStream, Trials};

/// Packets are lost independently with equal probability, whatever their length.
#[derive(Clone, Debug)]
pub struct PacketLoss {
    /// Per packet: success is a loss.
    trials: Trials,
    good_packets: u64,
    random: RandomStream,
}

impl PacketLoss {
    /// Creates packet losses at `rate`, in [0, 1].
    #[must_use]
    pub fn new(rate: f64, mut random: RandomStream) -> Self {
        let trials = Trials::new(rate);
        let good_packets = random.failures_before_success(trials);
        Self {
            trials,
            good_packets,
            random,
        }
    }

    /// Whether losses can occur.
    pub(super) fn ever_loses(&self) -> bool {
        self.trials.ever_succeed()
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        if self.good_packets > 0 {
            if self.good_packets != u64::MAX {
                self.good_packets -= 1;
            }
            return false;
        }
        self.good_packets = self.random.failures_before_success(self.trials);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_loss_rate_equals_the_configured_one() {
        let mut model = PacketLoss::new(0.02, RandomStream::new(5, "test", "packet loss"));
        let lost = (0..500_000).filter(|_| model.loses()).count();
        // 10,000 expected, standard deviation 99.
        assert!((9_600..10_400).contains(&lost), "{lost}");
        let mut always = PacketLoss::new(1.0, RandomStream::new(5, "test", "packet loss"));
        assert!((0..100).all(|_| always.loses()));
    }
}
