//! Tests of the state transitions: RFC 9293 section 3.3.2 (diagram) and section 3.10 (events).

use bentpipe_types::{Flags, Span, SynOptions};

use crate::testing::{A, B, Hostility, OUR_ISN, Pair, Single, THEIR_ISN, endpoint};
use crate::{Config, Events, State, reset_reply};

const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
const RST: Flags = Flags::RST;
const RST_ACK: Flags = Flags(Flags::RST.0 | Flags::ACK.0);

fn established() -> Single {
    Single::established(&Config::default(), 65_535)
}

#[test]
fn active_open() {
    let mut tcp = Single::connect(&Config::default());
    let syn = tcp.sent();
    assert_eq!(syn.len(), 1);
    assert_eq!(syn[0].packet.flags, Flags::SYN);
    assert_eq!(syn[0].packet.sequence, OUR_ISN);
    assert_eq!(syn[0].packet.header_length, 20 + 20 + 20);
    assert_eq!(tcp.tcp.state(), State::SynSent);
    tcp.syn_ack(1000, SynOptions::default());
    assert_eq!(tcp.tcp.state(), State::Established);
    assert!(tcp.tcp.take_events().has(Events::ESTABLISHED));
    let ack = tcp.sent();
    assert_eq!(ack.len(), 1);
    assert_eq!(ack[0].packet.flags, ACK);
    assert_eq!(ack[0].packet.sequence, OUR_ISN + 1);
    assert_eq!(ack[0].packet.acknowledgment, THEIR_ISN + 1);
    assert_eq!(tcp.tcp.peer_window(), 1000);
}

#[test]
fn passive_open() {
    let mut tcp = Single::accept(&Config::default(), SynOptions::default());
    assert_eq!(tcp.tcp.state(), State::SynReceived);
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.flags, SYN_ACK);
    assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 1);
    tcp.ack(1, 500);
    assert_eq!(tcp.tcp.state(), State::Established);
    assert_eq!(tcp.tcp.take_events(), Events::ESTABLISHED);
    assert!(tcp.sent().is_empty());
}

#[test]
fn data_on_the_last_segment_of_the_handshake_is_accepted() {
    let mut tcp = Single::accept(&Config::default(), SynOptions::default());
    tcp.arrives(tcp.segment(1, 1, 300, ACK));
    assert_eq!(tcp.tcp.readable(), 300);
    assert_eq!(tcp.read(1000), 300);
}

#[test]
fn a_repeated_syn_is_answered_with_the_syn_ack() {
    let mut tcp = Single::accept(&Config::default(), SynOptions::default());
    tcp.sent();
    tcp.arrives(tcp.segment(0, 0, 0, Flags::SYN));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.flags, SYN_ACK);
    assert_eq!(tcp.tcp.state(), State::SynReceived);
}

#[test]
fn simultaneous_open() {
    let mut pair = Pair::new(
        &Config::default(),
        &Config::default(),
        Hostility::default(),
        1,
    );
    pair.connect(B);
    pair.run(Span::from_millis(15));
    assert_eq!(pair.a().state(), State::SynReceived);
    assert_eq!(pair.b().state(), State::SynReceived);
    pair.run(Span::from_millis(200));
    assert_eq!(pair.a().state(), State::Established);
    assert_eq!(pair.b().state(), State::Established);
    assert_eq!(pair.with(A, |tcp, cx| tcp.write(5000, cx)), 5000);
    assert_eq!(pair.with(B, |tcp, cx| tcp.write(7000, cx)), 7000);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.a().delivered_offset(), 7000);
    assert_eq!(pair.b().delivered_offset(), 5000);
}

#[test]
fn an_old_syn_ack_is_reset_and_the_right_one_still_opens() {
    let mut tcp = Single::connect(&Config::default());
    tcp.sent();
    tcp.arrives(tcp.segment(0, 5, 0, SYN_ACK));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].packet.flags, sent[0].packet.sequence),
        (RST, OUR_ISN + 5)
    );
    assert_eq!(tcp.tcp.state(), State::SynSent);
    tcp.syn_ack(1000, SynOptions::default());
    assert_eq!(tcp.tcp.state(), State::Established);
}

#[test]
fn a_refused_connection() {
    let mut tcp = Single::connect(&Config::default());
    tcp.arrives(tcp.segment(0, 7, 0, RST_ACK)); // does not acknowledge our SYN
    assert_eq!(tcp.tcp.state(), State::SynSent);
    tcp.arrives(tcp.segment(0, 1, 0, RST)); // acknowledges nothing
    assert_eq!(tcp.tcp.state(), State::SynSent);
    tcp.arrives(tcp.segment(0, 1, 0, RST_ACK));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::RESET);
    assert_eq!(tcp.tcp.next_deadline(), None);
}

