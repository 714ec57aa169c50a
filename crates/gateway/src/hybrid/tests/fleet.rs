//! Test fixture: a gateway that is given single packets.

use bentpipe_types::{
    Address, Agent, Endpoint, Flags, IpVersion, Packet, Port, RandomStream, Routes, Seq,
    SynOptions, Time, World,
};

use super::super::{Hybrid, Settings};

pub(super) const HOST: Address = Address(1);
pub(super) const SERVER: Address = Address(2);
pub(super) const HOST_ISN: u32 = 1_000;
pub(super) const SERVER_ISN: u32 = 500_000;

/// A gateway, and single packets of hosts and servers for it.
pub(super) struct Fleet {
    pub(super) world: World,
    pub(super) gateway: Hybrid,
    /// Window scale in SYNs.
    pub(super) scale: Option<u8>,
}

impl Fleet {
    pub(super) fn new(settings: Settings) -> Self {
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
            scale: None,
        }
    }

    /// Passes a packet to the gateway. Returns the packets that the gateway sends.
    pub(super) fn pass(
        &mut self,
        from_host: bool,
        connection: u16,
        edit: impl FnOnce(&mut Packet),
    ) -> Vec<Packet> {
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
                window_scale: self.scale,
                ..SynOptions::default()
            };
            self.world.packets.set_syn_options(packet, options);
        }
        let port = Port(u16::from(!from_host));
        self.gateway.on_packet(port, packet, &mut self.world.cx());
        self.sent()
    }

    /// Takes the packets that the gateway has sent.
    fn sent(&mut self) -> Vec<Packet> {
        let mut sent = Vec::new();
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
            sent.push(*self.world.packets.get(packet));
            self.world.packets.release(packet);
        }
        sent
    }

    /// Opens a connection, from the host.
    pub(super) fn open(&mut self, connection: u16) {
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

    /// Passes data of the server.
    pub(super) fn data(&mut self, connection: u16, offset: u32, length: u16) -> Vec<Packet> {
        self.pass(false, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(SERVER_ISN + 1 + offset);
            packet.acknowledgment = Seq::new(HOST_ISN + 1);
            packet.payload_length = length;
        })
    }

    /// Passes an acknowledgment of the host.
    pub(super) fn acknowledge(&mut self, connection: u16, offset: u32) -> Vec<Packet> {
        self.pass(true, connection, |packet| {
            packet.flags = Flags::ACK;
            packet.sequence = Seq::new(HOST_ISN + 1);
            packet.acknowledgment = Seq::new(SERVER_ISN + 1 + offset);
        })
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, until: Time) {
        while let Some(at) = self.gateway.next_deadline()
            && at <= until
        {
            self.world.now = self.world.now.max(at);
            self.gateway.on_deadline(&mut self.world.cx());
            self.sent();
        }
        self.world.now = until;
    }
}
