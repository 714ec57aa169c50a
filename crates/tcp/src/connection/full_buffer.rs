//! A receive buffer that the kernel's buffers have filled: what Linux makes of text that there is no room for.

use bentpipe_types::Packet;

use super::Connection;
use super::receive::Receive;
use crate::right_sizing::Room;

impl Receive {
    /// Is there something that Linux asks of the next segment before it takes it?
    #[inline]
    pub(super) fn asks_first(&self) -> bool {
        self.quick_as_linux && (self.is_overfull() || self.duplicate.is_some())
    }

    /// Is more of the buffer taken than there is?
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        (self.sizing.as_ref()).is_some_and(|sizing| sizing.is_overfull())
    }
}

impl Connection {
    /// The receive buffer is full: looks for room for a segment that begins at `start`.
    #[cold]
    fn look_for_room(&mut self, start: u64) -> Room {
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return Room::default();
        };
        let room = sizing.prune(start, &stream);
        if let Some(from) = room.thrown_from {
            receive.reassembly.throw_away(from);
            // What has arrived twice is not told of, either (tcp_sack_reset).
            receive.duplicate = None;
        }
        room
    }

    /// Is there room for a segment ahead of a gap, which begins at `start`?
    #[inline]
    pub(super) fn takes_ahead(&mut self, start: u64) -> bool {
        !self.receive.is_overfull() || self.look_for_room(start).found
    }

    /// Is there room for the next segment? If it is `ordinary`, it may take the kernel's fast path, which asks for none, and
    /// keeps what has arrived twice, if that was not told of yet (tcp_rcv_established).
    #[cold]
    pub(super) fn takes_next(&mut self, packet: &Packet, ordinary: bool) -> bool {
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
        !receive.is_overfull() || self.finds_room_for_next()
    }

    /// If not, the window is closed, whatever was said of it before (tcp_data_queue, ICSK_ACK_NOMEM). What finds nothing
    /// in order before it is taken all the same.
    fn finds_room_for_next(&mut self) -> bool {
        let room = self.look_for_room(self.receive.next);
        if !room.found {
            self.receive.acknowledge_now = true;
            self.receive.edge = self.receive.next;
        }
        room.found || !room.queued
    }
}
