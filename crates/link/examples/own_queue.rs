//! A queue discipline of one's own in front of a link: the newest packet is sent first.

use bentpipe_link::{
    Backlog, Direction, QueueCtx, QueueDiscipline, Queueing, Settings, Verdict, Watch,
};
use bentpipe_types::{
    BitRate, Bytes, Endpoint, IpVersion, Packet, PacketRef, PacketStore, RandomStream, Span, Time,
};

/// Packets, the newest last, up to a limit.
#[derive(Debug)]
struct NewestFirst {
    limit: usize,
    packets: Vec<(PacketRef, Bytes)>,
}

impl QueueDiscipline for NewestFirst {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        if self.packets.len() == self.limit {
            return Verdict::Dropped;
        }
        let length = cx.packets.get(packet).length();
        self.packets.push((packet, length));
        Verdict::Queued
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.packets.pop()
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u64,
            bytes: self.packets.iter().map(|(_, length)| length.get()).sum(),
        }
    }
}

/// Payload lengths of the packets in their order of arrival.
#[derive(Default)]
struct Arrivals(Vec<u16>);

impl Watch for Arrivals {
    fn sent(&mut self, _now: Time, _packet: PacketRef, _packets: &PacketStore) {}

    fn received(&mut self, _now: Time, packet: PacketRef, packets: &PacketStore) {
        self.0.push(packets.get(packet).payload_length);
    }
}

fn main() {
    let settings = Settings::new(
        BitRate::new(1_000_000).expect("not zero"),
        Span::from_millis(250),
        Queueing::Discipline {
            queue: Box::new(NewestFirst {
                limit: 3,
                packets: Vec::new(),
            }),
            random: RandomStream::new(1, "satellite.forward", "queue"),
        },
    );
    let Direction::Managed(mut link) = Direction::managed(settings) else {
        unreachable!("each departure is an event")
    };
    let (mut packets, mut arrivals) = (PacketStore::default(), Arrivals::default());
    for payload_length in [100, 200, 300, 400, 500] {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.payload_length = payload_length;
        let packet = packets.insert(packet);
        if link.enqueue(Time::ZERO, packet, &mut packets, &mut arrivals) == Verdict::Dropped {
            packets.release(packet);
        }
    }
    let mut arrived = Vec::new();
    while let Some(at) = link.next_event() {
        link.on_event(at, &mut packets, &mut arrivals, &mut arrived);
        for packet in arrived.drain(..) {
            packets.release(packet);
        }
    }
    println!("payload lengths in order of arrival: {:?}", arrivals.0);
    // The first is sent at once, three are queued, the fifth is dropped.
    assert_eq!(arrivals.0, [100, 400, 300, 200]);
    assert_eq!(packets.held(), 0);
}

#[test]
fn it_runs() {
    main();
}
