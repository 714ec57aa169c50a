//! What the sender sends, and when: windows, Nagle, probes, timeouts, recovery.

use bentpipe_types::{Flags, Span, Time};

use crate::congestion::{AckSample, CongestionControl, CongestionSample, CustomFactory, Window};
use crate::testing::Single;
use crate::{
    AvoidanceKind, Config, CongestionControlKind, Events, IdleRestart, NewRenoKind, RecoveryKind,
    SlowStartKind, State,
};

/// Duplicate acknowledgments without SACK blocks, as these tests send them, tell NewReno something;
/// and the windows they expect are Reno's.
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

/// A sender with segments of 1000 bytes and a window of `window` of them, that has written plenty.
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

/// The peer has everything before this segment.
fn acknowledge(tcp: &mut Single, segment: u32) {
    tcp.ack(1 + 1000 * segment, 65_535);
}

fn duplicate(tcp: &mut Single, segment: u32, times: u32) {
    for _ in 0..times {
        acknowledge(tcp, segment);
    }
}

#[test]
fn initial_window_and_slow_start_by_bytes() {
    let mut tcp = sender(10, newreno());
    assert_eq!(tcp.sent_ranges(), segments(0..10));
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(10..14));
    assert_eq!(tcp.tcp.congestion_window(), 12_000);
    assert_eq!(tcp.tcp.in_flight(), 12_000);
}

#[test]
fn slow_start_by_acknowledgments_and_the_threshold() {
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
    // Congestion avoidance: four acknowledgments for a segment
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
        // The peer's window is the limit: up to twice what is outstanding, in slow start.
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
fn a_send_buffer_that_is_full_says_when_it_is_not() {
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
    assert_eq!(tcp.tcp.take_events(), Events::NONE, "nobody waits");
}

#[test]
fn nagle_holds_small_after_small() {
    for (nagle, after) in [(true, vec![]), (false, vec![(101, 100)])] {
        let mut tcp = Single::established(&Config { nagle, ..newreno() }, 65_535);
        tcp.write(100);
        assert_eq!(tcp.sent_ranges(), [(1, 100)], "nothing before it");
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
fn minshall_does_not_hold_the_end_of_a_transfer() {
    let mut tcp = Single::established(&newreno(), 65_535);
    tcp.write(2000);
    assert_eq!(tcp.sent_ranges(), [(1, 1448), (1449, 552)]);
}

#[test]
fn closing_pushes_what_nagle_holds() {
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
    // Everything acknowledged, and a little room.
    tcp.ack(7241, 600);
    assert!(tcp.sent().is_empty());
    // Override: after a while even that is used.
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
fn zero_windows_are_probed_for_as_long_as_there_is_an_answer() {
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
        tcp.ack(2897, 0); // still closed
    }
    assert!(gaps.windows(2).all(|w| w[1] >= w[0]), "{gaps:?}");
    assert_eq!(gaps[39], Span::from_secs(120));
    assert_eq!(tcp.tcp.statistics().window_probes, 40);
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 0);
    // The probe's byte was taken, and the window opens.
    tcp.ack(2898, 4000);
    assert_eq!(tcp.sent_ranges(), [(2898, 1448), (4346, 1448)]);
}

#[test]
fn probes_without_answer_are_given_up() {
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
    tcp.ack(1449, 0); // taken back
    tcp.wait(Span::from_millis(300));
    assert_eq!(tcp.sent_ranges(), [(1449, 1)]);
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
    tcp.ack(1449, 10_000);
    assert_eq!(
        tcp.sent_ranges(),
        [(1449, 1448), (2897, 1448), (4345, 656)],
        "and then sent again"
    );
}

#[test]
fn a_window_taken_back_never_makes_anything_negative() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    for window in [3, 0, 20_000, 1, 65_535] {
        tcp.ack(1001, window);
        tcp.wait(Span::from_millis(1));
        assert!(tcp.tcp.in_flight() <= 1_000_000);
    }
}

#[test]
fn timeouts_go_back_and_back_off() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    tcp.wait(Span::from_millis(250));
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.congestion_window(), 1000);
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    assert_eq!(tcp.tcp.rto(), Span::from_nanos(400_000_002));
    // Again: the threshold stays (RFC 5681 section 3.1).
    tcp.wait(Span::from_millis(400));
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    assert_eq!(tcp.tcp.statistics().timeouts, 2);
    // Go-back-N in slow start, skipping nothing.
    acknowledge(&mut tcp, 1);
    assert_eq!(tcp.sent_ranges(), segments(1..3));
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(3..5));
    // What had arrived is acknowledged at once; sending goes on behind it, and the window opens by
    // one segment only (RFC 3465 section 2.3).
    acknowledge(&mut tcp, 10);
    assert_eq!(tcp.sent_ranges(), segments(10..14));
    assert_eq!(tcp.tcp.statistics().segments_retransmitted, 6);
    // RFC 6298 section 5.7 and Karn: no sample yet, so the timeout stays backed off.
    assert!(tcp.tcp.rto() > Span::from_millis(700));
    acknowledge(&mut tcp, 11);
    assert!(tcp.tcp.rto() < Span::from_secs(3));
}