#[test]
fn an_unanswered_syn_ends_the_attempt() {
    let config = Config {
        maximum_syn_retransmissions: 3,
        ..Config::default()
    };
    let mut tcp = Single::connect(&config);
    assert_eq!(tcp.sent().len(), 1);
    // Retransmissions after 1, 2, 4 and 8 s.
    for second in [1, 3, 7] {
        tcp.wait(Span::from_secs(second).saturating_sub(tcp.world.now.since(Default::default())));
        assert_eq!(tcp.sent().len(), 1, "{second}");
    }
    tcp.wait(Span::from_secs(8));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::TIMED_OUT);
}

#[test]
fn a_lost_syn_gives_a_window_of_one_segment_and_an_rto_of_3_s() {
    let mut tcp = Single::connect(&Config {
        timestamps: false,
        ..Config::default()
    });
    tcp.wait(Span::from_millis(1500));
    tcp.syn_ack(65_535, SynOptions::default());
    // RFC 5681 section 3.1: the initial window after a lost SYN.
    assert_eq!(tcp.tcp.congestion_window(), 536);
    // RFC 6298 section 5.7: the RTO after a lost SYN.
    assert_eq!(tcp.tcp.rto(), Span::from_secs(3));
}

#[test]
fn active_close() {
    let mut tcp = established();
    tcp.close();
    assert_eq!(tcp.tcp.state(), State::FinWait1);
    let sent = tcp.sent();
    assert_eq!((sent.len(), sent[0].packet.flags), (1, FIN));
    tcp.ack(2, 1000);
    assert_eq!(tcp.tcp.state(), State::FinWait2);
    assert!(tcp.tcp.take_events().has(Events::DRAINED));
    // Half closed: data still arrives.
    tcp.arrives(tcp.segment(1, 2, 100, ACK));
    assert_eq!(tcp.read(1000), 100);
    tcp.wait(Span::from_secs(100));
    assert_eq!(tcp.tcp.state(), State::FinWait2);
    tcp.sent();
    tcp.arrives(tcp.segment(101, 2, 0, FIN));
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    assert!(tcp.tcp.take_events().has(Events::PEER_CLOSED));
    assert_eq!(tcp.sent_acks(), [102]);
    // The FIN is retransmitted: it is acknowledged, and the timer restarts.
    tcp.wait(Span::from_secs(59));
    tcp.arrives(tcp.segment(101, 2, 0, FIN));
    assert_eq!(tcp.sent_acks(), [102]);
    tcp.wait(Span::from_secs(59));
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED);
}

#[test]
fn passive_close() {
    let mut tcp = established();
    tcp.arrives(tcp.segment(1, 1, 50, FIN));
    assert_eq!(tcp.tcp.state(), State::CloseWait);
    assert_eq!(tcp.sent_acks(), [52]);
    assert_eq!(tcp.read(1000), 50);
    // Our direction is still open.
    assert_eq!(tcp.write(100), 100);
    assert_eq!(tcp.sent_ranges(), [(1, 100)]);
    tcp.close();
    assert_eq!(tcp.tcp.state(), State::LastAck);
    let sent = tcp.sent();
    assert_eq!((sent.len(), sent[0].packet.flags), (1, FIN));
    tcp.arrives(tcp.segment(52, 102, 0, ACK));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert!(tcp.tcp.take_events().has(Events::CLOSED));
}

#[test]
fn simultaneous_close() {
    let mut tcp = established();
    tcp.close();
    tcp.sent();
    tcp.arrives(tcp.segment(1, 1, 0, FIN)); // does not acknowledge ours
    assert_eq!(tcp.tcp.state(), State::Closing);
    assert_eq!(tcp.sent_acks(), [2]);
    tcp.arrives(tcp.segment(2, 2, 0, ACK));
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    tcp.wait(Span::from_secs(60));
    assert_eq!(tcp.tcp.state(), State::Closed);
}

#[test]
fn three_segment_close() {
    let mut tcp = established();
    tcp.close();
    tcp.arrives(tcp.segment(1, 2, 0, FIN)); // acknowledges ours as well
    assert_eq!(tcp.tcp.state(), State::TimeWait);
}

