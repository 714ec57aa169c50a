//! Behaviour of the hybrid gateway, case by case.

use bentpipe_tcp::{Config, CongestionControlKind, Events, RecoveryKind, State};
use bentpipe_types::{Agent, Endpoint, Flags, IpVersion, Packet, Port, Seq, Span, Time};

use super::super::{Anticipation, Recovery, Settings};
use super::network::tcp;
use super::network::{HOST, Misbehaviour, Net, Path, SERVER, endpoint};

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn config(receive_buffer: u64) -> Config {
    Config {
        mss: 1000,
        receive_buffer,
        send_buffer: 1 << 20,
        time_wait: Span::from_secs(1),
        ..Config::default()
    }
}

fn net(settings: Settings) -> Net {
    let mut net = Net::new(settings, &config(8_000), &config(65_535), 1);
    net.connect(HOST);
    net
}

#[test]
fn a_download_arrives_whole_and_faster_than_its_window_allows() {
    let mut net = net(Settings::default());
    net.to_write[SERVER] = 1_000_000;
    net.run_until(seconds(20));
    assert_eq!(net.delivered(HOST), 1_000_000);
    assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
    let finished = net.end(HOST).statistics().last_delivery_at.unwrap();
    // 8,000 bytes in 540 ms would take 67 s.
    assert!(finished < seconds(15), "{finished:?}");
    assert_eq!(net.end(HOST).statistics().payload_mismatches, 0);
    net.run(Span::from_secs(200));
    assert_eq!(net.gateway.next_deadline(), None);
    assert_eq!(net.gateway.totals.open, 0);
    assert!(net.gateway.totals.beyond_window > 0);
}

#[test]
fn both_directions_work_with_either_opener() {
    for opener in [HOST, SERVER] {
        let mut net = Net::new(Settings::default(), &config(8_000), &config(65_535), 3);
        net.to_write = [100_000, 300_000];
        net.connect(opener);
        net.run_until(seconds(60));
        assert_eq!(net.delivered(HOST), 300_000);
        assert_eq!(net.delivered(SERVER), 100_000);
        assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
        assert_eq!(net.gateway.totals.tracked, 1);
    }
}

#[test]
fn both_ends_open_at_once() {
    let mut net = Net::new(Settings::default(), &config(8_000), &config(65_535), 3);
    net.to_write = [20_000, 30_000];
    net.connect(HOST);
    net.connect(SERVER);
    net.run_until(seconds(60));
    assert_eq!(net.delivered(HOST), 30_000);
    assert_eq!(net.delivered(SERVER), 20_000);
    assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
}

#[test]
fn no_syn_is_acknowledged_for_the_host() {
    let mut net = Net::new(Settings::default(), &config(8_000), &config(65_535), 3);
    net.filter = Box::new(|_, to, _| to != HOST);
    net.connect(SERVER);
    net.run_until(seconds(10));
    assert_eq!(net.end(SERVER).state(), State::SynSent);
    assert_eq!(net.gateway.totals.open, 0);
}

/// The host only acknowledges the SYN and sends nothing, as with SSH, SMTP and FTP.
#[test]
fn a_server_that_sends_first_is_not_delayed() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.to_write[SERVER] = 500;
    // Two round trips of 540 ms.
    net.run_until(Time::ZERO + Span::from_millis(1_090));
    assert_eq!(net.delivered(HOST), 500);
    assert_eq!(net.end(SERVER).statistics().timeouts, 0);
}

#[test]
fn data_is_acknowledged_for_the_host_but_not_the_fin() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(seconds(2));
    net.filter = Box::new(|_, to, _| to != HOST);
    net.to_write[SERVER] = 10_000;
    net.closes[SERVER] = true;
    net.run(Span::from_secs(20));
    let server = net.end(SERVER);
    assert_eq!(server.acknowledged_offset(), 10_000);
    assert_eq!(server.state(), State::FinWait1);
    // Then the host is given up, and the server is sent a RST.
    net.run(Span::from_secs(200));
    assert!(net.events[SERVER].has(Events::RESET));
    assert_eq!(net.gateway.totals.given_up, 1);
    assert_eq!(net.gateway.holdings().bytes, 0);
}

