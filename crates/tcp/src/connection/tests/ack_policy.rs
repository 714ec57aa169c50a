//! Tests of the ACK policy and the advertised window.

use bentpipe_types::{Flags, Span};

use crate::testing::Single;
use crate::{Config, QuickAcks, RtoRule};

fn receiver(config: Config) -> Single {
    Single::established(&config, 65_535)
}

#[test]
fn acknowledges_every_second_segment_or_after_the_delay() {
    let mut tcp = receiver(Config::default());
    tcp.data(1, 1448);
    assert!(tcp.sent().is_empty());
    tcp.data(1449, 1448);
    assert_eq!(tcp.sent_acks(), [2897]);
    assert_eq!(tcp.tcp.next_deadline(), None, "the timer is stopped");
    tcp.data(2897, 1448);
    tcp.wait(Span::from_millis(39));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_millis(1));
    assert_eq!(tcp.sent_acks(), [4345]);
    assert_eq!(tcp.tcp.next_deadline(), None);
}

#[test]
fn acknowledges_every_nth_segment_or_after_the_delay() {
    let mut tcp = receiver(Config {
        ack_every: 4,
        ..Config::default()
    });
    for n in 0..3 {
        tcp.data(1 + 1448 * n, 1448);
        assert!(tcp.sent().is_empty(), "{n}");
    }
    tcp.data(1 + 1448 * 3, 1448);
    assert_eq!(tcp.sent_acks(), [1 + 1448 * 4]);
    tcp.data(1 + 1448 * 4, 1448);
    tcp.wait(Span::from_millis(40));
    assert_eq!(tcp.sent_acks(), [1 + 1448 * 5]);
}

/// A timer with a granularity of 500 ms expires at multiples of 500 ms, whenever it is set.
/// Without, it expires after the timeout.
#[test]
fn a_coarse_timer_expires_at_a_tick() {
    let expires_at_ms = |granularity: Option<Span>, written_at_ms: u64| {
        let mut tcp = receiver(Config {
            timer_granularity: granularity,
            rto_rule: RtoRule::Rfc6298,
            tail_loss_probe: false,
            ..Config::default()
        });
        tcp.wait(Span::from_millis(written_at_ms));
        tcp.write(100);
        tcp.sent();
        let mut at_ms = written_at_ms;
        while tcp.sent().is_empty() {
            tcp.wait(Span::from_millis(10));
            at_ms += 10;
        }
        at_ms
    };
    assert_eq!(expires_at_ms(None, 230), expires_at_ms(None, 130) + 100);
    let tick = Some(Span::from_millis(500));
    let first = expires_at_ms(tick, 130);
    for written_at_ms in (140..700).step_by(70) {
        let at_ms = expires_at_ms(tick, written_at_ms);
        assert_eq!(at_ms % 500, first % 500, "{written_at_ms}");
    }
}

#[test]
fn ack_delay_starts_with_the_first_segment() {
    let mut tcp = receiver(Config::default());
    tcp.data(1, 1448);
    tcp.data(1449, 1448);
    tcp.sent();
    tcp.data(2897, 100);
    tcp.wait(Span::from_millis(30));
    tcp.data(2997, 100);
    assert!(tcp.sent().is_empty(), "short segments share the delay");
    tcp.wait(Span::from_millis(10));
    assert_eq!(tcp.sent_acks(), [3097]);
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut tcp = receiver(Config {
        delayed_ack: None,
        ..Config::default()
    });
    for n in 0..4 {
        tcp.data(1 + 100 * n, 100);
        assert_eq!(tcp.sent_acks(), [101 + 100 * n]);
    }
}

#[test]
fn first_acknowledgments_may_be_immediate() {
    let mut tcp = receiver(Config {
        quick_acks: QuickAcks::First(2),
        ..Config::default()
    });
    tcp.data(1, 1448);
    assert_eq!(tcp.sent().len(), 1);
    tcp.data(1449, 1448);
    assert_eq!(tcp.sent().len(), 1);
    tcp.data(2897, 1448);
    assert!(tcp.sent().is_empty());
}

