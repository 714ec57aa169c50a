//! Tests of keep-alive, of D-SACK for partly new segments, and of answers in TIME-WAIT.

use bentpipe_types::{Flags, SackBlock, Span};

use crate::testing::Single;
use crate::{Config, Events, KeepAlive, State};

const KEEP_ALIVE: KeepAlive = KeepAlive {
    idle: Span::from_secs(60),
    interval: Span::from_secs(10),
    probes: 3,
};

fn kept_alive() -> Single {
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        ..Config::default()
    };
    Single::established(&config, 65_535)
}

#[test]
fn no_probes_without_keep_alive() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.wait(Span::from_secs(100_000));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.next_deadline(), None);
    let mut ctx = tcp.world.cx();
    tcp.tcp.set_keep_alive(Some(KEEP_ALIVE), &mut ctx);
    tcp.wait(Span::ZERO);
    assert_eq!(
        tcp.sent_ranges(),
        [(0, 0)],
        "the idle time has passed already"
    );
}

#[test]
fn rfc9293_a_probe_has_an_old_sequence_number() {
    let mut tcp = kept_alive();
    tcp.wait(Span::from_secs(59));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_secs(1));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.sequence, tcp.ours, "SND.NXT - 1");
    assert_eq!(sent[0].packet.flags, Flags::ACK);
    // The peer answers each probe.
    for _ in 0..20 {
        tcp.ack(1, 65_535);
        tcp.wait(Span::from_secs(60));
        assert_eq!(tcp.sent_ranges(), [(0, 0)]);
    }
    assert_eq!(tcp.tcp.statistics().keep_alive_probes, 21);
    assert_eq!(tcp.tcp.state(), State::Established);
}

#[test]
fn rfc9293_only_several_unanswered_probes_end_the_connection() {
    let mut tcp = kept_alive();
    tcp.wait(Span::from_secs(89));
    assert_eq!(tcp.sent_ranges(), [(0, 0); 3]);
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.wait(Span::from_secs(1));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.flags, Flags::RST.with(Flags::ACK));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::TIMED_OUT);
    assert_eq!(tcp.tcp.next_deadline(), None);
}

#[test]
fn no_probes_while_data_is_outstanding() {
    let mut tcp = kept_alive();
    tcp.wait(Span::from_secs(59));
    tcp.write(10);
    tcp.sent();
    tcp.wait(Span::from_millis(500));
    tcp.ack(11, 65_535);
    tcp.sent();
    tcp.wait(Span::from_secs(59));
    assert!(
        tcp.sent().is_empty(),
        "the peer has just sent an acknowledgment"
    );
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.sent_ranges(), [(10, 0)]);
}

#[test]
fn number_of_probes_may_exceed_255() {
    let config = Config {
        keep_alive: Some(KeepAlive {
            probes: 300,
            ..KEEP_ALIVE
        }),
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.wait(Span::from_secs(60 + 300 * 10 - 1));
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.statistics().keep_alive_probes, 300);
}

#[test]
fn linux_timer_survives_a_tick_counter_wrap() {
    let mut config = Config::default();
    config.linux_quirks.timers.kernel_keep_alive_timer = true;
    let mut tcp = Single::established(&config, 65_535);
    // The 32-bit tick counter has wrapped by then.
    tcp.wait(Span::from_secs(300 * 24 * 3600));
    tcp.ack(1, 65_535);
    let mut ctx = tcp.world.cx();
    tcp.tcp.set_keep_alive(Some(KEEP_ALIVE), &mut ctx);
    tcp.wait(Span::from_secs(59));
    assert!(tcp.sent().is_empty());
    // For this delay the timer has steps of 2.048 s.
    tcp.wait(Span::from_secs(4));
    assert_eq!(tcp.sent_ranges(), [(0, 0)]);
}

#[test]
fn a_user_timeout_replaces_the_number_of_probes() {
    let mut tcp = kept_alive();
    tcp.tcp.set_user_timeout(Some(Span::from_secs(65)));
    tcp.wait(Span::from_secs(69));
    assert_eq!(tcp.sent_ranges(), [(0, 0)]);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.state(), State::Closed);
}

#[test]
fn half_closed_connections_are_kept_alive_too() {
    let mut tcp = kept_alive();
    tcp.close();
    tcp.sent();
    tcp.ack(2, 65_535);
    assert_eq!(tcp.tcp.state(), State::FinWait2);
    tcp.wait(Span::from_secs(60));
    assert_eq!(tcp.sent_ranges(), [(1, 0)]);
    tcp.wait(Span::from_secs(30));
    assert_eq!(tcp.tcp.state(), State::Closed);
}

fn blocks(tcp: &Single, ranges: &[(u32, u32)]) -> [Option<SackBlock>; 4] {
    let mut blocks = [None; 4];
    for (slot, (start, end)) in blocks.iter_mut().zip(ranges) {
        *slot = Some(SackBlock {
            start: tcp.theirs + *start,
            end: tcp.theirs + *end,
        });
    }
    blocks
}

#[test]
fn rfc2883_a_dsack_reports_the_duplicate_part_of_a_segment() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.data(1001, 500);
    tcp.data(3001, 500);
    tcp.sent();
    // New up to 1001, known up to 1501, new again.
    tcp.data(501, 1500);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, tcp.theirs + 1);
    assert_eq!(
        sent[0].sack,
        blocks(&tcp, &[(1001, 1501), (501, 2001), (3001, 3501)])
    );
    // It fills the gap and more: the known part ends where the new segment does.
    tcp.data(1, 700);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, tcp.theirs + 2001);
    assert_eq!(sent[0].sack, blocks(&tcp, &[(501, 701), (3001, 3501)]));
    // All of it old, then some of it.
    tcp.data(1901, 200);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.acknowledgment, tcp.theirs + 2101);
    assert_eq!(sent[0].sack, blocks(&tcp, &[(1901, 2001), (3001, 3501)]));
}

#[test]
fn time_wait_answers_an_unsynchronized_peer() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.close();
    tcp.arrives(tcp.segment(1, 2, 0, Flags::ACK.with(Flags::FIN)));
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    tcp.sent();
    // A pure acknowledgment is not answered.
    tcp.arrives(tcp.segment(2, 2, 0, Flags::ACK));
    assert!(tcp.sent().is_empty());
    // Data beyond the FIN, and a segment out of order.
    for (sequence, length) in [(2, 100), (500, 100), (900, 0)] {
        tcp.arrives(tcp.segment(sequence, 2, length, Flags::ACK));
        assert_eq!(tcp.sent_acks(), [2], "{sequence}");
    }
    // Two ends in TIME-WAIT do not answer each other for ever.
    tcp.arrives(tcp.segment(900, 2, 0, Flags::ACK));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    assert_eq!(tcp.tcp.readable(), 0);
}

#[test]
fn a_late_answer_keeps_the_connection() {
    let config = Config {
        keep_alive: Some(KeepAlive {
            idle: Span::from_millis(100),
            interval: Span::from_secs(1),
            probes: 3,
        }),
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    for _ in 0..20 {
        // It answers late: at the next probe, the peer has been idle for longer than the idle time.
        tcp.wait(Span::from_millis(500));
        tcp.ack(1, 65_535);
        tcp.wait(Span::from_millis(500));
    }
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.wait(Span::from_secs(4));
    assert_eq!(tcp.tcp.state(), State::Closed);
}
