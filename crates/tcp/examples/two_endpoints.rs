//! Two TCP endpoints without input or output: the program carries the packets and keeps the time.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_tcp::{Config, Opening, PassiveFastOpen, Rings, Socket, Source, State};
use bentpipe_types::{Address, Endpoint, Port, RandomStream, Seq, Span, World};

/// One-way delay of the path.
const DELAY: Span = Span::from_millis(270);
const GREETING: &[u8] = b"Greetings from the ship";

fn main() {
    let mut world = World::new(RandomStream::new(1, "example", "network"));
    let end = |address, port| Endpoint {
        address: Address(address),
        port,
    };
    let (ship, shore) = (end(1, 40_000), end(2, 80));
    let config = Arc::new(Config::default());
    let opening = |local, remote, initial_sequence| Opening {
        config: &config,
        local,
        remote,
        egress: Port(0),
        initial_sequence: Seq::new(initial_sequence),
    };
    // Packets between real machines carry IP addresses.
    let ip = |last| IpAddr::from([192, 0, 2, last]);
    let mut client: Socket<Rings> = Socket::connect(
        &opening(ship, shore, 1_000),
        Some((ip(1), ip(2))),
        &mut world.cx(),
    );
    client.write(Source::Bytes(GREETING), &mut world.cx());
    let (_, syn) = world.outbox.pop().expect("a SYN");
    world.now += DELAY;
    let no_data = PassiveFastOpen::Ignore;
    let server = Socket::accept(&opening(shore, ship, 2_000), syn, no_data, &mut world.cx());

    let mut sockets = [client, server];
    let mut in_flight = VecDeque::new();
    let mut received = Vec::new();
    let mut from = 1;
    while received.len() < GREETING.len() {
        for (_, packet) in world.outbox.drain(..) {
            in_flight.push_back((world.now + DELAY, 1 - from, packet));
        }
        // The next event is an arrival, or the timer of a socket.
        let timer = |side: usize| sockets[side].next_deadline().map(|at| (at, side));
        let timer = [timer(0), timer(1)].into_iter().flatten().min();
        let arrival = in_flight.front().map(|&(at, to, _)| (at, to));
        let (at, side) = [arrival, timer].into_iter().flatten().min().expect("one");
        (world.now, from) = (at, side);
        if arrival == Some((at, side)) {
            let (_, _, packet) = in_flight.pop_front().expect("it is there");
            sockets[side].on_packet(packet, &mut world.cx());
        } else {
            sockets[side].on_deadline(&mut world.cx());
        }
        let mut bytes = [0; 100];
        let count = sockets[1].read_bytes(&mut bytes, &mut world.cx());
        received.extend_from_slice(&bytes[..count]);
    }
    println!("{:?}: {}", world.now, String::from_utf8_lossy(&received));
    // A round trip for the handshake, and half of one for the data.
    assert_eq!(world.now.since(bentpipe_types::Time::ZERO), DELAY * 3);
    assert_eq!(sockets[1].state(), State::Established);
    assert_eq!(received, GREETING);
}

#[test]
fn it_runs() {
    main();
}
