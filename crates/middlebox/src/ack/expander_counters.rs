//! Counters of an expander and its spacer.

use bentpipe_link::{Flow, Tally};

/// Reason why an expander drops a compacted acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It did not arrive through the tunnel.
    OutsideTunnel,
    /// It replaces more acknowledgments than the high-water mark.
    HighMark,
    /// It replaces none, or more acknowledgments than bytes.
    Nonsense,
    /// It is not a plain acknowledgment: it has data or other flags.
    NotAcknowledgment,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::OutsideTunnel,
        Self::HighMark,
        Self::Nonsense,
        Self::NotAcknowledgment,
    ];

    /// Returns the counter's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutsideTunnel => "refused_outside_tunnel",
            Self::HighMark => "refused_high_mark",
            Self::Nonsense => "refused_nonsense",
            Self::NotAcknowledgment => "refused_not_acknowledgment",
        }
    }
}

/// Counters of an [`Expander`](super::Expander).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExpanderCounters {
    /// Compacted acknowledgments that were expanded.
    pub expanded: u64,
    /// Acknowledgments that were restored.
    pub regenerated: u64,
    /// Packets that the spacer delayed.
    pub delayed: u64,
    /// Total delay in nanoseconds.
    pub delay_ns: u64,
    /// Packets that left early, at the maximum hold time or because there was no more room.
    pub hurried: u64,
    pub(super) refused: [u64; Refusal::ALL.len()],
}

impl ExpanderCounters {
    /// Returns how many packets were refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    pub(super) fn tally(&self, flow: Option<Flow>, each: &mut Tally<'_>) {
        each(flow, "acks_expanded", self.expanded);
        each(flow, "acks_regenerated", self.regenerated);
        each(flow, "acks_delayed", self.delayed);
        each(flow, "ack_delay_ns", self.delay_ns);
        each(flow, "acks_hurried", self.hurried);
        for reason in Refusal::ALL {
            each(flow, reason.name(), self.refused(reason));
        }
    }
}
