//! A path to the host that drops long packets silently.

use bentpipe_tcp::{Config, CongestionControlKind, Events, RecoveryKind};
use bentpipe_types::{Agent, Span, Time};

use super::super::{Recovery, Settings};
use super::network::{Filter, GATEWAY, HOST, Net, SERVER, tcp};

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn config() -> Config {
    Config {
        mss: 1400,
        receive_buffer: 32_000,
        send_buffer: 1 << 20,
        time_wait: Span::from_secs(1),
        ..Config::default()
    }
}

fn recovery_methods() -> Vec<(Recovery, Option<Span>)> {
    vec![
        (Recovery::Timer, Some(Span::from_millis(200))),
        (Recovery::Timer, None),
        (tcp(RecoveryKind::Sack, None), None),
        (
            tcp(RecoveryKind::NewReno, Some(CongestionControlKind::Reno)),
            None,
        ),
        (
            tcp(RecoveryKind::Sack, Some(CongestionControlKind::Cubic)),
            None,
        ),
    ]
}

fn named((recovery, timeout): &(Recovery, Option<Span>)) -> String {
    match recovery {
        Recovery::Timer => format!("timer {timeout:?}"),
        Recovery::Tcp {
            congestion_window,
            config,
        } => {
            format!(
                "{:?}, congestion window: {congestion_window}",
                config.recovery
            )
        }
    }
}

fn net((recovery, retransmission_timeout): (Recovery, Option<Span>)) -> Net {
    let settings = Settings {
        recovery,
        retransmission_timeout,
        ..Settings::default()
    };
    let mut net = Net::new(settings, &config(), &config(), 1);
    net.closes = [false, false];
    net.connect(HOST);
    net.run_until(seconds(2));
    net.log = Some(Vec::new());
    net
}

/// Lets only packets up to this length from the gateway and the server reach the host.
fn passes(most: u64) -> Filter {
    Box::new(move |_, to, packet| to != HOST || packet.length().get() <= most)
}

/// Returns the length of the longest packet that the server has sent since.
fn longest_of_servers(net: &Net, since: Time) -> u64 {
    let sent = net.log.iter().flatten();
    let own = sent.filter(|seen| seen.from == SERVER && seen.to == GATEWAY && seen.at >= since);
    own.map(|seen| seen.packet.length().get())
        .max()
        .unwrap_or(0)
}

#[test]
fn a_black_hole_is_detected_and_reported_to_the_server() {
    for (most, step) in [(1_300, 1_076), (1_000, 576), (300, 296)] {
        for way in recovery_methods() {
            let what = format!("{}, {most}", named(&way));
            let mut net = net(way);
            net.filter = passes(most);
            net.to_write[SERVER] = 200_000;
            net.run_until(seconds(100));
            assert_eq!(net.delivered(HOST), 200_000, "{what}");
            // From then on nothing is delayed: one window of segments that fit per round trip.
            let since = net.world.now;
            net.to_write[SERVER] = 60_000;
            net.closes = [true, true];
            net.run(Span::from_secs(20));
            assert_eq!(net.delivered(HOST), 260_000, "{what}");
            assert!(net.is_closed_well(SERVER) && net.is_closed_well(HOST));
            let again = since + Span::from_secs(1);
            assert!(longest_of_servers(&net, again) <= step, "{what}");
            assert_eq!(net.gateway.totals.given_up, 0);
        }
    }
}

/// After the outage, short packets arrive and long ones as well.
#[test]
fn an_outage_is_not_a_black_hole() {
    for way in recovery_methods() {
        let what = named(&way);
        let mut net = net(way);
        for _ in 0..3 {
            net.filter = Box::new(|_, to, _| to != HOST);
            net.to_write[SERVER] = 40_000;
            net.run(Span::from_secs(15));
            net.filter = Box::new(|_, _, _| true);
            net.run(Span::from_secs(20));
        }
        assert_eq!(net.delivered(HOST), 120_000, "{what}");
        let since = net.world.now;
        net.to_write[SERVER] = 60_000;
        net.closes = [true, true];
        net.run(Span::from_secs(60));
        assert_eq!(net.delivered(HOST), 180_000, "{what}");
        assert!(net.is_closed_well(SERVER));
        assert_eq!(longest_of_servers(&net, since), 1_452, "{what}");
        assert_eq!(net.end(SERVER).statistics().path_mtu_reductions, 0);
    }
}

#[test]
fn a_vanished_host_is_given_up_and_probed_with_short_packets() {
    for way in recovery_methods() {
        let what = named(&way);
        let mut net = net(way);
        net.filter = Box::new(|_, to, _| to != HOST);
        net.to_write[SERVER] = 60_000;
        net.run(Span::from_secs(200));
        assert!(net.events[SERVER].has(Events::RESET), "{what}");
        assert_eq!(net.gateway.totals.given_up, 1);
        assert_eq!(net.gateway.holdings().bytes, 0);
        let sent = net.log.iter().flatten().filter(|seen| seen.to == HOST);
        let late = sent.filter(|seen| seen.at > seconds(20)).count();
        // Six parts of the first segment, each time that its timer of 200 ms expires, and two RSTs.
        assert!(late <= 6 * 5 * 102 + 2, "{what}: {late}");
    }
}
