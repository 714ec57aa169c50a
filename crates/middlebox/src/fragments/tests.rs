use bentpipe_types::{Endpoint, IpVersion, Packet, RandomStream, Tunnel};
use proptest::prelude::*;

use super::*;

const HOST: Address = Address(2);

fn packet(packets: &mut PacketStore, source: u16, payload: u16) -> PacketRef {
    let end = |address| Endpoint { address, port: 80 };
    let mut record = Packet::new(end(Address(source)), end(HOST), IpVersion::V4);
    record.payload_length = payload;
    record.payload_offset = u64::from(payload) << 8;
    packets.insert(record)
}

fn cut(packets: &mut PacketStore, packet: PacketRef, mtu: u32) -> Vec<PacketRef> {
    let mut pieces = Vec::new();
    Fragmenter::new(mtu, None).divide(packet, &mut EndCtx::new(Time::ZERO, packets, &mut pieces));
    pieces
}

fn arrive(
    reassembler: &mut Reassembler,
    at: u64,
    pieces: impl IntoIterator<Item = PacketRef>,
    packets: &mut PacketStore,
) -> Vec<PacketRef> {
    let mut out = Vec::new();
    let now = Time::ZERO + Span::from_secs(at);
    for piece in pieces {
        reassembler.on_arrival(piece, &mut EndCtx::new(now, packets, &mut out));
    }
    out
}

fn count(of: &dyn FarEnd, wanted: &str) -> u64 {
    let mut sum = 0;
    of.tally(&mut |_, name, value| {
        if name == wanted {
            sum += value;
        }
    });
    sum
}

fn at_host() -> Reassembler {
    Reassembler::new(Some(HOST), ReassemblySettings::default())
}

#[test]
fn a_lost_fragment_discards_the_datagram_after_the_timeout() {
    let mut packets = PacketStore::default();
    let mut reassembler = at_host();
    let whole = packet(&mut packets, 1, 1460);
    let pieces = cut(&mut packets, whole, 576);
    packets.release(pieces[1]);
    assert!(arrive(&mut reassembler, 5, [pieces[0], pieces[2]], &mut packets).is_empty());
    assert_eq!(reassembler.held(), 2);
    let due = Time::ZERO + Span::from_secs(35);
    assert_eq!(reassembler.next_deadline(), Some(due));
    reassembler.on_deadline(&mut EndCtx::new(due, &mut packets, &mut Vec::new()));
    assert_eq!((reassembler.held(), packets.held()), (0, 0));
    assert_eq!(count(&reassembler, "reassembly_timeouts"), 1);
    assert_eq!(reassembler.next_deadline(), None);
}

#[test]
fn overlapping_fragments_discard_their_datagram() {
    let mut packets = PacketStore::default();
    let mut reassembler = at_host();
    let whole = packet(&mut packets, 1, 1460);
    let pieces = cut(&mut packets, whole, 576);
    let copy = packets.duplicate(pieces[0]);
    let smaller = cut(&mut packets, copy, 296);
    assert_eq!(smaller.len(), 3);
    let mut arriving = smaller;
    arriving.truncate(3);
    arriving.extend(pieces);
    assert!(arrive(&mut reassembler, 0, arriving, &mut packets).is_empty());
    assert_eq!(count(&reassembler, "reassembly_refused"), 1);
    assert_eq!((reassembler.held(), packets.held()), (0, 0));
}

#[test]
fn duplicate_fragments_are_ignored() {
    let mut packets = PacketStore::default();
    let mut reassembler = at_host();
    let whole = packet(&mut packets, 1, 1460);
    let mut pieces = cut(&mut packets, whole, 576);
    let copy = packets.duplicate(pieces[0]);
    pieces.insert(1, copy);
    let out = arrive(&mut reassembler, 0, pieces, &mut packets);
    assert_eq!(out.len(), 1);
    assert_eq!(packets.get(out[0]).payload_length, 1460);
}

#[test]
fn reassembly_memory_is_bounded_by_evicting_the_oldest() {
    let mut packets = PacketStore::default();
    let settings = ReassemblySettings {
        memory: 10_000,
        ..ReassemblySettings::default()
    };
    let mut reassembler = Reassembler::new(None, settings);
    for source in 10..60 {
        let whole = packet(&mut packets, source, 1460);
        let pieces = cut(&mut packets, whole, 1000);
        arrive(&mut reassembler, 0, [pieces[0]], &mut packets);
        packets.release(pieces[1]);
        assert!(reassembler.memory <= 10_000);
        assert!(packets.held() < 10);
    }
    assert!(count(&reassembler, "reassembly_crowded_out") > 30);
}

