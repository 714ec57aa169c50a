//! What an expander and the spacer behind it count.

use bentpipe_link::{Flow, Tally};

/// Why an expander refuses a compacted acknowledgment, and drops it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It didn't come through the tunnel.
    OutsideTunnel,
    /// It stands for more than the high mark.
    HighMark,
    /// It stands for none, or for more acknowledgments than bytes.
    Nonsense,
    /// It is no plain acknowledgment: it has data, or other flags.
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

    /// Its counter's name.
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

/// What an [`Expander`](super::Expander) has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExpanderCounters {
    /// Compacted acknowledgments that it expanded.
    pub expanded: u64,
    /// Acknowledgments that it restored.
    pub regenerated: u64,
    /// Packets that the spacer held back.
    pub delayed: u64,
    /// Nanoseconds that it held them, all together.
    pub delay_ns: u64,
    /// Packets that the spacer let go early: held for the longest time it may, or no more room.
    pub hurried: u64,
    pub(super) refused: [u64; Refusal::ALL.len()],
}

impl ExpanderCounters {
    /// Packets refused for this reason.
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
