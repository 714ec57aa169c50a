//! The rule by which CAKE drops an acknowledgment when a packet arrives.
//!
//! The rules are those of `cake_ack_filter` in Linux's `net/sched/sch_cake.c`, written
//! independently. CAKE walks the flow's whole queue for every packet. Here the flow's list contains
//! only packets that may be dropped, and at most [`SCAN`] of them are examined, so that a packet
//! costs O(1).

use bentpipe_types::{Flags, PacketRef, PacketStore, SackBlock, Seq};

use super::Candidate;
use crate::ack::queue::list::{Ends, List, NONE};

/// Candidates examined per packet. In a stream of advancing acknowledgments the second one decides.
const SCAN: usize = 64;

/// Flags whose changes must not be lost.
pub(super) const ECN_FLAGS: u8 = Flags::ECE.0 | Flags::CWR.0;

/// Whether a packet without data and unknown options may ever be dropped.
pub(super) fn droppable(packets: &PacketStore, reference: PacketRef) -> bool {
    let packet = packets.get(reference);
    let plain = packet.flags.0 & !ECN_FLAGS == Flags::ACK.0;
    // A D-SACK is recognised by its start alone.
    let blocks = packets.sack_blocks(reference);
    let duplicate = blocks
        .as_slice()
        .iter()
        .any(|block| block.start.before(packet.acknowledgment));
    plain && packet.payload_length == 0 && !duplicate
}

/// Returns the candidate to drop in favour of `arrived`, if any. `last` is the last queued packet
/// of this flow, candidate or not.
pub(super) fn choose(
    list: &List<Candidate>,
    ends: Ends,
    last: Option<u32>,
    packets: &PacketStore,
    arrived: PacketRef,
    aggressive: bool,
) -> Option<u32> {
    let flags = packets.get(arrived).flags;
    if !flags.has(Flags::ACK) || flags.has(Flags::SYN) {
        return None;
    }
    let mut eligible = None;
    let mut candidate = ends.first;
    for _ in 0..SCAN {
        if candidate == NONE {
            break;
        }
        let node = list.node(candidate);
        // The ECN flags changed after the eligible packet: dropping it would hide that.
        if node.mark.after_ecn_change {
            eligible = None;
        }
        if stands_for(packets, node.packet, arrived) {
            if eligible.is_some() {
                return eligible;
            }
            eligible = Some(candidate);
        }
        candidate = node.flow_after;
    }
    // With one candidate, aggressive mode drops it if nothing is between it and the arrival.
    eligible.filter(|&index| {
        let old = packets.get(list.node(index).packet).flags.0;
        aggressive && last == Some(index) && old & ECN_FLAGS == flags.0 & ECN_FLAGS
    })
}

/// Whether the arrival contains everything that the candidate does.
fn stands_for(packets: &PacketStore, old: PacketRef, new: PacketRef) -> bool {
    let (earlier, later) = (packets.get(old), packets.get(new));
    if let Some((value, echo)) = earlier.timestamps() {
        let (later_value, later_echo) = later.timestamps().unwrap_or((0, 0));
        if Seq::new(value).after(Seq::new(later_value))
            || Seq::new(echo).after(Seq::new(later_echo))
        {
            return false;
        }
    }
    if earlier.acknowledgment.after(later.acknowledgment) {
        return false;
    }
    match compare(
        packets.sack_blocks(old).as_slice(),
        packets.sack_blocks(new).as_slice(),
    ) {
        Sacks::Fewer => false,
        Sacks::Same => earlier.acknowledgment != later.acknowledgment,
        Sacks::More => true,
    }
}

/// Content of the arrival's SACK blocks compared with the candidate's.
enum Sacks {
    Fewer,
    Same,
    More,
}

fn compare(old: &[SackBlock], new: &[SackBlock]) -> Sacks {
    match (old.is_empty(), new.is_empty()) {
        (true, true) => return Sacks::Same,
        (true, false) => return Sacks::More,
        (false, true) => return Sacks::Fewer,
        (false, false) => (),
    }
    let covered = |block: &SackBlock| {
        new.iter()
            .any(|other| other.start.at_or_before(block.start) && other.end.at_or_after(block.end))
    };
    if !old.iter().all(covered) {
        return Sacks::Fewer;
    }
    let bytes = |blocks: &[SackBlock]| {
        blocks.iter().fold(0_u32, |sum, block| {
            sum.wrapping_add(block.end - block.start)
        })
    };
    if bytes(new) > bytes(old) {
        Sacks::More
    } else {
        Sacks::Same
    }
}