#[test]
fn entries_of_complete_datagrams_do_not_accumulate_behind_an_incomplete_one() {
    let mut packets = PacketStore::default();
    let mut reassembler = at_host();
    let whole = packet(&mut packets, 1, 1460);
    let pieces = cut(&mut packets, whole, 1000);
    arrive(&mut reassembler, 0, [pieces[0]], &mut packets);
    for _ in 0..20_000 {
        let whole = packet(&mut packets, 1, 1460);
        let pieces = cut(&mut packets, whole, 1000);
        for whole in arrive(&mut reassembler, 1, pieces, &mut packets) {
            packets.release(whole);
        }
    }
    assert!(reassembler.ages.len() < 3000, "{}", reassembler.ages.len());
}

#[test]
fn outer_packets_of_a_tunnel_are_fragmented_and_reassembled() {
    let mut packets = PacketStore::default();
    let tunnel = Tunnel {
        source: Address(7),
        destination: Address(9),
    };
    let mut fragmenter = Fragmenter::new(576, Some(TunnelEntry::new(tunnel)));
    let mut pieces = Vec::new();
    // 576 bytes without the outer header: it fits only without it.
    let whole = packet(&mut packets, 1, 536);
    fragmenter.divide(
        whole,
        &mut EndCtx::new(Time::ZERO, &mut packets, &mut pieces),
    );
    assert_eq!(pieces.len(), 2);
    let mut exit = Reassembler::new(Some(Address(9)), ReassemblySettings::default());
    let out = arrive(&mut exit, 0, pieces, &mut packets);
    assert_eq!(packets.tunnel(out[0]), Some(tunnel));
    assert_eq!(packets.get(out[0]).length().get(), 596);
}

proptest! {
    /// Under any loss, duplication and reordering, exactly the complete datagrams are delivered,
    /// unchanged and once, and nothing stays in the store.
    #[test]
    fn exactly_the_complete_datagrams_are_delivered(
        sizes in prop::collection::vec(0_u16..9000, 1..30),
        mtu in 28_u32..2000,
        then in 28_u32..2000,
        loss in 0.0..0.3_f64,
        seed in any::<u64>(),
    ) {
        let mut packets = PacketStore::default();
        let mut random = RandomStream::new(seed, "fragments", "hostility");
        let mut under_way = Vec::new();
        let mut expected = Vec::new();
        for (index, size) in sizes.iter().enumerate() {
            let whole = packet(&mut packets, 10 + index as u16 % 3, *size);
            let mut complete = true;
            for piece in cut(&mut packets, whole, mtu) {
                for piece in cut(&mut packets, piece, then) {
                    prop_assert!(packets.get(piece).length().get() <= u64::from(mtu.min(then).max(28)));
                    if random.happens(loss) {
                        complete = false;
                        packets.release(piece);
                        continue;
                    }
                    under_way.push(piece);
                }
            }
            if complete {
                expected.push(*size);
            }
        }
        for at in (1..under_way.len()).rev() {
            under_way.swap(at, (random.bits() % (at as u64 + 1)) as usize);
        }
        let mut reassembler = at_host();
        let mut out = arrive(&mut reassembler, 0, under_way, &mut packets);
        let mut arrived: Vec<u16> = out
            .iter()
            .map(|whole| {
                let record = packets.get(*whole);
                assert!(record.is_tcp());
                assert_eq!(record.payload_offset, u64::from(record.payload_length) << 8);
                record.payload_length
            })
            .collect();
        arrived.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(arrived, expected);
        out.drain(..).for_each(|whole| packets.release(whole));
        reassembler.on_deadline(&mut EndCtx::new(Time::ZERO + Span::from_secs(30), &mut packets, &mut out));
        prop_assert_eq!((packets.held(), packets.references()), (0, 0));
        prop_assert_eq!((reassembler.held(), reassembler.memory), (0, 0));
        prop_assert_eq!(reassembler.next_deadline(), None);
    }
}
