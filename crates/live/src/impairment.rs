//! A path that loses, reorders and duplicates packets in both directions: a node between two
//! others.
//!
//! Links (`bentpipe-link`) have their own errors, but neither reorder nor duplicate.

use std::collections::BTreeMap;

use bentpipe_types::{Agent, Ctx, DropReason, Holdings, PacketRef, Port, RandomStream, Span, Time};

/// Impairments of a path. The default has none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairment {
    /// Probability of loss.
    pub loss: f64,
    /// Probability of duplication.
    pub duplication: f64,
    /// Probability of being delayed by `held_back`, while later packets pass.
    pub reordering: f64,
    /// Delay of a reordered packet.
    pub held_back: Span,
}

/// Most delayed packets; further ones are lost.
const CAPACITY: usize = 20_000;

/// Counters of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counters {
    offered: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    overflowed: u64,
}

/// An impaired path: packets that enter at one of its two ports leave at the other.
#[derive(Debug)]
pub struct ImpairedPath {
    impairment: Impairment,
    /// Random streams by the port at which packets enter.
    random: [RandomStream; 2],
    /// Delayed packets by departure time and arrival order.
    delayed: BTreeMap<(Time, u64), (Port, PacketRef)>,
    serial: u64,
    counters: Counters,
}

impl ImpairedPath {
    /// Creates a path with the same impairments, but independent draws, in both directions.
    #[must_use]
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        let stream = |way| RandomStream::new(seed, way, "impairment");
        Self {
            impairment,
            random: ["inward", "outward"].map(stream),
            delayed: BTreeMap::new(),
            serial: 0,
            counters: Counters::default(),
        }
    }

    fn delay(&mut self, until: Time, port: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if self.delayed.len() >= CAPACITY {
            self.counters.overflowed += 1;
            cx.discard(packet, DropReason::Busy);
            return;
        }
        self.serial += 1;
        self.delayed.insert((until, self.serial), (port, packet));
    }
}

impl Agent for ImpairedPath {
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.counters.offered += 1;
        let side = usize::from(from.0 != 0);
        let port = Port(1 - side as u16);
        let random = &mut self.random[side];
        // Every packet makes the same number of draws, so that one impairment does not shift the
        // draws of another.
        let lost = random.happens(self.impairment.loss);
        let duplicated = random.happens(self.impairment.duplication);
        let reordered = random.happens(self.impairment.reordering);
        if lost {
            self.counters.lost += 1;
            cx.packets.release(packet);
            return;
        }
        if duplicated {
            self.counters.duplicated += 1;
            let copy = cx.packets.duplicate(packet);
            cx.emit(port, copy);
        }
        if reordered {
            self.counters.reordered += 1;
            self.delay(cx.now + self.impairment.held_back, port, packet, cx);
        } else {
            cx.emit(port, packet);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some(first) = self.delayed.first_entry()
            && first.key().0 <= cx.now
        {
            let (port, packet) = first.remove();
            cx.emit(port, packet);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    fn holdings(&self) -> Holdings {
        Holdings {
            packets: self.delayed.len() as u64,
            bytes: 0,
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("offered", self.counters.offered);
        visit("lost", self.counters.lost);
        visit("duplicated", self.counters.duplicated);
        visit("reordered", self.counters.reordered);
        visit("overflowed", self.counters.overflowed);
    }

    fn is_quiet(&self) -> bool {
        self.delayed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Endpoint, IpVersion, Packet, World};

    const BACK: Port = Port(1);

    fn path(impairment: Impairment) -> (ImpairedPath, World) {
        let world = World::new(RandomStream::new(1, "path", "test"));
        (ImpairedPath::new(impairment, 1), world)
    }

    fn offer(path: &mut ImpairedPath, world: &mut World, number: u64) {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.payload_offset = number;
        let packet = world.packets.insert(packet);
        path.on_packet(Port(0), packet, &mut world.cx());
    }

    /// Returns the numbers of the packets that have left, all by the other port.
    fn departed(world: &mut World) -> Vec<u64> {
        let mut numbers = Vec::new();
        for (port, packet) in world.outbox.drain(..) {
            assert_eq!(port, BACK);
            numbers.push(world.packets.get(packet).payload_offset);
            world.packets.release(packet);
        }
        numbers
    }

    #[test]
    fn packets_pass_at_once_without_impairment() {
        let (mut path, mut world) = path(Impairment::default());
        (0..100).for_each(|n| offer(&mut path, &mut world, n));
        assert_eq!(departed(&mut world), (0..100).collect::<Vec<_>>());
        assert_eq!((path.next_deadline(), world.packets.held()), (None, 0));
    }

    #[test]
    fn loss_and_duplication_rates_match_the_settings() {
        let (mut path, mut world) = path(Impairment {
            loss: 0.1,
            duplication: 0.2,
            ..Impairment::default()
        });
        (0..10_000).for_each(|n| offer(&mut path, &mut world, n));
        // 10,000 x 0.9 x 1.2 = 10,800; the standard deviation is about 50.
        let seen = departed(&mut world).len();
        assert!((10_500..11_100).contains(&seen), "{seen}");
        assert!((850..1150).contains(&path.counters.lost));
        assert_eq!(world.packets.held(), 0);
    }

    #[test]
    fn delayed_packets_are_overtaken() {
        let (mut path, mut world) = path(Impairment {
            reordering: 0.5,
            held_back: Span::from_millis(1),
            ..Impairment::default()
        });
        (0..100).for_each(|n| offer(&mut path, &mut world, n));
        let early = departed(&mut world);
        assert_eq!(path.next_deadline(), Some(Time::from_nanos(1_000_000)));
        assert_eq!(path.holdings().packets as usize, 100 - early.len());
        path.on_deadline(&mut world.at(Time::from_nanos(999_999)));
        assert!(departed(&mut world).is_empty());
        path.on_deadline(&mut world.at(Time::from_nanos(1_000_000)));
        let late = departed(&mut world);
        assert!(early.len() > 20 && early.len() < 80);
        assert!(early.is_sorted() && late.is_sorted());
        assert_eq!(early.len() + late.len(), 100);
    }

    #[test]
    fn number_of_delayed_packets_is_bounded() {
        let (mut path, mut world) = path(Impairment {
            reordering: 1.0,
            held_back: Span::from_secs(1),
            ..Impairment::default()
        });
        (0..CAPACITY as u64 + 5).for_each(|n| offer(&mut path, &mut world, n));
        assert_eq!(path.counters.overflowed, 5);
        assert_eq!(world.packets.held(), CAPACITY);
    }
}
