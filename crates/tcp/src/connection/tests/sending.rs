//! Tests of the sender: windows, Nagle's algorithm, probes, timeouts.

mod linux_bursts;
mod recovery_without_sack;

use bentpipe_types::{BitRate, Flags, Span, Time};

use crate::congestion::{AckSample, CongestionControl, CongestionSample, CustomFactory, Window};
use crate::testing::Single;
use crate::{
    AvoidanceKind, Config, CongestionControlKind, Events, IdleRestart, NewRenoKind, PacingKind,
    RecoveryKind, RtoFrom, SlowStartKind, State,
};

/// Settings for NewReno, for which duplicates without SACK blocks count, and with Reno's windows.
fn newreno() -> Config {
    Config {
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::AppropriateByteCounting {
            limit_segments: u32::MAX,
        },
        recovery: RecoveryKind::NewReno,
        ..Config::default()
    }
}

/// A sender with segments of 1000 bytes and a window of `window` segments, which has written plenty
/// of data.
fn sender(window: u32, config: Config) -> Single {
    let mut tcp = Single::established(
        &Config {
            mss: 1000,
            initial_window: window,
            ..config
        },
        65_535,
    );
    tcp.write(1_000_000);
    tcp
}

fn at(segment: u32) -> (u32, u16) {
    (1 + 1000 * segment, 1000)
}

fn segments(range: std::ops::Range<u32>) -> Vec<(u32, u16)> {
    range.map(at).collect()
}

/// Processes an acknowledgment of everything before this segment.
fn acknowledge(tcp: &mut Single, segment: u32) {
    tcp.ack(1 + 1000 * segment, 65_535);
}

fn duplicate(tcp: &mut Single, segment: u32, times: u32) {
    for _ in 0..times {
        acknowledge(tcp, segment);
    }
}

#[test]
fn initial_window_and_slow_start_counting_bytes() {
    let mut tcp = sender(10, newreno());
    assert_eq!(tcp.sent_ranges(), segments(0..10));
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(10..14));
    assert_eq!(tcp.tcp.congestion_window(), 12_000);
    assert_eq!(tcp.tcp.in_flight(), 12_000);
}

#[test]
fn slow_start_counting_acknowledgments_up_to_the_threshold() {
    let mut tcp = sender(
        2,
        Config {
            slow_start: SlowStartKind::Standard,
            avoidance: AvoidanceKind::PerAcknowledgment,
            initial_slow_start_threshold: Some(4000),
            ..newreno()
        },
    );
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.tcp.congestion_window(), 3000);
    acknowledge(&mut tcp, 4);
    assert_eq!(tcp.tcp.congestion_window(), 4000);
    // Congestion avoidance: one segment per four acknowledgments.
    for (ack, window) in [(5, 4000), (6, 4000), (7, 4000), (8, 5000)] {
        acknowledge(&mut tcp, ack);
        assert_eq!(tcp.tcp.congestion_window(), window);
    }
}

#[test]
fn the_window_grows_only_when_it_is_the_limit() {
    for validation in [true, false] {
        let mut tcp = Single::established(
            &Config {
                mss: 1000,
                initial_window: 10,
                window_validation: validation,
                ..newreno()
            },
            20_000,
        );
        // The application writes little.
        for n in 0..100 {
            tcp.write(1000);
            tcp.ack(1 + 1000 * (n + 1), 20_000);
        }
        let window = tcp.tcp.congestion_window();
        assert_eq!(window, if validation { 10_000 } else { 110_000 });
        // The peer's window is the limit: in slow start, the window grows up to twice the
        // outstanding data.
        tcp.write(5_000_000);
        let mut acknowledged = 100;
        for _ in 0..200 {
            acknowledged += 1;
            tcp.ack(1 + 1000 * acknowledged, 20_000);
        }
        let window = tcp.tcp.congestion_window();
        assert_eq!(tcp.tcp.in_flight(), 20_000);
        assert_eq!(window, if validation { 40_000 } else { 310_000 });
    }
}

#[test]
fn a_full_send_buffer_raises_writable_when_it_has_room() {
    let mut tcp = Single::established(
        &Config {
            mss: 1000,
            send_buffer: 5000,
            ..newreno()
        },
        65_535,
    );
    assert_eq!(tcp.write(8000), 5000);
    assert_eq!(tcp.tcp.writable(), 0);
    assert_eq!(tcp.tcp.take_events(), Events::NONE);
    tcp.ack(1001, 65_535);
    assert!(tcp.tcp.take_events().has(Events::WRITABLE));
    assert_eq!(tcp.tcp.writable(), 1000);
    assert_eq!(tcp.write(1000), 1000);
    tcp.ack(3001, 65_535);
    assert_eq!(tcp.tcp.take_events(), Events::NONE, "no writer waits");
}