#[test]
fn a_silent_peer_is_given_up_after_fifteen_timeouts() {
    let mut tcp = sender(10, newreno());
    tcp.wait(Span::from_secs(3600));
    assert_eq!(tcp.tcp.state(), State::Closed);
    assert_eq!(tcp.tcp.statistics().timeouts, 15);
    assert_eq!(tcp.tcp.take_events(), Events::CLOSED | Events::TIMED_OUT);
    assert_eq!(tcp.tcp.next_deadline(), None);
}

#[test]
fn limited_transmit_sends_one_for_each_of_two_duplicates() {
    for (limited, expected) in [(true, segments(10..12)), (false, vec![])] {
        let mut tcp = sender(
            10,
            Config {
                limited_transmit: limited,
                ..newreno()
            },
        );
        tcp.sent();
        duplicate(&mut tcp, 0, 2);
        assert_eq!(tcp.sent_ranges(), expected);
        assert_eq!(tcp.tcp.congestion_window(), 10_000);
        // The third: FlightSize doesn't count them.
        duplicate(&mut tcp, 0, 1);
        assert_eq!(tcp.sent_ranges(), segments(0..1));
        assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    }
}

fn recovering(recovery: RecoveryKind) -> Single {
    recovering_with(Config {
        recovery,
        ..newreno()
    })
}

fn recovering_with(config: Config) -> Single {
    let mut tcp = sender(
        10,
        Config {
            limited_transmit: false,
            ..config
        },
    );
    tcp.sent();
    duplicate(&mut tcp, 0, 3);
    assert_eq!(tcp.sent_ranges(), segments(0..1), "fast retransmit");
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    // RFC 5681 section 3.2 step 4: inflated to ssthresh + 3, and one for each duplicate more
    assert_eq!(tcp.tcp.in_flight(), 7000);
    duplicate(&mut tcp, 0, 3);
    assert_eq!(tcp.sent_ranges(), segments(10..11), "5 + 6 segments");
    duplicate(&mut tcp, 0, 2);
    assert_eq!(tcp.sent_ranges(), segments(11..13));
    tcp
}

#[test]
fn reno_recovery_ends_with_the_first_new_acknowledgment() {
    let mut tcp = recovering(RecoveryKind::Reno);
    acknowledge(&mut tcp, 5); // partial: something else is missing
    assert!(!tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    assert!(tcp.sent().is_empty(), "eight outstanding, five allowed");
    // Three more duplicates: another fast retransmit, another halving.
    duplicate(&mut tcp, 5, 3);
    assert_eq!(tcp.sent_ranges(), segments(5..6));
    assert_eq!(
        tcp.tcp.slow_start_threshold(),
        2500,
        "of five, not of eight"
    );
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 2);
    // So with a timeout instead.
    let mut tcp = recovering(RecoveryKind::Reno);
    acknowledge(&mut tcp, 5);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 2500);
}

#[test]
fn newreno_sends_the_next_hole_on_a_partial_acknowledgment() {
    let mut tcp = recovering(RecoveryKind::NewReno);
    acknowledge(&mut tcp, 5);
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.sent_ranges()[0], at(5));
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    // Full: everything that was outstanding when it began.
    acknowledge(&mut tcp, 10);
    assert!(!tcp.tcp.is_recovering());
    assert!(tcp.tcp.congestion_window() <= 5000);
    // Not again for the same window of data (RFC 6582 section 3.2 step 2).
    duplicate(&mut tcp, 10, 3);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
    acknowledge(&mut tcp, 11);
    tcp.sent();
    duplicate(&mut tcp, 11, 3);
    assert_eq!(tcp.sent_ranges()[0], at(11));
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 2);
}

