//! Scripted tests of recovery with SACK: RFC 6675, RFC 9937, RFC 8985, RFC 5682, undo.

use bentpipe_types::{Flags, SackBlock, SackBlocks, Span, SynOptions};

use crate::testing::Single;
use crate::{Config, CongestionControlKind, LinuxQuirks, RecoveryKind, SlowStartKind};

/// RFC 6675 without extensions.
fn rfc6675() -> Config {
    Config {
        recovery: RecoveryKind::Sack,
        proportional_rate_reduction: false,
        rack: false,
        tail_loss_probe: false,
        f_rto: false,
        undo: false,
        ..Config::default()
    }
}

/// A sender with segments of 1000 bytes, a window of `window` segments and a round-trip time of 100
/// ms, which has written `written` segments.
fn sender(window: u32, written: u64, config: Config) -> Single {
    let config = Config {
        mss: 1000,
        initial_window: window,
        timestamps: false,
        window_scaling: false,
        // The scripts expect Reno's windows.
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::AppropriateByteCounting {
            limit_segments: u32::MAX,
        },
        ..config
    };
    let mut tcp = Single::connect(&config);
    tcp.wait(Span::from_millis(100));
    let options = SynOptions {
        maximum_segment_size: Some(1000),
        sack_permitted: config.sack,
        ..SynOptions::default()
    };
    tcp.syn_ack(65_535, options);
    tcp.sent();
    assert_eq!(tcp.tcp.smoothed_rtt(), Some(Span::from_millis(100)));
    tcp.write(1000 * written);
    tcp
}

fn at(segment: u32) -> (u32, u16) {
    (1 + 1000 * segment, 1000)
}

fn segments(range: std::ops::Range<u32>) -> Vec<(u32, u16)> {
    range.map(at).collect()
}

/// Processes an acknowledgment of everything before segment `ack`, with SACK blocks for these
/// ranges of segments.
fn sack(tcp: &mut Single, ack: u32, ranges: &[(u32, u32)]) {
    let mut packet = tcp.segment(1, at(ack).0, 0, Flags::ACK);
    packet.window = 65_535;
    let ours = tcp.ours;
    let blocks: SackBlocks = ranges
        .iter()
        .map(|&(first, after)| SackBlock {
            start: ours + at(first).0,
            end: ours + at(after).0,
        })
        .collect();
    let packet = tcp.world.packets.insert(packet);
    tcp.world.packets.set_sack_blocks(packet, &blocks);
    tcp.tcp.on_packet(packet, &mut tcp.world.cx());
}

