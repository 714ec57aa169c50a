//! Single packets: their fields behind the gateway, and what it reports about them.

use std::ops::ControlFlow;

use bentpipe_tcp::Config;
use bentpipe_types::{Agent, ConnectionReport, Flags, Managed, Packet, Seq, Span, Time};

use super::super::{Anticipation, Hybrid, Recovery, Settings};
use super::fleet::{Fleet, HOST_ISN, SERVER_ISN};

fn open(settings: Settings) -> Fleet {
    let mut fleet = Fleet::new(settings);
    fleet.open(1);
    fleet
}

fn like_tcp() -> Recovery {
    Recovery::Tcp {
        config: Box::new(Config::default()),
        congestion_window: true,
    }
}

/// The host scales its windows by 4. The gateway announces a larger scale to the server, and
/// converts the windows of all packets that it forwards.
#[test]
fn windows_are_converted_to_the_announced_scale() {
    let mut fleet = Fleet::new(Settings {
        receive_buffer: 1_000_000,
        ..Settings::default()
    });
    fleet.scale = Some(2);
    fleet.open(1);
    fleet.pass(false, 1, |packet| {
        packet.flags = Flags::RST.with(Flags::ACK);
        packet.sequence = Seq::new(SERVER_ISN + 1);
        packet.acknowledgment = Seq::new(HOST_ISN + 1);
    });
    // The connection is closed; a late packet is only forwarded.
    let late = fleet.pass(true, 1, |packet| {
        packet.flags = Flags::RST;
        packet.sequence = Seq::new(HOST_ISN + 1);
        packet.window = 40_000;
    });
    // 2^4 times 65,535 is the smallest scaled window that is not below 1,000,000.
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].window, 10_000);
}

/// A SACK option takes 12 bytes for one block and 20 for two (RFC 2018 section 3).
#[test]
fn acknowledgments_of_data_out_of_order_have_sack_blocks() {
    let mut fleet = open(Settings::default());
    fleet.data(1, 0, 1000);
    let header = |packets: Vec<Packet>| {
        let acknowledgment = packets.iter().find(|packet| packet.payload_length == 0);
        acknowledgment.expect("one is sent at once").header_length
    };
    assert_eq!(header(fleet.data(1, 2000, 1000)), 40 + 12);
    assert_eq!(header(fleet.data(1, 4000, 1000)), 40 + 20);
}

/// Data beyond the host's window is counted, and with `strict` not sent.
#[test]
fn data_beyond_the_window_is_counted() {
    let data_in_window = |anticipation, window| {
        let mut fleet = open(Settings {
            anticipation,
            ..Settings::default()
        });
        fleet.pass(true, 1, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1);
            packet.window = window;
        });
        let sent: usize = (0..4)
            .map(|segment| {
                let packets = fleet.data(1, 1000 * segment, 1000);
                packets
                    .iter()
                    .filter(|each| each.payload_length > 0)
                    .count()
            })
            .sum();
        (sent, fleet.gateway.totals.beyond_window)
    };
    assert_eq!(data_in_window(Anticipation::Unlimited, 4000), (4, 0));
    assert_eq!(data_in_window(Anticipation::Unlimited, 3000), (4, 1));
    assert_eq!(data_in_window(Anticipation::Unlimited, 2999), (4, 2));
    assert_eq!(data_in_window(Anticipation::Strict, 3000), (3, 0));
    assert_eq!(data_in_window(Anticipation::Strict, 2999), (2, 0));
}

fn report(fleet: &Fleet) -> ConnectionReport {
    let mut found = Vec::new();
    let now = fleet.world.now;
    let _ = fleet.gateway.connections(now, &mut |each| {
        found.push(each.clone());
        ControlFlow::Continue(())
    });
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn reports_and_gauges_show_both_legs() {
    let mut fleet = open(Settings {
        recovery: like_tcp(),
        ..Settings::default()
    });
    assert_eq!(fleet.gateway.dependent_connections(), 1);
    for segment in 0..3 {
        fleet.data(1, 1000 * segment, 1000);
    }
    fleet.wait(Time::ZERO + Span::from_millis(500));
    fleet.acknowledge(1, 1000);
    let legs = report(&fleet).legs;
    let (host, server) = (legs[0].expect("one"), legs[1].expect("one"));
    assert!(host.is_facing && !server.is_facing);
    assert_eq!(
        (host.delivered, host.in_flight, host.peer_window),
        (1000, 2000, 65_535)
    );
    assert_eq!(host.smoothed_rtt, Some(Span::from_millis(500)));
    assert_eq!(
        (server.received, server.held, server.peer_window),
        (3000, 2000, 65_535)
    );
    let gauge = |name: &str| {
        let gauges = fleet.gateway.gauges();
        let index = gauges.iter().position(|each| each.name == name);
        fleet.gateway.gauge(index.expect("it exists"))
    };
    assert_eq!(gauge("offered_window"), server.advertised_window as f64);
    assert!(server.advertised_window > 0);
    assert_eq!(gauge("smoothed_rtt"), 0.5);
    assert_eq!(gauge("rtt_deviation"), 0.25);
    assert_eq!(gauge("received"), 3000.0);
    assert_eq!(gauge("acknowledged"), 1000.0);
    assert_eq!(gauge("processing"), 0.0);
}

/// Settings that established connections depend on are not changed.
#[test]
fn settings_with_another_recovery_are_not_adopted() {
    let of = |recovery| {
        Hybrid::new(Settings {
            recovery,
            ..Settings::default()
        })
    };
    let mut gateway = of(Recovery::Timer);
    assert_eq!(gateway.adopt_settings(&mut of(Recovery::Timer)), Ok(()));
    let refused = gateway.adopt_settings(&mut of(like_tcp()));
    assert!(refused.is_err_and(|why| why.contains("tcp")));
}
