//! Path MTUs reported by routers, shared by all connections to the same host (RFC 8201 section 5.2,
//! RFC 1191 section 6.3; Linux's route exceptions).
//!
//! Only values that a connection has validated (RFC 5927) are stored. The result of a search (RFC
//! 4821) belongs to its connection, as in Linux.

use std::collections::BTreeMap;

use bentpipe_tcp::PathLimit;
use bentpipe_types::{IpVersion, Time};

use crate::memory::make_room;

/// Maximum number of destinations. A host on the path can create as many as there are connections.
const MOST: usize = 1024;

/// Minimum value for other connections: Linux's ip_rt_min_pmtu. The other end of a connection can
/// report any value about its own path, and may share its address with others.
const LEAST_V4: u32 = 552;

/// Paths of a host with an MTU below that of their ends. `K` identifies a destination.
#[derive(Debug)]
pub(crate) struct Paths<K> {
    limits: BTreeMap<(K, IpVersion), PathLimit>,
}

impl<K> Default for Paths<K> {
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord> Paths<K> {
    /// Returns the known limit of a path.
    #[inline]
    pub(crate) fn to(&self, there: K, version: IpVersion, now: Time) -> Option<PathLimit> {
        let limit = self.limits.get(&(there, version))?;
        (limit.until > now).then_some(*limit)
    }

    /// Stores a reported limit. Returns what other connections to the destination are to be told.
    pub(crate) fn learn(
        &mut self,
        there: K,
        version: IpVersion,
        mut limit: PathLimit,
        now: Time,
    ) -> PathLimit {
        if version == IpVersion::V4 {
            limit.mtu = limit.mtu.max(LEAST_V4);
        }
        let limits = &mut self.limits;
        let path = (there, version);
        if limits.len() >= MOST && !limits.contains_key(&path) {
            limits.retain(|_, limit| limit.until > now);
        }
        make_room(limits, &path, MOST, |limit| limit.until);
        limits.insert(path, limit);
        limit
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Span;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn limit(mtu: u32, until: u64) -> PathLimit {
        let until = at(until);
        PathLimit { mtu, until }
    }

    #[test]
    fn path_mtu_applies_to_its_path_until_it_expires() {
        let mut paths = Paths::default();
        assert_eq!(paths.to(1, IpVersion::V4, at(0)), None);
        paths.learn(1, IpVersion::V4, limit(1_000, 600), at(0));
        assert_eq!(paths.to(1, IpVersion::V4, at(599)), Some(limit(1_000, 600)));
        assert_eq!(paths.to(1, IpVersion::V6, at(0)), None);
        assert_eq!(paths.to(2, IpVersion::V4, at(0)), None);
        assert_eq!(paths.to(1, IpVersion::V4, at(600)), None);
        paths.learn(1, IpVersion::V4, limit(900, 700), at(100));
        assert_eq!(paths.to(1, IpVersion::V4, at(600)), Some(limit(900, 700)));
    }

    #[test]
    fn learned_path_mtu_has_a_lower_bound() {
        let mut paths = Paths::default();
        for (version, mtu, believed) in [
            (IpVersion::V4, 68, LEAST_V4),
            (IpVersion::V4, 1_000, 1_000),
            (IpVersion::V6, 1_280, 1_280),
        ] {
            let told = paths.learn(1, version, limit(mtu, 600), at(0));
            assert_eq!(told, limit(believed, 600));
            assert_eq!(paths.to(1, version, at(0)), Some(told));
        }
    }

    #[test]
    fn the_path_mtu_cache_is_bounded_and_keeps_the_latest_entries() {
        let mut paths = Paths::default();
        for there in 0..10_000 {
            paths.learn(there, IpVersion::V4, limit(1_000, there + 600), at(there));
            assert!(paths.limits.len() <= MOST);
        }
        for there in 0..10_000 {
            let known = paths.to(there, IpVersion::V4, at(9_999)).is_some();
            assert_eq!(known, there >= 10_000 - 600, "{there}");
        }
        let mut paths = Paths::default();
        for there in 0..2_000 {
            paths.learn(there, IpVersion::V4, limit(1_000, there + 600), at(0));
        }
        for there in 0..2_000 {
            let known = paths.to(there, IpVersion::V4, at(0)).is_some();
            assert_eq!(known, there >= 2_000 - MOST as u64, "{there}");
        }
    }
}
