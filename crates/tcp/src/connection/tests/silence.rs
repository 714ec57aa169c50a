//! Keep-alive, and what a peer hears that has lost the thread.

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
fn an_idle_connection_is_silent_unless_asked() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.wait(Span::from_secs(100_000));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.next_deadline(), None);
    let mut ctx = tcp.world.cx();
    tcp.tcp.set_keep_alive(Some(KEEP_ALIVE), &mut ctx);
    tcp.wait(Span::ZERO);
    assert_eq!(tcp.sent_ranges(), [(0, 0)], "it has been idle for long");
}

#[test]
fn rfc9293_a_probe_is_of_what_the_peer_has() {
    let mut tcp = kept_alive();
    tcp.wait(Span::from_secs(59));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_secs(1));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.sequence, tcp.ours, "SND.NXT - 1");
    assert_eq!(sent[0].packet.flags, Flags::ACK);
    // It answers, as often as it is asked.
    for _ in 0..20 {
        tcp.ack(1, 65_535);
        tcp.wait(Span::from_secs(60));
        assert_eq!(tcp.sent_ranges(), [(0, 0)]);
    }
    assert_eq!(tcp.tcp.statistics().keep_alive_probes, 21);
    assert_eq!(tcp.tcp.state(), State::Established);
}

#[test]
fn rfc9293_no_single_probe_counts_but_all_together_do() {
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
fn a_connection_with_data_outstanding_is_the_retransmission_timers() {
    let mut tcp = kept_alive();
    tcp.wait(Span::from_secs(59));
    tcp.write(10);
    tcp.sent();
    tcp.wait(Span::from_millis(500));
    tcp.ack(11, 65_535);
    tcp.sent();
    tcp.wait(Span::from_secs(59));
    assert!(tcp.sent().is_empty(), "the peer has just been heard");
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.sent_ranges(), [(10, 0)]);
}

#[test]
fn a_silent_peer_is_asked_as_often_as_is_wanted() {
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
fn linuxs_timer_goes_on_for_years() {
    let mut config = Config::default();
    config.habits.keeps_alive_by_timer = true;
    let mut tcp = Single::established(&config, 65_535);
    // Its clock has gone round by then.
    tcp.wait(Span::from_secs(300 * 24 * 3600));
    tcp.ack(1, 65_535);
    let mut ctx = tcp.world.cx();
    tcp.tcp.set_keep_alive(Some(KEEP_ALIVE), &mut ctx);
    tcp.wait(Span::from_secs(59));
    assert!(tcp.sent().is_empty());
    // For so long it goes in slots of 2.048 s.
    tcp.wait(Span::from_secs(4));
    assert_eq!(tcp.sent_ranges(), [(0, 0)]);
}

#[test]
fn a_user_timeout_counts_instead_of_the_probes() {
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
fn rfc2883_what_is_partly_new_is_reported_for_the_part_that_is_not() {
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
    // It fills the gap, and more: the known part ends where the new segment does.
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
fn time_wait_tells_a_peer_that_has_lost_the_thread() {
    let mut tcp = Single::established(&Config::default(), 65_535);
    tcp.close();
    tcp.arrives(tcp.segment(1, 2, 0, Flags::ACK.with(Flags::FIN)));
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    tcp.sent();
    // A bare acknowledgment says nothing.
    tcp.arrives(tcp.segment(2, 2, 0, Flags::ACK));
    assert!(tcp.sent().is_empty());
    // Text beyond the FIN, and a segment out of order
    for (sequence, length) in [(2, 100), (500, 100), (900, 0)] {
        tcp.arrives(tcp.segment(sequence, 2, length, Flags::ACK));
        assert_eq!(tcp.sent_acks(), [2], "{sequence}");
    }
    // Two ends in TIME-WAIT do not go on for ever.
    tcp.arrives(tcp.segment(900, 2, 0, Flags::ACK));
    assert!(tcp.sent().is_empty());
    assert_eq!(tcp.tcp.state(), State::TimeWait);
    assert_eq!(tcp.tcp.readable(), 0);
}

#[test]
fn a_peer_that_answers_late_is_not_taken_for_dead() {
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
        // It answers, and by the time of the next probe has been silent for longer than the idle time.
        tcp.wait(Span::from_millis(500));
        tcp.ack(1, 65_535);
        tcp.wait(Span::from_millis(500));
    }
    assert_eq!(tcp.tcp.state(), State::Established);
    tcp.wait(Span::from_secs(4));
    assert_eq!(tcp.tcp.state(), State::Closed);
}
