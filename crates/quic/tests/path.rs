//! Two hosts with applications over QUIC, and a path between them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bentpipe_host::applications::{BulkSettings, Direction, RequestResponseSettings};
use bentpipe_host::report::QuicReport;
use bentpipe_host::{ApplicationId, Distribution, Host, Member, Ports, Traffic};
use bentpipe_quic::{AckFrequency, Engine, Quic, QuicApplication, QuicRule, QuicSettings};
use bentpipe_tcp::{Config, CongestionControlKind, Limit, Ranges};
use bentpipe_types::{
    Address, Agent, Endpoint, Packet, PacketRef, Port, RandomStream, Routes, Span, Time, World,
};

/// A path in one direction.
#[derive(Clone, Copy)]
struct Direct {
    rate: f64,
    delay: Span,
    queue: usize,
    loss: f64,
    duplicates: f64,
    reorders: f64,
    corrupts: f64,
    truncates: f64,
}

impl Direct {
    fn of(megabits: f64, milliseconds: u64) -> Self {
        Self {
            rate: megabits * 1e6,
            delay: Span::from_millis(milliseconds),
            queue: usize::MAX,
            loss: 0.0,
            duplicates: 0.0,
            reorders: 0.0,
            corrupts: 0.0,
            truncates: 0.0,
        }
    }
}

struct Net {
    world: World,
    hosts: [Host<Ranges>; 2],
    ids: [ApplicationId; 2],
    paths: [Direct; 2],
    free_at: [Time; 2],
    leaving: [VecDeque<Time>; 2],
    wire: BTreeMap<(Time, u64), (usize, PacketRef)>,
    luck: RandomStream,
    count: u64,
    log: Vec<(u64, usize, u64)>,
    logs: bool,
    /// Number of packets after which the client gets another port (NAT rebinding), or 0 for never.
    rebinds_every: u64,
    /// Whether it then gets another address, too.
    rebinds_addresses: bool,
    confirmed: bool,
    /// Datagrams that each host sent.
    emitted: [u64; 2],
}

const PORT: u16 = 443;
const CLIENT_PORT: u16 = 40_000;
/// Addresses of the client behind its NAT.
const CLIENT_ADDRESSES: [u16; 4] = [1, 3, 4, 5];
const UDP: u8 = 17;

fn end(host: u16, port: u16) -> Endpoint {
    Endpoint {
        address: Address(host),
        port,
    }
}

impl Net {
    fn new(seed: u64, traffic: &Traffic, settings: [QuicSettings; 2], paths: [Direct; 2]) -> Self {
        let ends = traffic.ends::<Quic, Quic>(end(2, PORT));
        let [here, there] = settings;
        let stream = |name| RandomStream::new(seed, name, "quic");
        let client = QuicApplication::new(Engine::new(here, stream("client"), false), ends.opener);
        let server = QuicApplication::new(Engine::new(there, stream("server"), true), ends.server);
        let mut hosts = [Host::<Ranges>::default(), Host::default()];
        for (host, address) in hosts.iter_mut().zip([1, 2]) {
            host.routes(Routes::by_default(Address(address), Port(0)));
        }
        let ports = Ports::range(CLIENT_PORT, CLIENT_PORT + 31);
        let mut member = Member::new(Config::default());
        member.ports = ports;
        member.starts = Some(Time::ZERO);
        let opener = hosts[0].add(member, Box::new(client));
        let accepting = hosts[1].add(Member::new(Config::default()), Box::new(server));
        for address in CLIENT_ADDRESSES {
            hosts[1].expect(PORT, Address(address), ports, accepting);
        }
        Self {
            world: World::new(RandomStream::new(seed, "net", "agents")),
            hosts,
            ids: [opener, accepting],
            paths,
            free_at: [Time::ZERO; 2],
            leaving: Default::default(),
            wire: BTreeMap::new(),
            luck: RandomStream::new(seed, "net", "luck"),
            count: 0,
            log: Vec::new(),
            logs: false,
            rebinds_every: 0,
            rebinds_addresses: false,
            confirmed: false,
            emitted: [0; 2],
        }
    }