#[test]
fn the_fin_is_sent_with_the_last_data() {
    let mut tcp = Single::established(&Config::default(), 3000);
    tcp.write(5000);
    tcp.close();
    assert_eq!(tcp.tcp.state(), State::FinWait1);
    assert_eq!(tcp.write(10), 0, "closed");
    assert_eq!(tcp.sent_ranges(), [(1, 1448), (1449, 1448)]);
    tcp.ack(2897, 3000);
    let sent = tcp.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].packet.flags, FIN.with(Flags::PSH));
    assert_eq!(sent[1].packet.payload_length, 5000 - 3 * 1448);
}

#[test]
fn an_out_of_order_fin_waits_for_the_gap() {
    let mut tcp = established();
    tcp.arrives(tcp.segment(101, 1, 100, FIN));
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.arrives(tcp.segment(1, 1, 100, ACK));
    assert_eq!(tcp.tcp.state(), State::CloseWait);
    assert_eq!(tcp.sent_acks(), [1, 202]);
    assert_eq!(tcp.tcp.readable(), 200);
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut tcp = established();
    tcp.close();
    assert_eq!(tcp.sent_ranges(), [(1, 0)]);
    // A tail loss probe, and then the retransmission timer.
    for (probes, timeouts) in [(1, 0), (1, 1)] {
        tcp.wait(Span::from_millis(210));
        let sent = tcp.sent();
        assert_eq!((sent.len(), sent[0].packet.flags), (1, FIN));
        let counted = tcp.tcp.statistics();
        assert_eq!((counted.loss_probes, counted.timeouts), (probes, timeouts));
        assert_eq!(u64::from(counted.control_timeouts), timeouts);
    }
}

#[test]
fn timeouts_of_a_syn_and_of_data_are_told_apart() {
    let mut tcp = Single::connect(&Config::default());
    tcp.wait(Span::from_millis(1500));
    let counted = tcp.tcp.statistics();
    assert_eq!((counted.timeouts, counted.control_timeouts), (1, 1));

    let mut tcp = established();
    tcp.write(100);
    tcp.close();
    tcp.wait(Span::from_secs(2));
    let counted = tcp.tcp.statistics();
    assert!(counted.timeouts > 0);
    assert_eq!(counted.control_timeouts, 0);
}

#[test]
fn rfc5961_only_a_reset_at_rcv_nxt_resets() {
    let mut tcp = established();
    tcp.arrives(tcp.segment(2, 1, 0, RST)); // in the window: a challenge ACK
    assert_eq!(tcp.sent_acks(), [1]);
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.arrives(tcp.segment(0xf000_0000, 1, 0, RST)); // outside: no answer
    assert!(tcp.sent().is_empty());
    tcp.arrives(tcp.segment(1, 1, 0, RST));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::RESET);
}

#[test]
fn rfc5961_a_syn_is_answered_with_a_challenge_ack() {
    let mut tcp = established();
    for sequence in [0, 1, 500, 0x8000_0000] {
        tcp.wait(Span::from_secs(1));
        tcp.arrives(tcp.segment(sequence, 0, 0, Flags::SYN));
        assert_eq!(tcp.sent_acks(), [1], "{sequence}");
        assert_eq!(tcp.tcp.state(), State::Established);
    }
}

#[test]
fn rfc5961_challenge_acks_for_unacceptable_acknowledgments_are_rate_limited() {
    let mut tcp = established();
    for ack in [2, 100_000, 0x7000_0000, 0x9000_0000] {
        tcp.wait(Span::from_secs(1));
        tcp.arrives(tcp.segment(1, ack, 0, ACK));
        assert_eq!(tcp.sent_acks(), [1], "{ack}");
        tcp.arrives(tcp.segment(1, ack, 0, ACK));
        assert!(tcp.sent().is_empty());
    }
    // Old, but within this connection's window: no answer.
    tcp.wait(Span::from_secs(1));
    tcp.arrives(tcp.segment(1, 0, 0, ACK));
    assert!(tcp.sent().is_empty());
}

/// Both ends may retransmit data that the other has received, each before RCV.NXT, since the window
/// has closed behind it. The acknowledgment of an old segment then counts (as in BSD). It does not
/// count if the segment is so old that no peer can have it outstanding, whatever window was
/// advertised.
#[test]
fn rfc5961_acknowledgments_on_very_old_segments_are_ignored() {
    for scaled in [false, true] {
        let config = Config {
            receive_buffer: 300_000,
            window_scaling: scaled,
            ..Config::default()
        };
        let shift = if scaled { 3 } else { 0 };
        let widest = 65_535 << shift;
        // A FIN and the byte of a window probe lie outside of any window.
        for (back, counts) in [
            (1, true),
            (widest, true),
            (widest + 2, true),
            (widest + 3, false),
            (0x4000_0000, false),
            (0x7fff_ffff, false),
        ] {
            for length in [0, 1] {
                let mut tcp = Single::connect(&config);
                tcp.sent();
                let options = SynOptions {
                    window_scale: scaled.then_some(0),
                    ..SynOptions::default()
                };
                tcp.syn_ack(65_535, options);
                tcp.write(100);
                tcp.sent();
                tcp.arrives(tcp.segment(1_u32.wrapping_sub(back), 101, length, ACK));
                let all = if counts { 100 } else { 0 };
                let acknowledged = tcp.tcp.acknowledged_offset();
                assert_eq!(acknowledged, all, "{scaled}, {back} back, {length} bytes");
            }
        }
    }
}

