//! Tests of ICMP errors, path MTU discovery and black hole detection.

use bentpipe_types::{Flags, IcmpError, IpVersion, Span, SynOptions, Time};

use crate::testing::{A, B, Hostility, Pair, Single};
use crate::{Config, Events, LinuxQuirks, PathLimit, PathMtuDiscovery, RecoveryKind, State};

const EVERY_RECOVERY: [RecoveryKind; 4] = [
    RecoveryKind::Reno,
    RecoveryKind::NewReno,
    RecoveryKind::Sack,
    RecoveryKind::Fack,
];

fn icmp(tcp: &mut Single, error: IcmpError, sequence: u32) {
    let sequence = tcp.ours + sequence;
    tcp.tcp.on_icmp(error, sequence, &mut tcp.world.cx());
}

fn too_big(mtu: u32) -> IcmpError {
    IcmpError::TooBig { mtu }
}

fn sender(recovery: RecoveryKind) -> Single {
    let config = Config {
        recovery,
        limited_transmit: false,
        nagle: false,
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.write(10 * 1448);
    assert_eq!(tcp.sent().len(), 10);
    tcp
}

/// `tcp_req_err` in Linux, and RFC 5927 section 4.1: only the SYN+ACK is outstanding.
#[test]
fn only_an_error_about_the_syn_ack_ends_a_passive_handshake() {
    let linux = Config {
        linux_quirks: LinuxQuirks::ALL,
        ..Config::default()
    };
    let mut tcp = Single::accept(&linux, SynOptions::default());
    tcp.sent();
    // It lies before the window.
    tcp.arrives(tcp.segment(0_u32.wrapping_sub(70_000), 1, 0, Flags::ACK));
    let answer = tcp.sent();
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].packet.sequence, tcp.ours + 1);
    icmp(&mut tcp, IcmpError::HostUnreachable, 1);
    assert_eq!(tcp.tcp.state(), State::SynReceived);
    assert_eq!(tcp.tcp.statistics().icmp_ignored, 1);
    icmp(&mut tcp, IcmpError::HostUnreachable, 0);
    assert_eq!(tcp.tcp.state(), State::Closed);
}

#[test]
fn rfc1191_too_long_segments_are_retransmitted_at_once_without_congestion() {
    for recovery in EVERY_RECOVERY {
        let mut tcp = sender(recovery);
        let threshold = tcp.tcp.slow_start_threshold();
        icmp(&mut tcp, too_big(1000), 1);
        let sent = tcp.sent_ranges();
        // The congestion window keeps its number of segments, which are shorter; with SACK, one
        // segment becomes two.
        let selective = matches!(recovery, RecoveryKind::Sack | RecoveryKind::Fack);
        assert_eq!(sent.len(), if selective { 12 } else { 10 }, "{recovery:?}");
        for (n, (sequence, length)) in sent.iter().enumerate() {
            let expected = match recovery {
                RecoveryKind::Sack | RecoveryKind::Fack if n % 2 == 1 => {
                    (n as u32 / 2 * 1448 + 961, 488)
                }
                RecoveryKind::Sack | RecoveryKind::Fack => (n as u32 / 2 * 1448 + 1, 960),
                _ => (n as u32 * 960 + 1, 960),
            };
            assert_eq!((*sequence, *length), expected, "{recovery:?} {n}");
        }
        assert_eq!(tcp.tcp.path_mtu(), 1000);
        assert_eq!(tcp.tcp.segment_size(), 960);
        assert_eq!(tcp.tcp.congestion_window(), 9600);
        assert_eq!(tcp.tcp.slow_start_threshold(), threshold);
        let statistics = tcp.tcp.statistics();
        assert_eq!((statistics.timeouts, statistics.fast_recoveries), (0, 0));
        // The errors for the other nine segments change nothing.
        for n in 1..10 {
            icmp(&mut tcp, too_big(1000), 1 + n * 1448);
        }
        assert!(tcp.sent().is_empty());
        // All of it arrives.
        tcp.ack(14_481, 65_535);
        assert_eq!(tcp.tcp.in_flight(), 0);
        tcp.write(2000);
        assert_eq!(
            tcp.sent_ranges(),
            [(14_481, 960), (15_441, 960), (16_401, 80)]
        );
    }
}