    fn carry(&mut self, from: usize) {
        let now = self.world.now;
        let path = self.paths[from];
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
            let length = self.world.packets.get(packet).length().get();
            self.emitted[from] += 1;
            if self.logs {
                self.log.push((now.as_nanos(), from, length));
            }
            let leaving = &mut self.leaving[from];
            while leaving.front().is_some_and(|at| *at <= now) {
                leaving.pop_front();
            }
            if leaving.len() >= path.queue || self.luck.happens(path.loss) {
                self.world.packets.release(packet);
                continue;
            }
            let time = Span::from_nanos((length as f64 * 8e9 / path.rate) as u64);
            let leaves = now.max(self.free_at[from]) + time;
            self.free_at[from] = leaves;
            self.leaving[from].push_back(leaves);
            let mut arrives = leaves + path.delay;
            if self.luck.happens(path.reorders) {
                arrives += Span::from_millis(self.luck.bits() % 90);
            }
            if self.luck.happens(path.duplicates) {
                let copy = self.world.packets.duplicate(packet);
                self.push(arrives + Span::from_millis(7), 1 - from, copy);
            }
            let packet = if self.luck.happens(path.corrupts) {
                let own = self.world.packets.unshare(packet);
                self.world.packets.corrupt(own);
                own
            } else {
                packet
            };
            let packet = if self.luck.happens(path.truncates) {
                self.truncated(packet)
            } else {
                packet
            };
            self.translate(from, packet);
            self.push(arrives, 1 - from, packet);
        }
    }

    /// Cuts the payload of a datagram, as its sender would have if it were shorter.
    fn truncated(&mut self, packet: PacketRef) -> PacketRef {
        let whole = *self.world.packets.get(packet);
        let ecn = whole.ecn();
        let bytes = self.world.packets.payload(packet).expect("bytes").to_vec();
        let length = 1 + self.luck.bits() as usize % bytes.len();
        let version = bentpipe_types::IpVersion::V4;
        let mut record = Packet::datagram(whole.source, whole.destination, version, UDP);
        record.payload_length = length as u16;
        record.set_ecn(ecn);
        self.world.packets.release(packet);
        let shorter = self.world.packets.insert(record);
        (self.world.packets).set_payload(shorter, |payload| {
            payload.copy_from_slice(&bytes[..length]);
        });
        shorter
    }

    /// Whether the server has completed a handshake.
    fn is_confirmed(&mut self) -> bool {
        self.confirmed = self.confirmed || self.quic(1).established > 0;
        self.confirmed
    }

    /// Translates the client's end, as a NAT that forgets its mapping now and then.
    fn translate(&mut self, from: usize, packet: PacketRef) {
        // Before the handshake is confirmed, a server ignores other addresses (RFC 9000 section 9).
        if self.rebinds_every == 0 || !self.is_confirmed() {
            return;
        }
        let mappings = self.count / self.rebinds_every;
        let record = self.world.packets.get_mut(packet);
        if from == 0 {
            record.source.port = CLIENT_PORT + 16 + (mappings % 16) as u16;
            if self.rebinds_addresses {
                let mapped = mappings as usize % CLIENT_ADDRESSES.len();
                record.source.address = Address(CLIENT_ADDRESSES[mapped]);
            }
        } else {
            record.destination = end(1, CLIENT_PORT);
        }
    }

    fn push(&mut self, at: Time, to: usize, packet: PacketRef) {
        self.count += 1;
        self.wire.insert((at, self.count), (to, packet));
    }

    /// Runs until nothing more happens or `until`. Returns the time at which the client finished.
    fn run(&mut self, until: Span) -> Option<Time> {
        loop {
            let packet = self.wire.keys().next().map(|(at, _)| *at);
            let timers = self.hosts.iter().enumerate();
            let timer = timers
                .filter_map(|(host, each)| Some((each.next_deadline()?, host)))
                .min();
            let next = packet.into_iter().chain(timer.map(|(at, _)| at)).min();
            if next.is_none_or(|at| at > Time::ZERO + until) {
                break;
            }
            match (packet, timer) {
                (Some(at), timer) if timer.is_none_or(|(timer, _)| at <= timer) => {
                    let Some((_, (to, packet))) = self.wire.pop_first() else {
                        break;
                    };
                    self.world.now = at;
                    self.hosts[to].on_packet(Port(0), packet, &mut self.world.cx());
                    self.carry(to);
                }
                (_, Some((at, host))) => {
                    self.world.now = at.max(self.world.now);
                    self.hosts[host].on_deadline(&mut self.world.cx());
                    self.carry(host);
                }
                (_, None) => break,
            }
        }
        let report = self.hosts[0].report(self.ids[0], self.world.now);
        report.and_then(|report| report.finished)
    }

    fn quic(&self, host: usize) -> QuicReport {
        let report = self.hosts[host].report(self.ids[host], self.world.now);
        *report.and_then(|report| report.quic).expect("a report")
    }

    /// Returns the time of the last delivery at the client, in seconds.
    fn ends_at(&self) -> f64 {
        let last = self.quic(0).last_delivery;
        last.expect("a delivery").as_secs_f64()
    }

    fn delivered(&self, host: usize) -> u64 {
        self.hosts[host].datagram_bytes(self.ids[host])
    }
}

