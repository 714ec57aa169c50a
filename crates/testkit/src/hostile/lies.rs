//! Changes that a lying peer, or a path that rewrites headers with valid checksums, makes to a
//! packet.

use bentpipe_types::{
    Flags, IcmpError, PacketRef, PacketStore, SackBlock, SackBlocks, Seq, SynOptions,
};
use bentpipe_wire::TcpOptions;

use super::dice::Dice;

/// More than any case sends: an acknowledgment this far ahead acknowledges data never sent, even if
/// it arrives late.
const NEVER_SENT: u64 = 1 << 21;

/// Recomputes the header length.
fn measure(packets: &mut PacketStore, packet: PacketRef) {
    if !packets.get(packet).flags.has(Flags::SYN) {
        packets.set_syn_options(packet, SynOptions::default());
    }
    let options = TcpOptions::of(packets, packet).length() as u8;
    let record = packets.get_mut(packet);
    record.header_length = record.ip_version().header_length() + 20 + options;
}

fn set_blocks(packets: &mut PacketStore, packet: PacketRef, blocks: &[(Seq, u32)]) {
    // RFC 2018 section 3: four blocks, or three beside timestamps.
    let most = if packets.get(packet).timestamps().is_some() {
        3
    } else {
        4
    };
    let blocks: SackBlocks = blocks
        .iter()
        .take(most)
        .map(|&(start, length)| SackBlock {
            start,
            end: start + length,
        })
        .collect();
    packets.set_sack_blocks(packet, &blocks);
    measure(packets, packet);
}

fn minus(from: Seq, by: u64) -> Seq {
    Seq::new(from.get().wrapping_sub(by as u32))
}

fn plus(from: Seq, by: u64) -> Seq {
    Seq::new(from.get().wrapping_add(by as u32))
}

/// Returns a copy without payload.
fn bare(packets: &mut PacketStore, packet: PacketRef) -> PacketRef {
    let copy = packets.duplicate(packet);
    let record = packets.get_mut(copy);
    record.payload_length = 0;
    record.flags = Flags(record.flags.0 & !Flags::FIN.0);
    copy
}

/// Draws an ICMP error.
pub(super) fn icmp(dice: &mut Dice) -> IcmpError {
    match dice.below(10) {
        0 => IcmpError::NetworkUnreachable,
        1 => IcmpError::HostUnreachable,
        2 => IcmpError::ProtocolUnreachable,
        3 => IcmpError::PortUnreachable,
        4 => IcmpError::Prohibited,
        5 => IcmpError::TimeExceeded,
        6 => IcmpError::ParameterProblem,
        7 => IcmpError::TooBig { mtu: 0 },
        8 => IcmpError::TooBig {
            mtu: dice.bits() as u32,
        },
        _ => IcmpError::TooBig {
            mtu: dice.below(2_000) as u32,
        },
    }
}

/// Makes a detectable lie of `packet`; appends packets that precede it to `more`.
pub(super) fn lie(
    dice: &mut Dice,
    packets: &mut PacketStore,
    packet: PacketRef,
    last: Option<Seq>,
    more: &mut Vec<PacketRef>,
) {
    let record = *packets.get(packet);
    if record.flags.has(Flags::SYN.with(Flags::RST)) {
        return;
    }
    let ack = record.acknowledgment;
    match dice.below(8) {
        0 => {
            let by = dice.between(NEVER_SENT, 1 << 31);
            packets.get_mut(packet).acknowledgment = plus(ack, by);
        }
        // An old acknowledgment.
        1 => {
            let by = dice.below(200_000);
            packets.get_mut(packet).acknowledgment = minus(ack, by);
        }
        2 => nonsense(dice, packets, packet, ack),
        // D-SACK (RFC 2883): below the acknowledgment, or inside another block.
        3 => {
            let length = dice.between(1, 6000);
            let above = dice.below(20_000);
            let mut blocks = vec![(minus(ack, length), length.min(1500) as u32)];
            if dice.coin() {
                blocks.push((plus(ack, above), 3000));
                blocks[0] = (plus(ack, above + 1000), 1000);
            }
            set_blocks(packets, packet, &blocks);
        }
        // Split acknowledgments: at most one per byte.
        4 => {
            let span = last.map_or(0, |last| u64::from(ack - last));
            let pieces = dice.between(2, 30).min(span);
            if span < NEVER_SENT {
                for piece in 1..pieces {
                    let copy = bare(packets, packet);
                    packets.get_mut(copy).acknowledgment = minus(ack, span - span * piece / pieces);
                    more.push(copy);
                }
            }
        }
        // Duplicates.
        5 => {
            for _ in 0..dice.between(1, 12) {
                more.push(bare(packets, packet));
            }
        }
        6 => {
            let window = dice.pick(&[0, 0, 1, 7, 100, record.window / 2, u16::MAX]);
            packets.get_mut(packet).window = window;
        }
        // A window that opens and closes again.
        _ => {
            let open = bare(packets, packet);
            packets.get_mut(open).window = u16::MAX;
            more.push(open);
            packets.get_mut(packet).window = 0;
        }
    }
}