#[test]
fn out_of_order_segments_and_gap_fills_are_acknowledged_at_once() {
    let mut tcp = receiver(Config::default());
    tcp.data(101, 100); // out of order
    assert_eq!(tcp.sent_acks(), [1]);
    tcp.data(301, 100); // out of order
    assert_eq!(tcp.sent_acks(), [1]);
    tcp.data(1, 100); // fills a part of the gap
    assert_eq!(tcp.sent_acks(), [201]);
    tcp.data(201, 100); // fills the rest of the gap
    assert_eq!(tcp.sent_acks(), [401]);
    tcp.data(201, 100); // duplicate
    assert_eq!(tcp.sent_acks(), [401]);
}

#[test]
fn data_carries_the_acknowledgment() {
    let mut tcp = receiver(Config::default());
    tcp.data(1, 100);
    tcp.write(10);
    assert_eq!(tcp.sent_acks(), [101]);
    tcp.arrives(tcp.segment(101, 11, 0, Flags::ACK));
    tcp.wait(Span::from_secs(1));
    assert!(tcp.sent().is_empty());
}

#[test]
fn window_stays_open_only_with_a_sink() {
    for sink in [true, false] {
        let mut tcp = receiver(Config {
            receive_buffer: 20_000,
            ..Config::default()
        });
        tcp.tcp.set_sink(sink);
        for n in 0..4 {
            tcp.data(1 + 1448 * n, 1448);
        }
        let window = tcp.sent().last().unwrap().packet.window;
        assert_eq!(window, if sink { 20_000 } else { 20_000 - 4 * 1448 });
        assert_eq!(
            tcp.tcp.statistics().bytes_delivered,
            if sink { 4 * 1448 } else { 0 }
        );
        assert_eq!(tcp.tcp.readable(), if sink { 0 } else { 4 * 1448 });
    }
}

#[test]
fn rfc1122_receiver_avoids_silly_windows() {
    let mut tcp = receiver(Config {
        receive_buffer: 5792,
        ..Config::default()
    });
    for n in 0..4 {
        tcp.data(1 + 1448 * n, 1448);
    }
    let sent = tcp.sent();
    assert_eq!(sent.last().unwrap().packet.window, 0);
    assert_eq!(tcp.tcp.advertised_window(), 0);
    // 100 bytes at a time: no update until a segment's worth is free.
    for n in 1..=14 {
        tcp.read(100);
        assert!(tcp.sent().is_empty(), "{n}");
    }
    tcp.read(100);
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.window, 1500);
    // Then when it doubles.
    tcp.read(1400);
    assert!(tcp.sent().is_empty());
    tcp.read(100);
    assert_eq!(tcp.sent()[0].packet.window, 3000);
}

#[test]
fn the_right_edge_never_moves_back() {
    let mut tcp = receiver(Config {
        receive_buffer: 10_000,
        ..Config::default()
    });
    let mut edge = 0;
    for n in 0..100 {
        tcp.data(1 + 90 * n, 90);
        if n % 3 == 0 {
            tcp.read(70);
        }
        for seen in tcp.sent() {
            let acknowledged = seen.packet.acknowledgment - tcp.theirs;
            let next = acknowledged + u32::from(seen.packet.window);
            assert!(next >= edge, "{edge} to {next}");
            edge = next;
        }
    }
}

#[test]
fn data_beyond_the_window_is_dropped() {
    let mut tcp = receiver(Config {
        receive_buffer: 1000,
        ..Config::default()
    });
    tcp.data(1, 1448);
    assert_eq!(tcp.tcp.readable(), 1000);
    assert_eq!(tcp.sent_acks(), [1001]);
    // The window is closed: a probe's data is not accepted, but it is acknowledged, and its
    // acknowledgment counts.
    tcp.write(10);
    tcp.sent();
    tcp.arrives(tcp.segment(1001, 11, 1, Flags::ACK));
    assert_eq!(tcp.tcp.acknowledged_offset(), 10);
    assert_eq!(tcp.sent_acks(), [1001]);
    assert_eq!(tcp.tcp.readable(), 1000);
    // Far beyond the window: acknowledged and dropped.
    tcp.arrives(tcp.segment(50_000, 11, 100, Flags::ACK));
    assert_eq!(tcp.sent_acks(), [1001]);
}
