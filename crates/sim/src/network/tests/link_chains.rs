//! Chains give the same results as the plain engine.

use std::sync::{Arc, Mutex};

use bentpipe_link::{
    DelayBounds, Fair, FairSettings, FqCodel, FqCodelSettings, Measure, Pie, PieSettings,
    QueueDiscipline, Queueing, Red, RedSettings,
};
use bentpipe_types::{PacketRef, PacketStore};

use super::*;
use crate::network::fast::FastPaths;
use crate::{End, Progress, Tap};

/// Records of a capture: sent or received, time, and the packet's numbers.
type Seen = Arc<Mutex<Vec<(bool, Time, u32, u32, u64)>>>;

struct Watcher(Seen);

impl Watcher {
    fn note(&self, sent: bool, at: Time, packet: PacketRef, packets: &PacketStore) {
        let packet = packets.get(packet);
        let numbers = (packet.sequence.get(), packet.acknowledgment.get());
        let seen = (sent, at, numbers.0, numbers.1, packet.payload_offset);
        self.0.lock().expect("no panic").push(seen);
    }
}

impl Tap for Watcher {
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        self.note(true, at, packet, packets);
    }

    fn received(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        self.note(false, at, packet, packets);
    }
}

/// A link: (rate, delay, queue limit, queue kind) of its two directions, and their loss rate.
type Link = ([(u64, u64, u64, Choice); 2], f64);

/// Kind of queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// First in, first out.
    DropTail,
    Fair,
    Red,
    FqCodel,
    Pie,
}

fn link() -> impl Strategy<Value = Link> {
    // Few different values, so that many events are simultaneous.
    let way = || {
        (
            prop::sample::select(vec![1_000_000_u64, 8_000_000, 8_000_000, 100_000_000]),
            prop::sample::select(vec![0_u64, 1, 1, 10, 100]),
            prop::sample::select(vec![0_u64, 1, 3, 20, 1_000]),
            prop::sample::select(vec![
                Choice::DropTail,
                Choice::DropTail,
                Choice::Fair,
                Choice::Red,
                Choice::FqCodel,
                Choice::Pie,
            ]),
        )
    };
    let loss = prop::sample::select(vec![0.0, 0.0, 0.0, 0.0, 0.02]);
    ([way(), way()], loss)
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    seed: u64,
    /// Links between the routers of the row.
    trunks: Vec<Link>,
    /// Hosts: their router and their link.
    hosts: Vec<(usize, Link)>,
    /// Flows: sender, receiver, bytes, start in ms.
    flows: Vec<(usize, usize, u64, u64)>,
    /// Probes: direction and quantity.
    probes: Vec<(usize, usize)>,
    /// Whether they record each change.
    each_change: bool,
    /// The captured link and its end.
    capture: Option<(usize, bool)>,
    /// Times at which the state is read, in ms.
    pub(super) asked: Vec<u64>,
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let hosts = prop::collection::vec((0_usize..5, link()), 0..5);
    let ends = (link(), link());
    let flow = (any::<usize>(), any::<usize>(), 1_u64..300_000, 0_u64..300);
    (
        any::<u64>(),
        prop::collection::vec(link(), 0..5),
        (ends, hosts),
        prop::collection::vec(flow, 1..5),
        (
            prop::collection::vec((any::<usize>(), any::<usize>()), 0..4),
            any::<bool>(),
        ),
        prop::option::weighted(0.3, (any::<usize>(), any::<bool>())),
        prop::collection::vec(0_u64..3_000, 0..5),
    )
        .prop_map(
            |(
                seed,
                trunks,
                (ends, mut hosts),
                flows,
                (probes, each_change),
                capture,
                mut asked,
            )| {
                // One host at each end of the row.
                hosts.insert(0, (trunks.len(), ends.1));
                hosts.insert(0, (0, ends.0));
                asked.sort_unstable();
                Case {
                    seed,
                    trunks,
                    hosts,
                    flows,
                    probes,
                    each_change,
                    capture,
                    asked,
                }
            },
        )
}

