//! A path that loses, reorders and duplicates packets of real bytes, one way.
//!
//! Simulated links have their own (`bentpipe-link`); this one stands between a TUN device and a host,
//! where a packet is its bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{RandomStream, Span, Time};

/// What a path does to packets. The default does nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairment {
    /// Probability of being lost.
    pub loss: f64,
    /// Probability of being sent on twice.
    pub duplication: f64,
    /// Probability of being held back by `held_back`, while those behind it pass.
    pub reordering: f64,
    /// How long a reordered packet is held back.
    pub held_back: Span,
    /// How long every packet is under way.
    pub delay: Span,
}

/// Packets under way at once, at most; the next is lost.
const CAPACITY: usize = 20_000;

/// What a path has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets lost by chance.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets held back.
    pub reordered: u64,
    /// Packets lost because too many were under way.
    pub overflowed: u64,
}

/// One way of an impaired path.
#[derive(Debug)]
pub struct Path {
    impairment: Impairment,
    random: RandomStream,
    under_way: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    spare: Vec<Vec<u8>>,
    serial: u64,
    counters: PathCounters,
}

impl Path {
    /// A path without packets. `random` decides their luck.
    #[must_use]
    pub fn new(impairment: Impairment, random: RandomStream) -> Self {
        Self {
            impairment,
            random,
            under_way: BinaryHeap::new(),
            spare: Vec::new(),
            serial: 0,
            counters: PathCounters::default(),
        }
    }

    /// Sends a packet on its way. `deliver` is called at once for one (or two) that is not delayed.
    pub fn offer(&mut self, now: Time, packet: &[u8], mut deliver: impl FnMut(&[u8])) {
        self.counters.offered += 1;
        let Impairment {
            loss,
            duplication,
            reordering,
            held_back,
            delay,
        } = self.impairment;
        // Every packet draws the same numbers, so that one kind of luck doesn't shift another's.
        let lost = self.random.happens(loss);
        let doubled = self.random.happens(duplication);
        let reordered = self.random.happens(reordering);
        if lost {
            self.counters.lost += 1;
            return;
        }
        self.counters.duplicated += u64::from(doubled);
        self.counters.reordered += u64::from(reordered);
        let late = if reordered { held_back } else { Span::ZERO };
        for extra in [Some(late), doubled.then_some(Span::ZERO)]
            .into_iter()
            .flatten()
        {
            let wait = delay + extra;
            if wait == Span::ZERO {
                deliver(packet);
            } else {
                self.hold(now + wait, packet);
            }
        }
    }

    /// Delivers what has arrived by `now`.
    pub fn arrive(&mut self, now: Time, mut deliver: impl FnMut(&[u8])) {
        while let Some(Reverse((at, _, _))) = self.under_way.peek()
            && *at <= now
        {
            if let Some(Reverse((_, _, packet))) = self.under_way.pop() {
                deliver(&packet);
                self.spare.push(packet);
            }
        }
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.under_way.peek().map(|Reverse((at, _, _))| *at)
    }

    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> PathCounters {
        self.counters
    }

    fn hold(&mut self, until: Time, packet: &[u8]) {
        if self.under_way.len() >= CAPACITY {
            self.counters.overflowed += 1;
            return;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        self.serial += 1;
        self.under_way.push(Reverse((until, self.serial, copy)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(impairment: Impairment) -> Path {
        Path::new(impairment, RandomStream::new(1, "path", "impairment"))
    }

    #[test]
    fn without_impairment_everything_passes_at_once() {
        let mut path = path(Impairment::default());
        let mut seen = 0;
        for n in 0..100 {
            path.offer(Time::ZERO, &[n], |packet| {
                assert_eq!(packet, [n]);
                seen += 1;
            });
        }
        assert_eq!((seen, path.next_arrival()), (100, None));
    }

    #[test]
    fn losses_and_copies_come_as_often_as_asked() {
        let mut path = path(Impairment {
            loss: 0.1,
            duplication: 0.2,
            ..Impairment::default()
        });
        let mut seen = 0;
        for _ in 0..10_000 {
            path.offer(Time::ZERO, &[0], |_| seen += 1);
        }
        // 10,000 x 0.9 x 1.2 = 10,800; the standard deviation is about 50.
        assert!((10_500..11_100).contains(&seen), "{seen}");
        assert!((850..1150).contains(&path.counters().lost));
    }

    #[test]
    fn a_packet_held_back_is_overtaken() {
        let mut path = path(Impairment {
            reordering: 0.5,
            held_back: Span::from_millis(1),
            delay: Span::from_millis(10),
            ..Impairment::default()
        });
        for n in 0..100 {
            path.offer(Time::ZERO, &[n], |_| panic!("nothing arrives at once"));
        }
        assert_eq!(path.next_arrival(), Some(Time::from_nanos(10_000_000)));
        let mut order = Vec::new();
        path.arrive(Time::from_nanos(10_999_999), |packet| order.push(packet[0]));
        let early = order.len();
        path.arrive(Time::from_nanos(11_000_000), |packet| order.push(packet[0]));
        assert!(early > 20 && early < 80);
        assert!(order[..early].is_sorted() && order[early..].is_sorted());
        assert_eq!(order.len(), 100);
    }

    #[test]
    fn what_is_under_way_is_bounded() {
        let mut path = path(Impairment {
            delay: Span::from_secs(1),
            ..Impairment::default()
        });
        for _ in 0..CAPACITY + 5 {
            path.offer(Time::ZERO, &[], |_| ());
        }
        assert_eq!(path.counters().overflowed, 5);
    }
}
