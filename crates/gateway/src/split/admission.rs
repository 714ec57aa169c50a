//! Limits of half-open connections, and of each source's connections.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use bentpipe_types::{FlowKey, HostAddress, Span, Time};
use rustc_hash::{FxHashMap, FxHashSet};

/// A half-open connection may be given up for a newer one after this time: its host retransmits the
/// SYN (RFC 6298 section 2, initial timeout).
const MIN_HALF_OPEN_TIME: Span = Span::from_secs(1);

/// Least number of half-open connections, for gateways with little memory.
const MIN_HALF_OPEN: u32 = 64;

/// Half-open connections may take this fraction of the memory.
const HALF_OPEN_FRACTION: u64 = 8;

/// Limit of remembered connections that were given up. When it is reached, all are forgotten.
const MAX_GIVEN_UP: usize = 1 << 16;

/// Connections of one source.
#[derive(Clone, Copy, Default, Debug)]
struct Source {
    open: u32,
    half_open: u32,
}

/// Counts connections by source, and those that are half-open: a host has sent a SYN, and has not
/// proved that it receives the answer.
///
/// A source may have as many half-open connections as are left for all others (a dynamic threshold,
/// as in `memory_budget`). If all are taken, the oldest one is given up. So SYNs with forged
/// sources delay other connections, and do not keep them from being split.
#[derive(Debug)]
pub(super) struct Admission {
    sources: FxHashMap<HostAddress, Source>,
    /// Half-open connections, oldest first. The entry of one that is open or gone is stale.
    half_open: VecDeque<(Time, u32)>,
    half_open_count: u32,
    half_open_limit: u32,
    /// Half-open connections that were given up. A late answer to one would tell its host the
    /// options of the gateway's own SYN.
    given_up: FxHashSet<FlowKey>,
}

/// Whether one more half-open connection is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HalfOpenRoom {
    /// It is.
    Free,
    /// Only in place of the oldest one.
    Full,
    /// It is not, as this source has too many.
    SourceFull,
}

/// The source of a connection: an IPv4 address, or the /64 prefix that one site has with IPv6.
fn source_of(key: &FlowKey) -> HostAddress {
    match key.source.host {
        HostAddress::Ip(IpAddr::V6(ip)) => {
            let prefix = u128::from(ip) & !u128::from(u64::MAX);
            HostAddress::Ip(IpAddr::V6(Ipv6Addr::from(prefix)))
        }
        host => host,
    }
}

impl Admission {
    /// Returns a count without connections, for a gateway with this memory and this size of a
    /// connection's state.
    pub(super) fn new(memory: u64, state: u64) -> Self {
        let limit = memory / HALF_OPEN_FRACTION / state;
        Self {
            sources: FxHashMap::default(),
            half_open: VecDeque::new(),
            half_open_count: 0,
            half_open_limit: u32::try_from(limit).unwrap_or(u32::MAX).max(MIN_HALF_OPEN),
            given_up: FxHashSet::default(),
        }
    }

    /// Returns true if more than half of the possible connections are half-open.
    pub(super) fn is_crowded(&self) -> bool {
        self.half_open_count > self.half_open_limit / 2
    }

    /// Number of half-open connections.
    pub(super) fn half_open(&self) -> u32 {
        self.half_open_count
    }

    /// Returns the number of connections of the source of a new one.
    pub(super) fn of_source(&self, key: &FlowKey) -> u32 {
        let source = self.sources.get(&source_of(key));
        source.map_or(0, |source| source.open)
    }

    /// Returns whether one more half-open connection is possible.
    pub(super) fn half_open_room(&self, key: &FlowKey) -> HalfOpenRoom {
        let source = self.sources.get(&source_of(key));
        let of_source = source.map_or(0, |source| source.half_open);
        let left = self.half_open_limit.saturating_sub(self.half_open_count);
        // A source with few is not limited by others with many.
        if of_source > left && of_source >= MIN_HALF_OPEN {
            HalfOpenRoom::SourceFull
        } else if left == 0 {
            HalfOpenRoom::Full
        } else {
            HalfOpenRoom::Free
        }
    }

    /// Removes and returns the oldest entry, if it is old enough. Its connection may be open or
    /// gone.
    pub(super) fn take_oldest(&mut self, now: Time) -> Option<u32> {
        let (at, index) = self.half_open.front().copied()?;
        if now.since(at) < MIN_HALF_OPEN_TIME {
            return None;
        }
        self.half_open.pop_front();
        Some(index)
    }

    /// Counts a new connection, which is half-open.
    pub(super) fn opened(&mut self, key: &FlowKey, index: u32, now: Time) {
        let source = self.sources.entry(source_of(key)).or_default();
        source.open += 1;
        source.half_open += 1;
        self.half_open_count += 1;
        self.half_open.push_back((now, index));
        // Bounds the stale entries. An entry that is dropped early is only not given up.
        if self.half_open.len() > 2 * self.half_open_limit as usize {
            self.half_open.pop_front();
        }
        self.given_up.remove(key);
    }

    /// Counts that a connection is no longer half-open.
    pub(super) fn completed(&mut self, key: &FlowKey) {
        if let Some(source) = self.sources.get_mut(&source_of(key)) {
            source.half_open -= 1;
        }
        self.half_open_count -= 1;
        if self.half_open_count == 0 {
            self.half_open.clear();
        }
    }

