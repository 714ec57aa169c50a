//! Proportional rate reduction: how much each acknowledgment of fast recovery lets out (RFC 9937,
//! formerly RFC 6937).

use serde::{Deserialize, Serialize};

/// An acknowledgment in recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryAck {
    /// DeliveredData: bytes newly reported as delivered.
    pub delivered: u64,
    /// Bytes in flight after it: RFC 6675's pipe.
    pub in_flight: u64,
    /// SafeACK: it cumulatively acknowledges new data and reports no further loss.
    pub safe: bool,
}

/// State of the algorithm for one recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProportionalRateReduction {
    // RecoverFS: bytes in flight when recovery began.
    flight_size: u64,
    // prr_delivered and prr_out
    delivered: u64,
    out: u64,
    segment: u64,
    // cwnd
    window: u64,
}

impl ProportionalRateReduction {
    /// Starts a reduction. `outstanding` is SND.NXT - SND.UNA after the acknowledgment that began
    /// recovery, `sacked` the SACKed part of it, and `delivered` the bytes which that
    /// acknowledgment newly reported.
    #[must_use]
    pub fn new(outstanding: u64, sacked: u64, delivered: u64, segment: u32) -> Self {
        // RFC 9937 section 6.1: data SACKed before recovery is not delivered during recovery.
        let flight_size = (outstanding + delivered).saturating_sub(sacked);
        let segment = u64::from(segment);
        Self {
            flight_size: flight_size.max(segment),
            delivered: 0,
            out: 0,
            segment,
            window: 0,
        }
    }

    /// Starts a reduction as Linux does (tcp_init_cwnd_reduction): the congestion window replaces
    /// the bytes in flight, even if it was not fully used. The argument `counted` is the number of
    /// bytes considered delivered at the start, a segment if recovery began without an
    /// acknowledgment.
    pub(super) fn from_window(window: u64, counted: u64, segment: u32) -> Self {
        Self {
            flight_size: window.max(u64::from(segment)),
            delivered: counted,
            ..Self::new(0, 0, 0, segment)
        }
    }

    /// Starts a reduction for an ECN mark (tcp_enter_cwr): the window stays until data is
    /// delivered.
    pub(super) fn for_mark(window: u64, segment: u32) -> Self {
        Self {
            window,
            ..Self::from_window(window, 0, segment)
        }
    }

    /// Whether the window is set.
    pub(super) const fn has_begun(&self) -> bool {
        self.window > 0
    }

    /// Processes an acknowledgment in recovery, including the first. `target`: the window at the
    /// end of the reduction (ssthresh).
    #[inline(always)]
    pub fn on_ack(&mut self, ack: RecoveryAck, target: u64) {
        // RFC 9937 section 6.2: the update of prr_delivered and cwnd.
        self.delivered += ack.delivered;
        let mut out = if ack.in_flight > target {
            // Proportional: out / delivered = target / flight size. "Rounding up" means to whole
            // segments, as in the RFC's examples, which count segments.
            let due = share(self.delivered, target, self.flight_size, self.segment) * self.segment;
            due.saturating_sub(self.out)
        } else {
            // PRR-CRB: no more than was delivered. PRR-SSRB: a segment more, if the acknowledgment
            // is safe.
            let mut out = self.delivered.saturating_sub(self.out).max(ack.delivered);
            if ack.safe {
                out += self.segment;
            }
            out.min(target - ack.in_flight)
        };
        if self.out == 0 {
            out = out.max(self.segment); // The fast retransmit itself.
        }
        self.window = ack.in_flight + out;
    }

    /// Records `bytes` sent, new or retransmitted.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window until the next acknowledgment.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }
}

/// `part * of / whole` in multiples of `unit`, rounded up. The products nearly always fit into 64
/// bits.
fn share(part: u64, of: u64, whole: u64, unit: u64) -> u64 {
    match (part.checked_mul(of), whole.checked_mul(unit)) {
        (Some(product), Some(divisor)) => product.div_ceil(divisor),
        _ => share_of_large(part, of, whole, unit),
    }
}

#[cold]
fn share_of_large(part: u64, of: u64, whole: u64, unit: u64) -> u64 {
    let product = u128::from(part) * u128::from(of);
    product.div_ceil(u128::from(whole) * u128::from(unit)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2^40 of 3 * 2^41 bytes, of a target of 2^50, in units of 1000: products beyond 64 bits.
    #[test]
    fn large_shares_are_exact() {
        let expected = (1_u64 << 50) / 6 / 1000 + 1;
        assert_eq!(share(1 << 40, 1 << 50, 3 << 41, 1000), expected);
    }

    proptest! {
        #[test]
        fn large_shares_equal_small_ones(
            part in 0_u64..1 << 31, of in 0_u64..1 << 31, whole in 1_u64..1 << 31, unit in 1_u64..9000,
        ) {
            prop_assert_eq!(share(part, of, whole, unit), share_of_large(part, of, whole, unit));
        }
    }
}