fn settings(seed: u64, name: &str, link: &Link, way: usize) -> Settings {
    let (rate, delay, limit, choice) = link.0[way];
    let errors = if link.1 > 0.0 {
        let random = RandomStream::new(seed, &format!("{name}.{way}"), "errors");
        vec![ErrorModel::packet_loss(link.1, random)]
    } else {
        Vec::new()
    };
    let limit = Limit::Packets(limit);
    let mut settings = direction(rate, Span::from_millis(delay), limit, errors);
    let queue: Box<dyn QueueDiscipline> = match choice {
        Choice::DropTail => return settings,
        Choice::Fair => Box::new(Fair::new(FairSettings {
            limit,
            quantum: Bytes::new(1_500),
            flows: 2,
        })),
        Choice::Red => Box::new(Red::new(RedSettings {
            limit,
            measure: Measure::Packets,
            minimum_threshold: 2.0,
            maximum_threshold: 6.0,
            maximum_probability: 0.2,
            weight: 0.1,
            gentle: true,
            ecn: false,
            mean_packet: Bytes::new(500),
            mean_transmission: Span::from_millis(1),
        })),
        Choice::FqCodel => Box::new(FqCodel::new(FqCodelSettings {
            limit,
            bounds: DelayBounds {
                target: Span::from_micros(500),
                interval: Span::from_millis(10),
                ecn: false,
            },
            quantum: Bytes::new(1_500),
            flows: 4,
        })),
        Choice::Pie => Box::new(Pie::new(PieSettings {
            limit,
            target: Span::from_millis(1),
            update_interval: Span::from_millis(2),
            burst_allowance: Span::from_millis(4),
            ecn: false,
        })),
    };
    let random = RandomStream::new(seed, &format!("{name}.{way}"), "queue");
    settings.queue = Queueing::Discipline { queue, random };
    settings
}

/// Builds the network of a case. Returns the names of its links as well.
pub(super) fn build(case: &Case) -> (Network, Vec<String>) {
    let mut builder = NetworkBuilder::new(case.seed);
    let routers: Vec<NodeId> = (0..=case.trunks.len())
        .map(|index| builder.router(&format!("router{index}")))
        .collect();
    let mut links = Vec::new();
    let mut join = |builder: &mut NetworkBuilder, first, second, link: &Link| {
        let name = format!("link{}", links.len());
        let both = [0, 1].map(|way| settings(case.seed, &name, link, way));
        let [forward, backward] = both;
        builder.link(first, second, duplex(&name, forward, backward));
        links.push(name);
    };
    let mut hosts = Vec::new();
    for (index, (router, link)) in case.hosts.iter().enumerate() {
        let host = builder.host(&format!("host{index}"));
        join(&mut builder, host, routers[router % routers.len()], link);
        if (case.seed ^ index as u64) & 1 == 0 {
            builder.sleeps_when_idle(host);
        }
        hosts.push(host);
    }
    for (pair, link) in routers.windows(2).zip(&case.trunks) {
        join(&mut builder, pair[0], pair[1], link);
    }
    for (index, (from, to, size, start)) in case.flows.iter().enumerate() {
        let from = from % hosts.len();
        let to = (from + 1 + to % (hosts.len() - 1)) % hosts.len();
        let mut flow = bulk(&format!("flow{index}"), hosts[from], hosts[to], Some(*size));
        flow.start = Span::from_millis(*start);
        builder.flow(flow);
    }
    (builder.build().expect("it fits together"), links)
}

/// Runs a case with a number of events per call, with or without chains and hosts that run ahead.
/// Returns everything observable, and the number of calls.
fn play(case: &Case, chains: bool, ahead: bool, budget: u64) -> (Vec<String>, u64) {
    let (mut network, links) = build(case);
    if !chains {
        network.without_chains();
    }
    if !ahead {
        network.without_lookahead();
    }
    let seen = Seen::default();
    if let Some((link, first)) = case.capture {
        let end = if first { End::First } else { End::Second };
        let link = &links[link % links.len()];
        network.tap(link, end, Box::new(Watcher(Arc::clone(&seen))));
    }
    let probe = |(direction, quantity): &(usize, usize)| {
        let quantity = LinkQuantity::ALL[quantity % LinkQuantity::ALL.len()];
        Probe {
            name: quantity.name().to_owned(),
            target: ProbeTarget::Direction(direction % (2 * links.len()), quantity),
        }
    };
    let rates = Span::from_millis(7);
    let sampling = match case.each_change {
        true => Sampling::EveryChange { rates },
        false => Sampling::Interval(rates),
    };
    network.probe(case.probes.iter().map(probe).collect(), sampling);
    let mut told = Vec::new();
    let mut events = 0;
    let ends = case.asked.iter().copied().chain([400_000]);
    for until in ends {
        let until = Time::ZERO + Span::from_millis(until);
        while network.run(until, budget) == Progress::Running {
            events += 1;
        }
        for slot in &mut network.directions {
            slot.direction.settle(network.now, &mut network.packets);
        }
        let (direction_states, hops) = FastPaths::read_outs(&network).direction_states(until);
        told.push(format!(
            "{:?} {hops} hops {direction_states:?}",
            network.now()
        ));
        assert_eq!(network.violations(), []);
    }
    told.push(format!("{:#?}", network.outcome()));
    let seen = seen.lock().expect("no panic");
    told.extend(seen.iter().map(|each| format!("{each:?}")));
    (told, events)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Random rows of routers with hosts at any of them. Results, series and captures at every
    /// reading time are the same with and without chains, with and without hosts that run ahead,
    /// and for any number of events per call.
    #[test]
    fn link_chains_equal_hop_by_hop_events(case in case(), budget in 2_u64..500) {
        let (stepped, events) = play(&case, false, false, 1);
        let choose = case.hosts.iter().map(|(_, link)| link).chain(&case.trunks)
            .any(|link| link.0.iter().any(|way| way.3 != Choice::DropTail));
        for (chains, ahead) in [(true, false), (false, true), (true, true)] {
            let (shorter, fewer) = play(&case, chains, ahead, 1);
            prop_assert_eq!(&shorter, &stepped);
            for budget in [budget, u64::MAX] {
                prop_assert_eq!(&play(&case, chains, ahead, budget).0, &stepped);
            }
            // A selecting queue may be brought up to date before anything arrives.
            prop_assert!(!chains || ahead || choose || fewer <= events);
        }
    }
}

