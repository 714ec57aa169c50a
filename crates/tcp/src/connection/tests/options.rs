//! Tests of window scaling, timestamps, PAWS and SACK.

use bentpipe_types::{Flags, Span, SynOptions};

use crate::testing::{A, Hostility, Pair, Single, THEIR_ISN};
use crate::{Config, State};

const ACK: Flags = Flags::ACK;

fn all() -> SynOptions {
    SynOptions {
        maximum_segment_size: Some(1460),
        window_scale: Some(3),
        sack_permitted: true,
        fast_open: None,
    }
}

/// An established connection with every option; the peer's timestamps start at 1000.
fn with_timestamps() -> Single {
    let mut tcp = Single::connect(&Config::default());
    tcp.timestamp = Some(1000);
    tcp.sent();
    tcp.syn_ack(5000, all());
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp
}

#[test]
fn window_is_scaled_except_in_a_syn() {
    let mut tcp = with_timestamps();
    assert_eq!(tcp.tcp.peer_window(), 5000);
    let ack = tcp.sent();
    // 6 MiB, shifted by 7.
    assert_eq!(ack[0].packet.window, 49_152);
    assert_eq!(tcp.tcp.advertised_window(), 6 << 20);
    tcp.ack(1, 5000);
    assert_eq!(tcp.tcp.peer_window(), 40_000);
}

#[test]
fn without_scaling_the_window_is_at_most_65535() {
    let tcp = Single::established(&Config::default(), 5000);
    assert_eq!(tcp.tcp.advertised_window(), 65_535);
    assert_eq!(tcp.tcp.segment_size(), 1448);
}

#[test]
fn timestamps_are_echoed_and_in_header_length() {
    let mut tcp = with_timestamps();
    tcp.wait(Span::from_millis(250));
    let ack = tcp.sent();
    assert_eq!(ack[0].packet.timestamps(), Some((1, 1000)));
    assert_eq!(ack[0].packet.header_length, 52);
    tcp.write(100);
    let data = tcp.sent();
    assert_eq!(data[0].packet.timestamps(), Some((251, 1000)));
}

#[test]
fn rfc7323_the_echo_times_the_earliest_unacknowledged_segment() {
    // RFC 7323 section 4.3, first example: delayed acknowledgments.
    let mut tcp = with_timestamps();
    tcp.sent();
    tcp.timestamp = Some(2000);
    tcp.data(1, 1448);
    tcp.timestamp = Some(2001);
    tcp.data(1449, 1448);
    assert_eq!(tcp.sent()[0].packet.timestamps().unwrap().1, 2000);
    // RFC 7323 section 4.3, second example: a gap. The echo stays with the last segment in order.
    tcp.timestamp = Some(2003);
    tcp.data(1 + 3 * 1448, 1448);
    assert_eq!(tcp.sent()[0].packet.timestamps().unwrap().1, 2000);
    tcp.timestamp = Some(2002);
    tcp.data(1 + 2 * 1448, 1448);
    assert_eq!(tcp.sent()[0].packet.timestamps().unwrap().1, 2002);
}

#[test]
fn paws_drops_segments_with_old_timestamps() {
    let mut tcp = with_timestamps();
    tcp.sent();
    tcp.timestamp = Some(999);
    tcp.data(1, 100);
    assert_eq!(tcp.sent_acks(), [1], "acknowledged, and dropped");
    assert_eq!(tcp.tcp.readable(), 0);
    assert_eq!(tcp.tcp.statistics().unacceptable, 1);
    tcp.timestamp = Some(1000);
    tcp.data(1, 100);
    assert_eq!(tcp.tcp.readable(), 100);
}

#[test]
fn paws_ignores_resets_and_expires() {
    let mut tcp = with_timestamps();
    tcp.timestamp = Some(5);
    tcp.wait(Span::from_secs(25 * 24 * 3600));
    tcp.data(1, 100);
    assert_eq!(tcp.tcp.readable(), 100);
    tcp.timestamp = Some(1);
    tcp.arrives(tcp.segment(101, 1, 0, Flags::RST));
    assert_eq!(tcp.tcp.state(), State::Closed);
}