#[test]
fn stored_data_is_bounded_and_the_window_shrinks() {
    let mut net = net(Settings {
        receive_buffer: 20_000,
        ..Settings::default()
    });
    net.closes = [false, false];
    net.run_until(seconds(2));
    net.filter = Box::new(|_, to, _| to != HOST);
    net.to_write[SERVER] = 100_000;
    net.run(Span::from_secs(60));
    assert_eq!(net.end(SERVER).acknowledged_offset(), 20_000);
    assert!(net.end(SERVER).peer_window() < 1000);
    assert_eq!(net.gateway.holdings().bytes, 20_000);
    net.filter = Box::new(|_, _, _| true);
    net.closes = [true, true];
    net.run(Span::from_secs(300));
    assert_eq!(net.delivered(HOST), 100_000);
    assert!(net.is_closed_well(SERVER));
}

#[test]
fn all_connections_share_one_memory_limit() {
    let mut net = net(Settings {
        memory: 5_000,
        ..Settings::default()
    });
    net.to_write[SERVER] = 100_000;
    net.run(Span::from_secs(300));
    assert!(net.gateway.totals.bytes_maximum <= 5_001);
    assert_eq!(net.delivered(HOST), 100_000);
}

#[test]
fn a_zero_window_is_obeyed_and_data_sent_into_it_is_resent() {
    let mut net = Net::new(Settings::default(), &config(8_000), &config(65_535), 1);
    net.misbehaviour = Misbehaviour {
        reads: Some((4_000, Span::from_secs(3))),
        ..Misbehaviour::default()
    };
    net.to_write[SERVER] = 60_000;
    net.connect(HOST);
    net.log = Some(Vec::new());
    net.run_until(seconds(300));
    assert_eq!(net.delivered(HOST), 60_000);
    assert!(net.is_closed_well(SERVER));
    assert!(net.gateway.totals.probes > 0);
    let sent = net.log.take().unwrap();
    assert!(sent.iter().any(|seen| seen.host_window == Some(0)));
    for seen in sent {
        let data = seen.to == HOST && seen.packet.payload_length > 0;
        assert!(!data || seen.host_window != Some(0), "{:?}", seen.packet);
    }
}

#[test]
fn strict_anticipation_keeps_the_window_and_a_factor_multiplies_it() {
    let mut sent_beyond = Vec::new();
    for anticipation in [
        Anticipation::Strict,
        Anticipation::Factor(2.0),
        Anticipation::Unlimited,
    ] {
        let mut net = net(Settings {
            anticipation,
            ..Settings::default()
        });
        net.to_write[SERVER] = 300_000;
        net.run_until(seconds(200));
        assert_eq!(net.delivered(HOST), 300_000);
        sent_beyond.push((
            net.gateway.totals.beyond_window,
            net.end(HOST).statistics().last_delivery_at.unwrap(),
        ));
    }
    assert_eq!(sent_beyond[0].0, 0);
    assert!(sent_beyond[0].1 > sent_beyond[1].1 && sent_beyond[1].1 > sent_beyond[2].1);
}

#[test]
fn the_gateway_retransmits_losses_on_the_satellite() {
    for recovery in [
        Recovery::Timer,
        tcp(RecoveryKind::Sack, None),
        tcp(RecoveryKind::NewReno, Some(CongestionControlKind::Cubic)),
    ] {
        let mut net = net(Settings {
            recovery: recovery.clone(),
            retransmission_timeout: None,
            ..Settings::default()
        });
        net.paths[HOST].loss = 0.02;
        net.to_write[SERVER] = 500_000;
        net.run_until(seconds(600));
        assert_eq!(net.delivered(HOST), 500_000, "{recovery:?}");
        assert!(net.is_closed_well(SERVER));
        assert!(net.gateway.totals.retransmissions > 5);
        // The server detects no loss.
        assert_eq!(
            net.end(SERVER).statistics().fast_recoveries,
            0,
            "{recovery:?}"
        );
    }
}

#[test]
fn the_fixed_timeout_sends_duplicates_and_an_adaptive_one_doesnt() {
    let mut duplicates = Vec::new();
    for timeout in [Some(Span::from_millis(200)), None] {
        let mut net = net(Settings {
            retransmission_timeout: timeout,
            ..Settings::default()
        });
        net.to_write[SERVER] = 200_000;
        net.run_until(seconds(60));
        duplicates.push(net.end(HOST).statistics().duplicates_received);
    }
    assert!(duplicates[0] > 0);
    assert_eq!(duplicates[1], 0);
}