#[test]
fn rfc6675_limited_transmit_and_the_third_duplicate() {
    let mut tcp = sender(10, 1000, rfc6675());
    assert_eq!(tcp.sent_ranges(), segments(0..10));
    sack(&mut tcp, 0, &[(1, 2)]);
    assert_eq!(tcp.sent_ranges(), segments(10..11), "step 3");
    sack(&mut tcp, 0, &[(1, 3)]);
    assert_eq!(tcp.sent_ranges(), segments(11..12));
    assert!(!tcp.tcp.is_recovering());
    sack(&mut tcp, 0, &[(1, 4)]);
    // RFC 6675 section 5 step 4: FlightSize without the data of limited transmit.
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    // Twelve outstanding, three SACKed, one lost and retransmitted.
    assert_eq!(tcp.tcp.in_flight(), 9000);
    // A duplicate without new SACK information does not count.
    sack(&mut tcp, 0, &[(1, 4)]);
    assert_eq!(tcp.tcp.in_flight(), 9000);
    for (after, flight) in [(5, 8000), (6, 7000), (7, 6000), (8, 5000)] {
        sack(&mut tcp, 0, &[(1, after)]);
        assert_eq!(tcp.tcp.in_flight(), flight);
        assert!(tcp.sent().is_empty());
    }
    sack(&mut tcp, 0, &[(1, 9)]);
    assert_eq!(tcp.sent_ranges(), segments(12..13), "step C");
    // The retransmission arrives. Recovery lasts until everything outstanding at its start is
    // acknowledged.
    sack(&mut tcp, 11, &[]);
    assert!(tcp.tcp.is_recovering());
    sack(&mut tcp, 12, &[]);
    assert!(!tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    assert_eq!(tcp.tcp.statistics().segments_retransmitted, 1);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
}

/// RFC 6675 section 5 step 2: detection works without some of the duplicates, because of their SACK
/// blocks.
#[test]
fn rfc6675_three_sacked_segments_in_one_block_trigger_recovery() {
    let mut tcp = sender(10, 1000, rfc6675());
    tcp.sent();
    sack(&mut tcp, 0, &[(4, 7)]);
    assert!(tcp.tcp.is_recovering());
    // Four lost, ten outstanding, three SACKed; the window is five.
    assert_eq!(tcp.sent_ranges(), segments(0..2));
    assert_eq!(tcp.tcp.in_flight(), 5000);
}

#[test]
fn rfc6675_next_segment_rule_3() {
    let mut tcp = sender(10, 10, rfc6675());
    tcp.sent();
    sack(&mut tcp, 0, &[(2, 3)]);
    sack(&mut tcp, 0, &[(4, 5), (2, 3)]);
    assert!(tcp.sent().is_empty(), "nothing new to send");
    sack(&mut tcp, 0, &[(6, 7), (4, 5), (2, 3)]);
    assert_eq!(
        tcp.sent_ranges(),
        segments(0..1),
        "three runs above 0 and 1"
    );
    sack(&mut tcp, 0, &[(8, 9), (6, 7), (4, 5)]);
    assert_eq!(tcp.sent_ranges(), [at(1)]);
    sack(&mut tcp, 0, &[(8, 10), (6, 7), (4, 5)]);
    assert_eq!(
        tcp.sent_ranges(),
        [at(3), at(5)],
        "more than two segments above 5"
    );
    // RFC 6675 section 4, NextSeg () rules 1 and 2 give nothing: 7 is not marked lost, but may be.
    sack(&mut tcp, 1, &[(8, 10), (6, 7), (4, 5)]);
    assert_eq!(tcp.sent_ranges(), [at(7)]);
}

#[test]
fn rfc6675_rescue_retransmission() {
    let mut tcp = sender(10, 10, rfc6675());
    tcp.sent();
    sack(&mut tcp, 0, &[(1, 7)]);
    // 0 is lost; 7, 8 and 9 may be, without any further evidence: the last one is retransmitted
    // once.
    assert_eq!(tcp.sent_ranges(), [at(0), at(9)]);
    sack(&mut tcp, 7, &[]);
    assert!(tcp.sent().is_empty());
    assert!(tcp.tcp.is_recovering());
    sack(&mut tcp, 7, &[(9, 10)]);
    sack(&mut tcp, 10, &[]);
    assert!(!tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
}

#[test]
fn fack_detects_losses_by_distance() {
    let config = Config {
        recovery: RecoveryKind::Fack,
        ..rfc6675()
    };
    let mut tcp = sender(10, 1000, config);
    tcp.sent();
    // Everything below the highest SACKed segment has left the network: awnd = 10 - 3.
    sack(&mut tcp, 0, &[(2, 3)]);
    assert_eq!(tcp.sent_ranges(), segments(10..13));
    assert!(!tcp.tcp.is_recovering());
    // snd.fack - snd.una = 4 segments.
    sack(&mut tcp, 0, &[(3, 4), (2, 3)]);
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 5000);
    assert_eq!(tcp.sent_ranges(), [at(0)]);
    // 13 sent, 4 below snd.fack, one retransmitted.
    assert_eq!(tcp.tcp.in_flight(), 10_000);
}

/// RFC 6937 section 4, the first example: 20 segments, the first is lost, the window is halved.
#[test]
fn rfc9937_sends_one_segment_per_two_delivered() {
    let config = Config {
        proportional_rate_reduction: true,
        ..rfc6675()
    };
    let mut tcp = sender(20, 1000, config);
    assert_eq!(tcp.sent_ranges(), segments(0..20));
    let mut sent = String::new();
    for ack in 1..=19 {
        sack(&mut tcp, 0, &[(1, ack + 1)]);
        for (position, _) in tcp.sent_ranges() {
            sent.push(if position == at(0).0 { 'R' } else { 'N' });
        }
        sent.push(' ');
    }
    assert_eq!(sent, "N N R  N  N  N  N  N  N  N   ");
    assert_eq!(tcp.tcp.in_flight(), 10_000, "equals the threshold");
    // At the end, the window is the threshold, and there is no burst.
    sack(&mut tcp, 20, &[]);
    sack(&mut tcp, 22, &[]);
    assert!(!tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.congestion_window(), 10_000);
    assert!(tcp.tcp.in_flight() <= 10_000);
}

/// RFC 9937 section 6.2: below the threshold, as much is sent as arrives, and one segment more for
/// a safe acknowledgment.
#[test]
fn rfc9937_compensates_heavy_loss() {
    let config = Config {
        proportional_rate_reduction: true,
        ..rfc6675()
    };
    let mut tcp = sender(20, 1000, config);
    tcp.sent();
    // Fifteen of twenty are lost: pipe is 2, the threshold 10.
    sack(&mut tcp, 0, &[(15, 18)]);
    assert_eq!(tcp.sent_ranges().len(), 3, "as many segments as arrived");
    sack(&mut tcp, 0, &[(15, 19)]);
    assert_eq!(tcp.sent_ranges(), [at(3)]);
    // It advances and reports no further loss: one segment more.
    sack(&mut tcp, 1, &[(15, 19)]);
    assert_eq!(tcp.sent_ranges(), [at(4), at(5)]);
}

/// RFC 8985 without other extensions.
fn rack() -> Config {
    Config {
        rack: true,
        ..rfc6675()
    }
}

#[test]
fn rfc8985_waits_a_quarter_of_a_round_trip_for_reordering() {
    let mut tcp = sender(10, 10, rack());
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(2, 3)]);
    assert!(!tcp.tcp.is_recovering());
    tcp.wait(Span::from_millis(24));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_millis(1));
    // The two segments sent before it are lost; the window has room for one.
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.scoreboard().lost(), 2000);
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.tcp.statistics().timeouts, 0);
}