#[test]
fn rfc5927_only_errors_about_outstanding_data_count() {
    let mut tcp = sender(RecoveryKind::Sack);
    tcp.ack(1449, 65_535);
    tcp.sent();
    for sequence in [1, 1448, 14_482, 1 << 31] {
        icmp(&mut tcp, too_big(576), sequence);
    }
    assert_eq!(tcp.tcp.statistics().icmp_ignored, 4);
    // An error with the same or a larger MTU has no effect.
    icmp(&mut tcp, too_big(1488), 1449);
    icmp(&mut tcp, too_big(65_535), 1449);
    assert_eq!(tcp.tcp.segment_size(), 1448);
    assert!(tcp.sent().is_empty());
    icmp(&mut tcp, too_big(576), 1449);
    assert_eq!(tcp.tcp.segment_size(), 536);
}

#[test]
fn rfc1191_without_an_mtu_in_the_error_the_next_plateau_is_used() {
    let mut tcp = sender(RecoveryKind::Sack);
    for mtu in [1006, 508, 296, 88, 88] {
        icmp(&mut tcp, too_big(0), 1);
        // The minimum segment size is the smallest that a peer may request.
        assert_eq!(tcp.tcp.path_mtu(), mtu);
    }
    assert_eq!(tcp.tcp.segment_size(), 48);
}

