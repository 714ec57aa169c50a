//! Measures the processing time of sender and receiver per delivered packet, with only two queues
//! between them: `cargo run --release -p bentpipe-tcp --example ping [SEGMENTS]`.

use std::collections::VecDeque;

use bentpipe_tcp::{Config, Connection};
use bentpipe_types::{Address, Endpoint, PacketRef, Port, RandomStream, Seq, Span, Time, World};

/// A link of 100 Mbit/s with a delay, in one direction: packets with their arrival times.
#[derive(Default)]
struct Pipe {
    ring: VecDeque<(Time, PacketRef)>,
    free_at: Time,
}

impl Pipe {
    fn carry(&mut self, world: &mut World, delay: Span) {
        for (_, packet) in world.outbox.drain(..) {
            let bytes = world.packets.get(packet).length().get();
            self.free_at = self.free_at.max(world.now) + Span::from_nanos(bytes * 80);
            self.ring.push_back((self.free_at + delay, packet));
        }
    }

    fn next(&self) -> Time {
        self.ring.front().map_or(Time::LAST, |&(at, _)| at)
    }
}

fn transfer(window: u64, delay: Span, segments: u64) {
    let mut world = World::new(RandomStream::new(1, "ping", "none"));
    let config = Config {
        receive_buffer: window,
        send_buffer: 4 * window,
        ..Config::default()
    };
    let end = |node, port| Endpoint {
        address: Address(node),
        port,
    };
    let (local, remote) = (end(1, 40_000), end(2, 80));
    let (mut there, mut back) = (Pipe::default(), Pipe::default());
    let mut sender = Connection::connect(
        &config,
        local,
        remote,
        Port(0),
        Seq::new(1),
        &mut world.cx(),
    );
    there.carry(&mut world, delay);
    let mut receiver: Option<Connection> = None;
    let total = segments * u64::from(config.mss);
    let mut written = 0;

    #[allow(clippy::disallowed_methods, reason = "this measures")]
    let start = std::time::Instant::now();
    loop {
        let deadline = [
            sender.next_deadline(),
            receiver.as_ref().and_then(Connection::next_deadline),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(Time::LAST);
        let (forward, backward) = (there.next(), back.next());
        world.now = forward.min(backward).min(deadline);
        if forward == world.now
            && let Some((_, packet)) = there.ring.pop_front()
        {
            match &mut receiver {
                Some(receiver) => receiver.on_packet(packet, &mut world.cx()),
                None => {
                    let mut accepted = Connection::accept(
                        &config,
                        remote,
                        local,
                        Port(0),
                        Seq::new(9),
                        packet,
                        &mut world.cx(),
                    );
                    accepted.set_sink(true);
                    receiver = Some(accepted);
                }
            }
            back.carry(&mut world, delay);
        } else if backward == world.now
            && let Some((_, packet)) = back.ring.pop_front()
        {
            sender.on_packet(packet, &mut world.cx());
            if written < total && sender.writable() > 0 {
                written += sender.write(total - written, &mut world.cx());
            }
            there.carry(&mut world, delay);
        } else {
            sender.on_deadline(&mut world.cx());
            there.carry(&mut world, delay);
            if let Some(receiver) = &mut receiver {
                receiver.on_deadline(&mut world.cx());
                back.carry(&mut world, delay);
            }
        }
        let delivered = receiver.as_ref().map_or(0, Connection::delivered_offset);
        if delivered >= total {
            break;
        }
    }
    let elapsed = start.elapsed();
    let sent = sender.statistics().segments_sent;
    println!(
        "window {:>9} B, RTT {:>4} ms: {:.1} ns per delivered segment ({} sent, {} packets in all), {:.1} Mbit/s simulated",
        window,
        2.0 * delay.as_millis_f64(),
        elapsed.as_nanos() as f64 / segments as f64,
        sent,
        world.packets.inserted(),
        total as f64 * 8e-6 / world.now.as_secs_f64(),
    );
}

fn main() {
    println!("Connection: {} bytes", size_of::<Connection>());
    let segments = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let segments = segments.unwrap_or(10_000_000);
    for _ in 0..3 {
        transfer(64 << 10, Span::from_millis(2), segments);
        transfer(16 << 20, Span::from_millis(300), segments);
    }
}