#[test]
fn rfc8985_three_sacked_segments_suffice_without_reordering() {
    let mut tcp = sender(10, 10, rack());
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(1, 3)]);
    assert!(!tcp.tcp.is_recovering());
    sack(&mut tcp, 0, &[(1, 4)]);
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.sent_ranges(), [at(0)]);
}

#[test]
fn rfc8985_waits_after_observed_reordering() {
    let mut tcp = sender(10, 10, rack());
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(1, 2)]);
    sack(&mut tcp, 2, &[]); // late original
    sack(&mut tcp, 2, &[(3, 7)]);
    assert!(!tcp.tcp.is_recovering(), "four SACKed");
    tcp.wait(Span::from_millis(25));
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.sent_ranges(), [at(2)]);
}

#[test]
fn rfc8985_detects_a_lost_retransmission() {
    let mut tcp = sender(10, 1000, rack());
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(1, 9)]);
    // The retransmission, and new data after it.
    assert_eq!(tcp.sent_ranges()[0], at(0));
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(1, 10)]);
    assert!(tcp.sent_ranges().iter().all(|&segment| segment != at(0)));
    sack(&mut tcp, 0, &[(1, 11)]); // data sent after the retransmission
    assert_eq!(tcp.sent_ranges()[0], at(0));
    sack(&mut tcp, 11, &[]);
    assert!(!tcp.tcp.is_recovering());
    let counted = tcp.tcp.statistics();
    assert_eq!((counted.timeouts, counted.fast_recoveries), (0, 1));
    assert_eq!(counted.segments_retransmitted, 2);
}