/// A congestion control takes an expiry as a sign of congestion. One that comes before an
/// acknowledgment can would keep its window at one segment.
#[test]
fn a_timeout_below_the_round_trip_does_not_hold_down_congestion_control() {
    let finished = |timeout| {
        let mut net = net(Settings {
            recovery: tcp(RecoveryKind::Sack, Some(CongestionControlKind::Cubic)),
            retransmission_timeout: timeout,
            ..Settings::default()
        });
        net.to_write[SERVER] = 1_000_000;
        net.run_until(seconds(100));
        assert_eq!(net.delivered(HOST), 1_000_000);
        let statistics = net.end(HOST).statistics();
        assert_eq!(statistics.duplicates_received, 0);
        statistics.last_delivery_at.unwrap()
    };
    let adaptive = finished(None);
    assert_eq!(finished(Some(Span::from_millis(200))), adaptive);
    // A longer timeout is waited for; here nothing is lost.
    assert_eq!(finished(Some(Span::from_secs(3))), adaptive);
}

#[test]
fn acknowledgments_are_delayed_by_the_timeout() {
    let finish = |ack_timeout, ack_every| {
        let mut net = net(Settings {
            ack_timeout,
            ack_every,
            ..Settings::default()
        });
        net.to_write[SERVER] = 1_000_000;
        net.run_until(seconds(100));
        assert_eq!(net.delivered(HOST), 1_000_000);
        net.end(HOST).statistics().last_delivery_at.unwrap()
    };
    let slow = finish(Span::from_millis(200), None);
    let fast = finish(Span::from_millis(10), None);
    let every = finish(Span::from_millis(200), Some(2));
    assert!(fast < slow, "{fast:?} {slow:?}");
    assert!(every < slow, "{every:?} {slow:?}");
}

/// A server that has retransmitted a segment needlessly, as tail loss probes do when an ACK is
/// delayed, is told so (RFC 2883).
#[test]
fn duplicates_are_reported_by_dsack() {
    for sack in [true, false] {
        let server = Config {
            sack,
            ..config(65_535)
        };
        let mut net = Net::new(Settings::default(), &config(8_000), &server, 1);
        net.paths[SERVER].duplication = 1.0;
        net.until = seconds(100);
        net.connect(HOST);
        net.to_write[SERVER] = 20_000;
        net.run_until(seconds(10));
        assert_eq!(net.delivered(HOST), 20_000);
        assert!(net.gateway.totals.duplicates >= 10);
        // The duplicate is the path's, so a server that has sent nothing twice ignores the D-SACK
        // block.
        let said = net.end(SERVER).statistics();
        assert_eq!(said.sack_blocks_ignored >= 10, sack);
        assert_eq!((said.fast_recoveries, said.timeouts), (0, 0));
    }
}

/// RFC 9293 section 3.8.6.2.2, where the window field counts in units of 1 KiB and a segment has
/// 1,000 bytes.
#[test]
fn the_window_opens_by_at_least_a_segment_with_scaling() {
    let settings = Settings {
        receive_buffer: 20_000,
        ..Settings::default()
    };
    let mut net = Net::new(settings, &config(60_000_000), &config(65_535), 1);
    net.connect(HOST);
    net.log = Some(Vec::new());
    net.to_write[SERVER] = 1_000_000;
    net.run_until(seconds(60));
    assert_eq!(net.delivered(HOST), 1_000_000);
    let mut last = 0;
    let mut steps = 0;
    for seen in net.log.iter().flatten() {
        if seen.to != SERVER || seen.packet.flags.has(Flags::SYN) {
            continue;
        }
        let acknowledged = seen
            .packet
            .acknowledgment
            .distance_from(net.initial[SERVER]);
        let edge = i64::from(acknowledged) + (i64::from(seen.packet.window) << 10);
        if edge > last {
            assert!(steps == 0 || edge >= last + 1_000, "{last} to {edge}");
            (last, steps) = (edge, steps + 1);
        }
    }
    assert!(steps > 300, "{steps}");
}