#[test]
fn rfc5681_a_timeout_in_recovery_leaves_no_more_than_half_of_what_is_outstanding() {
    // Half of the thirteen that are outstanding would be more than fast recovery has left.
    let mut tcp = recovering(RecoveryKind::NewReno);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    // Late in a recovery it is less; in Linux, the threshold stays.
    for (linux, expected) in [(false, 2500), (true, 5000)] {
        let mut config = newreno();
        config.habits.keeps_threshold_in_recovery = linux;
        let mut tcp = recovering_with(config);
        acknowledge(&mut tcp, 9);
        assert_eq!(tcp.sent_ranges(), [at(9), at(13)]);
        assert!(tcp.tcp.is_recovering());
        tcp.wait(Span::from_secs(1));
        assert!(tcp.tcp.statistics().timeouts > 0);
        assert_eq!(tcp.tcp.slow_start_threshold(), expected);
    }
}

/// What has just gone again is given a whole timeout to be acknowledged, as in ns-2, BSD and Linux.
#[test]
fn a_fast_retransmission_restarts_the_timer() {
    for recovery in [RecoveryKind::Reno, RecoveryKind::NewReno] {
        let mut tcp = sender(
            10,
            Config {
                recovery,
                ..newreno()
            },
        );
        tcp.sent();
        let nearly = tcp.tcp.rto() - Span::from_millis(1);
        tcp.wait(nearly);
        duplicate(&mut tcp, 0, 3);
        assert!(tcp.sent_ranges().contains(&at(0)), "{recovery:?}");
        tcp.wait(nearly);
        assert_eq!(tcp.tcp.statistics().timeouts, 0, "{recovery:?}");
        tcp.wait(Span::from_millis(2));
        assert_eq!(tcp.tcp.statistics().timeouts, 1, "{recovery:?}");
    }
}

#[test]
fn old_data_sent_again_causes_no_fast_retransmit() {
    for recovery in [RecoveryKind::Reno, RecoveryKind::NewReno] {
        let mut tcp = sender(
            10,
            Config {
                recovery,
                ..newreno()
            },
        );
        tcp.wait(Span::from_millis(250));
        tcp.sent();
        acknowledge(&mut tcp, 4);
        tcp.sent();
        duplicate(&mut tcp, 4, 5);
        assert!(tcp.sent().is_empty(), "{recovery:?}");
        assert_eq!(tcp.tcp.statistics().fast_recoveries, 0);
    }
}

#[test]
fn impatient_and_slow_but_steady() {
    for (impatient, timeouts) in [(true, 1), (false, 0)] {
        let mut tcp = sender(
            10,
            Config {
                newreno: NewRenoKind::ALL[usize::from(!impatient)],
                ..newreno()
            },
        );
        duplicate(&mut tcp, 0, 3);
        for segment in [2, 4, 6] {
            tcp.wait(Span::from_millis(90));
            acknowledge(&mut tcp, segment);
        }
        tcp.wait(Span::from_millis(120));
        assert_eq!(tcp.tcp.statistics().timeouts, timeouts);
    }
}

#[test]
fn window_updates_and_data_are_no_duplicates() {
    let mut tcp = sender(10, newreno());
    tcp.sent();
    for n in 0..10 {
        tcp.ack(1, 60_000 + n); // another window each time
    }
    tcp.data(1, 100);
    tcp.data(101, 100);
    tcp.data(201, 100);
    assert_eq!(tcp.tcp.statistics().duplicate_acks, 0);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 0);
}

/// A window rule of a user's own, and a bad one.
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
fn whatever_a_custom_rule_says_there_is_a_segment_of_window_and_an_end_to_it() {
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
            "never asleep with data to send"
        );
    }
    assert_eq!(tcp.tcp.acknowledged_offset(), 299_000);
}

