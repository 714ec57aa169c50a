//! NewReno: fast recovery that continues after partial acknowledgments (RFC 6582).

use serde::{Deserialize, Serialize};

use super::duplicate_based::{ByDuplicates, Variant};
use super::fast_retransmit::FastRetransmit;
use super::{Reaction, SendSequence};
use crate::NewRenoKind;

/// Recovery that retransmits one lost segment per round trip, until all data outstanding at its
/// start is acknowledged.
pub type NewReno = ByDuplicates<NewRenoVariant>;

/// The variant of duplicate-based recovery for NewReno.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NewRenoVariant {
    kind: NewRenoKind,
    first_partial: bool,
}

impl NewReno {
    /// Creates the recovery, with or without limited transmit.
    #[must_use]
    pub const fn new(limited_transmit: bool, kind: NewRenoKind) -> Self {
        let first_partial = true;
        Self::of(
            limited_transmit,
            NewRenoVariant {
                kind,
                first_partial,
            },
        )
    }
}

impl Variant for NewRenoVariant {
    /// RFC 6582 section 3.2 step 2: `recover` is the highest position sent when recovery began.
    fn on_enter(&mut self, _recover: u64, send: &SendSequence) -> u64 {
        self.first_partial = true;
        send.highest
    }

    fn on_new_data(
        &mut self,
        acknowledged: u64,
        recover: u64,
        fast: &mut FastRetransmit,
        send: &SendSequence,
    ) -> Reaction {
        if send.unacknowledged >= recover {
            fast.reset();
            // RFC 6582 section 3.2 step 3, full acknowledgment, option 1: avoids a burst.
            let segment = u64::from(send.segment);
            return Reaction::Exit {
                limit: Some(send.outstanding().max(segment) + segment),
            };
        }
        // RFC 6582 section 3.2 step 3, partial acknowledgment.
        fast.deflate(acknowledged, send);
        // RFC 6582 section 4: the "Impatient" variant restarts the timer only for the first.
        let restart_timer = self.first_partial || self.kind != NewRenoKind::Impatient;
        self.first_partial = false;
        Reaction::Partial { restart_timer }
    }
}