#[test]
fn nagle_holds_a_short_segment_after_a_short_one() {
    for (nagle, after) in [(true, vec![]), (false, vec![(101, 100)])] {
        let mut tcp = Single::established(&Config { nagle, ..newreno() }, 65_535);
        tcp.write(100);
        assert_eq!(tcp.sent_ranges(), [(1, 100)], "no short segment before it");
        tcp.write(100);
        assert_eq!(tcp.sent_ranges(), after);
        if nagle {
            tcp.write(50);
            tcp.ack(101, 65_535);
            assert_eq!(tcp.sent_ranges(), [(101, 150)]);
        }
    }
}

#[test]
fn minshall_variant_does_not_delay_the_end_of_a_transfer() {
    let mut tcp = Single::established(&newreno(), 65_535);
    tcp.write(2000);
    assert_eq!(tcp.sent_ranges(), [(1, 1448), (1449, 552)]);
}

#[test]
fn closing_sends_data_held_back_by_nagle() {
    let mut tcp = Single::established(&newreno(), 65_535);
    tcp.write(100);
    tcp.write(100);
    tcp.sent();
    tcp.close();
    let sent = tcp.sent();
    assert_eq!((sent.len(), sent[0].packet.payload_length), (1, 100));
    assert!(sent[0].packet.flags.has(Flags::FIN));
}

#[test]
fn silly_windows_are_not_filled() {
    let mut tcp = Single::established(&newreno(), 8000);
    tcp.write(100_000);
    assert_eq!(
        tcp.sent_ranges().len(),
        5,
        "7240 of 8000 bytes: full segments only"
    );
    // Everything is acknowledged, and the window is small.
    tcp.ack(7241, 600);
    assert!(tcp.sent().is_empty());
    // RFC 9293 section 3.8.6.2.1: after the override timeout, a small window is used.
    tcp.wait(Span::from_millis(210));
    assert_eq!(tcp.sent_ranges(), [(7241, 600)]);
    tcp.ack(7841, 8000);
    assert_eq!(tcp.sent_ranges().len(), 5);
}

#[test]
fn half_of_the_largest_window_is_not_silly() {
    let mut tcp = Single::established(&newreno(), 1000);
    tcp.write(10_000);
    assert_eq!(tcp.sent_ranges(), [(1, 1000)]);
    tcp.ack(1001, 400);
    assert!(tcp.sent().is_empty());
    tcp.ack(1001, 500);
    assert_eq!(tcp.sent_ranges(), [(1001, 500)]);
}

#[test]
fn zero_windows_are_probed_as_long_as_the_peer_answers() {
    let mut tcp = Single::established(&newreno(), 2896);
    tcp.write(10_000);
    tcp.sent();
    tcp.ack(2897, 0);
    assert!(tcp.sent().is_empty());
    let mut gaps = Vec::new();
    let mut last = tcp.world.now;
    for _ in 0..40 {
        let at = tcp.tcp.next_deadline().expect("a probe");
        tcp.world.now = at;
        tcp.tcp.on_deadline(&mut tcp.world.cx());
        assert_eq!(tcp.sent_ranges(), [(2897, 1)]);
        gaps.push(at.since(last));
        last = at;
        tcp.ack(2897, 0); // window still closed
    }
    assert!(gaps.windows(2).all(|w| w[1] >= w[0]), "{gaps:?}");
    assert_eq!(gaps[39], Span::from_secs(120));
    assert_eq!(tcp.tcp.statistics().window_probes, 40);
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 0);
    // The byte of the probe was accepted, and the window opens.
    tcp.ack(2898, 4000);
    assert_eq!(tcp.sent_ranges(), [(2898, 1448), (4346, 1448)]);
}

#[test]
fn unanswered_probes_end_the_connection() {
    let mut tcp = Single::established(&newreno(), 1448);
    tcp.write(10_000);
    tcp.ack(1449, 0);
    tcp.wait(Span::from_secs(3600));
    assert_eq!(tcp.tcp.statistics().window_probes, 15);
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert!(tcp.tcp.take_events().has(Events::TIMED_OUT));
}