fn bulk(size: u64, direction: Direction) -> Traffic {
    Traffic::Bulk(BulkSettings {
        size: Some(size),
        direction,
        transfers: 1,
        pause: Span::ZERO,
    })
}

fn with(rule: QuicRule) -> QuicSettings {
    QuicSettings {
        rule,
        stream_window: 64 << 20,
        send_window: 64 << 20,
        ..QuicSettings::default()
    }
}

fn tcp_rule(kind: CongestionControlKind) -> QuicRule {
    QuicRule::Tcp(Arc::new(Config {
        congestion_control: kind,
        ..Config::default()
    }))
}

/// Runs a transfer and returns its network afterwards; the last event is the end of it.
fn transfer(
    seed: u64,
    size: u64,
    direction: Direction,
    settings: &QuicSettings,
    paths: [Direct; 2],
) -> Net {
    let settings = [settings.clone(), settings.clone()];
    let mut net = Net::new(seed, &bulk(size, direction), settings, paths);
    net.run(Span::from_secs(600));
    net
}

#[test]
fn a_transfer_arrives_in_both_directions() {
    let path = Direct::of(10.0, 50);
    for direction in [Direction::Upload, Direction::Download, Direction::Both] {
        let net = transfer(1, 300_000, direction, &QuicSettings::default(), [path; 2]);
        let expected = match direction {
            Direction::Upload => [0, 300_000],
            Direction::Download => [300_000, 0],
            Direction::Both => [300_000; 2],
        };
        assert_eq!([0, 1].map(|host| net.delivered(host)), expected);
        let report = net.quic(0);
        assert_eq!((report.connections, report.established), (1, 1));
        assert_eq!(report.packets_lost, 0);
        assert_eq!(report.failure, None);
        // One round trip, the transmission of a few packets, and nothing else.
        let handshake = report.handshake.expect("a handshake").as_secs_f64();
        assert!((0.1..0.12).contains(&handshake), "{handshake}");
        assert_eq!(net.world.packets.held(), 0);
    }
}

#[test]
fn equal_seeds_give_equal_packets() {
    let mut path = Direct::of(5.0, 100);
    path.loss = 0.02;
    let logged = |seed| {
        let settings = [QuicSettings::default(), QuicSettings::default()];
        let traffic = bulk(500_000, Direction::Both);
        let mut net = Net::new(seed, &traffic, settings, [path; 2]);
        net.logs = true;
        net.run(Span::from_secs(600));
        assert_eq!(net.delivered(0), 500_000);
        net.log
    };
    let first = logged(1);
    assert!(first.len() > 600, "{}", first.len());
    assert_eq!(first, logged(1));
    assert_ne!(first, logged(2));
}

#[test]
fn every_window_rule_completes_a_transfer_with_losses() {
    let mut path = Direct::of(10.0, 100);
    path.queue = 60;
    path.loss = 0.005;
    let mut rules = vec![QuicRule::QuinnCubic, QuicRule::QuinnNewReno];
    rules.extend(
        [
            CongestionControlKind::Reno,
            CongestionControlKind::Westwood,
            CongestionControlKind::Westwood2001,
            CongestionControlKind::Hybla,
            CongestionControlKind::Cubic,
            CongestionControlKind::Bbr1,
            CongestionControlKind::Bbr3,
        ]
        .map(tcp_rule),
    );
    rules.push(QuicRule::Tcp(Arc::new(Config {
        congestion_control: CongestionControlKind::EnhancedHybla,
        channel_capacity: bentpipe_types::BitRate::new(10_000_000),
        ..Config::default()
    })));
    for rule in rules {
        let name = format!("{rule:?}");
        let name = name
            .split_once("congestion_control: ")
            .map_or(&name[..], |(_, rest)| &rest[..9]);
        let net = transfer(
            3,
            5_000_000,
            Direction::Download,
            &with(rule.clone()),
            [path; 2],
        );
        let report = net.quic(1);
        println!(
            "{name:12} {} {} {}",
            net.ends_at(),
            report.packets_lost,
            report.packets_sent
        );
        assert_eq!(net.delivered(0), 5_000_000, "{name}");
        assert!(
            report.packets_lost > 0 && report.congestion_events > 0,
            "{name}"
        );
    }
}