#[test]
fn resets_are_forwarded_both_ways() {
    for side in [HOST, SERVER] {
        let mut net = net(Settings::default());
        net.closes = [false, false];
        net.to_write[SERVER] = 100_000;
        net.run_until(seconds(2));
        net.with(side, |tcp, cx| tcp.abort(cx));
        net.run(Span::from_secs(30));
        assert!(net.events[1 - side].has(Events::RESET), "side {side}");
        assert_eq!(net.gateway.holdings().packets, 0);
        net.run(Span::from_secs(200));
        assert_eq!(net.gateway.totals.open, 0);
        assert_eq!(net.gateway.next_deadline(), None);
    }
}

#[test]
fn a_reset_reaches_a_host_that_has_lost_what_came_before() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(seconds(2));
    net.filter = Box::new(|_, to, packet| to != HOST || packet.payload_length == 0);
    net.to_write[SERVER] = 20_000;
    net.run(Span::from_millis(300));
    net.with(SERVER, |tcp, cx| tcp.abort(cx));
    // The host only receives.
    net.run(Span::from_secs(1));
    assert!(net.events[HOST].has(Events::RESET));
}

#[test]
fn a_host_that_sends_after_a_lost_reset_is_reset() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(seconds(2));
    net.filter = Box::new(|_, to, packet| to != HOST || !packet.flags.has(Flags::RST));
    net.with(SERVER, |tcp, cx| tcp.abort(cx));
    net.run(Span::from_secs(30));
    net.filter = Box::new(|_, _, _| true);
    net.with(HOST, |tcp, cx| tcp.write(10, cx));
    net.run(Span::from_secs(30));
    assert!(net.events[HOST].has(Events::RESET));
}

/// A packet without data from one end arrives at the gateway now.
fn says(net: &mut Net, side: usize, flags: Flags, sequence: Seq, acknowledgment: Seq) {
    let mut packet = Packet::new(endpoint(side), endpoint(1 - side), IpVersion::V4);
    packet.flags = flags;
    packet.sequence = sequence;
    packet.acknowledgment = acknowledgment;
    net.arrives_at_gateway(packet);
}

#[test]
fn an_unacceptable_reset_ends_nothing() {
    // Stray segments are answered so, before the gateway has both ends as established.
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(Time::ZERO + Span::from_millis(300));
    assert_eq!(net.gateway.totals.open, 0);
    let [host, server] = net.initial;
    let foreign = server + (1 << 31);
    says(&mut net, SERVER, Flags::RST, foreign, Seq::new(0));
    let refusal = Flags::RST.with(Flags::ACK);
    says(&mut net, SERVER, refusal, foreign, host + 5_000);
    net.to_write[SERVER] = 20_000;
    net.run(Span::from_secs(20));
    assert_eq!(net.gateway.totals.tracked, 1);
    assert_eq!(net.delivered(HOST), 20_000);
}

#[test]
fn a_syn_ack_without_matching_syn_opens_nothing() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(seconds(2));
    net.with(SERVER, |tcp, cx| tcp.abort(cx));
    net.run(Span::from_secs(2));
    // The SYN-ACK acknowledges `host`, not `host + 1`: it may belong to another connection with the
    // same ports.
    let (host, server) = (Seq::new(5_000), Seq::new(9_000));
    let answer = Flags::SYN.with(Flags::ACK);
    says(&mut net, HOST, Flags::SYN, host, Seq::new(0));
    says(&mut net, SERVER, answer, server, host);
    says(&mut net, SERVER, Flags::ACK, server + 1, host + 1);
    says(&mut net, HOST, Flags::ACK, host + 1, server + 1);
    assert_eq!(net.gateway.totals.tracked, 1);
    says(&mut net, SERVER, answer, server, host + 1);
    // A SYN that arrives when the first one has been answered does not replace it either.
    says(&mut net, HOST, Flags::SYN, host + 700, Seq::new(0));
    says(&mut net, HOST, Flags::ACK, host + 1, server + 1);
    assert_eq!(net.gateway.totals.tracked, 2);
}

