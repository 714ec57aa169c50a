//! Events per packet, counted without a clock: one schedule entry per direction, so a hop is one
//! event, a chain of hops is one, and an acknowledgment that restarts a timer is none.

use bentpipe_link::{DropTail, Fair, FairSettings, Limit, Queueing, Settings};
use bentpipe_sim::{FlowSettings, LinkSettings, Network, NetworkBuilder, Progress, Traffic};
use bentpipe_tcp::{Config, RecoveryKind};
use bentpipe_types::{BitRate, Bytes, RandomStream, Span, Time};

/// A download over this many links in a row, without losses.
fn chain(links: usize, recovery: RecoveryKind) -> Network {
    let limit = Limit::Packets(20_000);
    chain_behind(links, recovery, || DropTail { limit }.into())
}

/// The same with another kind of queue.
fn chain_behind(links: usize, recovery: RecoveryKind, queue: impl Fn() -> Queueing) -> Network {
    let mut builder = NetworkBuilder::new(1);
    let mut nodes = vec![builder.host("server")];
    for number in 1..links {
        nodes.push(builder.router(&format!("router-{number}")));
    }
    nodes.push(builder.host("client"));
    let direction = || {
        BitRate::new(100_000_000).map(|rate| Settings::new(rate, Span::from_millis(100), queue()))
    };
    for (number, ends) in nodes.windows(2).enumerate() {
        let link = LinkSettings {
            name: format!("link-{number}"),
            forward: direction(),
            backward: direction(),
        };
        builder.link(ends[0], ends[1], link);
    }
    builder.flow(FlowSettings {
        name: "download".to_owned(),
        from: nodes[0],
        to: nodes[links],
        start: Span::ZERO,
        application: Traffic::bulk(None),
        sender: Config {
            send_buffer: 16_000_000,
            recovery,
            ..Config::default()
        }
        .into(),
        receiver: Config {
            receive_buffer: 8_000_000,
            delayed_ack: None,
            ..Config::default()
        }
        .into(),
    });
    builder.build().expect("it fits together")
}

/// Returns the events and hops between the tenth and the twentieth second.
fn work(mut network: Network) -> (u64, u64) {
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    network.run_until(at(10));
    let before = network.outcome().packet_hops;
    let mut events = 0;
    while network.run(at(20), 1) == Progress::Running {
        events += 1;
    }
    (events, network.outcome().packet_hops - before)
}

#[test]
fn a_hop_or_a_chain_of_hops_takes_one_event() {
    for recovery in [RecoveryKind::NewReno, RecoveryKind::Sack] {
        for (links, chained) in [(1, true), (3, false), (3, true)] {
            let mut network = chain(links, recovery);
            if !chained {
                network.without_chains();
            }
            let (events, hops) = work(network);
            assert!(hops > 100_000, "{hops} hops");
            let least = if chained { hops / links as u64 } else { hops };
            // The retransmission timer comes up once or twice per round trip. Hops of packets in
            // transit at both ends of the interval are counted without their events.
            let most = least + least / 1_000;
            let least = least - least / 1_000 - 1;
            assert!(
                (least..=most).contains(&events),
                "{recovery:?}, {links} links: {events} events for {hops} hops"
            );
        }
    }
}

#[test]
fn a_hop_or_a_chain_of_hops_with_fair_queues_takes_one_event() {
    let fair = || Queueing::Discipline {
        queue: Box::new(Fair::new(FairSettings {
            limit: Limit::Packets(20_000),
            quantum: Bytes::new(1500),
            flows: 64,
        })),
        random: RandomStream::new(1, "link", "queue"),
    };
    for links in [1, 3] {
        let (events, hops) = work(chain_behind(links, RecoveryKind::Sack, fair));
        assert!(hops > 100_000, "{hops} hops");
        // One event for all queues in a row; the other queues are brought up to date now and then.
        let chained = hops / links as u64;
        let most = chained + chained / 100;
        assert!(
            (chained..=most).contains(&events),
            "{links} links: {events} events for {hops} hops"
        );
    }
}