/// Adds arbitrary SACK blocks, negotiated or not.
fn nonsense(dice: &mut Dice, packets: &mut PacketStore, packet: PacketRef, ack: Seq) {
    let count = dice.between(1, 5);
    let blocks: Vec<(Seq, u32)> = (0..count)
        .map(|_| match dice.below(4) {
            0 => (Seq::new(dice.bits() as u32), dice.bits() as u32),
            // Ends before it starts.
            1 => (plus(ack, dice.below(9000)), u32::MAX - 500),
            // Data that have not arrived.
            2 => (plus(ack, dice.below(60_000)), dice.below(9000) as u32),
            _ => (plus(ack, dice.below(3000)), dice.below(200_000) as u32),
        })
        .collect();
    set_blocks(packets, packet, &blocks);
}

/// Makes an undetectable lie of `packet`, without inventing data.
pub(super) fn defraud(dice: &mut Dice, packets: &mut PacketStore, packet: PacketRef) {
    let bits = dice.bits();
    let by = dice.below(8000);
    let record = packets.get_mut(packet);
    match dice.below(4) {
        // Acknowledges data that may have been sent.
        0 => record.acknowledgment = plus(record.acknowledgment, by),
        1 => {
            record.flags = Flags(bits as u8);
            record.payload_length = 0;
            measure(packets, packet);
        }
        2 => {
            record.set_timestamps(bits as u32, (bits >> 32) as u32);
            packets.set_sack_blocks(packet, &SackBlocks::default());
            measure(packets, packet);
        }
        _ => {
            if record.flags.has(Flags::SYN) {
                let mut options = packets.syn_options(packet);
                options.maximum_segment_size = (bits & 1 == 0).then_some((bits >> 8) as u16 | 64);
                options.window_scale = (bits & 2 == 0).then_some((bits >> 24) as u8);
                options.sack_permitted = bits & 4 == 0;
                packets.set_syn_options(packet, options);
                measure(packets, packet);
            } else {
                record.sequence = plus(record.sequence, by);
                record.payload_length = 0;
                record.flags = Flags(record.flags.0 & !Flags::FIN.0);
            }
        }
    }
}

/// Falsifies a header as a path might. Payload and sequence number stay consistent, and nothing
/// that would legitimately end the connection is created.
///
/// With `ahead`, the sequence number of a segment without data may be ahead of the expected one,
/// within the window. RFC 9293's rule for newer segments (SND.WL1, section 3.10.7.4 step 5) then
/// blocks window updates until the stream has advanced so far. A window probe with a byte gets
/// through nevertheless; Linux's, without data, does not, so ends that probe like Linux wait as
/// Linux would.
pub(super) fn corrupt(dice: &mut Dice, packets: &mut PacketStore, packet: PacketRef, ahead: bool) {
    let record = packets.get_mut(packet);
    if record.flags.has(Flags::SYN.with(Flags::RST)) {
        return;
    }
    record.flags = Flags(record.flags.0 & !Flags::FIN.0);
    let bits = dice.bits();
    match dice.below(4) {
        0 => {
            record.payload_length = 0;
            record.sequence = if !ahead {
                minus(record.sequence, dice.below(1 << 30))
            } else if bits & 1 == 0 {
                Seq::new(bits as u32)
            } else {
                plus(minus(record.sequence, 4000), dice.below(8000))
            };
        }
        1 => {
            let by = dice.between(NEVER_SENT, 1 << 31);
            record.acknowledgment = plus(record.acknowledgment, by);
        }
        2 => record.window = bits as u16,
        _ => {
            record.flags = Flags(bits as u8 & !(Flags::RST.0 | Flags::FIN.0));
            record.payload_length = 0;
        }
    }
}
