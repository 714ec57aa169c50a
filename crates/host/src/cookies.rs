//! Cache of Fast Open cookies from servers (RFC 7413 section 4.1.3.1).

use std::collections::BTreeMap;

use bentpipe_tcp::{ActiveFastOpen, Connection};
use bentpipe_types::{FastOpen, IpVersion, Time};

use crate::memory::make_room;

/// Maximum number of servers.
const MOST: usize = 1024;
/// Maximum option space of a SYN: Linux's MAX_TCP_OPTION_SPACE.
const OPTIONS: u16 = 40;

/// A server's cookie.
#[derive(Clone, Copy, Debug)]
struct Cookie {
    option: FastOpen,
    /// MSS of the server.
    mss: u16,
    learned: Time,
}

/// Cookies by server, identified by `K`.
#[derive(Debug)]
pub(crate) struct Cookies<K> {
    known: BTreeMap<(K, IpVersion), Cookie>,
}

impl<K> Default for Cookies<K> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord> Cookies<K> {
    /// Returns what a SYN to a server carries: the cookie and data, or a cookie request.
    pub(crate) fn opening(&self, there: K, version: IpVersion) -> ActiveFastOpen {
        match self.known.get(&(there, version)) {
            Some(cookie) => ActiveFastOpen {
                option: Some(cookie.option),
                bytes: 0,
                room: cookie.mss.saturating_sub(OPTIONS),
            },
            None => ActiveFastOpen {
                option: FastOpen::new(&[], false),
                ..ActiveFastOpen::default()
            },
        }
    }

    /// Stores the cookie that the server of an established connection may have sent.
    pub(crate) fn learn(&mut self, there: K, connection: &Connection, now: Time) {
        let (Some(option), Some(mss)) = (connection.offered_cookie(), connection.peer_mss()) else {
            return;
        };
        if option.cookie().is_empty() {
            return;
        }
        let server = (there, connection.ip_version());
        make_room(&mut self.known, &server, MOST, |cookie| cookie.learned);
        let cookie = Cookie {
            option,
            mss,
            learned: now,
        };
        self.known.insert(server, cookie);
    }
}