#[test]
fn a_window_that_closes_over_data_is_probed_too() {
    let mut tcp = Single::established(&newreno(), 10_000);
    tcp.write(5000);
    tcp.sent();
    tcp.ack(1449, 0); // window shrunk
    tcp.wait(Span::from_millis(300));
    assert_eq!(tcp.sent_ranges(), [(1449, 1)]);
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
    tcp.ack(1449, 10_000);
    assert_eq!(
        tcp.sent_ranges(),
        [(1449, 1448), (2897, 1448), (4345, 656)],
        "and then retransmitted"
    );
}

#[test]
fn a_shrinking_window_causes_no_underflow() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    for window in [3, 0, 20_000, 1, 65_535] {
        tcp.ack(1001, window);
        tcp.wait(Span::from_millis(1));
        assert!(tcp.tcp.in_flight() <= 1_000_000);
    }
}

#[test]
fn timeouts_go_back_to_the_first_segment_and_double() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    tcp.wait(Span::from_millis(250));
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.congestion_window(), 1000);
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    assert_eq!(tcp.tcp.rto(), Span::from_nanos(400_000_002));
    // RFC 5681 section 3.1: the second timeout keeps the threshold.
    tcp.wait(Span::from_millis(400));
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    assert_eq!(tcp.tcp.statistics().timeouts, 2);
    // Go-back-N in slow start, without gaps.
    acknowledge(&mut tcp, 1);
    assert_eq!(tcp.sent_ranges(), segments(1..3));
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(3..5));
    // The segments that had arrived are acknowledged at once. Sending continues behind them, and
    // the window opens by only one segment (RFC 3465 section 2.3).
    acknowledge(&mut tcp, 10);
    assert_eq!(tcp.sent_ranges(), segments(10..14));
    assert_eq!(tcp.tcp.statistics().segments_retransmitted, 6);
    // RFC 6298 section 3 (Karn's algorithm): no sample yet, so the timeout stays backed off.
    assert!(tcp.tcp.rto() > Span::from_millis(700));
    acknowledge(&mut tcp, 11);
    assert!(tcp.tcp.rto() < Span::from_secs(3));
}

#[test]
fn fifteen_timeouts_end_the_connection() {
    let mut tcp = sender(10, newreno());
    tcp.wait(Span::from_secs(3600));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.statistics().timeouts, 15);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::TIMED_OUT);
    assert_eq!(tcp.tcp.next_deadline(), None);
}

#[test]
fn window_updates_and_data_are_no_duplicate_acks() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    for n in 0..10 {
        tcp.ack(1, 60_000 + n); // window updates
    }
    tcp.data(1, 100);
    tcp.data(101, 100);
    tcp.data(201, 100);
    assert_eq!(tcp.tcp.statistics().duplicate_acks, 0);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 0);
}

/// A custom window rule that returns absurd values.
#[derive(Debug)]
struct Absurd(u32);

impl CongestionControl for Absurd {
    fn on_ack(&mut self, window: &mut Window, _acknowledged: u64, _sample: &AckSample) {
        self.0 += 1;
        window.congestion_window = [0, u64::MAX, 1][self.0 as usize % 3];
    }

    fn on_congestion(&mut self, window: &mut Window, _: &CongestionSample) {
        window.congestion_window = 0;
        window.slow_start_threshold = 0;
    }

    fn owns_slow_start(&self) -> bool {
        true
    }
}

#[test]
fn window_of_a_custom_rule_is_clamped() {
    fn assert_send<T: Send>(_: &T) {}
    let custom = CustomFactory::new("absurd", || Box::new(Absurd(0)));
    let mut tcp = sender(
        10,
        Config {
            congestion_control: CongestionControlKind::Custom(custom),
            ..newreno()
        },
    );
    assert_send(&tcp.tcp);
    for segment in 1..300 {
        tcp.wait(Span::from_millis(if segment % 7 == 0 { 500 } else { 1 }));
        acknowledge(&mut tcp, segment);
        duplicate(&mut tcp, segment, segment % 5);
        assert!(tcp.tcp.congestion_window() >= 1000);
        assert!(tcp.tcp.congestion_window() <= 1 << 40);
        assert!(
            tcp.tcp.next_deadline().is_some(),
            "a timer runs while there is data to send"
        );
    }
    assert_eq!(tcp.tcp.acknowledged_offset(), 299_000);
}

