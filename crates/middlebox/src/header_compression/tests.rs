use super::*;
use crate::testing::{Ack, Bench, ack};

fn link(reports_losses: bool) -> HeaderCompression {
    HeaderCompression::new(HeaderCompressionSettings {
        reports_losses,
        ..HeaderCompressionSettings::default()
    })
    .unwrap()
}

/// Sends packets over the link, some of which are lost, and returns those that arrive.
fn send(
    link: &mut HeaderCompression,
    bench: &mut Bench,
    acks: &[Ack],
    lost: &[usize],
) -> (Vec<u64>, Vec<u32>) {
    let mut lengths = Vec::new();
    let sent: Vec<PacketRef> = acks
        .iter()
        .map(|ack| {
            let packet = ack.insert(&mut bench.packets);
            let length = bench.packets.get(packet).length();
            let on_link = link.transmit(packet, length, &mut bench.packets);
            lengths.push(on_link.get());
            packet
        })
        .collect();
    let mut arrived = Vec::new();
    for (i, &packet) in sent.iter().enumerate() {
        if lost.contains(&i) {
            link.lose(Time::ZERO, packet, &mut bench.packets);
            bench.packets.release(packet);
        } else {
            arrived.extend(link.receive(Time::ZERO, packet, &mut bench.packets));
        }
    }
    let numbers = bench.numbers(&arrived);
    arrived
        .into_iter()
        .for_each(|packet| bench.packets.release(packet));
    assert_eq!(bench.packets.held(), 0);
    (lengths, numbers)
}

fn acks(count: u32) -> Vec<Ack> {
    (1..=count).map(|i| ack(1024 * i)).collect()
}

#[test]
fn an_acknowledgment_takes_six_bytes_and_the_framing() {
    let mut bench = Bench::default();
    let (lengths, numbers) = send(&mut link(true), &mut bench, &acks(4), &[]);
    assert_eq!(lengths, [40, 6, 6, 6]);
    assert_eq!(numbers, [1024, 2048, 3072, 4096]);
    for (framing, expected) in [(LinkFraming::Slip, [41, 7]), (LinkFraming::Ppp, [44, 10])] {
        let mut link = HeaderCompression::new(HeaderCompressionSettings {
            framing,
            ..HeaderCompressionSettings::default()
        })
        .unwrap();
        assert_eq!(send(&mut link, &mut bench, &acks(2), &[]).0, expected);
        assert_eq!(link.totals().bytes_in, 80);
        assert_eq!(link.totals().bytes_out, expected.iter().sum::<u64>());
    }
}

#[test]
fn packets_after_a_loss_are_discarded_until_an_uncompressed_one() {
    for reports_losses in [true, false] {
        let mut bench = Bench::default();
        let mut link = link(reports_losses);
        let mut stream = acks(6);
        stream.push(ack(6 * 1024)); // sent again, and so uncompressed
        stream.push(ack(7 * 1024));
        let (_, numbers) = send(&mut link, &mut bench, &stream, &[2]);
        assert_eq!(numbers, [1024, 2048, 6144, 7168], "{reports_losses}");
        let totals = link.totals();
        let (tossed, bad) = if reports_losses { (3, 0) } else { (0, 3) };
        assert_eq!((totals.tossed, totals.bad_checksum), (tossed, bad));
        assert_eq!((totals.undecodable, totals.undetected), (0, 0));
        assert_eq!(totals.uncompressed, 2);
    }
}

#[test]
fn a_decoding_error_undetected_by_the_checksum_is_forwarded_and_counted() {
    let mut bench = Bench::default();
    let mut link = link(false);
    // The number advances by as much as the window shrinks, so their sum does not change.
    let stream: Vec<Ack> = (0..3)
        .map(|i| ack(1000 * (i + 1)).window(60_000 - 1000 * i as u16))
        .collect();
    let (_, numbers) = send(&mut link, &mut bench, &stream, &[1]);
    assert_eq!(numbers, [1000, 2000]);
    assert_eq!(link.totals().undetected, 1);
}

#[test]
fn tunnelled_packets_are_not_compressed() {
    use bentpipe_types::{Address, Tunnel};
    let mut bench = Bench::default();
    let mut link = link(true);
    let mut entry = crate::TunnelEntry::new(Tunnel {
        source: Address(1),
        destination: Address(2),
    });
    for _ in 0..2 {
        let packet = ack(5).insert(&mut bench.packets);
        let inside = entry.transmit(packet, Bytes::new(40), &mut bench.packets);
        let on_link = link.transmit(packet, inside, &mut bench.packets);
        assert_eq!(on_link, Bytes::new(60));
        assert_eq!(
            link.receive(Time::ZERO, packet, &mut bench.packets),
            Some(packet)
        );
    }
    assert_eq!(link.totals().ip, 2);
    // In the opposite order, compressed headers enter the tunnel.
    let packet = ack(6).insert(&mut bench.packets);
    let first = link.transmit(packet, Bytes::new(40), &mut bench.packets);
    let second = entry.transmit(packet, first, &mut bench.packets);
    assert_eq!(second, Bytes::new(60));
    assert_eq!(
        link.receive(Time::ZERO, packet, &mut bench.packets),
        Some(packet)
    );
}
