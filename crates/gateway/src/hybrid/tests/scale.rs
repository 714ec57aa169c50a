//! Many connections: memory, and the cost of a packet.

use allocation_counter::measure;
use bentpipe_types::{
    Address, Agent, Endpoint, Flags, IpVersion, Packet, Port, RandomStream, Routes, Seq, Span,
    SynOptions, Time, World,
};

use super::super::{Hybrid, Settings};

const HOST: Address = Address(1);
const SERVER: Address = Address(2);
const HOST_ISN: u32 = 1_000;
const SERVER_ISN: u32 = 500_000;

struct Fleet {
    world: World,
    gateway: Hybrid,
}

impl Fleet {
    fn new(settings: Settings) -> Self {
        let mut gateway = Hybrid::new(Settings {
            facing: vec![Port(0)],
            ..settings
        });
        let mut routes = Routes::new(Address(0), 2, 3);
        routes.add(HOST, Port(0));
        routes.add(SERVER, Port(1));
        gateway.routes(routes);
        Self {
            world: World::new(RandomStream::new(1, "fleet", "test")),
            gateway,
        }
    }

    fn pass(&mut self, from_host: bool, connection: u16, edit: impl FnOnce(&mut Packet)) {
        let host = Endpoint {
            address: HOST,
            port: connection,
        };
        let server = Endpoint {
            address: SERVER,
            port: 80,
        };
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
                maximum_segment_size: Some(1460),
                sack_permitted: true,
                ..SynOptions::default()
            };
            self.world.packets.set_syn_options(packet, options);
        }
        let port = Port(u16::from(!from_host));
        self.gateway.on_packet(port, packet, &mut self.world.cx());
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
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
        self.pass(true, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1);
        });
    }

    fn data(&mut self, connection: u16, offset: u32, length: u16) {
        self.pass(false, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(SERVER_ISN + 1 + offset);
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
            packet.payload_length = length;
        });
    }

    fn acknowledge(&mut self, connection: u16, offset: u32) {
        self.pass(true, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1 + offset);
        });
    }

    fn wait(&mut self, until: Time) {
        while let Some(at) = self.gateway.next_deadline()
            && at <= until
        {
            self.world.now = self.world.now.max(at);
            self.gateway.on_deadline(&mut self.world.cx());
            for (_, packet) in std::mem::take(&mut self.world.outbox) {
                self.world.packets.release(packet);
            }
        }
        self.world.now = until;
    }
}

#[test]
fn an_idle_connection_takes_less_than_a_kibibyte() {
    const CONNECTIONS: u16 = 10_000;
    let mut fleet = Fleet::new(Settings::default());
    for connection in 0..CONNECTIONS {
        fleet.open(connection);
    }
    let never_used = fleet.gateway.memory() / usize::from(CONNECTIONS);
    for connection in 0..CONNECTIONS {
        fleet.data(connection, 0, 1460);
        fleet.acknowledge(connection, 1460);
    }
    let busy = fleet.gateway.memory() / usize::from(CONNECTIONS);
    fleet.wait(Time::ZERO + Span::from_secs(60));
    let idle = fleet.gateway.memory() / usize::from(CONNECTIONS);
    assert_eq!(fleet.gateway.holdings().packets, 0);
    assert_eq!(fleet.world.packets.held(), 0);
    println!("never used {never_used}, busy {busy}, idle {idle} bytes");
    assert!(never_used < 1024, "{never_used}");
    assert!(idle < 1024, "{idle}");
}

/// Memory taken from the allocator, rather than what the table reports. The timers of an idle
/// connection have expired, except for that of its removal.
#[test]
fn an_idle_connection_keeps_less_than_a_kibibyte_of_the_allocator() {
    const CONNECTIONS: u16 = 10_000;
    let settings = Settings {
        connections: usize::from(CONNECTIONS),
        ..Settings::default()
    };
    for used in [false, true] {
        let mut gateway = None;
        let kept = measure(|| {
            let mut fleet = Fleet::new(settings.clone());
            for connection in 0..CONNECTIONS {
                fleet.open(connection);
                if used {
                    fleet.data(connection, 0, 1460);
                    fleet.acknowledge(connection, 1460);
                }
            }
            fleet.wait(Time::ZERO + Span::from_secs(60));
            assert_eq!(fleet.world.packets.held(), 0);
            gateway = Some(fleet.gateway);
        });
        let gateway = gateway.expect("it was made");
        let said = gateway.memory() / usize::from(CONNECTIONS);
        let each = kept.bytes_current / i64::from(CONNECTIONS);
        println!("used {used}: {each} bytes of the allocator, {said} by the table's own account");
        assert!(each < 1024, "used {used}: {each}");
        assert!(said.abs_diff(each as usize) < 64, "{said} and {each}");
    }
}

#[test]
fn the_cost_of_a_packet_does_not_depend_on_other_connections() {
    let mut fleet = Fleet::new(Settings::default());
    for connection in [1, 2] {
        fleet.open(connection);
    }
    for segment in 0..20 {
        fleet.data(1, segment * 1000, 1000);
    }
    assert_eq!(fleet.gateway.holdings().packets, 20);
    fleet.acknowledge(2, 5_000);
    assert_eq!(fleet.gateway.holdings().packets, 20);
    fleet.acknowledge(1, 20_000);
    assert_eq!(fleet.gateway.holdings().packets, 0);
}