#[test]
fn rfc8201_path_mtu_is_at_least_1280_bytes() {
    let config = Config {
        ip_version: IpVersion::V6,
        mss: 1428,
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.write(5000);
    icmp(&mut tcp, too_big(600), 1);
    assert_eq!(tcp.tcp.path_mtu(), 1280);
}

#[test]
fn rfc1191_a_larger_mtu_is_tried_after_ten_minutes() {
    let mut tcp = sender(RecoveryKind::Sack);
    icmp(&mut tcp, too_big(1000), 1);
    tcp.ack(14_481, 65_535);
    tcp.sent();
    tcp.wait(Span::from_secs(599));
    tcp.write(1500);
    assert_eq!(tcp.sent_ranges(), [(14_481, 960), (15_441, 540)]);
    tcp.ack(15_981, 65_535);
    tcp.wait(Span::from_secs(1));
    tcp.write(1500);
    assert_eq!(tcp.sent_ranges(), [(15_981, 1448), (17_429, 52)]);
}

#[test]
fn without_discovery_errors_are_ignored() {
    let config = Config {
        path_mtu_discovery: PathMtuDiscovery::Off,
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.write(5000);
    tcp.sent();
    icmp(&mut tcp, too_big(600), 1);
    tcp.tcp.limit_path(limit(600, 600));
    assert_eq!(tcp.tcp.segment_size(), 1448);
    assert!(tcp.sent().is_empty());
}

fn limit(mtu: u32, seconds: u64) -> PathLimit {
    PathLimit {
        mtu,
        until: Time::ZERO + Span::from_secs(seconds),
    }
}

#[test]
fn rfc8201_a_limit_of_another_connection_applies_to_new_segments() {
    for recovery in EVERY_RECOVERY {
        let mut tcp = sender(recovery);
        tcp.tcp.limit_path(limit(1000, 600));
        assert!(tcp.sent().is_empty(), "outstanding data may arrive");
        assert_eq!(tcp.tcp.segment_size(), 960);
        assert_eq!(tcp.tcp.congestion_window(), 9600);
        assert_eq!(tcp.tcp.statistics().path_mtu_reductions, 1);
        // The outstanding data has arrived.
        tcp.ack(14_481, 65_535);
        tcp.write(2000);
        assert_eq!(
            tcp.sent_ranges(),
            [(14_481, 960), (15_441, 960), (16_401, 80)]
        );
        tcp.ack(16_481, 65_535);
        // A known lower limit is kept when another connection received a higher one, and expires
        // with the later of both.
        tcp.tcp.limit_path(limit(1200, 700));
        assert_eq!(tcp.tcp.segment_size(), 960);
        tcp.tcp.limit_path(limit(1000, 800));
        tcp.wait(Span::from_secs(798));
        tcp.write(1500);
        assert_eq!(tcp.sent_ranges(), [(16_481, 960), (17_441, 540)]);
        tcp.ack(17_981, 65_535);
        tcp.wait(Span::from_secs(3));
        tcp.write(1500);
        assert_eq!(tcp.sent_ranges(), [(17_981, 1448), (19_429, 52)]);
    }
}

/// A congestion window of one short segment admits a long one when segments become longer again.
#[test]
fn window_is_at_least_one_segment_after_the_mtu_grows() {
    let config = Config {
        initial_window: 1,
        ..Config::default()
    };
    let mut tcp = Single::established(&config, 65_535);
    tcp.tcp.limit_path(limit(68, 600));
    assert_eq!(
        (tcp.tcp.segment_size(), tcp.tcp.congestion_window()),
        (48, 48)
    );
    tcp.wait(Span::from_secs(600));
    tcp.write(5_000);
    assert_eq!(tcp.sent_ranges(), [(1, 1448)]);
}

/// A router reports each of them as too long: they are retransmitted as without a previous limit.
#[test]
fn rfc8201_outstanding_data_is_retransmitted_if_it_was_too_long() {
    for recovery in EVERY_RECOVERY {
        let [told, first] = [true, false].map(|told| {
            let mut tcp = sender(recovery);
            if told {
                tcp.tcp.limit_path(limit(1000, 600));
                // An error with a larger MTU is no reason to retransmit.
                icmp(&mut tcp, too_big(1500), 1);
                assert!(tcp.sent().is_empty());
            }
            for n in 0..10 {
                icmp(&mut tcp, too_big(1000), 1 + n * 1448);
            }
            (tcp.sent_ranges(), tcp.tcp.congestion_window())
        });
        assert_eq!(told, first, "{recovery:?}");
    }
}

#[test]
fn rfc8201_a_new_connection_uses_the_limit_and_announces_its_own_mss() {
    for discovery in [
        PathMtuDiscovery::Icmp,
        PathMtuDiscovery::BlackHole,
        PathMtuDiscovery::Probe,
    ] {
        let config = Config {
            path_mtu_discovery: discovery,
            base_mss: 1400,
            mss: 1460,
            timestamps: false,
            nagle: false,
            ..Config::default()
        };
        let options = SynOptions {
            maximum_segment_size: Some(1460),
            ..SynOptions::default()
        };
        let mut client = Single::connect(&config);
        client.tcp.limit_path(limit(1000, 600));
        client.syn_ack(65_535, options);
        let mut server = Single::accept(&config, options);
        server.tcp.limit_path(limit(1000, 600));
        server.ack(1, 65_535);
        for tcp in [&mut client, &mut server] {
            let syn = tcp.sent().remove(0);
            let announced = syn.options.maximum_segment_size;
            assert_eq!(announced, Some(1460), "{discovery:?}");
            tcp.write(2000);
            let lengths: Vec<_> = tcp.sent_ranges().iter().map(|range| range.1).collect();
            assert_eq!(lengths, [960, 960, 80], "{discovery:?}");
            assert_eq!(tcp.tcp.congestion_window(), 10 * 960);
            assert_eq!(tcp.tcp.statistics().path_mtu_reductions, 0);
            tcp.ack(2001, 65_535);
            // The search does not exceed the limit.
            tcp.write(40_000);
            let sent = tcp.sent_ranges();
            assert!(sent.iter().all(|range| range.1 <= 960), "{sent:?}");
            tcp.ack(2001 + 960 * 10, 65_535);
            tcp.wait(Span::from_secs(600));
            tcp.sent();
        }
    }
}

fn path_with_mtu(mtu: u32, speaks: bool, loss: f64) -> Hostility {
    Hostility {
        mtu,
        speaks,
        loss,
        ..Hostility::default()
    }
}

fn transfer(config: &Config, network: Hostility, bytes: u64, seed: u64) -> Pair {
    let mut pair = Pair::new(config, &Config::default(), network, seed);
    pair.transfer(bytes, Time::ZERO + Span::from_secs(5_000));
    pair
}

fn check(pair: &Pair, bytes: u64) {
    assert_eq!(pair.b().statistics().bytes_delivered, bytes);
    assert_eq!(pair.b().statistics().payload_mismatches, 0);
    assert_eq!(pair.a().state(), State::Closed);
}

#[test]
fn icmp_errors_cost_one_round_trip() {
    for recovery in EVERY_RECOVERY {
        for loss in [0.0, 0.02] {
            for seed in 0..5 {
                let config = Config {
                    recovery,
                    ..Config::default()
                };
                let pair = transfer(&config, path_with_mtu(1100, true, loss), 500_000, seed);
                check(&pair, 500_000);
                let a = pair.a();
                assert_eq!(a.path_mtu(), 1100, "{recovery:?} {loss} {seed}");
                assert_eq!(a.statistics().path_mtu_reductions, 1);
                if loss == 0.0 {
                    assert_eq!(a.statistics().timeouts, 0, "{recovery:?}");
                    assert_eq!(a.statistics().fast_recoveries, 0, "{recovery:?}");
                }
            }
        }
    }
}

#[test]
fn rfc4821_a_black_hole_is_detected_only_if_enabled() {
    for recovery in EVERY_RECOVERY {
        for loss in [0.0, 0.01] {
            let config = Config {
                recovery,
                ..Config::default()
            };
            let pair = transfer(&config, path_with_mtu(1100, false, loss), 200_000, 1);
            assert_eq!(pair.b().statistics().bytes_delivered, 0);
            assert!(pair.events[A].has(Events::TIMED_OUT));
            let config = Config {
                path_mtu_discovery: PathMtuDiscovery::BlackHole,
                ..config
            };
            let pair = transfer(&config, path_with_mtu(1100, false, loss), 200_000, 1);
            check(&pair, 200_000);
            assert!(pair.a().path_mtu() <= 1100);
            // A chance loss at that time makes segments smaller than necessary.
            if loss == 0.0 {
                assert!(pair.a().path_mtu() >= 1024 + 52, "{recovery:?}");
            }
            // A lower MTU is found in steps.
            let pair = transfer(&config, path_with_mtu(300, false, loss), 20_000, 1);
            check(&pair, 20_000);
            assert!(pair.a().path_mtu() > 150 && pair.a().path_mtu() <= 300);
        }
    }
}

#[test]
fn rfc4821_a_search_finds_the_mtu_and_probe_losses_are_no_congestion() {
    for recovery in EVERY_RECOVERY {
        for mtu in [1100, 1234, 1499, 1500] {
            let config = Config {
                recovery,
                path_mtu_discovery: PathMtuDiscovery::Probe,
                ..Config::default()
            };
            let pair = transfer(&config, path_with_mtu(mtu, false, 0.0), 2_000_000, 1);
            check(&pair, 2_000_000);
            let (found, statistics) = (pair.a().path_mtu(), pair.a().statistics());
            assert!(
                found <= mtu && found + 8 > mtu,
                "{recovery:?}: {found} of {mtu}"
            );
            assert!(statistics.path_mtu_probes >= 5, "{recovery:?} {mtu}");
            assert_eq!(statistics.timeouts, 0, "{recovery:?} {mtu}");
            // Reno retransmits only one segment per recovery, and so takes the second half of a
            // lost probe for another loss.
            if recovery != RecoveryKind::Reno {
                assert_eq!(statistics.fast_recoveries, 0, "{recovery:?} {mtu}");
            }
        }
    }
}

#[test]
fn rfc4821_a_search_works_with_losses() {
    for seed in 0..10 {
        let config = Config {
            path_mtu_discovery: PathMtuDiscovery::Probe,
            ..Config::default()
        };
        let pair = transfer(
            &config,
            path_with_mtu(1300, seed % 2 == 0, 0.01),
            3_000_000,
            seed,
        );
        check(&pair, 3_000_000);
        assert!(pair.a().path_mtu() <= 1300);
        assert!(
            pair.a().path_mtu() > 1150,
            "{seed}: {}",
            pair.a().path_mtu()
        );
    }
}

#[test]
fn rfc6069_without_a_route_the_timeout_is_not_doubled() {
    let mut tcp = sender(RecoveryKind::Sack);
    tcp.wait(Span::from_secs(1));
    let rto = tcp.tcp.rto();
    tcp.sent();
    for _ in 0..40 {
        icmp(&mut tcp, IcmpError::HostUnreachable, 1);
        assert!(tcp.tcp.rto() < rto);
        let before = tcp.world.now;
        let next = tcp.tcp.next_deadline().unwrap();
        assert!(next.since(before) <= rto);
        tcp.wait(next.since(before));
        assert!(!tcp.sent().is_empty());
    }
    assert_eq!(
        tcp.tcp.state(),
        State::Established,
        "these timeouts do not count"
    );
    assert_eq!(tcp.tcp.path_error(), Some(IcmpError::HostUnreachable));
    tcp.ack(1449, 65_535);
    assert_eq!(tcp.tcp.path_error(), None);
    // Without ICMP errors, the same number of timeouts is too many.
    let mut tcp = sender(RecoveryKind::Sack);
    tcp.wait(Span::from_secs(10_000));
    assert_eq!(tcp.tcp.state(), State::Closed);
}

const EVERY_ERROR: [(IcmpError, bool); 7] = [
    (IcmpError::NetworkUnreachable, false),
    (IcmpError::HostUnreachable, false),
    (IcmpError::ProtocolUnreachable, true),
    (IcmpError::PortUnreachable, true),
    (IcmpError::Prohibited, false),
    (IcmpError::TimeExceeded, false),
    (IcmpError::ParameterProblem, false),
];

#[test]
fn rfc1122_hard_errors_end_a_handshake_and_in_linux_soft_ones_too() {
    for (error, hard) in EVERY_ERROR {
        for (config, ends) in [(Config::default(), hard), (Config::linux(), true)] {
            let mut tcp = Single::connect(&config);
            icmp(&mut tcp, error, 2);
            assert_eq!(tcp.tcp.state(), State::SynSent, "about data never sent");
            icmp(&mut tcp, error, 0);
            let closed = tcp.tcp.state() == State::Closed;
            assert_eq!(closed, ends, "{error:?}");
            let events = tcp.tcp.take_events();
            assert_eq!(events.has(Events::UNREACHABLE), ends);
            assert_eq!(tcp.tcp.path_error(), Some(error));
        }
    }
}

#[test]
fn an_error_ends_a_passive_handshake_without_an_event() {
    for (error, hard) in EVERY_ERROR {
        let linux = !hard && error != IcmpError::Prohibited;
        for (config, ends) in [(Config::default(), hard), (Config::linux(), linux)] {
            let mut tcp = Single::accept(&config, SynOptions::default());
            icmp(&mut tcp, error, 0);
            assert_eq!(tcp.tcp.state() == State::Closed, ends, "{error:?}");
            assert!(!tcp.tcp.take_events().has(Events::UNREACHABLE));
        }
    }
}

#[test]
fn rfc5927_no_error_ends_a_synchronized_connection() {
    for (error, _) in EVERY_ERROR {
        let mut tcp = sender(RecoveryKind::Sack);
        icmp(&mut tcp, error, 1);
        assert_eq!(tcp.tcp.state(), State::Established, "{error:?}");
        assert_eq!(tcp.tcp.path_error(), Some(error));
        assert!(tcp.sent().is_empty());
    }
}

/// ICMP errors of all kinds at random times.
#[test]
fn any_icmp_errors_leave_the_stream_intact() {
    for seed in 0..200_u64 {
        let discovery = [
            PathMtuDiscovery::Off,
            PathMtuDiscovery::Icmp,
            PathMtuDiscovery::BlackHole,
            PathMtuDiscovery::Probe,
        ][seed as usize % 4];
        let config = Config {
            recovery: EVERY_RECOVERY[(seed / 4) as usize % 4],
            path_mtu_discovery: discovery,
            ..Config::default()
        };
        let network = Hostility {
            loss: 0.03,
            jitter: Span::from_millis(5),
            duplication: 0.02,
            ..Hostility::default()
        };
        let mut pair = Pair::new(&config, &config, network, seed);
        let mut left = 300_000;
        let end = Time::ZERO + Span::from_secs(3_000);
        while pair.step(end) {
            left -= pair.with(A, |tcp, cx| tcp.write(left, cx));
            let random = pair.world.random.bits();
            if random.is_multiple_of(23) {
                let side = (random >> 8) as usize % 2;
                let error = match (random >> 16) % 4 {
                    0 => EVERY_ERROR[(random >> 24) as usize % 7].0,
                    1 => too_big((random >> 32) as u32),
                    _ => too_big((random >> 32) as u32 % 2000),
                };
                let back = random as u32 % 3000;
                if pair.ends[side]
                    .as_ref()
                    .is_some_and(|c| c.state().is_synchronized())
                {
                    let initial = pair.initial[side];
                    pair.with(side, |tcp, cx| {
                        let sequence = initial + (tcp.sent_offset() as u32).wrapping_sub(back);
                        tcp.on_icmp(error, sequence, cx);
                    });
                }
            }
            if pair.ends[B].is_some() && pair.b().delivered_offset() == 300_000 {
                break;
            }
        }
        assert_eq!(pair.b().statistics().bytes_delivered, 300_000, "{seed}");
        assert_eq!(pair.b().statistics().payload_mismatches, 0, "{seed}");
    }
}