#[test]
fn unknown_connections_are_forwarded_unchanged() {
    let mut net = net(Settings::default());
    let host = Endpoint {
        port: 9,
        ..endpoint(HOST)
    };
    let mut packet = Packet::new(endpoint(SERVER), host, IpVersion::V4);
    packet.flags = Flags::ACK;
    packet.payload_length = 100;
    let reference = net.world.packets.insert(packet);
    net.gateway
        .on_packet(Port(1), reference, &mut net.world.cx());
    assert_eq!(net.world.outbox.len(), 1);
    assert_eq!(
        net.world.packets.get(net.world.outbox[0].1).payload_length,
        100
    );
    assert_eq!(net.gateway.totals.passed, 1);
    net.world.outbox.clear();
    net.world.packets.release(reference);
}

#[test]
fn with_a_full_table_connections_are_forwarded() {
    let mut net = net(Settings {
        connections: 1,
        ..Settings::default()
    });
    net.run_until(seconds(1));
    let mut syn = Packet::new(
        Endpoint {
            port: 9,
            ..endpoint(HOST)
        },
        endpoint(SERVER),
        IpVersion::V4,
    );
    syn.flags = Flags::SYN;
    let reference = net.world.packets.insert(syn);
    net.gateway
        .on_packet(Port(0), reference, &mut net.world.cx());
    assert_eq!(net.gateway.totals.refused, 1);
    assert_eq!(net.world.outbox.len(), 1);
    net.world.outbox.clear();
    net.world.packets.release(reference);
}

#[test]
fn a_full_table_is_reported_until_there_is_space_again() {
    let settings = Settings {
        connections: 2,
        ..Settings::default()
    };
    let mut net = Net::new(settings, &config(8_000), &config(65_535), 1);
    let syn = |net: &mut Net, port| {
        let from = Endpoint {
            port,
            ..endpoint(HOST)
        };
        let mut syn = Packet::new(from, endpoint(SERVER), IpVersion::V4);
        syn.flags = Flags::SYN;
        let syn = net.world.packets.insert(syn);
        net.gateway.on_packet(Port(0), syn, &mut net.world.cx());
        while let Some((_, packet)) = net.world.outbox.pop() {
            net.world.packets.release(packet);
        }
        net.gateway.remark().unwrap_or_default()
    };
    assert_eq!(syn(&mut net, 1), "");
    assert_eq!(syn(&mut net, 2), "");
    assert!(syn(&mut net, 3).contains("table is full"));
    // These are never answered, and are removed.
    net.run(Span::from_secs(1_000));
    assert!(syn(&mut net, 4).contains("has space again"));
}

#[test]
fn an_idle_connection_is_removed_and_goes_on() {
    let mut net = net(Settings {
        idle: Span::from_secs(100),
        ..Settings::default()
    });
    net.closes = [false, false];
    net.to_write[SERVER] = 10_000;
    net.run_until(seconds(300));
    assert_eq!(net.gateway.totals.open, 0);
    net.to_write[SERVER] = 10_000;
    net.closes = [true, true];
    net.run(Span::from_secs(100));
    assert_eq!(net.delivered(HOST), 20_000);
    assert!(net.is_closed_well(SERVER));
}

/// A gateway that shuts down resets the connections of which it holds data. The others go on
/// without it.
#[test]
fn a_shutdown_resets_connections_that_cannot_go_on() {
    for held in [true, false] {
        let mut net = net(Settings::default());
        net.closes = [false, false];
        net.to_write[SERVER] = if held { 1_000_000 } else { 10_000 };
        net.run_until(seconds(3));
        assert_eq!(net.gateway.totals.bytes > 0, held);
        net.retire();
        assert_eq!((net.gateway.totals.open, net.gateway.totals.bytes), (0, 0));
        let from = net.delivered(HOST);
        net.run(Span::from_secs(2));
        let states = [HOST, SERVER].map(|side| net.end(side).state());
        if held {
            assert_eq!(states, [State::Closed; 2]);
            assert!(net.delivered(HOST) < 1_000_000);
        } else {
            assert_eq!(states, [State::Established; 2]);
            net.to_write[SERVER] = 50_000;
            net.run(Span::from_secs(20));
            assert_eq!((from, net.delivered(HOST)), (10_000, 60_000));
        }
        assert_eq!(net.gateway.totals.given_up, u64::from(held));
    }
}

#[test]
fn half_closed_connections_go_on() {
    let mut net = net(Settings::default());
    net.closes = [true, false];
    net.run_until(seconds(3));
    assert_eq!(net.end(SERVER).state(), State::CloseWait);
    net.to_write[SERVER] = 50_000;
    net.closes[SERVER] = true;
    net.run(Span::from_secs(60));
    assert_eq!(net.delivered(HOST), 50_000);
    assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
}

