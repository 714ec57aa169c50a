//! Recovery without SACK: limited transmit, fast retransmit, Reno and NewReno.

use super::*;

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
        // The third duplicate: FlightSize excludes the data of limited transmit.
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
    // RFC 5681 section 3.2 step 4: inflated to ssthresh + 3, and by one for each further duplicate.
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
    acknowledge(&mut tcp, 5); // partial: more data is missing
    assert!(!tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    assert!(tcp.sent().is_empty(), "eight outstanding, five allowed");
    // Three more duplicates: another fast retransmit and another reduction.
    duplicate(&mut tcp, 5, 3);
    assert_eq!(tcp.sent_ranges(), segments(5..6));
    assert_eq!(
        tcp.tcp.slow_start_threshold(),
        2500,
        "half of five segments, not of eight"
    );
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 2);
    // The same with a timeout instead.
    let mut tcp = recovering(RecoveryKind::Reno);
    acknowledge(&mut tcp, 5);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 2500);
}

#[test]
fn newreno_retransmits_the_next_gap_on_a_partial_acknowledgment() {
    let mut tcp = recovering(RecoveryKind::NewReno);
    acknowledge(&mut tcp, 5);
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.sent_ranges()[0], at(5));
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    // RFC 6582 section 3.2 step 3, full acknowledgment: everything outstanding at the start of
    // recovery.
    acknowledge(&mut tcp, 10);
    assert!(!tcp.tcp.is_recovering());
    assert!(tcp.tcp.congestion_window() <= 5000);
    // RFC 6582 section 3.2 step 2: not again for the same window of data.
    duplicate(&mut tcp, 10, 3);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
    acknowledge(&mut tcp, 11);
    tcp.sent();
    duplicate(&mut tcp, 11, 3);
    assert_eq!(tcp.sent_ranges()[0], at(11));
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 2);
}

#[test]
fn rfc5681_a_timeout_in_recovery_limits_the_threshold_to_half_of_the_outstanding_data() {
    // Half of the thirteen outstanding segments would be more than the threshold of fast recovery.
    let mut tcp = recovering(RecoveryKind::NewReno);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.tcp.slow_start_threshold(), 5000);
    // Late in recovery half is less; in Linux, the threshold stays.
    for (linux, expected) in [(false, 2500), (true, 5000)] {
        let mut config = newreno();
        config.linux_quirks.window.keeps_threshold_in_recovery = linux;
        let mut tcp = recovering_with(config);
        acknowledge(&mut tcp, 9);
        assert_eq!(tcp.sent_ranges(), [at(9), at(13)]);
        assert!(tcp.tcp.is_recovering());
        tcp.wait(Span::from_secs(1));
        assert!(tcp.tcp.statistics().timeouts > 0);
        assert_eq!(tcp.tcp.slow_start_threshold(), expected);
    }
}

/// Returns a sender with a window of ten segments and this recovery.
fn ten_segments(recovery: RecoveryKind) -> Single {
    let config = Config {
        recovery,
        ..newreno()
    };
    sender(10, config)
}

/// A retransmission restarts the timer, as in ns-2, BSD and Linux.
#[test]
fn a_fast_retransmission_restarts_the_timer() {
    for recovery in [RecoveryKind::Reno, RecoveryKind::NewReno] {
        let mut tcp = ten_segments(recovery);
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
fn duplicates_after_a_timeout_cause_no_fast_retransmit() {
    for recovery in [RecoveryKind::Reno, RecoveryKind::NewReno] {
        let mut tcp = ten_segments(recovery);
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
fn rfc6582_impatient_and_slow_but_steady_timers() {
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
