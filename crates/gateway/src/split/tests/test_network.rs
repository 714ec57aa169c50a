//! A test network: two hosts, gateways between them, and links with a delay only.

use std::collections::VecDeque;

use bentpipe_tcp::{Config, Opening, PassiveFastOpen, Payload, Socket, State, reset_reply};
use bentpipe_types::{
    Address, Agent, Endpoint, Flags, PacketRef, PacketStore, Port, RandomStream, Routes, Seq, Span,
    Time, World,
};

use crate::VolatileAgent;
use crate::split::{Confirmation, Multiplexing, Settings, Split};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Effect of a link on a packet: `None` loses it.
pub(super) type Hook = Box<dyn FnMut(Time, PacketRef, &mut PacketStore) -> Option<()>>;

struct Hop {
    delay: Span,
    /// Packets in flight, by the end at which they arrive.
    under_way: [VecDeque<(Time, PacketRef)>; 2],
    hook: Option<Hook>,
}

/// A chain of nodes: node 0 is the client, the last one the server.
pub(super) struct Net<P> {
    pub(super) world: World,
    pub(super) hosts: [Option<Socket<P>>; 2],
    pub(super) configs: [Config; 2],
    /// Whether the server accepts connections.
    pub(super) listens: bool,
    /// Whether the server is up.
    pub(super) answers: bool,
    pub(super) gateways: Vec<Split<P>>,
    hops: Vec<Hop>,
    pub(super) client_port: u16,
    pub(super) fast_open: PassiveFastOpen,
    /// Packets that have arrived at each host.
    pub(super) arrived: [u64; 2],
}

pub(super) fn settings(facing: u16) -> Settings {
    let tcp = Config {
        nagle: false,
        ..Config::default()
    };
    Settings {
        facing: Port(facing),
        facing_tcp: tcp.clone(),
        host_tcp: tcp,
        set_up: Confirmation::EndToEnd,
        close: Confirmation::EndToEnd,
        memory: 64 << 20,
        only: None,
        except: None,
        processing: None,
        warm_path: false,
        idle_timeout: Span::from_secs(7_440),
        suspend_after: crate::split::SUSPEND_AFTER,
        multiplex: None,
        source_connections: None,
        rate_limits: Vec::new(),
        secret: None,
    }
}

/// Returns the settings of two gateways, with changes.
pub(super) fn two(change: impl Fn(&mut Settings)) -> Vec<Settings> {
    [1, 0]
        .map(|facing| {
            let mut settings = settings(facing);
            change(&mut settings);
            settings
        })
        .into()
}

/// Returns the settings of two gateways with trunks between them, with changes.
pub(super) fn multiplexed(connections: usize, change: impl Fn(&mut Settings)) -> Vec<Settings> {
    two(|settings| {
        let peer = Address(10 + settings.facing.0);
        settings.multiplex = Some(Multiplexing {
            peer,
            connections,
            real: None,
        });
        change(settings);
    })
}

pub(super) fn gateway<P: Payload>(here: usize, settings: Settings) -> Split<P> {
    let mut split = Split::new(settings);
    let mut routes = Routes::new(Address(10 + here as u16), 2, 16);
    routes.add(Address(1), Port(0));
    routes.add(Address(2), Port(1));
    for other in [0, 1].into_iter().filter(|other| *other != here) {
        routes.add(Address(10 + other as u16), Port(other as u16));
    }
    split.routes(routes);
    split
}

impl<P: Payload> Net<P> {
    /// Returns a network of these gateways, with the delay of each hop in milliseconds.
    pub(super) fn new(gateways: Vec<Settings>, delays_ms: &[u64]) -> Self {
        assert_eq!(delays_ms.len(), gateways.len() + 1);
        let gateways = gateways.into_iter().enumerate();
        let gateways = gateways.map(|(here, settings)| gateway(here, settings));
        Self {
            world: World::new(RandomStream::new(1, "split", "tests")),
            hosts: [None, None],
            configs: [Config::default(), Config::default()],
            listens: true,
            answers: true,
            gateways: gateways.collect(),
            hops: delays_ms
                .iter()
                .map(|delay| Hop {
                    delay: Span::from_millis(*delay),
                    under_way: [VecDeque::new(), VecDeque::new()],
                    hook: None,
                })
                .collect(),
            client_port: 40_000,
            fast_open: PassiveFastOpen::Ignore,
            arrived: [0; 2],
        }
    }

