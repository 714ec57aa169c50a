//! Loss probabilities of a link.

/// Loss probabilities at an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LossRates {
    /// Probability that a packet of any length is lost.
    pub packet: f64,
    /// Probability that a bit is wrong.
    pub bit: f64,
}

impl LossRates {
    /// Returns the hazard of losing a packet of this many bits: -ln of its probability of survival.
    /// Hazards add up. Infinite for a certain loss.
    pub(super) fn hazard(self, bits: u64) -> f64 {
        let of = |probability: f64| {
            if probability > 0.0 {
                -libm::log1p(-probability.min(1.0))
            } else {
                0.0
            }
        };
        of(self.packet) + of(self.bit) * bits as f64
    }
}
