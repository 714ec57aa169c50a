//! Fast paths of a connection: the most common cases, with fewer steps than the general path.
//!
//! Contract:
//! - Equal to: the general path, packet for packet, and in every counter and event. Both consist of
//!   the same functions; a fast path is compiled with its preconditions as constants.
//! - Disabled: by [`Config::header_prediction`](crate::Config::header_prediction); while the
//!   connection is not established, after the peer's FIN, with ECN, with records, during a path MTU
//!   search, and while acknowledgments carry SACK blocks.
//! - Lookahead: none. A fast path handles one segment, write or timer, at its time. It is checked
//!   before any state changes.
//! - Catch up: code that changes what `determine_fast_path` depends on calls
//!   [`invalidate_fast_path`](Connection::invalidate_fast_path). A debug build verifies that at
//!   each segment.
//! - Tests: `tests/hostile.rs` compares random cases with and without fast paths and verifies that
//!   each was taken; `socket/tests.rs` does so for a socket's feed.
//!
//! The general path calls these functions, and nothing else of this module:
//!
//! | hook | called |
//! |---|---|
//! | [`process_predicted`](Connection::process_predicted) | for an arriving segment |
//! | [`process_ordinary`](Connection::process_ordinary) | for one that no fast path has handled |
//! | [`run_pacing_timer`](Connection::run_pacing_timer) | when a timer has expired |
//! | [`queue_held_back`](Connection::queue_held_back) | for a write |
//! | [`retransmit_equal_segments`](Connection::retransmit_equal_segments) | for lost segments |
//! | [`invalidate_fast_path`](Connection::invalidate_fast_path) | after a change |
//! | [`prefetch`](Connection::prefetch) and its steps | by the host, before a packet arrives |
//!
//! Functions that both paths share have a [`Specialization`] as their parameter; the general path
//! uses [`General`].
//!
//! | file | contents |
//! |---|---|
//! | `header_prediction` | data, acknowledgments and duplicates that carry nothing else |
//! | `ordinary` | segments that pass every check of the general path |
//! | `retransmit_equal_segments` | a run of equal lost segments as copies of one packet |
//! | `cache_layout` | order of the fields, for few cache lines per segment |
//! | `prefetch` | loads a connection into the cache before its packet arrives |
//! | `taken_path` | counts the fast paths taken, for tests |
//!
//! The preconditions under which a fast path is compiled are in `specialization`. Whole segments
//! that an acknowledgment covers: `recovery/scoreboard/whole_segments.rs`.

mod cache_layout;
mod header_prediction;
mod ordinary;
mod prefetch;
mod retransmit_equal_segments;
mod taken_path;

use bentpipe_types::{Ctx, Packet, PacketRef, Time};

use super::specialization::{
    LossFree, NewDataOnly, PacedLossFree, PacedRecovering, Recovering, SimpleLossFree,
    SimpleRecovering,
};
use super::{Accepted, Connection};

#[cfg(test)]
pub(crate) use taken_path::TAKEN_PATHS;
pub(crate) use taken_path::TakenPath;

/// The fast path that the connection's state allows for the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum FastPath {
    /// Not evaluated yet: the connection has changed.
    #[default]
    Unknown,
    /// No fast path.
    None,
    /// Data for an end that has nothing to send and can only answer with an acknowledgment.
    Text,
    /// An acknowledgment for a sender without losses.
    Acknowledgment(SenderKind),
    /// A duplicate acknowledgment with SACK blocks for a sender in fast recovery.
    Duplicate(SenderKind),
}

/// Sender variants for which the fast paths are compiled separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SenderKind {
    /// The sender [paces](super::Sender::is_paced).
    Paced,
    /// The sender does not pace.
    Unpaced,
    /// The sender does not pace and the connection [is simple](Connection::is_simple).
    Simple,
}