    pub(super) fn endpoint(&self, side: usize) -> Endpoint {
        Endpoint {
            address: Address(side as u16 + 1),
            port: [self.client_port, 80][side],
        }
    }

    pub(super) fn hook(&mut self, hop: usize, hook: Hook) {
        self.hops[hop].hook = Some(hook);
    }

    /// Opens a connection from one side.
    pub(super) fn connect(&mut self, side: usize, initial: u32) {
        let config = self.configs[side].clone().into();
        let opening = Opening {
            config: &config,
            local: self.endpoint(side),
            remote: self.endpoint(1 - side),
            egress: Port(0),
            initial_sequence: Seq::new(initial),
        };
        let socket = Socket::connect(&opening, None, &mut self.world.cx());
        self.hosts[side] = Some(socket);
        self.carry_host(side);
    }

    /// Calls a function on one host's socket.
    pub(super) fn at<R>(
        &mut self,
        side: usize,
        act: impl FnOnce(&mut Socket<P>, &mut bentpipe_types::Ctx<'_>) -> R,
    ) -> R {
        let socket = self.hosts[side].as_mut().expect("a socket");
        let result = act(socket, &mut self.world.cx());
        self.carry_host(side);
        result
    }

    pub(super) fn state(&self, side: usize) -> State {
        self.hosts[side]
            .as_ref()
            .map_or(State::Closed, Socket::state)
    }

    fn carry_host(&mut self, side: usize) {
        let node = if side == CLIENT {
            0
        } else {
            self.gateways.len() + 1
        };
        self.carry(node);
    }

    /// Crashes a gateway, and restarts it.
    pub(super) fn restart(&mut self, which: usize) {
        self.gateways[which].lose_power(&mut self.world.cx());
    }

    /// Shuts a gateway down.
    pub(super) fn retire(&mut self, which: usize) {
        self.gateways[which].retire(&mut self.world.cx());
        self.carry(which + 1);
    }

    /// Moves the client behind another gateway, without state. The old one's packets to the server
    /// still arrive there, those to the client do not. Returns the old gateway.
    pub(super) fn client_moves(&mut self) -> Split<P> {
        let settings = self.gateways[0].settings.clone();
        std::mem::replace(&mut self.gateways[0], gateway(0, settings))
    }

    /// Runs for this time, together with a gateway that the client has left.
    pub(super) fn run_beside(&mut self, left: &mut Split<P>, span: Span) {
        self.run(span);
        while left.next_deadline().is_some_and(|at| at <= self.world.now) {
            left.on_deadline(&mut self.world.cx());
        }
        let now = self.world.now;
        let world = &mut self.world;
        for (port, packet) in world.outbox.drain(..) {
            if port == Port(1) {
                let hop = &mut self.hops[1];
                hop.under_way[1].push_back((now + hop.delay, packet));
            } else {
                world.packets.release(packet);
            }
        }
    }

    pub(super) fn carry(&mut self, node: usize) {
        let mut outbox = std::mem::take(&mut self.world.outbox);
        for (port, packet) in outbox.drain(..) {
            let last = self.gateways.len() + 1;
            let left = node == last || node > 0 && port == Port(0);
            let (hop, end) = if left { (node - 1, 0) } else { (node, 1) };
            let hop = &mut self.hops[hop];
            let now = self.world.now;
            let passes = hop
                .hook
                .as_mut()
                .is_none_or(|hook| hook(now, packet, &mut self.world.packets).is_some());
            if passes {
                hop.under_way[end].push_back((now + hop.delay, packet));
            } else {
                self.world.packets.release(packet);
            }
        }
        self.world.outbox = outbox;
    }

    fn arrive(&mut self, hop: usize, end: usize) {
        let Some((_, packet)) = self.hops[hop].under_way[end].pop_front() else {
            return;
        };
        let node = hop + end;
        if node > 0 && node <= self.gateways.len() {
            let from = Port(1 - end as u16);
            self.gateways[node - 1].on_packet(from, packet, &mut self.world.cx());
            self.carry(node);
            return;
        }
        let side = usize::from(node > 0);
        self.arrived[side] += 1;
        if side == SERVER && !self.answers {
            self.world.packets.release(packet);
            return;
        }
        let record = self.world.packets.get(packet);
        let opens = record.flags.has(Flags::SYN) && !record.flags.has(Flags::ACK);
        let client = record.source.port;
        let open = self.hosts[side].as_ref().is_some_and(|socket| {
            socket.state() != State::Closed && !(opens && socket.state() == State::TimeWait)
        });
        let other = self.hosts[side].as_ref().is_some_and(|socket| {
            let ours = [record.destination.port, record.source.port][side];
            let theirs = [socket.connection().local(), socket.connection().remote()][side];
            ours != theirs.port
        });
        if open && other && !opens {
            // Belongs to a suspended connection.
            self.world.packets.release(packet);
        } else if open && !other {
            self.at(side, |socket, cx| socket.on_packet(packet, cx));
        } else if opens && side == SERVER && self.listens {
            let config = self.configs[side].clone().into();
            let opening = Opening {
                config: &config,
                local: self.endpoint(side),
                remote: Endpoint {
                    address: Address(1),
                    port: client,
                },
                egress: Port(0),
                initial_sequence: Seq::new(900_000),
            };
            let fast_open = self.fast_open;
            let socket = Socket::accept(&opening, packet, fast_open, &mut self.world.cx());
            self.hosts[side] = Some(socket);
            self.carry_host(side);
        } else {
            reset_reply(packet, Port(0), &mut self.world.cx());
            self.carry_host(side);
        }
    }

    /// Time of the next event.
    fn next(&self) -> Option<Time> {
        let hosts = self
            .hosts
            .iter()
            .flatten()
            .filter_map(Socket::next_deadline);
        let gateways = self.gateways.iter().filter_map(Agent::next_deadline);
        let hops = self.hops.iter().flat_map(|hop| &hop.under_way);
        let arrivals = hops.filter_map(|queue| queue.front().map(|(at, _)| *at));
        hosts.chain(gateways).chain(arrivals).min()
    }

    fn step(&mut self, next: Time) {
        self.world.now = self.world.now.max(next);
        let now = self.world.now;
        for hop in 0..self.hops.len() {
            for end in [0, 1] {
                while self.hops[hop].under_way[end]
                    .front()
                    .is_some_and(|(at, _)| *at <= now)
                {
                    self.arrive(hop, end);
                }
            }
        }
        for side in [CLIENT, SERVER] {
            let due = |socket: &Socket<P>| socket.next_deadline().is_some_and(|at| at <= now);
            if self.hosts[side].as_ref().is_some_and(due) {
                self.at(side, |socket, cx| socket.on_deadline(cx));
            }
        }
        for index in 0..self.gateways.len() {
            if self.gateways[index]
                .next_deadline()
                .is_some_and(|at| at <= now)
            {
                self.gateways[index].on_deadline(&mut self.world.cx());
                self.carry(index + 1);
            }
        }
    }

    /// Runs for this time.
    pub(super) fn run(&mut self, span: Span) {
        let end = self.world.now + span;
        self.run_until(end, |_| false);
        self.world.now = end;
    }

    /// Runs until the condition holds or the time has come. Returns whether it holds.
    pub(super) fn run_until(&mut self, end: Time, is: impl Fn(&Self) -> bool) -> bool {
        let mut steps = 0_u64;
        loop {
            if is(self) {
                return true;
            }
            let Some(next) = self.next().filter(|next| *next <= end) else {
                return false;
            };
            steps += 1;
            assert!(steps < 20_000_000, "no end of it");
            self.step(next);
            self.check();
        }
    }

    fn check(&self) {
        for gateway in &self.gateways {
            assert!(gateway.holdings().bytes as f64 <= gateway.gauge(1));
            assert!(gateway.holdings().bytes <= gateway.settings.memory);
            assert_eq!(gateway.stream_check().mismatches, 0);
        }
    }

    /// Checks that everything has ended and no state is left.
    pub(super) fn expect_nothing_left(&mut self) {
        self.run(Span::from_secs(200));
        for gateway in &self.gateways {
            assert!(gateway.has_no_connections(), "{gateway:?}");
            // Memory reserved for trunks stays.
            let reserved = gateway.multiplex.as_ref().map_or(0, |all| all.reserved());
            assert_eq!((gateway.gauge(1), gateway.gauge(0)), (reserved as f64, 0.0));
            assert_eq!((gateway.flows.len(), gateway.facing_legs), (0, 0));
        }
        assert_eq!(self.world.packets.held(), 0);
    }

    /// Returns a gateway's counter.
    pub(super) fn count(&self, gateway: usize, wanted: &str) -> u64 {
        let mut found = None;
        self.gateways[gateway].counters(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        found.expect("a counter")
    }
}