#[test]
fn rfc8985_a_probe_turns_a_lost_tail_into_fast_recovery() {
    let config = Config {
        tail_loss_probe: true,
        ..rack()
    };
    let mut tcp = sender(10, 10, config);
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 7, &[]); // 7, 8 and 9 are lost
    tcp.wait(Span::from_millis(199));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_millis(1));
    assert_eq!(tcp.sent_ranges(), [at(9)], "after two round trips");
    assert_eq!(tcp.tcp.statistics().loss_probes, 1);
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 7, &[(9, 10)]);
    tcp.wait(Span::from_millis(25));
    assert_eq!(tcp.sent_ranges(), [at(7), at(8)]);
    sack(&mut tcp, 10, &[]);
    let counted = tcp.tcp.statistics();
    assert_eq!((counted.timeouts, counted.fast_recoveries), (0, 1));
}

/// In Linux, a segment retransmitted as a probe counts as the original transmission, sent later
/// (`__tcp_retransmit_skb`). Three segments remain in flight, so that fourteen may follow into a
/// window of seventeen.
#[test]
fn linux_probe_does_not_count_twice_in_flight() {
    for (probes_are_no_retransmissions, more) in [(false, 13), (true, 14)] {
        let config = Config {
            tail_loss_probe: true,
            linux_quirks: LinuxQuirks {
                recovery: crate::RecoveryQuirks {
                    probes_are_no_retransmissions,
                    ..crate::RecoveryQuirks::NONE
                },
                ..LinuxQuirks::NONE
            },
            ..rack()
        };
        let mut tcp = sender(10, 10, config);
        tcp.sent();
        tcp.wait(Span::from_millis(100));
        sack(&mut tcp, 7, &[]);
        tcp.wait(Span::from_millis(200));
        assert_eq!(tcp.sent_ranges(), [at(9)]);
        let retransmitted = tcp.tcp.info(tcp.world.now).retransmitted;
        assert_eq!(retransmitted, u64::from(!probes_are_no_retransmissions));
        tcp.write(20_000);
        assert_eq!(tcp.sent_ranges(), segments(10..10 + more));
        // The probe is lost, like the two segments before it, and all are retransmitted. It does
        // not count as a lost retransmission.
        tcp.wait(Span::from_millis(100));
        sack(&mut tcp, 7, &[(10, 10 + more)]);
        tcp.wait(Span::from_millis(25));
        let again = tcp.sent_ranges();
        assert_eq!(again[..3], segments(7..10));
        let counted = tcp.tcp.statistics();
        assert_eq!((counted.timeouts, counted.fast_recoveries), (0, 1));
    }
}

#[test]
fn rfc8985_a_probe_that_repairs_a_loss_counts_as_recovery() {
    let config = Config {
        tail_loss_probe: true,
        ..rack()
    };
    for twice in [false, true] {
        let mut tcp = sender(10, 10, config.clone());
        tcp.sent();
        tcp.wait(Span::from_millis(100));
        sack(&mut tcp, 9, &[]);
        tcp.wait(Span::from_millis(400)); // 200 ms more for a single segment
        assert_eq!(tcp.sent_ranges(), [at(9)]);
        if twice {
            // The original was only late: a D-SACK.
            sack(&mut tcp, 10, &[]);
            sack(&mut tcp, 10, &[(9, 10)]);
        } else {
            sack(&mut tcp, 10, &[]);
        }
        tcp.write(1000);
        sack(&mut tcp, 11, &[]);
        let counted = tcp.tcp.statistics();
        assert_eq!(counted.fast_recoveries, u64::from(!twice));
        assert_eq!(tcp.tcp.congestion_window() < 10_000, !twice);
        assert_eq!(counted.timeouts, 0);
    }
}

