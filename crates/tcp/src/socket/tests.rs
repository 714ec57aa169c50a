//! Tests of sockets over a network with loss, delay and duplication, and of a gateway that relays
//! between sockets.

use std::sync::Arc;

use bentpipe_types::{PacketRef, Port, RandomStream, Seq, Span, Time, World, filler};
use proptest::prelude::*;

use super::*;
use crate::Config;
use crate::connection::{TAKEN_PATHS, TakenPath};
use crate::testing::{A, B, endpoint, world};

/// Packets in transit: arrival time, receiver, packet.
type Wire = Vec<(Time, usize, PacketRef)>;

/// Sockets that share a packet store, and a network that loses, delays and duplicates.
struct Net<P> {
    world: World,
    sockets: Vec<Socket<P>>,
    /// Index of each socket's peer.
    peers: Vec<usize>,
    wire: Wire,
    luck: RandomStream,
    loss: f64,
    /// Packets sent: time, sender, and contents.
    sent: Vec<(Time, usize, String)>,
}

impl<P: Payload> Net<P> {
    fn new(seed: u64, loss: f64) -> Self {
        Self {
            world: world(seed),
            sockets: Vec::new(),
            peers: Vec::new(),
            wire: Wire::new(),
            luck: RandomStream::new(seed, "socket", "luck"),
            loss,
            sent: Vec::new(),
        }
    }

    /// Creates two sockets, which are connected once the network has run.
    fn pair(&mut self, config: &Config) -> (usize, usize) {
        let config = Arc::new(config.clone());
        let opening = |side: usize, sequence| Opening {
            config: &config,
            local: endpoint(side),
            remote: endpoint(1 - side),
            egress: Port(0),
            initial_sequence: Seq::new(sequence),
        };
        let ip = |last| std::net::IpAddr::from([192, 0, 2, last]);
        let first = self.sockets.len();
        let ip = P::KEEPS_BYTES.then_some((ip(1), ip(2)));
        let client = Socket::connect(&opening(A, 0xffff_ff00), ip, &mut self.world.cx());
        self.sockets.push(client);
        let (_, syn) = self.world.outbox.pop().expect("a SYN");
        assert_eq!(self.world.packets.ip(syn), ip);
        let nothing = PassiveFastOpen::Ignore;
        let server = Socket::accept(&opening(B, 7), syn, nothing, &mut self.world.cx());
        self.sockets.push(server);
        self.peers.extend([first + 1, first]);
        self.send_from(first + 1);
        (first, first + 1)
    }

    /// Calls a function on a socket, as its owner.
    fn with<R>(&mut self, index: usize, act: impl FnOnce(&mut Socket<P>, &mut Ctx<'_>) -> R) -> R {
        let result = act(&mut self.sockets[index], &mut self.world.cx());
        self.send_from(index);
        result
    }

    fn relay(&mut self, from: usize, to: usize, maximum: u64) -> u64 {
        let [from_socket, to_socket] = self
            .sockets
            .get_disjoint_mut([from, to])
            .expect("two sockets");
        let mut cx = self.world.cx();
        let moved = relay(from_socket, to_socket, maximum, &mut cx);
        // Packets of both sockets are mixed in the outbox. Data belongs to `to`, window updates to
        // `from`.
        let mixed = std::mem::take(&mut self.world.outbox);
        let mut mixed: std::collections::VecDeque<_> = mixed.into();
        let data = |packet| self.world.packets.get(packet).payload_length > 0;
        let (to_send, windows): (Vec<_>, Vec<_>) = mixed.drain(..).partition(|(_, p)| data(*p));
        self.world.outbox.extend(to_send);
        self.send_from(to);
        self.world.outbox.extend(windows);
        self.send_from(from);
        moved
    }

    fn send_from(&mut self, index: usize) {
        let to = self.peers[index];
        let sent: Vec<_> = self.world.outbox.drain(..).collect();
        for (_, packet) in sent {
            let said = format!("{:?}", self.world.packets.get(packet));
            self.sent.push((self.world.now, index, said));
            if P::KEEPS_BYTES {
                let record = *self.world.packets.get(packet);
                let payload = self.world.packets.payload(packet).unwrap_or(&[]);
                assert_eq!(payload.len(), usize::from(record.payload_length));
                assert!(self.world.packets.ip(packet).is_some());
            }
            if self.luck.happens(self.loss) {
                self.world.packets.release(packet);
                continue;
            }
            if self.luck.happens(self.loss) {
                let copy = self.world.packets.duplicate(packet);
                let at = self.world.now + Span::from_millis(1 + self.luck.bits() % 90);
                self.wire.push((at, to, copy));
            }
            let at = self.world.now + Span::from_millis(20 + self.luck.bits() % 30);
            self.wire.push((at, to, packet));
        }
    }

    /// Processes the next event.
    fn step(&mut self) -> bool {
        let packet = (0..self.wire.len()).min_by_key(|i| self.wire[*i].0);
        let timer = (0..self.sockets.len())
            .filter_map(|i| Some((self.sockets[i].next_deadline()?, i)))
            .min();
        match (packet, timer) {
            (Some(first), timer) if timer.is_none_or(|(at, _)| self.wire[first].0 <= at) => {
                let (at, to, packet) = self.wire.swap_remove(first);
                self.world.now = at;
                self.with(to, |socket, cx| socket.on_packet(packet, cx));
            }
            (_, Some((at, index))) => {
                self.world.now = at.max(self.world.now);
                self.with(index, Socket::on_deadline);
            }
            (_, None) => return false,
        }
        true
    }
}

fn small() -> Config {
    Config {
        mss: 500,
        send_buffer: 20_000,
        receive_buffer: 12_000,
        ..Config::default()
    }
}

/// Data that is no filler.
fn text(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * i / 7 + i) as u8).collect()
}

