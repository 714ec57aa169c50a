//! Pruning of an overfull receive buffer, as Linux does for data without room.

use bentpipe_types::Packet;

use super::Connection;
use super::receive::Receive;
use crate::receive_buffer_autotuning::PruneResult;

impl Receive {
    /// Whether Linux's checks apply before the next segment is accepted.
    #[inline]
    pub(super) fn checks_before_acceptance(&self) -> bool {
        self.linux_ack_policy && (self.is_overfull() || self.duplicate.is_some())
    }

    /// Whether more memory is used than the receive buffer allows.
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        (self.sizing.as_ref()).is_some_and(|sizing| sizing.is_overfull())
    }
}

impl Connection {
    /// Prunes the full receive buffer to make room for a segment that begins at `start`.
    #[cold]
    fn prune_for(&mut self, start: u64) -> PruneResult {
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return PruneResult::default();
        };
        let room = sizing.prune(start, &stream);
        if let Some(from) = room.thrown_from {
            receive.reassembly.discard_from(from);
            // A pending D-SACK is dropped too (tcp_sack_reset).
            receive.duplicate = None;
        }
        room
    }

    /// Whether there is room for an out-of-order segment that begins at `start`.
    #[inline]
    pub(super) fn has_room_out_of_order(&mut self, start: u64) -> bool {
        !self.receive.is_overfull() || self.prune_for(start).found
    }

    /// Whether there is room for the next in-order segment. An `ordinary` segment may take the
    /// kernel's fast path, which does not check for room and keeps a pending D-SACK
    /// (tcp_rcv_established).
    #[cold]
    pub(super) fn has_room_in_order(&mut self, packet: &Packet, ordinary: bool) -> bool {
        let receive = &mut self.receive;
        let fast = ordinary
            && receive.reassembly.is_empty()
            && (receive.sizing.as_ref()).is_some_and(|sizing| sizing.has_pages_for(packet));
        if fast {
            return true;
        }
        if ordinary {
            receive.duplicate = None;
        }
        !receive.is_overfull() || self.prune_for_next()
    }

    /// Tries to make room for the next in-order segment. On failure the window is closed, whatever
    /// was advertised before (tcp_data_queue, ICSK_ACK_NOMEM). The segment is still accepted if no
    /// unread in-order data precedes it.
    fn prune_for_next(&mut self) -> bool {
        let room = self.prune_for(self.receive.next);
        if !room.found {
            self.receive.acknowledge_now = true;
            self.receive.edge = self.receive.next;
        }
        room.found || !room.queued
    }
}
