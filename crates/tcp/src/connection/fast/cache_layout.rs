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

/// Bit mask of the cache lines needed for nearly every segment, at either end.
pub(super) const NEARLY_ALWAYS: u32 = lines(&[&EITHER_END, &RECEIVER]);

/// Bit mask of all cache lines of a connection.
pub(super) const ALL: u32 = u32::MAX >> (u32::BITS as usize - size_of::<Connection>() / LINE);

/// Fields that both a data sender and a data receiver need for each arriving segment.
const EITHER_END: [usize; 17] = [
    offset_of!(Connection, receive.next),
    offset_of!(Connection, receive.last_acknowledged),
    offset_of!(Connection, receive.last_received_at),
    offset_of!(Connection, receive.timestamp_recent),
    offset_of!(Connection, receive.initial),
    offset_of!(Connection, feed),
    offset_of!(Connection, unanswered_probes),
    offset_of!(Connection, events),
    offset_of!(Connection, fast_path),
    offset_of!(Connection, sender.timers),
    offset_of!(Connection, sender.negotiated),
    offset_of!(Connection, sender.ecn),
    offset_of!(Connection, sender.send.sequence),
    offset_of!(Connection, sender.send.window),
    offset_of!(Connection, sender.send.window_sequence),
    offset_of!(Connection, sender.send.initial),
    offset_of!(Connection, sender.statistics.segments_received),
];

/// Further fields that a receiver of in-order data needs to accept and acknowledge it.
const RECEIVER: [usize; 16] = [
    offset_of!(Connection, template),
    offset_of!(Connection, receive.sizing),
    offset_of!(Connection, receive.reassembly),
    offset_of!(Connection, receive.duplicate),
    offset_of!(Connection, receive.read),
    offset_of!(Connection, receive.edge),
    offset_of!(Connection, receive.limit),
    offset_of!(Connection, receive.data_at),
    offset_of!(Connection, receive.fin),
    offset_of!(Connection, receive.answer_pending),
    offset_of!(Connection, sender.rtt),
    offset_of!(Connection, sender.config),
    offset_of!(Connection, sender.statistics.last_delivery_at),
    offset_of!(Connection, sender.statistics.bytes_delivered),
    offset_of!(Connection, sender.statistics.ranges_checked),
    offset_of!(Connection, sender.statistics.control_segments_sent),
];

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(lines(&[&EITHER_END]).count_ones() == 5);
    assert!(
        NEARLY_ALWAYS.count_ones() == 9,
        "of 28: what a user's end needs of a packet"
    );
    assert!(offset_of!(Connection, sender).is_multiple_of(LINE));
    assert!(size_of::<Connection>() == 28 * LINE);
};