#[test]
fn idle_connections_start_again() {
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
fn in_linux_a_window_decays_by_whole_segments() {
    let config = Config {
        mss: 1000,
        timestamps: false,
        initial_window: 3,
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    };
    let mut tcp = answered_after(Span::from_millis(100), &config, 65_535, 0);
    tcp.write(1000);
    tcp.wait(Span::from_millis(100));
    tcp.ack(1001, 65_535);
    let rto = tcp.tcp.rto();
    tcp.wait(rto * 3 / 2);
    tcp.sent();
    // 21 segments, and some of another: tcp_cwnd_restart has 10, and tcp_current_ssthresh 10 and 5.
    tcp.tcp.sender.congestion.restart(21_700, 5000);
    tcp.write(15_000);
    assert_eq!(tcp.tcp.slow_start_threshold(), 15_000);
    assert_eq!(tcp.tcp.congestion_window(), 10_000);
    assert_eq!(tcp.sent_ranges().len(), 10);
}

#[test]
fn a_pure_acknowledgment_takes_the_highest_sequence_number() {
    let mut tcp = sender(10, newreno());
    tcp.wait(Span::from_millis(250)); // a timeout: SND.NXT is back
    tcp.sent();
    tcp.data(101, 100); // ahead: acknowledged at once
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.sequence - tcp.ours, 10_001);
}

/// Its SYN was answered after so long, by a peer of the same segments with this window and scale, and SACK.
fn answered_after(rtt: Span, config: &Config, window: u16, scale: u8) -> Single {
    let mut tcp = Single::connect(config);
    tcp.sent();
    tcp.wait(rtt);
    tcp.syn_ack(
        window,
        bentpipe_types::SynOptions {
            maximum_segment_size: Some(config.mss),
            window_scale: Some(scale),
            sack_permitted: true,
            ..Default::default()
        },
    );
    tcp
}

/// With a round trip of 50 ms, a window of 150 segments of which all are outstanding, and plenty to send:
/// three leave at once (1.2 windows a round trip, for 1/1024 s).
fn as_linux_with_a_full_window() -> Single {
    let mut config = Config {
        mss: 1000,
        initial_window: 150,
        initial_slow_start_threshold: Some(150_000),
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    };
    config.slow_start = SlowStartKind::AppropriateByteCounting {
        limit_segments: u32::MAX,
    };
    config.send_sizes = None;
    config.timestamps = false;
    let mut tcp = answered_after(Span::from_millis(50), &config, 65_535, 7);
    tcp.sent();
    // The window that follows is scaled.
    tcp.ack(1, 65_535);
    tcp.write(1_000_000);
    assert_eq!(tcp.sent_ranges(), segments(0..150));
    tcp
}

#[test]
fn what_could_leave_waits_for_the_next_acknowledgment_if_more_leaves_then() {
    // tcp_tso_should_defer
    let mut tcp = as_linux_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // Nothing was sent for a millisecond: all that may leave leaves.
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(150..152));
    // Then two wait for a third, and a fourth for two more.
    let mut sent = Vec::new();
    for acknowledged in [4, 6, 8, 10] {
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, acknowledged);
        sent.push(tcp.sent_ranges().len());
    }
    assert_eq!(sent, [0, 3, 3, 0]);
    // What waited leaves when the acknowledgments have stopped for a while.
    tcp.wait(Span::from_millis(2));
    acknowledge(&mut tcp, 11);
    assert_eq!(tcp.sent_ranges(), segments(158..161));
}

#[test]
fn nothing_waits_for_an_acknowledgment_that_is_not_due() {
    // Linux 6.18: the oldest segment's acknowledgment is due a smoothed round trip, 50 ms, after it left.
    // (What acknowledges before that is a surprise.)
    for since_it_left in [10, 48] {
        let mut tcp = as_linux_with_a_full_window();
        tcp.wait(Span::from_millis(since_it_left));
        acknowledge(&mut tcp, 2);
        tcp.sent_ranges();
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, 4);
        assert_eq!(tcp.sent_ranges().len(), 2, "{since_it_left} ms");
    }
}

#[test]
fn after_a_silence_one_buffer_leaves_and_what_is_less_than_another_waits() {
    let mut tcp = as_linux_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // Three leave at once; of the other two the sender has just sent something.
    acknowledge(&mut tcp, 5);
    assert_eq!(tcp.sent_ranges(), segments(150..153));
}

