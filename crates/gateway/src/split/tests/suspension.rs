//! Suspended connections.

use std::cell::RefCell;
use std::rc::Rc;

use allocation_counter::measure;
use bentpipe_tcp::congestion::WindowRule;
use bentpipe_tcp::{Config, PacingKind, Payload, Ranges, RecoveryKind, Rings, Source, State};
use bentpipe_types::{Agent, Packet, RandomStream, Span, Time};

use super::test_network::{CLIENT, Net, SERVER, multiplexed, settings, two};
use crate::split::{Settings, Split};

/// The client sends a request, the server answers, and both are silent for a while; and again.
fn dialogue<P: Payload>(net: &mut Net<P>, asks: u64, answers: u64, silence: Span) {
    let here = |net: &mut Net<P>, side: usize, bytes: u64| {
        let end = net.world.now + Span::from_secs(300);
        let there = |net: &Net<P>| net.hosts[side].as_ref().expect("a host").readable() == bytes;
        assert!(net.run_until(end, there), "{bytes} bytes don't come");
        net.at(side, |socket, cx| socket.read(u64::MAX, cx));
    };
    net.at(CLIENT, |socket, cx| socket.write(Source::Filler(asks), cx));
    here(net, SERVER, asks);
    net.at(SERVER, |socket, cx| {
        socket.write(Source::Filler(answers), cx)
    });
    here(net, CLIENT, answers);
    net.run(silence);
}

fn open<P: Payload>(net: &mut Net<P>, initial: u32) {
    net.connect(CLIENT, initial);
    let end = net.world.now + Span::from_secs(60);
    assert!(net.run_until(end, |net| net.state(CLIENT) == State::Established));
}

/// Returns all packets that cross the link between two gateways, with losses, and with suspensions
/// of connections or without.
fn packets(tcp: &Config, suspend_after: Span) -> (Vec<(Time, Packet)>, usize) {
    let mut net: Net<Ranges> = Net::new(
        two(|settings| {
            settings.facing_tcp = tcp.clone();
            settings.suspend_after = suspend_after;
            settings.warm_path = true;
        }),
        &[1, 30, 1],
    );
    let seen = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&seen);
    let mut luck = RandomStream::new(5, "rest", "loss");
    net.hook(
        1,
        Box::new(move |now, packet, packets| {
            note.borrow_mut().push((now, *packets.get(packet)));
            (!luck.bits().is_multiple_of(50)).then_some(())
        }),
    );
    open(&mut net, 7);
    let mut most = 0;
    for turn in 0..12 {
        dialogue(&mut net, 500, 3_000 << turn, Span::from_secs(2));
        most = most.max(net.gateways[0].pairs.suspended());
    }
    net.at(CLIENT, |socket, cx| socket.close(cx));
    net.at(SERVER, |socket, cx| socket.close(cx));
    net.expect_nothing_left();
    (seen.take(), most)
}

/// A connection that was suspended goes on exactly like one that was not, to the packet and the
/// nanosecond.
#[test]
fn suspension_changes_no_packet() {
    let mut settings: Vec<Config> = WindowRule::ALL
        .iter()
        .map(|rule| Config {
            congestion_control: (*rule).into(),
            ..Config::default()
        })
        .collect();
    settings.push(Config::linux());
    for recovery in [
        RecoveryKind::Reno,
        RecoveryKind::NewReno,
        RecoveryKind::Fack,
    ] {
        settings.push(Config {
            recovery,
            pacing: PacingKind::On,
            timestamps: false,
            ..Config::default()
        });
    }
    for tcp in settings {
        let (without, never) = packets(&tcp, Span::from_secs(100_000));
        let (with, rested) = packets(&tcp, Span::from_millis(400));
        assert_eq!((never, rested), (0, 1), "{tcp:?}");
        assert!(without.len() > 10_000, "{}", without.len());
        let differs = without.iter().zip(&with).find(|(a, b)| a != b);
        assert!(
            without.len() == with.len() && differs.is_none(),
            "{differs:?}\n{tcp:?}"
        );
    }
}

/// Returns the memory that a gateway keeps for each of so many idle connections over which 500 and
/// 20,000 bytes have gone.
fn idle<P: Payload>(settings: &[Settings], connections: u16) -> (i64, usize) {
    let delays = &[1, 20, 1][..=settings.len()];
    let mut gateways: Vec<Split<P>> = Vec::new();
    let mut at_rest = 0;
    let kept = measure(|| {
        let mut net: Net<P> = Net::new(settings.to_vec(), delays);
        for count in 0..connections {
            net.client_port = 10_000 + count;
            net.hosts = [None, None];
            open(&mut net, u32::from(count) * 100_000);
            dialogue(&mut net, 500, 20_000, Span::from_millis(300));
        }
        net.hosts = [None, None];
        net.run(Span::from_secs(25));
        at_rest = net.gateways[0].pairs.suspended();
        assert_eq!(net.count(0, "connections.open"), u64::from(connections));
        gateways = net.gateways;
    });
    assert!(gateways.iter().all(|gateway| gateway.holdings().bytes == 0));
    let each = i64::from(connections) * settings.len() as i64;
    (kept.bytes_current / each, at_rest)
}

#[test]
fn a_suspended_connection_takes_less_than_two_kibibytes() {
    let settings = Settings {
        memory: 1 << 30,
        ..settings(1)
    };
    let settings = [settings];
    let (simulated, resting) = idle::<Ranges>(&settings, 1_000);
    assert_eq!(resting, 1_000);
    let (live, resting) = idle::<Rings>(&settings, 1_000);
    assert_eq!(resting, 1_000);
    println!("bytes of an idle connection: {simulated} simulated, {live} live");
    assert!((200..2_048).contains(&simulated), "{simulated}");
    assert!((200..2_048).contains(&live), "{live}");
}

/// A multiplexed connection has one leg at each gateway, and is never suspended.
#[test]
fn a_multiplexed_connection_takes_one_leg_at_each_gateway() {
    let settings = multiplexed(1, |settings| settings.memory = 1 << 30);
    // With the trunk's own memory, divided by 100.
    let (simulated, resting) = idle::<Ranges>(&settings, 100);
    let (live, _) = idle::<Rings>(&settings, 100);
    println!(
        "bytes of an idle carried connection, at one gateway: {simulated} simulated, {live} live"
    );
    assert_eq!(resting, 0);
    assert!((200..8_192).contains(&simulated), "{simulated}");
}