    /// Counts that a connection was removed.
    pub(super) fn removed(&mut self, key: &FlowKey) {
        let source = source_of(key);
        if let Some(count) = self.sources.get_mut(&source) {
            count.open -= 1;
            if count.open == 0 {
                self.sources.remove(&source);
            }
        }
    }

    /// Remembers that a half-open connection was given up.
    pub(super) fn give_up(&mut self, key: FlowKey) {
        if self.given_up.len() >= MAX_GIVEN_UP {
            self.given_up.clear();
        }
        self.given_up.insert(key);
    }

    /// Returns true if packets with this key answer a connection that was given up.
    pub(super) fn answers_given_up(&self, key: &FlowKey) -> bool {
        !self.given_up.is_empty() && self.given_up.contains(&key.reversed())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use bentpipe_types::Party;
    use proptest::prelude::*;

    use super::*;

    const STATE: u64 = 1_000;
    /// 100 half-open connections.
    const MEMORY: u64 = 100 * HALF_OPEN_FRACTION * STATE;

    fn key(source: u32, port: u16) -> FlowKey {
        let party = |ip: u32, port| Party {
            host: HostAddress::Ip(IpAddr::V4(ip.into())),
            port,
        };
        FlowKey {
            source: party(source, port),
            destination: party(1, 80),
            protocol: 6,
        }
    }

    #[test]
    fn a_source_has_at_most_half_of_the_half_open_connections_of_a_small_gateway() {
        let mut admission = Admission::new(2 * MEMORY, STATE);
        let mut opened = 0;
        while admission.half_open_room(&key(9, opened as u16)) == HalfOpenRoom::Free {
            admission.opened(&key(9, opened as u16), opened, Time::ZERO);
            opened += 1;
        }
        assert_eq!(opened, 101);
        assert_eq!(
            admission.half_open_room(&key(9, 999)),
            HalfOpenRoom::SourceFull
        );
        // Others still have room.
        assert_eq!(admission.half_open_room(&key(8, 1)), HalfOpenRoom::Free);
        // An answer makes room for this source.
        admission.completed(&key(9, 0));
        admission.completed(&key(9, 1));
        assert_eq!(admission.half_open_room(&key(9, 999)), HalfOpenRoom::Free);
    }

    #[test]
    fn the_oldest_of_many_sources_is_given_up_after_a_second() {
        let mut admission = Admission::new(MEMORY, STATE);
        for source in 0..100 {
            assert_eq!(
                admission.half_open_room(&key(source, 1)),
                HalfOpenRoom::Free
            );
            admission.opened(&key(source, 1), source, Time::ZERO);
        }
        assert_eq!(admission.half_open_room(&key(777, 1)), HalfOpenRoom::Full);
        assert_eq!(
            admission.take_oldest(Time::ZERO + Span::from_millis(999)),
            None
        );
        assert_eq!(
            admission.take_oldest(Time::ZERO + Span::from_secs(1)),
            Some(0)
        );
        admission.give_up(key(0, 1));
        assert!(admission.answers_given_up(&key(0, 1).reversed()));
        assert!(!admission.answers_given_up(&key(1, 1).reversed()));
        // Its host opens it again.
        admission.completed(&key(0, 1));
        admission.removed(&key(0, 1));
        admission.opened(&key(0, 1), 5, Time::ZERO);
        assert!(!admission.answers_given_up(&key(0, 1).reversed()));
    }

    #[test]
    fn an_ipv6_site_is_one_source() {
        let key = |last: u16| {
            let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 1, 2, 3, last);
            let mut key = key(1, last);
            key.source.host = HostAddress::Ip(IpAddr::V6(ip));
            key
        };
        let mut admission = Admission::new(MEMORY, STATE);
        admission.opened(&key(1), 1, Time::ZERO);
        assert_eq!(admission.of_source(&key(2)), 1);
    }

    proptest! {
        /// Counts are those of a list of connections, and nothing is left at the end.
        #[test]
        fn counts_follow_the_connections(steps in prop::collection::vec((0..4_u8, 0..6_u32, any::<u16>()), 0..300)) {
            let mut admission = Admission::new(MEMORY, STATE);
            let mut open: HashMap<FlowKey, bool> = HashMap::new();
            for (at, (what, source, port)) in steps.into_iter().enumerate() {
                let key = key(source, port % 50);
                match (what, open.get(&key).copied()) {
                    (0 | 1, None) => {
                        admission.opened(&key, at as u32, Time::ZERO);
                        open.insert(key, true);
                    }
                    (2, Some(true)) => {
                        admission.completed(&key);
                        open.insert(key, false);
                    }
                    (3, Some(half_open)) => {
                        if half_open {
                            admission.completed(&key);
                        }
                        admission.removed(&key);
                        open.remove(&key);
                    }
                    _ => {}
                }
                let half_open = open.values().filter(|half_open| **half_open).count();
                prop_assert_eq!(admission.half_open() as usize, half_open);
                let of_source = open.keys().filter(|one| source_of(one) == source_of(&key)).count();
                prop_assert_eq!(admission.of_source(&key) as usize, of_source);
                prop_assert!(admission.half_open.len() <= 2 * admission.half_open_limit as usize);
            }
            for (key, half_open) in open {
                if half_open {
                    admission.completed(&key);
                }
                admission.removed(&key);
            }
            prop_assert!(admission.sources.is_empty() && admission.half_open.is_empty());
        }
    }
}