fn check_transfer<P: Payload>(seed: u64, loss: f64, length: usize) {
    let sent = text(length);
    let mut net = Net::<P>::new(seed, loss);
    let (client, server) = net.pair(&small());
    let (mut written, mut received) = (0, Vec::new());
    let mut buffer = vec![0; 777];
    for _ in 0..400_000 {
        written += net.with(client, |socket, cx| {
            socket.write(Source::Bytes(&sent[written as usize..]), cx)
        });
        if written == length as u64 {
            net.with(client, Socket::close);
        }
        let read = net.with(server, |socket, cx| socket.read_bytes(&mut buffer, cx));
        received.extend_from_slice(&buffer[..read]);
        // More may have arrived than one read takes.
        if received.len() == length || !net.step() && read == 0 {
            break;
        }
    }
    let mut expected = sent;
    if !P::KEEPS_BYTES {
        filler::fill(0, &mut expected);
    }
    assert!(
        received == expected,
        "seed {seed}: {} bytes",
        received.len()
    );
    let check = net.sockets[server].stream_check();
    assert!(check.ranges > 0 && check.mismatches == 0, "{check:?}");
    assert_eq!(net.sockets[server].buffered(), 0);
}

#[test]
fn data_read_equals_data_written() {
    check_transfer::<Rings>(1, 0.0, 100_000);
    // A simulated stream consists of filler, whatever was written.
    check_transfer::<Ranges>(1, 0.0, 100_000);
}

/// Runs a transfer with `feed`, and checks that it arrives and ends. Returns the packets sent.
fn run_feed<P: Payload>(
    seed: u64,
    loss: f64,
    header_prediction: bool,
) -> Vec<(Time, usize, String)> {
    const LENGTH: usize = 200_000;
    let config = Config {
        congestion_control: crate::CongestionControlKind::Reno,
        send_sizes: None,
        header_prediction,
        ..small()
    };
    let mut net = Net::<P>::new(seed, loss);
    let (client, server) = net.pair(&config);
    net.with(client, |socket, cx| socket.feed(LENGTH as u64, true, cx));
    let (mut received, mut buffer) = (Vec::new(), vec![0; 20_000]);
    while received.len() < LENGTH && net.step() {
        let read = net.with(server, |socket, cx| socket.read_bytes(&mut buffer, cx));
        received.extend_from_slice(&buffer[..read]);
    }
    let mut expected = vec![0; LENGTH];
    filler::fill(0, &mut expected);
    assert!(received == expected, "{} bytes", received.len());
    net.sent
}

#[test]
fn feed_is_the_same_without_header_prediction() {
    let refilled = || TAKEN_PATHS.get()[TakenPath::Refill as usize];
    let before = refilled();
    for (seed, loss) in [(1, 0.0), (2, 0.001), (3, 0.01), (4, 0.05)] {
        let ranges = [true, false].map(|predicts| run_feed::<Ranges>(seed, loss, predicts));
        assert!(ranges[0] == ranges[1], "seed {seed}");
        let taken = refilled();
        assert!(taken > before, "the refill path was not taken");
        let rings = [true, false].map(|predicts| run_feed::<Rings>(seed, loss, predicts));
        assert!(rings[0] == rings[1], "seed {seed}");
        assert_eq!(
            refilled(),
            taken,
            "the refill path was taken with real bytes"
        );
    }
}

/// Client to gateway, gateway to server: the gateway relays.
fn run_relay<P: Payload>(seed: u64, loss: f64) -> (Vec<u8>, Vec<u8>) {
    let sent = text(60_000);
    let mut net = Net::<P>::new(seed, loss);
    let (client, near) = net.pair(&small());
    let (far, server) = net.pair(&small());
    let (mut written, mut received) = (0, Vec::new());
    let mut buffer = vec![0; 1000];
    for _ in 0..400_000 {
        written += net.with(client, |socket, cx| {
            socket.write(Source::Bytes(&sent[written as usize..]), cx)
        });
        net.relay(near, far, u64::MAX);
        let read = net.with(server, |socket, cx| socket.read_bytes(&mut buffer, cx));
        received.extend_from_slice(&buffer[..read]);
        // More may have arrived than one read takes.
        if received.len() == sent.len() || !net.step() && read == 0 {
            break;
        }
    }
    let held = net.sockets.iter().map(Socket::memory).sum::<usize>();
    assert!(held <= 8 * 32_768, "{held} bytes of memory");
    (sent, received)
}