#[test]
fn window_after_an_idle_period() {
    for (restart, window, threshold) in [
        (IdleRestart::Off, 20_000, u64::MAX),
        (IdleRestart::RestartWindow, 10_000, u64::MAX),
        (IdleRestart::Decay, 10_000, u64::MAX),
    ] {
        let mut tcp = Single::established(
            &Config {
                mss: 1000,
                idle_restart: restart,
                ..newreno()
            },
            65_535,
        );
        tcp.write(10_000);
        tcp.ack(10_001, 65_535);
        assert_eq!(tcp.tcp.congestion_window(), 20_000);
        tcp.wait(Span::from_secs(10));
        tcp.write(1000);
        assert_eq!(tcp.tcp.congestion_window(), window, "{restart:?}");
        assert_eq!(tcp.tcp.slow_start_threshold(), threshold);
    }
}

#[test]
fn a_pure_acknowledgment_has_the_highest_sequence_number() {
    let mut tcp = sender(10, newreno());
    tcp.wait(Span::from_millis(250)); // a timeout: SND.NXT goes back
    tcp.sent();
    tcp.data(101, 100); // out of order: acknowledged at once
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.sequence - tcp.ours, 10_001);
}

/// BBRv1 probes the round trip with four segments every ten seconds. The first segment after a
/// sufficiently long idle period ends the probe, and the previous window is available at once.
#[test]
fn end_of_a_bbr_round_trip_probe_opens_the_window_at_once() {
    let mut tcp = Single::established(
        &Config {
            mss: 1000,
            initial_window: 10,
            congestion_control: CongestionControlKind::Bbr1,
            pacing: PacingKind::Off,
            ..Config::default()
        },
        65_535,
    );
    // Four segments every 50 ms, half a round trip, so that there is no idle period.
    let mut acknowledged = 0;
    let mut go_on = |tcp: &mut Single, four: u64| {
        tcp.write(1000 * four);
        tcp.wait(Span::from_millis(50));
        tcp.sent();
        acknowledge(tcp, acknowledged);
        acknowledged += 4;
        acknowledged
    };
    let mut sent = 0;
    while tcp.tcp.congestion_window() > 4_000 {
        assert!(sent < 4 * 300, "no probe of the round trip");
        sent = go_on(&mut tcp, 4);
    }
    // The probe lasts 200 ms from when at most four segments are outstanding, plus a round.
    for _ in 0..3 {
        sent = go_on(&mut tcp, 4);
    }
    acknowledge(&mut tcp, sent);
    tcp.wait(Span::from_secs(1));
    tcp.sent();
    assert_eq!(tcp.tcp.congestion_window(), 4_000);
    tcp.write(30_000);
    assert_eq!(tcp.sent_ranges(), segments(sent..sent + 30));
}

/// After a timeout, a lost segment waits for the pacer. Its first transmission is older than the
/// timeout, but its retransmission is not overdue.
#[test]
fn timeout_from_the_oldest_segment_does_not_expire_while_its_retransmission_is_paced() {
    for &recovery in RecoveryKind::ALL {
        // A segment of 1000 bytes every 250 ms.
        let rate = BitRate::new(32_000).unwrap();
        let mut tcp = sender(
            10,
            Config {
                recovery,
                sack: matches!(recovery, RecoveryKind::Sack | RecoveryKind::Fack),
                tail_loss_probe: false,
                f_rto: false,
                rto_from: RtoFrom::OldestSegment,
                pacing: PacingKind::AtMost(rate),
                ..newreno()
            },
        );
        assert_eq!(
            tcp.sent_ranges(),
            segments(0..10),
            "the first ten are not paced"
        );
        let started = tcp.world.now;
        while tcp.tcp.statistics().timeouts == 0 {
            tcp.wait(Span::from_millis(1));
        }
        let timeout = tcp.world.now.since(started);
        assert_eq!(tcp.sent_ranges(), segments(0..1), "{recovery:?}");
        tcp.wait(timeout);
        acknowledge(&mut tcp, 1);
        tcp.wait(Span::from_millis(60));
        assert_eq!(tcp.sent_ranges(), segments(1..2), "{recovery:?}");
        assert_eq!(tcp.tcp.statistics().timeouts, 1, "{recovery:?}");
        // The doubled timeout counts from the acknowledgment.
        tcp.wait(timeout * 2 - Span::from_millis(100));
        assert_eq!(tcp.tcp.statistics().timeouts, 1, "{recovery:?}");
        tcp.wait(timeout);
        assert_eq!(tcp.tcp.statistics().timeouts, 2, "{recovery:?}");
    }
}