#[test]
fn an_unacceptable_acknowledgment_in_syn_received_is_reset() {
    let mut tcp = Single::accept(&Config::default(), SynOptions::default());
    tcp.sent();
    tcp.arrives(tcp.segment(1, 9, 0, ACK));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].packet.flags, sent[0].packet.sequence),
        (RST, OUR_ISN + 9)
    );
    assert_eq!(tcp.tcp.state(), State::SynReceived);
    // RFC 9293 section 3.10.7.4 step 2: a RST returns a passive open to LISTEN, without informing
    // the user.
    tcp.arrives(tcp.segment(1, 0, 0, RST));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut tcp = established();
    tcp.arrives(tcp.segment(1, 1, 100, Flags::PSH));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.readable(), 0);
}

#[test]
fn urgent_data_is_data() {
    let mut tcp = established();
    tcp.arrives(tcp.segment(1, 1, 100, ACK.with(Flags::URG)));
    assert_eq!(tcp.tcp.readable(), 100);
}

#[test]
fn aborting_resets_the_peer() {
    let mut tcp = established();
    tcp.write(100);
    tcp.sent();
    let mut cx = tcp.world.cx();
    tcp.tcp.abort(&mut cx);
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].packet.flags, sent[0].packet.sequence),
        (RST_ACK, OUR_ISN + 101)
    );
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.next_deadline(), None);
    // Later data belongs to no connection.
    tcp.arrives(tcp.segment(1, 101, 100, ACK));
    let sent = tcp.sent();
    assert_eq!(
        (sent[0].packet.flags, sent[0].packet.sequence),
        (RST, OUR_ISN + 101)
    );
}

#[test]
fn closing_before_the_handshake_is_complete() {
    let mut tcp = Single::connect(&Config::default());
    tcp.close();
    assert_eq!(tcp.tcp.state(), State::Closed);
    let mut tcp = Single::accept(&Config::default(), SynOptions::default());
    tcp.close();
    assert_eq!(tcp.tcp.state(), State::SynReceived);
    tcp.sent();
    tcp.ack(1, 1000);
    assert_eq!(tcp.tcp.state(), State::FinWait1);
    assert_eq!(tcp.sent()[0].packet.flags, FIN);
}

#[test]
fn a_segment_without_a_connection_is_reset() {
    let mut tcp = established();
    let segment = tcp.segment(7, 9, 100, ACK);
    let cases = [
        (segment, Some((RST, OUR_ISN + 9))),
        (
            tcp.segment(7, 0, 0, Flags::SYN),
            Some((RST_ACK, Default::default())),
        ),
        (tcp.segment(7, 9, 0, RST), None),
    ];
    for (segment, expected) in cases {
        let packet = tcp.world.packets.insert(segment);
        reset_reply(packet, Default::default(), &mut tcp.world.cx());
        let sent = tcp.sent();
        assert_eq!(
            sent.first().map(|s| (s.packet.flags, s.packet.sequence)),
            expected
        );
        if let Some(reply) = sent.first() {
            assert_eq!(reply.packet.source, endpoint(A));
            if reply.packet.flags == RST_ACK {
                assert_eq!(reply.packet.acknowledgment, THEIR_ISN + 8);
            }
        }
    }
    assert_eq!(tcp.world.packets.held(), 0);
}

#[test]
fn a_listener_accepts_only_a_syn() {
    let mut world = crate::testing::world(1);
    for flags in [ACK, RST, SYN_ACK, Flags::SYN.with(RST), Flags::NONE] {
        let mut packet = bentpipe_types::Packet::new(endpoint(B), endpoint(A), Default::default());
        packet.flags = flags;
        let packet = world.packets.insert(packet);
        let tcp = crate::Connection::accept(
            &Config::default(),
            endpoint(A),
            endpoint(B),
            Default::default(),
            OUR_ISN,
            packet,
            &mut world.cx(),
        );
        assert_eq!(tcp.state(), State::Closed, "{flags:?}");
    }
}
