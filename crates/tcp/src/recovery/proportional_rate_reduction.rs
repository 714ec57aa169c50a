//! Proportional rate reduction: how much each acknowledgment of fast recovery sends (RFC 9937, and
//! before it RFC 6937).

use serde::{Deserialize, Serialize};

/// What one acknowledgment of recovery tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryAck {
    /// Bytes newly known to have arrived: DeliveredData.
    pub delivered: u64,
    /// Bytes in flight after it, by RFC 6675's pipe.
    pub in_flight: u64,
    /// It acknowledges new data cumulatively and tells of no further loss: SafeACK.
    pub safe: bool,
}

/// The algorithm's state for one recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProportionalRateReduction {
    // RecoverFS: what was in flight when recovery began.
    flight_size: u64,
    // prr_delivered and prr_out
    delivered: u64,
    out: u64,
    segment: u64,
    // cwnd
    window: u64,
}

impl ProportionalRateReduction {
    /// Recovery begins. `outstanding` is SND.NXT - SND.UNA after the acknowledgment that began it,
    /// `sacked` what of it is SACKed, and `delivered` what that acknowledgment newly told of.
    #[must_use]
    pub fn new(outstanding: u64, sacked: u64, delivered: u64, segment: u32) -> Self {
        // RFC 9937 section 6.1: what was SACKed before recovery will not be delivered in it.
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

    /// The same as Linux has it (tcp_init_cwnd_reduction): what was in flight is the congestion window, however much of it
    /// was used. Where recovery began without an acknowledgment, it takes a segment for delivered.
    pub(super) fn from_window(window: u64, counted: u64, segment: u32) -> Self {
        Self {
            flight_size: window.max(u64::from(segment)),
            delivered: counted,
            ..Self::new(0, 0, 0, segment)
        }
    }

    /// The same for a mark (tcp_enter_cwr): until something is delivered, the window stays what it was.
    pub(super) fn for_mark(window: u64, segment: u32) -> Self {
        Self {
            window,
            ..Self::from_window(window, 0, segment)
        }
    }

    /// Is the window set?
    pub(super) const fn has_begun(&self) -> bool {
        self.window > 0
    }

    /// An acknowledgment in recovery, the first included; `target` is the window to arrive at
    /// (ssthresh).
    #[inline(always)]
    pub fn on_ack(&mut self, ack: RecoveryAck, target: u64) {
        // RFC 9937 section 6.2
        self.delivered += ack.delivered;
        let mut out = if ack.in_flight > target {
            // Proportional: out / delivered = target / flight size
            // "Rounding up": whole segments, as in the RFC's examples, which count in them
            let due = share(self.delivered, target, self.flight_size, self.segment) * self.segment;
            due.saturating_sub(self.out)
        } else {
            // PRR-CRB: no more than was delivered; and PRR-SSRB, a segment more, when all is well
            let mut out = self.delivered.saturating_sub(self.out).max(ack.delivered);
            if ack.safe {
                out += self.segment;
            }
            out.min(target - ack.in_flight)
        };
        if self.out == 0 {
            out = out.max(self.segment); // fast retransmit
        }
        self.window = ack.in_flight + out;
    }

    /// Something was sent, for the first time or again.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window until the next acknowledgment.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }
}

/// `part * of / whole` in units of so much, rounded up; 64 bits nearly always hold the products.
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
mod tests;