#[test]
fn a_buffer_ends_where_the_peers_window_does() {
    // tcp_mss_split_point: of a window of 5 segments and 456 bytes, two and two leave, and then one and the 456 bytes.
    // Where two and two are all whole ones, what is less than another waits.
    for (window, ends) in [(5 * 1448 + 456, 456), (4 * 1448 + 456, 1448)] {
        let mut tcp = linux_reno(window);
        tcp.write(1 << 20);
        let sent = tcp.sent_ranges();
        assert_eq!(sent.last().unwrap().1, ends, "{window}");
        // A second short segment waits for the first (Nagle's algorithm).
        tcp.wait(Span::from_millis(100));
        tcp.ack(1 + 1448, window - 1000);
        let more: Vec<_> = tcp.sent_ranges().iter().map(|sent| sent.1).collect();
        assert!(ends == 1448 || more.is_empty(), "{more:?}");
    }
}

#[test]
fn a_paced_writer_counts_on_what_leaves_at_once() {
    let mut config = Config {
        send_sizes: Some(crate::config::BufferSizes {
            most: 65_536,
            ..crate::config::BufferSizes::SEND
        }),
        ..as_linux_reno()
    };
    config.congestion_control = CongestionControlKind::Bbr1;
    let mut tcp = answered_after(Span::from_millis(100), &config, 65_160, 10);
    // Ten one by one, and two buffers of 22.
    assert_eq!(tcp.write(1 << 20), 54 * 1448);
    tcp.sent();
    // The pacer's time has long come when there is room again: a buffer leaves at once, and one more is written.
    let paced = tcp.tcp.sender.room_in_send_buffer(Time::ZERO);
    let now = tcp.world.now;
    assert_eq!(tcp.tcp.sender.room_in_send_buffer(now), paced);
    for una in 1..=54 {
        tcp.wait(Span::from_millis(50));
        tcp.ack(1 + 1448 * una, 79);
        tcp.sent();
    }
    tcp.wait(Span::from_millis(100));
    let now = tcp.world.now;
    let paced = tcp.tcp.sender.room_in_send_buffer(Time::ZERO);
    assert!(tcp.tcp.sender.room_in_send_buffer(now) > paced);
}

fn as_linux_reno() -> Config {
    Config {
        mss: 1448,
        timestamps: false,
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    }
}

/// After a handshake in which the peer offered `window` bytes, and does not scale its windows.
fn linux_reno(window: u16) -> Single {
    answered_after(Span::from_millis(100), &as_linux_reno(), window, 0)
}

/// What `ss` says of a kernel's sender (Linux 6.18.44 in slow start, 10 Mbit/s and 800 ms, tcp_wmem as it comes):
/// segments acknowledged, written, and sk_sndbuf at each write.
#[test]
fn a_writer_goes_on_where_linuxs_does() {
    const SEEN: [(u32, u64, u64); 4] = [
        (0, 32, 46_080),
        (12, 88, 101_376),
        (26, 143, 165_888),
        (58, 261, 313_344),
    ];
    let config = Config {
        mss: 1448,
        timestamps: false,
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::AppropriateByteCounting {
            limit_segments: u32::MAX,
        },
        ..Config::linux()
    };
    let mut tcp = answered_after(Span::from_millis(800), &config, 65_160, 10);
    // One by one, and, when the receiver's quick acknowledgments are used up, in pairs.
    let pairs = (26..=32).step_by(2);
    let acknowledged = (1..=24).chain(pairs).chain(33..=56).chain([58]);
    let mut seen = Vec::new();
    let mut written = 0;
    for una in [0].into_iter().chain(acknowledged) {
        match una {
            0 => (),
            1 | 11 | 32 => tcp.wait(Span::from_millis(770)),
            _ => tcp.wait(Span::from_micros(1_200)),
        }
        if una > 0 {
            // As the receiver's grows.
            let window = if una > 30 {
                (1448 * (2 * una + 12)) >> 10
            } else {
                79
            };
            tcp.ack(1 + 1448 * una, window as u16);
        }
        if una == 0 || tcp.tcp.take_events().has(Events::WRITABLE) {
            let room = tcp.tcp.sender.room_in_send_buffer(tcp.world.now);
            tcp.write(1 << 30);
            written += room / 1448;
            let sizing = tcp.tcp.sender.send.sizing.as_ref().unwrap();
            seen.push((una, written, sizing.buffer()));
        }
        tcp.sent();
    }
    assert_eq!(seen, SEEN);
}