#[test]
fn relay_moves_bytes_between_connections() {
    let (sent, received) = run_relay::<Rings>(3, 0.0);
    assert!(sent == received);
    let (sent, received) = run_relay::<Ranges>(3, 0.0);
    assert_eq!(sent.len(), received.len());
}

#[test]
fn relay_raises_writable_when_there_is_room() {
    let mut net = Net::<Rings>::new(1, 0.0);
    let (client, near) = net.pair(&small());
    let small_send_buffer = Config {
        send_buffer: 3_000,
        ..small()
    };
    let (far, _server) = net.pair(&small_send_buffer);
    for _ in 0..40 {
        net.step();
    }
    net.with(client, |socket, cx| socket.write(Source::Filler(9_000), cx));
    while net.sockets[near].readable() < 9_000 {
        net.step();
    }
    net.sockets[far].take_events();
    assert_eq!(net.relay(near, far, u64::MAX), 3_000);
    assert_eq!(net.relay(near, far, u64::MAX), 0);
    while !net.sockets[far].take_events().has(Events::WRITABLE) {
        assert!(net.step());
    }
    assert!(net.relay(near, far, 100) == 100);
}

#[test]
fn a_sink_stores_no_data() {
    let mut net = Net::<Rings>::new(1, 0.0);
    let (client, server) = net.pair(&small());
    net.sockets[server].set_sink();
    let mut written = 0;
    for _ in 0..2_000 {
        written += net.with(client, |socket, cx| {
            socket.write(Source::Filler(50_000), cx)
        });
        net.step();
    }
    let delivered = net.sockets[server].connection().delivered_offset();
    assert!(delivered > 100_000, "{delivered} of {written}");
    assert_eq!(net.sockets[server].memory(), 0);
}

#[test]
fn data_on_the_syn_is_readable_at_once() {
    let config = small().into();
    let mut world = world(1);
    let opening = |side: usize| Opening {
        config: &config,
        local: endpoint(side),
        remote: endpoint(1 - side),
        egress: Port(0),
        initial_sequence: Seq::new(7),
    };
    let fast = ActiveFastOpen {
        option: None,
        bytes: 0,
        room: 400,
    };
    let data = text(1_000);
    let source = Source::Bytes(&data);
    let (mut client, taken) =
        Socket::<Rings>::connect_fast(&opening(A), None, fast, source, &mut world.cx());
    assert_eq!(taken, 400);
    let rest = Source::Bytes(&data[400..]);
    assert_eq!(client.write(rest, &mut world.cx()), 600);
    let (_, syn) = world.outbox.pop().expect("a SYN");
    assert_eq!(world.packets.payload(syn), Some(&data[..400]));
    let accept = PassiveFastOpen::Accept;
    let mut server = Socket::<Rings>::accept(&opening(B), syn, accept, &mut world.cx());
    let mut out = [0; 500];
    assert_eq!(server.read_bytes(&mut out, &mut world.cx()), 400);
    assert_eq!(out[..400], data[..400]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// For any behaviour of the network, the bytes are exact and in order.
    #[test]
    fn bytes_survive_hostile_networks(seed in any::<u64>(), loss in 0.0_f64..0.2, length in 1_usize..60_000) {
        check_transfer::<Rings>(seed, loss, length);
    }

    /// Also through a gateway.
    #[test]
    fn bytes_survive_a_relay(seed in any::<u64>(), loss in 0.0_f64..0.1) {
        let (sent, received) = run_relay::<Rings>(seed, loss);
        prop_assert!(sent == received, "{} of {} bytes", received.len(), sent.len());
    }
}

/// Linux accepts a segment that ends beyond its window as a whole: there must be room for it.
#[test]
fn a_segment_beyond_the_window_is_stored_as_a_whole() {
    let config = Config {
        receive_buffer: 4_096,
        receive_sizes: None,
        ..Config::linux()
    };
    let mut net = Net::<Rings>::new(1, 0.0);
    let (_, server) = net.pair(&config);
    while net.step() {}
    assert_eq!(
        net.sockets[server].connection().state(),
        crate::State::Established
    );
    let mut packet =
        bentpipe_types::Packet::new(endpoint(A), endpoint(B), bentpipe_types::IpVersion::V4);
    packet.flags = bentpipe_types::Flags::ACK;
    packet.sequence = Seq::new(0xffff_ff01);
    packet.acknowledgment = Seq::new(8);
    packet.window = 1_000;
    packet.payload_length = 9_000;
    let reference = net.world.packets.insert(packet);
    net.with(server, |socket, cx| socket.on_packet(reference, cx));
    assert_eq!(net.sockets[server].connection().readable(), 9_000);
}