#[test]
fn rfc8985_a_probe_is_new_data_if_available() {
    let config = Config {
        tail_loss_probe: true,
        ..rack()
    };
    let mut tcp = sender(5, 1000, config);
    assert_eq!(tcp.sent_ranges(), segments(0..5), "the window is full");
    tcp.wait(Span::from_millis(200));
    assert_eq!(tcp.sent_ranges(), segments(5..6), "and one segment more");
    // Then the restarted retransmission timer.
    tcp.wait(Span::from_millis(299));
    assert!(tcp.sent().is_empty());
    tcp.wait(Span::from_millis(1));
    assert_eq!(tcp.sent_ranges(), segments(0..1));
    assert_eq!(tcp.tcp.statistics().timeouts, 1);
}

fn f_rto() -> Config {
    Config {
        f_rto: true,
        ..rfc6675()
    }
}

#[test]
fn rfc5682_a_spurious_timeout_is_undone() {
    let mut tcp = sender(10, 1000, f_rto());
    tcp.sent();
    tcp.wait(Span::from_millis(350));
    assert_eq!(tcp.sent_ranges(), segments(0..1), "step 1");
    assert_eq!(tcp.tcp.congestion_window(), 1000);
    // The late acknowledgment of the original.
    sack(&mut tcp, 1, &[]);
    assert_eq!(
        tcp.sent_ranges(),
        segments(10..12),
        "step 2b: two new segments"
    );
    sack(&mut tcp, 2, &[]);
    assert_eq!(tcp.tcp.congestion_window(), 10_000, "step 3b");
    assert_eq!(tcp.tcp.statistics().spurious, 1);
    assert_eq!(tcp.tcp.statistics().segments_retransmitted, 1);
    assert!(
        tcp.sent_ranges()
            .iter()
            .all(|&(position, _)| position > at(11).0)
    );
}

#[test]
fn rfc5682_a_genuine_timeout_is_recovered() {
    let mut tcp = sender(10, 1000, f_rto());
    tcp.sent();
    tcp.wait(Span::from_millis(350));
    tcp.sent();
    // Only the retransmission has arrived.
    sack(&mut tcp, 1, &[]);
    assert_eq!(tcp.sent_ranges(), segments(10..12));
    sack(&mut tcp, 1, &[(10, 11)]);
    assert_eq!(tcp.sent_ranges()[0], at(1), "step 3a");
    assert_eq!(tcp.tcp.statistics().spurious, 0);
    for segment in 2..=10 {
        sack(&mut tcp, segment, &[(10, 12)]);
    }
    sack(&mut tcp, 12, &[]);
    assert_eq!(tcp.tcp.statistics().segments_retransmitted, 10);
    assert_eq!(tcp.tcp.statistics().timeouts, 1);
}

#[test]
fn rfc5682_without_new_data_f_rto_is_skipped() {
    let mut tcp = sender(10, 10, f_rto());
    tcp.sent();
    tcp.wait(Span::from_millis(350));
    tcp.sent();
    sack(&mut tcp, 1, &[]);
    assert_eq!(tcp.sent_ranges(), segments(1..3));
}

#[test]
fn dsacks_for_every_retransmission_undo_the_reduction() {
    let config = Config {
        undo: true,
        ..rfc6675()
    };
    for all in [true, false] {
        let mut tcp = sender(10, 1000, config.clone());
        tcp.sent();
        sack(&mut tcp, 0, &[(2, 5)]); // 0 and 1 are only late
        sack(&mut tcp, 0, &[(2, 8)]);
        assert_eq!(tcp.sent_ranges()[..2], segments(0..2));
        assert_eq!(tcp.tcp.congestion_window(), 5000);
        sack(&mut tcp, 8, &[]);
        sack(&mut tcp, 8, &[(0, 1)]);
        assert_eq!(tcp.tcp.congestion_window(), 5000);
        if all {
            sack(&mut tcp, 8, &[(1, 2)]);
        }
        assert_eq!(tcp.tcp.statistics().spurious, u64::from(all));
        assert_eq!(tcp.tcp.congestion_window() == 10_000, all);
        assert_eq!(tcp.tcp.is_recovering(), !all);
    }
}