/// The hooks.
impl Connection {
    /// Processes a segment on the fast path that its header predicts. Returns the accepted data, or
    /// `None` if it did nothing. `KEPT`: the feeder of the stream keeps its bytes.
    #[inline(always)]
    pub(super) fn process_predicted<const KEPT: bool>(
        &mut self,
        reference: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<Option<Accepted>> {
        let packet = cx.packets.get(reference);
        match self.fast_path() {
            FastPath::Text => {
                if let Some(start) = self.is_pure_data(packet) {
                    return Some(self.process_pure_data(reference, start, cx));
                }
            }
            FastPath::Acknowledgment(manner) => {
                if let Some(newly) = self.is_pure_acknowledgment(packet, cx.now) {
                    match manner {
                        SenderKind::Simple => {
                            self.process_pure_acknowledgment::<SimpleLossFree, KEPT>(
                                reference, newly, cx,
                            );
                        }
                        SenderKind::Unpaced => {
                            self.process_pure_acknowledgment::<LossFree, KEPT>(
                                reference, newly, cx,
                            );
                        }
                        SenderKind::Paced => {
                            self.process_pure_acknowledgment::<PacedLossFree, KEPT>(
                                reference, newly, cx,
                            );
                        }
                    }
                    return Some(None);
                }
            }
            FastPath::Duplicate(manner) => {
                if self.is_pure_duplicate(packet, cx.now) {
                    match manner {
                        SenderKind::Simple => {
                            self.process_pure_duplicate::<SimpleRecovering>(reference, cx)
                        }
                        SenderKind::Unpaced => {
                            self.process_pure_duplicate::<Recovering>(reference, cx)
                        }
                        SenderKind::Paced => {
                            self.process_pure_duplicate::<PacedRecovering>(reference, cx)
                        }
                    }
                    return Some(None);
                }
            }
            FastPath::None | FastPath::Unknown => {}
        }
        None
    }

    /// Processes a segment that passes every check of the general path, consuming it. Returns the
    /// accepted data, or `None` if it does not pass.
    #[inline(always)]
    pub(super) fn process_ordinary(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        cx: &mut Ctx<'_>,
    ) -> Option<Option<Accepted>> {
        let start = self.check_ordinary(packet)?;
        TakenPath::Ordinary.count();
        let sack = packet
            .has_sack_blocks()
            .then(|| cx.packets.sack_blocks(reference));
        cx.packets.release(reference);
        Some(self.process_ordinary_segment(packet, start, sack.as_ref(), cx))
    }

    /// Fast path for the pacing timer, if no other timer has expired. Sends delayed segments where
    /// [an acknowledgment](FastPath::Acknowledgment) or [a duplicate](FastPath::Duplicate) is
    /// expected and there is more to send. Returns false if it did nothing.
    #[inline]
    pub(super) fn run_pacing_timer(&mut self, cx: &mut Ctx<'_>) -> bool {
        if !self.sender.timers.only_pacing_expired(cx.now) {
            return false;
        }
        let quiet = match self.fast_path() {
            FastPath::Acknowledgment(SenderKind::Paced) => true,
            FastPath::Duplicate(SenderKind::Paced) => false,
            _ => return false,
        };
        let sender = &mut self.sender;
        if sender.send.is_idle()
            || sender.send.sequence.next >= sender.send.end
            || sender.path_mtu.is_active(cx.now)
        {
            return false;
        }
        TakenPath::Paced.count();
        sender.timers.pace(None);
        if quiet {
            self.transmit_paced::<PacedLossFree>(None, cx);
        } else {
            self.transmit_paced::<PacedRecovering>(None, cx);
        }
        self.sender.update_early_timer::<NewDataOnly>(true, cx.now);
        true
    }

    /// Queues a write of which nothing [may be sent yet](Self::is_held_back). Returns false if it
    /// did nothing.
    #[inline(always)]
    pub(super) fn queue_held_back(&mut self, accepted: u64, writer_waits: bool, now: Time) -> bool {
        let held_back = self.is_held_back(now);
        if held_back {
            self.queue_written(accepted, writer_waits, now);
            TakenPath::Write.count();
        }
        held_back
    }

    /// Invalidates the cached fast path. To be called after any change that
    /// [`determine_fast_path`](Self::determine_fast_path) depends on.
    #[inline]
    pub(super) fn invalidate_fast_path(&mut self) {
        self.fast_path = FastPath::Unknown;
    }
}

impl Connection {
    /// The current fast path, evaluated if necessary.
    #[inline]
    fn fast_path(&mut self) -> FastPath {
        if self.fast_path == FastPath::Unknown {
            self.fast_path = self.determine_fast_path();
        }
        debug_assert_eq!(
            self.fast_path,
            self.determine_fast_path(),
            "a change without invalidation of the fast path"
        );
        self.fast_path
    }

    /// Whether at least a full segment is unsent and held back by the window, so that a further
    /// write sends nothing. Conservatively false in these cases:
    ///
    /// * A path MTU probe needs more than a full segment.
    /// * A lost segment may be retransmitted where no new data may be sent.
    /// * Duplicates may have sent less than they could, with short segments.
    /// * The pacing timer may have just expired.
    /// * Linux's burst deferral waits for more than a segment.
    #[inline(always)]
    fn is_held_back(&self, now: Time) -> bool {
        let sender = &self.sender;
        let nothing_else = match self.fast_path {
            FastPath::Acknowledgment(_) => true,
            _ => self.has_only_new_data_to_send(),
        };
        nothing_else
            && !sender.timers.pacing_expired(now)
            && !sender.config.linux_quirks.sending.sends_in_bursts
            && sender.send.unsent() >= u64::from(sender.negotiated.segment)
            && !sender.send.is_idle()
            && !sender.path_mtu.is_active(now)
    }
}