#[test]
fn a_segment_without_the_negotiated_timestamp_is_dropped() {
    let mut tcp = with_timestamps();
    tcp.sent();
    tcp.timestamp = None;
    tcp.data(1, 100);
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.readable(), 0);
}

#[test]
fn a_retransmission_is_timed_by_its_echo() {
    let mut tcp = with_timestamps();
    tcp.sent();
    tcp.write(100);
    tcp.wait(Span::from_secs(2)); // lost, and retransmitted at least once
    let sent = tcp.sent();
    assert!(sent.len() > 1);
    let last = sent.last().unwrap().packet.timestamps().unwrap().0;
    let now = u64::from(last - 1);
    tcp.world.now = bentpipe_types::Time::ZERO + Span::from_millis(now + 70);
    let mut ack = tcp.segment(1, 101, 0, ACK);
    ack.set_timestamps(1000, last);
    tcp.arrives(ack);
    assert_eq!(tcp.tcp.statistics().rtt.max(), Some(Span::from_millis(70)));
}

/// All acknowledgments of a flight are lost, so that its first segment is retransmitted, which had
/// arrived before. It is outside of the window, and TS.Recent stays (RFC 7323 section 5.3, R2
/// before R3). The sender's sample of the next acknowledgment then spans the time without
/// acknowledgments.
#[test]
fn rfc7323_an_old_duplicate_does_not_change_the_echo() {
    let mut tcp = with_timestamps();
    tcp.sent();
    tcp.timestamp = Some(2000);
    tcp.data(1, 1448);
    tcp.data(1449, 1448);
    assert_eq!(tcp.sent()[0].packet.timestamps().unwrap().1, 2000);
    tcp.timestamp = Some(12_000);
    tcp.data(1, 1448);
    let answer = tcp.sent();
    assert_eq!(answer[0].packet.acknowledgment, THEIR_ISN + 1 + 2 * 1448);
    assert_eq!(answer[0].packet.timestamps().unwrap().1, 2000);
}

fn relative(tcp: &Single, seen: &crate::testing::Seen) -> Vec<(u32, u32)> {
    seen.sack
        .iter()
        .flatten()
        .map(|b| (b.start - tcp.theirs, b.end - tcp.theirs))
        .collect()
}

#[test]
fn sack_blocks_report_the_latest_first() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    for (sequence, blocks) in [
        (201, vec![(201, 301)]),
        (401, vec![(401, 501), (201, 301)]),
        (601, vec![(601, 701), (401, 501), (201, 301)]),
        (301, vec![(201, 501), (601, 701)]),
    ] {
        tcp.data(sequence, 100);
        let sent = tcp.sent();
        assert_eq!(sent.len(), 1, "at once");
        assert_eq!(relative(&tcp, &sent[0]), blocks);
        assert_eq!(
            sent[0].packet.header_length as usize,
            40 + 4 + 8 * blocks.len()
        );
        assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 1);
    }
    tcp.data(1, 200);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 501);
    assert_eq!(relative(&tcp, &sent[0]), [(601, 701)]);
    tcp.data(501, 100);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 701);
    assert!(!sent[0].packet.has_sack_blocks());
}

#[test]
fn with_timestamps_three_sack_blocks_fit() {
    let mut tcp = with_timestamps();
    tcp.sent();
    for n in 1..=5 {
        tcp.data(1 + 200 * n, 100);
    }
    let sent = tcp.sent();
    let last = sent.last().unwrap();
    assert_eq!(relative(&tcp, last).len(), 3);
    assert_eq!(last.packet.header_length, 20 + 60);
}