/// Draws a path, settings and traffic, and runs them: streams are exact at both ends, or the
/// client's connection ends with an error. Returns whether it ended so.
fn hostile(seed: u64) -> bool {
    let mut draw = RandomStream::new(seed, "hostile", "quic");
    let mut up_to = |most: u64| draw.bits() % (most + 1);
    let mut path = || {
        let mut path = Direct::of(0.5 + up_to(50) as f64, up_to(300));
        path.loss = 0.001 * up_to(100) as f64;
        path.duplicates = 0.001 * up_to(50) as f64;
        path.reorders = 0.001 * up_to(100) as f64;
        path.corrupts = 0.001 * up_to(30) as f64;
        path.truncates = 0.001 * up_to(30) as f64;
        path.queue = 5 + up_to(100) as usize;
        path
    };
    let paths = [path(), path()];
    let rules = bentpipe_tcp::congestion::WindowRule::ALL;
    let mut settings = || QuicSettings {
        rule: match up_to(rules.len() as u64) {
            0 => QuicRule::QuinnCubic,
            rule => QuicRule::Tcp(Arc::new(Config {
                congestion_control: rules[rule as usize - 1].into(),
                channel_capacity: bentpipe_types::BitRate::new(10_000_000),
                ..Config::default()
            })),
        },
        stream_window: 3_000 + up_to(200_000),
        connection_window: (up_to(1) == 0).then(|| 10_000 + up_to(100_000)),
        ack_frequency: (up_to(1) == 0).then(|| AckFrequency {
            threshold: 1 + up_to(20) as u32,
            delay: None,
        }),
        maximum_mtu: (up_to(1) == 0).then_some(1_452),
        early_data: up_to(1) == 0,
        ..QuicSettings::default()
    };
    let settings = [settings(), settings()];
    let direction = [Direction::Upload, Direction::Download, Direction::Both][up_to(2) as usize];
    let size = 1 + up_to(60_000);
    let mut net = Net::new(seed, &bulk(size, direction), settings, paths);
    net.rebinds_every = [0, 30, 7][up_to(2) as usize];
    net.rebinds_addresses = up_to(1) == 0;
    net.run(Span::from_secs(3_600));
    let reports = [0, 1].map(|host| net.quic(host));
    for (host, report) in reports.iter().enumerate() {
        assert_eq!(report.mismatches, 0, "{seed}");
        assert!(net.delivered(host) <= size, "{seed}");
        assert!(report.connections <= 8, "{seed}: {}", report.connections);
        // The endpoint itself sends some more: stateless resets and refusals.
        assert!(report.packets_sent <= net.emitted[host], "{seed}");
    }
    // The server's connection may fail after the transfer: the client's close was lost.
    let failed = reports[0].failure.is_some();
    if !failed {
        let expected = match direction {
            Direction::Upload => [0, size],
            Direction::Download => [size, 0],
            Direction::Both => [size; 2],
        };
        assert_eq!([0, 1].map(|host| net.delivered(host)), expected, "{seed}");
    }
    assert_eq!(net.world.packets.held(), 0, "{seed}");
    failed
}

/// Runs hostile cases. Few of the connections may fail.
fn hostile_cases(seeds: Range<u64>) {
    let cases = seeds.end - seeds.start;
    let failed = seeds.filter(|seed| hostile(*seed)).count() as u64;
    println!("{failed} of {cases} connections failed");
    assert!(failed * 50 <= cases, "{failed} of {cases} failed");
}

#[test]
fn hostile_paths_deliver_exact_streams() {
    hostile_cases(0..1_000);
}

#[test]
#[ignore = "takes minutes"]
fn many_hostile_paths_deliver_exact_streams() {
    hostile_cases(1_000..10_000);
}

