//! Cache layout of a connection: keeps the fields needed per segment in few cache lines.
//!
//! In a network of many users, a connection is no longer in the cache when its next packet arrives.
//! The cost of the packet is then the number of cache lines loaded, not the number of instructions.
//! The structures therefore use C's field order (`repr(C)`), and the fields needed for nearly every
//! segment are adjacent, within a part and across parts. The assertions below fail to compile if a
//! new field breaks this.

use std::mem::offset_of;

use crate::connection::Connection;

const LINE: usize = 64;

/// Bit mask of the cache lines that hold the given offsets.
const fn lines(groups: &[&[usize]]) -> u32 {
    let (mut needed, mut group) = (0, 0);
    while group < groups.len() {
        let mut place = 0;
        while place < groups[group].len() {
            needed |= 1 << (groups[group][place] / LINE);
            place += 1;
        }
        group += 1;
    }
    needed
}

impl Connection {
    /// Bit mask of the cache lines needed for nearly every segment, at either end.
    pub(super) const LINES_NEARLY_ALWAYS: u32 = lines(&[&Self::EITHER_END, &Self::RECEIVER]);

    /// Bit mask of all cache lines of a connection.
    pub(super) const ALL_LINES: u32 = u32::MAX >> (u32::BITS as usize - size_of::<Self>() / LINE);

    /// Fields that both a data sender and a data receiver need for each arriving segment.
    const EITHER_END: [usize; 17] = [
        offset_of!(Self, receive.next),
        offset_of!(Self, receive.last_acknowledged),
        offset_of!(Self, receive.last_received_at),
        offset_of!(Self, receive.timestamp_recent),
        offset_of!(Self, receive.initial),
        offset_of!(Self, feed),
        offset_of!(Self, unanswered_probes),
        offset_of!(Self, events),
        offset_of!(Self, fast_path),
        offset_of!(Self, sender.timers),
        offset_of!(Self, sender.negotiated),
        offset_of!(Self, sender.ecn),
        offset_of!(Self, sender.send.sequence),
        offset_of!(Self, sender.send.window),
        offset_of!(Self, sender.send.window_sequence),
        offset_of!(Self, sender.send.initial),
        offset_of!(Self, sender.statistics.segments_received),
    ];

    /// Further fields that a receiver of in-order data needs to accept and acknowledge it.
    const RECEIVER: [usize; 16] = [
        offset_of!(Self, template),
        offset_of!(Self, receive.sizing),
        offset_of!(Self, receive.reassembly),
        offset_of!(Self, receive.duplicate),
        offset_of!(Self, receive.read),
        offset_of!(Self, receive.edge),
        offset_of!(Self, receive.limit),
        offset_of!(Self, receive.data_at),
        offset_of!(Self, receive.fin),
        offset_of!(Self, receive.answer_pending),
        offset_of!(Self, sender.rtt),
        offset_of!(Self, sender.config),
        offset_of!(Self, sender.statistics.last_delivery_at),
        offset_of!(Self, sender.statistics.bytes_delivered),
        offset_of!(Self, sender.statistics.ranges_checked),
        offset_of!(Self, sender.statistics.control_segments_sent),
    ];
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(lines(&[&Connection::EITHER_END]).count_ones() == 5);
    assert!(
        Connection::LINES_NEARLY_ALWAYS.count_ones() == 9,
        "of 28: what a user's end needs of a packet"
    );
    assert!(offset_of!(Connection, sender).is_multiple_of(LINE));
    assert!(size_of::<Connection>() == 28 * LINE);
};