#[test]
fn a_syn_replaces_a_closed_connection() {
    let mut net = net(Settings::default());
    net.to_write[SERVER] = 10_000;
    net.run_until(seconds(10));
    assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
    net.ends = [None, None];
    net.to_write[SERVER] = 0;
    net.connect(HOST);
    net.run(Span::from_secs(5));
    assert_eq!(net.gateway.totals.tracked, 2);
}

#[test]
fn the_window_scale_in_the_hosts_syn_is_raised() {
    let mut net = net(Settings {
        receive_buffer: 1_000_000,
        ack_timeout: Span::from_millis(10),
        ..Settings::default()
    });
    net.paths[SERVER] = Path::of(50);
    net.closes = [false, false];
    net.to_write[SERVER] = 2_000_000;
    net.run_until(seconds(5));
    assert!(net.end(SERVER).peer_window() > 500_000);
    assert!(net.end(HOST).advertised_window() <= 8_000);
    net.run(Span::from_secs(30));
    assert_eq!(net.delivered(HOST), 2_000_000);
}

#[test]
fn it_works_without_window_scaling_and_options() {
    let plain = |buffer| Config {
        window_scaling: false,
        timestamps: false,
        sack: false,
        ..config(buffer)
    };
    let mut net = Net::new(Settings::default(), &plain(8_000), &plain(65_535), 1);
    net.paths[HOST].loss = 0.01;
    net.to_write = [50_000, 300_000];
    net.connect(HOST);
    net.run_until(seconds(600));
    assert_eq!(net.delivered(HOST), 300_000);
    assert_eq!(net.delivered(SERVER), 50_000);
    assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
}

#[test]
fn keep_alive_probes_are_answered_by_the_host() {
    let mut net = net(Settings::default());
    net.closes = [false, false];
    net.run_until(seconds(2));
    // A sequence number that the host has, without data.
    let mut packet = Packet::new(endpoint(SERVER), endpoint(HOST), IpVersion::V4);
    packet.flags = Flags::ACK;
    let relay = net.gateway.relay().expect("open");
    packet.sequence = relay.wire(relay.receive_next - 1);
    packet.acknowledgment = relay.server_acknowledgment;
    packet.set_timestamps(1, 1);
    packet.header_length += 12;
    let reference = net.world.packets.insert(packet);
    net.gateway
        .on_packet(Port(1), reference, &mut net.world.cx());
    assert_eq!(net.world.outbox.len(), 1, "it passes");
    assert_eq!(net.gateway.totals.acknowledgments, 0);
    net.world.outbox.clear();
    net.world.packets.release(reference);
}

#[test]
fn the_gateways_timestamps_are_not_old() {
    // Also with clocks that seem to be before 0: a kernel's may begin anywhere.
    for clocks in [3, 2_200_000] {
        let mut net = Net::new(Settings::default(), &config(8_000), &config(65_535), 3);
        net.run_until(seconds(clocks));
        net.log = Some(Vec::new());
        net.to_write[SERVER] = 40_000;
        net.closes = [false, false];
        // Only the host's SYN gets through for a while, so that the gateway sends for the host, and
        // twice to it.
        let silent = seconds(clocks + 4);
        net.connect(SERVER);
        net.filter = Box::new(move |from, _, packet| from != HOST || packet.flags.has(Flags::SYN));
        net.run_until(silent);
        assert!(net.end(SERVER).acknowledged_offset() >= 8_000, "{clocks}");
        net.filter = Box::new(|_, _, _| true);
        net.run(Span::from_secs(60));
        assert_eq!(net.delivered(HOST), 40_000, "{clocks}");
        let log = net.log.take().unwrap();
        for end in [HOST, SERVER] {
            let mut latest = None;
            for seen in log.iter().filter(|seen| seen.to == end) {
                let (value, _) = seen.packet.timestamps().unwrap();
                let newer = latest.is_none_or(|latest| value.wrapping_sub(latest) as i32 >= 0);
                assert!(newer, "{clocks}: to {end} {value} after {latest:?}");
                latest = Some(value);
            }
        }
    }
}