#[test]
fn rfc2883_duplicates_are_reported_once() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.data(1, 500);
    tcp.data(501, 500);
    tcp.sent();
    // Below the acknowledgment (RFC 2883 section 4.1.1).
    tcp.data(501, 500);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 1001);
    assert_eq!(relative(&tcp, &sent[0]), [(501, 1001)]);
    // Above it, part of a block (RFC 2883 section 4.1.2, RFC 2883 section 4.2.2).
    tcp.data(2001, 500);
    tcp.data(2501, 500);
    tcp.sent();
    tcp.data(2001, 500);
    let sent = tcp.sent();
    assert_eq!(relative(&tcp, &sent[0]), [(2001, 2501), (2001, 3001)]);
    tcp.data(3001, 500);
    let sent = tcp.sent();
    assert_eq!(relative(&tcp, &sent[0]), [(2001, 3501)]);
    assert_eq!(tcp.tcp.statistics().duplicates_received, 2);
    // Half old, half new.
    tcp.data(501, 1000);
    let sent = tcp.sent();
    assert_eq!(relative(&tcp, &sent[0]), [(501, 1001), (2001, 3501)]);
    assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 1501);
}

#[test]
fn sack_blocks_are_sent_only_if_negotiated() {
    let config = Config {
        sack: false,
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.data(501, 500);
    let sent = tcp.sent();
    assert!(!sent[0].packet.has_sack_blocks());
    assert_eq!(sent[0].packet.header_length, 40);
}

#[test]
fn sack_blocks_reduce_the_payload() {
    let mut tcp = with_timestamps();
    tcp.ack(1, 8000);
    tcp.data(1001, 100);
    tcp.sent();
    tcp.write(1448);
    let sent = tcp.sent();
    assert_eq!(
        sent[0].packet.length().get(),
        1500 - 16,
        "one block of three possible"
    );
    assert_eq!(sent[0].packet.payload_length, 1448 - 28);
}

#[test]
fn memory_for_every_other_byte_is_bounded() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    for n in 0..30_000 {
        tcp.data(3 + 2 * n, 1);
        tcp.sent();
    }
    assert!(tcp.tcp.receive.reassembly.len() <= 20_000);
    assert!(tcp.tcp.statistics().out_of_order >= 30_000);
}

#[test]
fn accepted_ranges_allow_storing_the_bytes() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    let mut bytes = vec![None; 400];
    for (sequence, length) in [(101, 100), (1, 50), (31, 100), (1, 300)] {
        let packet = tcp.segment(sequence, 1, length, ACK);
        let packet = tcp.world.packets.insert(packet);
        let accepted = tcp.tcp.on_packet_accepting(packet, &mut tcp.world.cx());
        let accepted = accepted.expect("each has new data");
        for n in 0..accepted.length {
            bytes[accepted.offset as usize + n as usize] =
                Some(sequence as usize - 1 + (accepted.skip + n) as usize);
        }
    }
    for (offset, byte) in bytes.iter().enumerate() {
        assert_eq!(*byte, (offset < 300).then_some(offset));
    }
    let packet = tcp.segment(1, 1, 100, ACK);
    let packet = tcp.world.packets.insert(packet);
    assert_eq!(
        tcp.tcp.on_packet_accepting(packet, &mut tcp.world.cx()),
        None
    );
}

#[test]
fn payload_mismatches_are_counted() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    let mut packet = tcp.segment(1, 1, 100, ACK);
    packet.payload_offset = 5;
    tcp.arrives(packet);
    assert_eq!(tcp.tcp.statistics().payload_mismatches, 1);
}

#[test]
fn ends_with_different_options_interoperate() {
    for bits in 0..64_u32 {
        let on = |n: u32| bits & (1 << n) != 0;
        let a = Config {
            timestamps: on(0),
            sack: on(1),
            window_scaling: on(2),
            ..Config::default()
        };
        let b = Config {
            timestamps: on(3),
            sack: on(4),
            window_scaling: on(5),
            mss: 1000,
            ..Config::default()
        };
        let network = Hostility {
            loss: 0.02,
            ..Hostility::default()
        };
        let mut pair = Pair::new(&a, &b, network, u64::from(bits));
        pair.transfer(300_000, bentpipe_types::Time::ZERO + Span::from_secs(300));
        assert_eq!(pair.b().delivered_offset(), 300_000, "{bits:b}");
        assert_eq!(pair.a().state(), State::Closed);
        let negotiated = pair.a().sender.negotiated;
        assert_eq!(negotiated.timestamps, on(0) && on(3));
        assert_eq!(negotiated.sack, on(1) && on(4));
        assert_eq!(negotiated.send_shift > 0, on(2) && on(5));
        let _ = A;
    }
}
