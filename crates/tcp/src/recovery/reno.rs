//! Reno: fast retransmit and fast recovery (RFC 5681 section 3.2).

use serde::{Deserialize, Serialize};

use super::duplicate_based::{ByDuplicates, Variant};
use super::fast_retransmit::FastRetransmit;
use super::{Reaction, SendSequence};

/// Recovery that ends with the first acknowledgment of new data, even if more is missing. If two
/// segments of a window are lost, the second costs another halving or a timeout.
pub type Reno = ByDuplicates<RenoVariant>;

/// The variant of duplicate-based recovery for Reno.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RenoVariant;

impl Reno {
    /// Creates the recovery, with or without limited transmit.
    #[must_use]
    pub const fn new(limited_transmit: bool) -> Self {
        Self::of(limited_transmit, RenoVariant)
    }
}

impl Variant for RenoVariant {
    /// Keeps `recover`: unlike in RFC 6582, only a timeout moves it. Classic Reno may have several
    /// fast retransmits in one window (Fall and Floyd 1996; ns-2 with `bugFix_ false`).
    fn on_enter(&mut self, recover: u64, _send: &SendSequence) -> u64 {
        recover
    }

    fn on_new_data(
        &mut self,
        _acknowledged: u64,
        _recover: u64,
        fast: &mut FastRetransmit,
        _send: &SendSequence,
    ) -> Reaction {
        // RFC 5681 section 3.2 step 6: the window is deflated to ssthresh.
        fast.reset();
        Reaction::Exit { limit: None }
    }
}
