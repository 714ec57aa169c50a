//! Fast Open cookies (RFC 7413 section 4.1.3.1): what servers have given this host, and what goes with its SYNs.

use std::collections::BTreeMap;

use bentpipe_tcp::{ActiveFastOpen, Connection};
use bentpipe_types::{FastOpen, IpVersion, Time};

use crate::memory::make_room;

/// No more servers are remembered.
const MOST: usize = 1024;
/// What options may take of a SYN: Linux's MAX_TCP_OPTION_SPACE.
const OPTIONS: u16 = 40;

/// What a server has given.
#[derive(Clone, Copy, Debug)]
struct Cookie {
    option: FastOpen,
    /// The longest segment that it takes.
    mss: u16,
    learned: Time,
}

/// Cookies, by server. `K` names it.
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
    /// What goes with a SYN there: the cookie, and text; or the wish for a cookie.
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

    /// A connection is established: its server may have given a cookie.
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