#[test]
fn stream_windows_limit_a_transfer_over_a_long_path() {
    let path = Direct::of(250.0, 300);
    let small = transfer(
        1,
        20_000_000,
        Direction::Download,
        &QuicSettings::default(),
        [path; 2],
    );
    let large = transfer(
        1,
        20_000_000,
        Direction::Download,
        &with(QuicRule::QuinnCubic),
        [path; 2],
    );
    // 1.25 MB per round trip of 600 ms, at most.
    let least = 20_000_000.0 / 1_250_000.0 * 0.6;
    let [slow, fast] = [&small, &large].map(|net| net.ends_at());
    assert!(slow > least, "{slow}");
    assert!(fast < 0.7 * slow, "{fast} {slow}");
    let report = small.quic(1);
    let limited = report.limited.spent(Limit::ReceiveWindow, Time::NEVER);
    assert!(limited.as_secs_f64() > 0.5 * slow, "{limited:?}");
}

#[test]
fn fewer_acknowledgments_are_sent_when_the_sender_asks_for_it() {
    let path = Direct::of(10.0, 100);
    let acks = |frequency| {
        let settings = QuicSettings {
            ack_frequency: frequency,
            ..with(QuicRule::QuinnCubic)
        };
        let net = transfer(1, 3_000_000, Direction::Download, &settings, [path; 2]);
        assert_eq!(net.delivered(0), 3_000_000);
        net.quic(0).acks_sent
    };
    let usual = acks(None);
    let rare = acks(Some(AckFrequency {
        threshold: 19,
        delay: None,
    }));
    assert!(rare * 4 < usual, "{rare} of {usual}");
}

#[test]
fn requests_are_answered() {
    let path = Direct::of(10.0, 100);
    let traffic = Traffic::RequestResponse(RequestResponseSettings {
        request: Distribution::Constant(200.0),
        response: Distribution::Constant(10_000.0),
        think: Span::ZERO,
        pause: Distribution::Constant(0.0),
        count: Some(5),
    });
    let settings = [QuicSettings::default(), QuicSettings::default()];
    let mut net = Net::new(1, &traffic, settings, [path; 2]);
    let finished = net.run(Span::from_secs(60)).expect("five responses");
    // A handshake and five exchanges of one round trip each; the first responses fit in the
    // initial window.
    let seconds = finished.as_secs_f64();
    assert!((1.2..1.35).contains(&seconds), "{seconds}");
    let report = net.hosts[0]
        .report(net.ids[0], net.world.now)
        .expect("a report");
    assert_eq!(report.responses.expect("responses").times.len(), 5);
}

/// quinn's receiver ends a connection with more than 1,024 gaps in a stream. Slow start makes them
/// if the windows are far above what the path holds: behind a full queue, every second packet is
/// lost.
#[test]
fn a_window_far_above_the_path_ends_the_connection() {
    let queue_packets = 2_600;
    let down = Direct {
        queue: queue_packets,
        ..Direct::of(50.0, 300)
    };
    let paths = [Direct::of(10.0, 300), down];
    let run = |window| {
        let settings = QuicSettings {
            stream_window: window,
            send_window: window,
            ..QuicSettings::default()
        };
        transfer(1, 30_000_000, Direction::Download, &settings, paths)
    };
    let failed = run(64 << 20);
    let report = failed.quic(1);
    let reason = report.failure.expect("a failure");
    assert!(reason.contains("too many gaps"), "{reason}");
    assert!(failed.delivered(0) < 30_000_000);
    // Capacity of the path and its queue: 50 Mbit/s times 600 ms, and the queue.
    let held = 3_750_000 + queue_packets as u64 * 1_452;
    let sound = run(held);
    assert_eq!(sound.delivered(0), 30_000_000);
    assert_eq!(sound.quic(1).packets_lost, 0);
}

/// RFC 9002 section 6.2.2: the first timeout comes after three initial round-trip times, and each
/// further one after twice the time, until the idle timeout of 30 s.
#[test]
fn probe_timeouts_are_counted() {
    let path = Direct {
        loss: 1.0,
        ..Direct::of(10.0, 100)
    };
    let settings = QuicSettings::default();
    let silent = transfer(1, 300_000, Direction::Upload, &settings, [path; 2]);
    let report = silent.quic(0);
    // After 1, 3, 7 and 15 s.
    assert_eq!(report.probe_timeouts, 4);
    assert_eq!(report.failure.as_deref(), Some("timed out"));
    let usual = transfer(
        1,
        300_000,
        Direction::Upload,
        &settings,
        [Direct::of(10.0, 100); 2],
    );
    assert_eq!(usual.quic(0).probe_timeouts, 0);
}
