//! The proportional rate reduction of a recovery, if enabled.

use serde::{Deserialize, Serialize};

use super::SendSequence;
use super::proportional_rate_reduction::{ProportionalRateReduction, RecoveryAck};

/// The reduction in progress, if any.
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

    /// Whether proportional rate reduction is enabled.
    #[inline]
    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Ends the reduction, or prepares for the next.
    pub(super) fn end(&mut self) {
        self.current = None;
    }

    /// Starts from this window; see [`ProportionalRateReduction::from_window`].
    pub(super) fn begin_from(&mut self, window: u64, counted: u64, segment: u32) {
        let reduction = ProportionalRateReduction::from_window(window, counted, segment);
        self.current = Some(reduction);
    }

    /// Starts for an ECN mark; see [`ProportionalRateReduction::for_mark`].
    pub(super) fn begin_for_mark(&mut self, window: u64, segment: u32) {
        self.current = Some(ProportionalRateReduction::for_mark(window, segment));
    }

    /// Whether a reduction is in progress.
    pub(super) const fn is_in_progress(&self) -> bool {
        self.current.is_some()
    }

    /// Processes an acknowledgment in fast recovery, after which `sacked` bytes are SACKed.
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        target: u64,
        sacked: u64,
        ack: RecoveryAck,
        send: &SendSequence,
    ) {
        if ack.delivered == 0 && self.current.is_some_and(|current| current.has_begun()) {
            // RFC 9937 section 6.2: only acknowledgments that deliver data change the window.
            return;
        }
        let current = self.current.get_or_insert_with(|| {
            ProportionalRateReduction::new(send.outstanding(), sacked, ack.delivered, send.segment)
        });
        current.on_ack(ack, target);
    }

    /// Bytes that may be in flight, given the congestion `window`.
    #[inline]
    pub(super) fn window(&self, window: u64) -> u64 {
        (self.current.as_ref()).map_or(window, ProportionalRateReduction::window)
    }

    /// Records `bytes` sent, new or retransmitted.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u64) {
        if let Some(current) = &mut self.current {
            current.on_sent(bytes);
        }
    }
}
