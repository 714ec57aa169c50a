//! NewReno: fast recovery that outlasts partial acknowledgments (RFC 6582).

use serde::{Deserialize, Serialize};

use super::duplicates::{ByDuplicates, Variant};
use super::fast_retransmit::FastRetransmit;
use super::{Reaction, SendSequence};
use crate::NewRenoKind;

/// Recovery that sends one lost segment again per round trip, until all that was outstanding when it
/// began is acknowledged.
pub type NewReno = ByDuplicates<Outlasting>;

/// NewReno's part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outlasting {
    kind: NewRenoKind,
    first_partial: bool,
}

impl NewReno {
    /// With or without limited transmit.
    #[must_use]
    pub const fn new(limited_transmit: bool, kind: NewRenoKind) -> Self {
        let first_partial = true;
        Self::of(
            limited_transmit,
            Outlasting {
                kind,
                first_partial,
            },
        )
    }
}

impl Variant for Outlasting {
    /// RFC 6582 section 3.2 step 2: the highest position sent when the recovery began.
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
            // RFC 6582 section 3.2 step 3, full acknowledgment, option 1: no burst
            let segment = u64::from(send.segment);
            return Reaction::Exit {
                limit: Some(send.outstanding().max(segment) + segment),
            };
        }
        // Step 3, partial acknowledgment
        fast.deflate(acknowledged, send);
        // Section 4
        let restart_timer = self.first_partial || self.kind != NewRenoKind::Impatient;
        self.first_partial = false;
        Reaction::Partial { restart_timer }
    }
}
