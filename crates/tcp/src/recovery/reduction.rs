//! Fast recovery's proportional rate reduction, where it is wanted.

use serde::{Deserialize, Serialize};

use super::SendSequence;
use super::proportional_rate_reduction::{ProportionalRateReduction, RecoveryAck};

/// The reduction under way, if one is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Reduction {
    wanted: bool,
    current: Option<ProportionalRateReduction>,
}

impl Reduction {
    pub(super) const fn new(wanted: bool) -> Self {
        Self {
            wanted,
            current: None,
        }
    }

    /// Is the window to come down so at all?
    #[inline]
    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// None is under way any more, or one is about to begin.
    pub(super) fn end(&mut self) {
        self.current = None;
    }

    /// One begins from this window; see [`ProportionalRateReduction::from_window`].
    pub(super) fn begin_from(&mut self, window: u64, counted: u64, segment: u32) {
        let reduction = ProportionalRateReduction::from_window(window, counted, segment);
        self.current = Some(reduction);
    }

    /// One begins for a mark; see [`ProportionalRateReduction::for_mark`].
    pub(super) fn begin_for_mark(&mut self, window: u64, segment: u32) {
        self.current = Some(ProportionalRateReduction::for_mark(window, segment));
    }

    /// Is one under way?
    pub(super) const fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// An acknowledgment in fast recovery, after which `sacked` bytes are known to have arrived ahead.
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        target: u64,
        sacked: u64,
        ack: RecoveryAck,
        send: &SendSequence,
    ) {
        if ack.delivered == 0 && self.current.is_some_and(|current| current.has_begun()) {
            return; // RFC 9937 section 6.2
        }
        let current = self.current.get_or_insert_with(|| {
            ProportionalRateReduction::new(send.outstanding(), sacked, ack.delivered, send.segment)
        });
        current.on_ack(ack, target);
    }

    /// What may be in flight, where the window rule allows `window`.
    #[inline]
    pub(super) fn window(&self, window: u64) -> u64 {
        (self.current.as_ref()).map_or(window, ProportionalRateReduction::window)
    }

    /// `bytes` were sent, for the first time or again.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u64) {
        if let Some(current) = &mut self.current {
            current.on_sent(bytes);
        }
    }
}
