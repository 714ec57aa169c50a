//! The ports that flows open their connections from.

use std::collections::BTreeMap;

use bentpipe_host::Ports;
use bentpipe_types::Address;

use crate::Traffic;

/// The port on which receivers of bulk transfers listen: local ports lie above it.
const LISTENING_PORT: u16 = 5001;
/// The first of the ports from which senders open (RFC 6335 section 6).
const FIRST_EPHEMERAL_PORT: u16 = 49152;

/// Local ports of one host, handed out to its flows.
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

    /// The next `count` ports: through the ephemeral ones first, then the registered ones below them.
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

/// The ports that each flow's connections are opened from, by the flows' openers and what they do, in
/// order; `None` from where on a host has none left. Where a host's flows would like more than there are,
/// those that can do with fewer share what is left.
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

/// The ports that the flows of a host would like to have.
#[derive(Clone, Copy, Default)]
struct Wishes {
    all: u64,
    /// Of `all`, those of flows that can do with fewer, and how many such flows there are.
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
        // One range less: none lies across the first ephemeral port.
        let share = left / (self.elastic_flows + 1);
        u16::try_from(share).unwrap_or(wish).clamp(least, wish)
    }
}