/// Regression: the last activity at a host is a deadline at which it sends nothing, after a packet.
#[test]
fn deadlines_without_transmission_do_not_count_as_activity() {
    let link = |there: (u64, u64, u64), back: (u64, u64, u64), loss| {
        let way = |(rate, delay, limit)| (rate, delay, limit, Choice::DropTail);
        ([way(there), way(back)], loss)
    };
    let case = Case {
        seed: 13_448_643_686_575_968_876,
        trunks: vec![
            link((1_000_000, 100, 0), (1_000_000, 1, 0), 0.0),
            link((1_000_000, 0, 0), (1_000_000, 0, 0), 0.0),
        ],
        hosts: vec![
            (0, link((8_000_000, 10, 20), (8_000_000, 1, 0), 0.02)),
            (2, link((1_000_000, 0, 0), (1_000_000, 0, 0), 0.0)),
            (1, link((100_000_000, 1, 0), (1_000_000, 1, 0), 0.0)),
        ],
        flows: vec![(2, 0, 163_625, 0), (0, 0, 13_033, 4)],
        probes: Vec::new(),
        each_change: false,
        capture: None,
        asked: Vec::new(),
    };
    let (stepped, _) = play(&case, false, false, 1);
    assert_eq!(play(&case, true, true, u64::MAX).0, stepped);
}

/// A row of three links without cross traffic.
fn row() -> Case {
    let link = || ([(8_000_000, 10, 50, Choice::DropTail); 2], 0.0);
    Case {
        seed: 1,
        trunks: vec![link()],
        hosts: vec![(0, link()), (1, link())],
        flows: vec![(0, 0, 200_000, 0)],
        probes: Vec::new(),
        each_change: false,
        capture: None,
        asked: Vec::new(),
    }
}

#[test]
fn a_chain_takes_one_event_per_packet() {
    let chained =
        |case: &Case| play(case, true, true, 1).1 as f64 / play(case, false, false, 1).1 as f64;
    let share = chained(&row());
    assert!(
        (0.33..0.4).contains(&share),
        "three hops, {share} of the events"
    );
    // Interval probes at its queues add only their own events.
    let mut sampled = row();
    let ways = 0..2 * (sampled.hosts.len() + sampled.trunks.len());
    sampled.probes = ways.map(|way| (way, way)).collect();
    let share = chained(&sampled);
    assert!((0.33..0.45).contains(&share), "{share} of the events");
    // With a capture in the middle, the forward chain is the last two links, and the return chain
    // the first two.
    let mut captured = row();
    captured.capture = Some((0, false));
    let share = chained(&captured);
    assert!((0.66..0.72).contains(&share), "{share} of the events");
    // A third host sends into the middle: in the forward direction the trunk has two upstreams and
    // leads to one direction.
    let mut crossed = row();
    crossed.hosts.push((0, crossed.hosts[0].1));
    crossed.flows.push((2, 1, 200_000, 0));
    let share = chained(&crossed);
    assert!((0.5..0.72).contains(&share), "{share} of the events");
}