/// RFC 3708 section 3: duplicates created by the network are no retransmissions and allow no
/// conclusion about them (`tcp_dsack_seen` and `tcp_check_dsack` in Linux).
#[test]
fn network_duplicates_do_not_undo_window_reductions() {
    let config = Config {
        undo: true,
        ..rfc6675()
    };
    let recovered = || {
        let mut tcp = sender(10, 1000, config.clone());
        tcp.sent();
        sack(&mut tcp, 0, &[(2, 5)]);
        sack(&mut tcp, 0, &[(2, 8)]);
        assert_eq!(tcp.sent_ranges()[..2], segments(0..2));
        sack(&mut tcp, 8, &[]);
        tcp
    };
    // The duplicate acknowledges its original, which was sent once.
    let mut tcp = recovered();
    for segment in 9..=12 {
        sack(&mut tcp, segment, &[(segment - 1, segment)]);
        tcp.sent();
    }
    assert_eq!(tcp.tcp.statistics().spurious, 0);
    // The D-SACK arrives after the record of the original is gone. As many D-SACKs are accepted as
    // segments were retransmitted, and the two before have used these up.
    let mut tcp = recovered();
    for segment in 9..=10 {
        sack(&mut tcp, segment, &[(segment - 1, segment)]);
        sack(&mut tcp, segment, &[(segment - 1, segment)]);
    }
    assert_eq!(tcp.tcp.statistics().spurious, 0);
    // A duplicate of an original that is out of order.
    let mut tcp = recovered();
    for segment in 10..=13 {
        sack(&mut tcp, 8, &[(9, 10), (9, segment)]);
        tcp.sent();
    }
    assert_eq!(tcp.tcp.statistics().spurious, 0);
}

#[test]
fn without_negotiated_sack_newreno_is_used() {
    let config = Config {
        sack: false,
        ..Config::default()
    };
    let mut tcp = sender(10, 1000, config);
    tcp.sent();
    for _ in 0..3 {
        sack(&mut tcp, 0, &[(1, 4)]);
    }
    assert!(tcp.tcp.is_recovering());
    assert_eq!(tcp.sent_ranges(), [at(10), at(11), at(0)]);
    assert_eq!(tcp.tcp.scoreboard().sacked(), 0, "SACK was not negotiated");
}

#[test]
fn data_is_retransmitted_to_a_reneging_peer() {
    let mut tcp = sender(10, 10, Config::default());
    tcp.sent();
    tcp.wait(Span::from_millis(100));
    sack(&mut tcp, 0, &[(1, 10)]);
    assert_eq!(tcp.sent_ranges(), [at(0)]);
    sack(&mut tcp, 1, &[]); // the SACKed data is not acknowledged
    tcp.wait(Span::from_secs(5));
    assert_eq!(tcp.sent_ranges()[0], at(1));
    for segment in 2..=10 {
        sack(&mut tcp, segment, &[]);
    }
    assert_eq!(tcp.tcp.in_flight(), 0);
}

#[test]
fn a_window_probe_byte_is_retransmitted() {
    let mut tcp = sender(10, 10, Config::default());
    tcp.sent();
    tcp.ack(at(10).0, 0);
    tcp.write(5000);
    tcp.wait(Span::from_millis(350));
    assert_eq!(tcp.sent_ranges(), [(at(10).0, 1)]);
    tcp.ack(at(10).0, 0);
    tcp.wait(Span::from_secs(1));
    assert_eq!(tcp.sent_ranges(), [(at(10).0, 1)]);
    // The window opens: the byte that was not accepted is sent first, and the rest follows. The
    // short end waits for Nagle's algorithm.
    tcp.ack(at(10).0, 5000);
    let next = at(10).0;
    let full = (0..4).map(|n| (next + 1 + 1000 * n, 1000));
    let expected: Vec<_> = std::iter::once((next, 1)).chain(full).collect();
    assert_eq!(tcp.sent_ranges(), expected);
    tcp.ack(next + 4001, 5000);
    assert_eq!(tcp.sent_ranges(), [(next + 4001, 999)]);
}
