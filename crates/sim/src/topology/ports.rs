//! Local ports of flows.

use std::collections::BTreeMap;

use bentpipe_host::Ports;
use bentpipe_types::Address;

use crate::Traffic;

/// Listening port of bulk transfers. Local ports are above it.
const LISTENING_PORT: u16 = 5001;
/// First ephemeral port (RFC 6335 section 6).
const FIRST_EPHEMERAL_PORT: u16 = 49152;

/// Allocator of a host's local ports.
#[derive(Clone, Copy, Debug)]
struct LocalPorts {
    next: u16,
}

impl LocalPorts {
    const fn new() -> Self {
        Self {
            next: FIRST_EPHEMERAL_PORT,
        }
    }

    /// Returns the next `count` ports: ephemeral ports first, then the registered ones below them.
    fn take(&mut self, count: u16) -> Option<Ports> {
        let more = count.max(1) - 1;
        let is_low = self.next < FIRST_EPHEMERAL_PORT;
        let last = match self.next.checked_add(more) {
            Some(last) if is_low && last >= FIRST_EPHEMERAL_PORT => return None,
            Some(last) => last,
            None => {
                self.next = LISTENING_PORT + 1;
                LISTENING_PORT + 1 + more
            }
        };
        let ports = Ports::range(self.next, last);
        self.next = last.checked_add(1).unwrap_or(LISTENING_PORT + 1);
        Some(ports)
    }
}

/// Returns the local ports of each flow, given the flows' openers and applications in order, or
/// `None` once a host has none left. If a host's flows want more than there are, those that can do
/// with fewer share the rest.
#[must_use]
pub fn local_ports<'a>(flows: impl Iterator<Item = (Address, &'a Traffic)>) -> Vec<Option<Ports>> {
    let flows: Vec<(Address, &Traffic)> = flows.collect();
    let mut wishes: BTreeMap<u16, Wishes> = BTreeMap::new();
    for (from, traffic) in &flows {
        wishes.entry(from.0).or_default().add(traffic);
    }
    let mut hosts: BTreeMap<u16, LocalPorts> = BTreeMap::new();
    let of = |(from, traffic): (Address, &Traffic)| {
        let count = wishes.entry(from.0).or_default().granted(traffic);
        let host = hosts.entry(from.0).or_insert_with(LocalPorts::new);
        host.take(count)
    };
    flows.into_iter().map(of).collect()
}

/// Number of ports that the flows of a host want.
#[derive(Clone, Copy, Default)]
struct Wishes {
    all: u64,
    /// The part of `all` that belongs to flows that can do with fewer, and the number of such
    /// flows.
    elastic: u64,
    elastic_flows: u64,
}

impl Wishes {
    fn add(&mut self, traffic: &Traffic) {
        let wish = u64::from(traffic.ports_needed());
        self.all += wish;
        if traffic.least_ports() < traffic.ports_needed() {
            self.elastic += wish;
            self.elastic_flows += 1;
        }
    }

    fn granted(&self, traffic: &Traffic) -> u16 {
        let (least, wish) = (traffic.least_ports(), traffic.ports_needed());
        let there = u64::from(u16::MAX - LISTENING_PORT);
        if least == wish || self.all <= there {
            return wish;
        }
        let left = there.saturating_sub(self.all - self.elastic);
        // One range less, since no range may contain the first ephemeral port inside.
        let share = left / (self.elastic_flows + 1);
        u16::try_from(share).unwrap_or(wish).clamp(least, wish)
    }
}
