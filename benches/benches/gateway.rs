//! The hybrid gateway: nanoseconds per packet, by the number of connections and by what of each is
//! unacknowledged.

use bentpipe_gateway::hybrid::{Hybrid, Settings};
use bentpipe_types::{
    Address, Agent, Endpoint, Flags, IpVersion, Packet, Port, RandomStream, Routes, Seq,
    SynOptions, World,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const HOST: Address = Address(1);
const SERVER: Address = Address(2);
const HOST_ISN: u32 = 1_000;
const SERVER_ISN: u32 = 500_000;
const SEGMENT: u16 = 1460;

struct Fleet {
    world: World,
    gateway: Hybrid,
    // Of each connection: bytes sent by the server, bytes acknowledged by the host.
    sent: Vec<u32>,
    acknowledged: Vec<u32>,
    next: usize,
}

impl Fleet {
    /// So many connections, of each of which so many segments are unacknowledged.
    fn new(connections: u16, outstanding: u32) -> Self {
        let mut gateway = Hybrid::new(Settings {
            facing: vec![Port(0)],
            receive_buffer: 1 << 20,
            memory: u64::MAX / 2,
            ..Settings::default()
        });
        let mut routes = Routes::new(Address(0), 2, 3);
        routes.add(HOST, Port(0));
        routes.add(SERVER, Port(1));
        gateway.routes(routes);
        let mut fleet = Self {
            world: World::new(RandomStream::new(1, "fleet", "bench")),
            gateway,
            sent: vec![0; usize::from(connections)],
            acknowledged: vec![0; usize::from(connections)],
            next: 0,
        };
        for connection in 0..connections {
            fleet.open(connection);
        }
        for _ in 0..outstanding {
            for connection in 0..connections {
                fleet.data(connection);
            }
        }
        fleet
    }

    fn pass(&mut self, from_host: bool, connection: u16, edit: impl FnOnce(&mut Packet)) {
        let end = |address, port| Endpoint { address, port };
        let (host, server) = (end(HOST, connection), end(SERVER, 80));
        let (source, destination) = if from_host {
            (host, server)
        } else {
            (server, host)
        };
        let mut packet = Packet::new(source, destination, IpVersion::V4);
        packet.window = 65_535;
        edit(&mut packet);
        let syn = packet.flags.has(Flags::SYN);
        let packet = self.world.packets.insert(packet);
        if syn {
            let options = SynOptions {
                maximum_segment_size: Some(SEGMENT),
                window_scale: Some(5),
                ..SynOptions::default()
            };
            self.world.packets.set_syn_options(packet, options);
        }
        let port = Port(u16::from(!from_host));
        self.gateway.on_packet(port, packet, &mut self.world.cx());
        for (_, packet) in self.world.outbox.drain(..) {
            self.world.packets.release(packet);
        }
    }

    fn open(&mut self, connection: u16) {
        self.pass(true, connection, |packet| {
            packet.flags = Flags::SYN;
            packet.sequence = Seq::new(HOST_ISN);
        });
        self.pass(false, connection, |packet| {
            packet.flags = Flags::SYN.with(Flags::ACK);
            packet.sequence = Seq::new(SERVER_ISN);
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
        });
        self.acknowledge(connection, 0);
    }

    fn data(&mut self, connection: u16) {
        let offset = self.sent[usize::from(connection)];
        self.sent[usize::from(connection)] += u32::from(SEGMENT);
        self.pass(false, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(SERVER_ISN + 1 + offset);
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
            packet.payload_length = SEGMENT;
        });
    }

    fn acknowledge(&mut self, connection: u16, bytes: u32) {
        self.acknowledged[usize::from(connection)] += bytes;
        let offset = self.acknowledged[usize::from(connection)];
        self.pass(true, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1 + offset);
        });
    }

    /// Two segments of the server's, and the host's ACK of as many, of the connection whose turn it
    /// is.
    fn turn(&mut self) {
        let connection = self.next as u16;
        self.next = (self.next + 1) % self.sent.len();
        self.data(connection);
        self.data(connection);
        self.acknowledge(connection, 2 * u32::from(SEGMENT));
    }
}

fn hybrid(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hybrid gateway");
    group.throughput(Throughput::Elements(3));
    for (connections, outstanding) in [(1, 0), (1, 500), (100, 20), (10_000, 2), (10_000, 20)] {
        let name = format!("{connections} connections, {outstanding} segments unacknowledged");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let mut fleet = Fleet::new(connections, outstanding);
            bencher.iter(|| fleet.turn());
        });
    }
    group.finish();
}

criterion_group!(benches, hybrid);
criterion_main!(benches);
