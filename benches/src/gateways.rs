//! Many connections through one gateway without a network, to measure the gateway alone.

use bentpipe_gateway::{hybrid, split};
use bentpipe_tcp::Config;
use bentpipe_types::{
    Address, Agent, Endpoint, Flags, IpVersion, Packet, Port, RandomStream, Routes, Seq, Span,
    SynOptions, Time, World,
};

const HOST: Address = Address(1);
const SERVER: Address = Address(2);
const HOST_ISN: u32 = 1_000;
const SERVER_ISN: u32 = 500_000;
const SEGMENT: u16 = 1460;

/// Returns the TCP settings of a gateway's legs: no delays, and windows that grow although they are
/// not full.
fn tcp() -> Config {
    Config {
        nagle: false,
        window_validation: false,
        send_buffer: 4 << 20,
        receive_buffer: 4 << 20,
        ..Config::default()
    }
}

/// Creates a split gateway whose hosts are at port 0.
#[must_use]
pub fn split() -> split::Split {
    split::Split::new(split::Settings {
        facing: Port(0),
        facing_tcp: tcp(),
        host_tcp: tcp(),
        set_up: split::Confirmation::EndToEnd,
        close: split::Confirmation::EndToEnd,
        memory: 1 << 40,
        only: None,
        except: None,
        processing: None,
        warm_path: false,
        idle_timeout: Span::from_secs(7_440),
        suspend_after: split::SUSPEND_AFTER,
        multiplex: None,
        source_connections: None,
        rate_limits: Vec::new(),
        secret: None,
    })
}

/// Creates a hybrid gateway whose hosts are at port 0.
#[must_use]
pub fn hybrid() -> hybrid::Hybrid {
    hybrid::Hybrid::new(hybrid::Settings {
        facing: vec![Port(0)],
        receive_buffer: 1 << 20,
        memory: u64::MAX / 2,
        ..hybrid::Settings::default()
    })
}

/// Connections from hosts behind a gateway to a server. This type plays the hosts and the server.
#[derive(Debug)]
pub struct Fleet<A> {
    world: World,
    gateway: A,
    /// By connection: bytes sent by the server, and bytes acknowledged by the host.
    sent: Vec<u32>,
    acknowledged: Vec<u32>,
    next: usize,
}

impl<A: Agent> Fleet<A> {
    /// Opens `connections` connections through a gateway.
    #[must_use]
    pub fn new(mut gateway: A, connections: u16) -> Self {
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
        fleet
    }

    /// Sends `segments` more segments on each connection without acknowledging them.
    pub fn fill(&mut self, segments: u32) {
        for _ in 0..segments {
            for connection in 0..self.sent.len() {
                self.data(connection as u16);
            }
        }
    }

    /// Sends and acknowledges `segments` segments on each connection, two at a time.
    pub fn transfer(&mut self, segments: u32) {
        for _ in 0..self.sent.len() * segments.div_ceil(2) as usize {
            self.turn();
        }
    }

    /// Advances the time by `span` without packets.
    pub fn wait(&mut self, span: Span) {
        let until = self.world.now + span;
        while let Some(at) = self.gateway.next_deadline()
            && at <= until
        {
            self.world.now = self.world.now.max(at);
            self.gateway.on_deadline(&mut self.world.cx());
            self.release_forwarded();
        }
        self.world.now = until;
    }

    fn release_forwarded(&mut self) {
        for (_, packet) in self.world.outbox.drain(..) {
            self.world.packets.release(packet);
        }
    }

    fn deliver(&mut self, from_host: bool, connection: u16, edit: impl FnOnce(&mut Packet)) {
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
                sack_permitted: true,
                ..SynOptions::default()
            };
            self.world.packets.set_syn_options(packet, options);
        }
        // The transmission time of a packet at 10 Gbit/s.
        let now = self.world.now + Span::from_nanos(1_200);
        let port = Port(u16::from(!from_host));
        (self.gateway).on_packet(port, packet, &mut self.world.at(now));
        self.release_forwarded();
    }

    fn open(&mut self, connection: u16) {
        self.deliver(true, connection, |packet| {
            packet.flags = Flags::SYN;
            packet.sequence = Seq::new(HOST_ISN);
        });
        self.deliver(false, connection, |packet| {
            packet.flags = Flags::SYN.with(Flags::ACK);
            packet.sequence = Seq::new(SERVER_ISN);
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
        });
        self.acknowledge(connection, 0);
    }

    /// Opens another connection, which its host resets: five packets.
    pub fn open_and_reset(&mut self) {
        let connection = self.sent.len() as u16;
        self.open(connection);
        for from_host in [true, false] {
            self.deliver(from_host, connection, |packet| {
                packet.flags = Flags::RST.with(Flags::ACK);
                let (sequence, other) = if from_host {
                    (HOST_ISN, SERVER_ISN)
                } else {
                    (SERVER_ISN, HOST_ISN)
                };
                packet.sequence = Seq::new(sequence + 1);
                packet.acknowledgment = Seq::new(other + 1);
            });
        }
    }

    fn data(&mut self, connection: u16) {
        let offset = self.sent[usize::from(connection)];
        self.sent[usize::from(connection)] = offset.wrapping_add(u32::from(SEGMENT));
        self.deliver(false, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(SERVER_ISN + 1) + offset;
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
            packet.payload_length = SEGMENT;
        });
    }

    fn acknowledge(&mut self, connection: u16, bytes: u32) {
        if let Some(acknowledged) = self.acknowledged.get_mut(usize::from(connection)) {
            *acknowledged = acknowledged.wrapping_add(bytes);
        }
        let acknowledged = self.acknowledged.get(usize::from(connection));
        let offset = acknowledged.copied().unwrap_or(0);
        self.deliver(true, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1) + offset;
        });
    }

    /// Sends two segments of the server and the host's ACK of as many, on the next connection in
    /// turn: three packets.
    pub fn turn(&mut self) {
        let connection = self.next as u16;
        self.next = (self.next + 1) % self.sent.len();
        self.data(connection);
        self.data(connection);
        self.acknowledge(connection, 2 * u32::from(SEGMENT));
    }

    /// Checks that every byte sent was forwarded and that only outstanding bytes are stored.
    ///
    /// # Panics
    /// If not, since the benchmark would then measure something else.
    pub fn expect_all_carried(&self) {
        let outstanding: u64 = (self.sent.iter().zip(&self.acknowledged))
            .map(|(sent, acknowledged)| u64::from(sent.wrapping_sub(*acknowledged)))
            .sum();
        assert_eq!(self.gateway.holdings().bytes, outstanding);
        let open = self.count("connections.open");
        assert_eq!(open, Some(self.sent.len() as u64));
    }

    fn count(&self, wanted: &str) -> Option<u64> {
        let mut found = None;
        self.gateway.counters(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        found
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.world.now
    }
}
