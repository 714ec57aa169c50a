//! Host state for TCP Fast Open (RFC 7413): the listener's cookies, generated as in Linux, and the
//! cookies received from servers.

use std::net::Ipv4Addr;

use bentpipe_tcp::{Events, PassiveFastOpen};
use bentpipe_types::FastOpen;

use super::{Problem, Runner};

// Bits of the sysctl tcp_fastopen.
/// Request of an active open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FastOpenRequest {
    /// It requested or presented a cookie.
    Cookie,
    /// It sent data without a cookie option.
    Nothing,
}

const CLIENT: u64 = 0x1;
const SERVER: u64 = 0x2;
const WITHOUT_COOKIE: u64 = 0x4;
const COOKIE_NOT_REQUIRED: u64 = 0x200;
const WITHOUT_SOCKET_OPTION: u64 = 0x400;

/// Settings of the host.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The sysctl tcp_fastopen.
    pub(super) bits: u64,
    /// The sysctl tcp_fastopen_key.
    pub(super) key: [u8; 16],
    /// Addresses from which cookies are generated: the peer's and ours.
    pub(super) remote: Ipv4Addr,
    pub(super) local: Ipv4Addr,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bits: 0x1,
            key: [0; 16],
            // packetdrill's default.
            remote: Ipv4Addr::new(192, 0, 2, 1),
            local: Ipv4Addr::new(192, 168, 0, 1),
        }
    }
}

/// Fast Open policy of a listening socket.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    cookie: [u8; 8],
    cookie_required: bool,
}

impl Settings {
    /// Returns the policy of a listening socket with TCP_FASTOPEN set to `queue` and its own key.
    pub(super) fn policy(&self, queue: Option<i64>, key: Option<[u8; 16]>) -> Option<Policy> {
        let wanted = match queue {
            Some(length) => length > 0,
            None => self.bits & WITHOUT_SOCKET_OPTION != 0,
        };
        let on = self.bits & SERVER != 0 && wanted;
        on.then(|| Policy {
            cookie: self.cookie(&key.unwrap_or(self.key)),
            cookie_required: self.bits & COOKIE_NOT_REQUIRED == 0,
        })
    }

    /// Generates a cookie as Linux's __tcp_fastopen_cookie_gen_cipher: SipHash-2-4 of both
    /// addresses.
    fn cookie(&self, key: &[u8; 16]) -> [u8; 8] {
        let mut addresses = [0; 8];
        addresses[..4].copy_from_slice(&self.remote.octets());
        addresses[4..].copy_from_slice(&self.local.octets());
        siphash(key, u64::from_le_bytes(addresses)).to_le_bytes()
    }
}

impl Policy {
    /// Decides about a SYN with `payload` bytes of data and this option (Linux's tcp_try_fastopen).
    pub(super) fn answer(&self, payload: u16, option: Option<FastOpen>) -> PassiveFastOpen {
        let ours = |like: FastOpen| FastOpen::new(&self.cookie, like.is_experimental());
        match option {
            _ if !self.cookie_required && (payload > 0 || option.is_some()) => {
                PassiveFastOpen::Accept
            }
            Some(option) if option.cookie() == self.cookie.as_slice() => PassiveFastOpen::Accept,
            Some(option) => ours(option).map_or(PassiveFastOpen::Ignore, PassiveFastOpen::Offer),
            None => PassiveFastOpen::Ignore,
        }
    }
}

/// Known cookie of the server (RFC 7413 section 4.1.3.1); there is only one server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownCookie {
    cookie: Option<FastOpen>,
    mss: Option<u16>,
}

/// TCP Fast Open on the SYN of an active open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) option: Option<FastOpen>,
    /// Whether the SYN may carry data.
    pub(super) carries_data: bool,
    mss: u16,
}

impl Active {
    /// Returns the maximum data on a SYN with segments of at most `segment` bytes: Linux reserves
    /// the maximum option space.
    pub(super) fn room(&self, segment: u16) -> u16 {
        self.mss.min(segment).saturating_sub(40)
    }
}

impl Runner {
    /// Returns what an active open would send, or `None` if Fast Open is off.
    pub(super) fn fast_open_option(&self) -> Option<Active> {
        let bits = self.setup.fast_open.bits;
        if bits & CLIENT == 0 {
            return None;
        }
        let without = bits & WITHOUT_COOKIE != 0;
        let known = self.learnt.cookie.filter(|_| !without);
        Some(Active {
            option: if without {
                None
            } else {
                known.or_else(|| FastOpen::new(&[], false))
            },
            carries_data: known.is_some() || without,
            mss: self.learnt.mss.unwrap_or(u16::MAX),
        })
    }

    /// Stores cookies and MSS received from servers (Linux's tcp_rcv_fastopen_synack).
    pub(super) fn learn_cookies(&mut self) {
        for index in 0..self.host.conversations.len() {
            let conversation = &mut self.host.conversations[index];
            if !conversation.history.has(Events::ESTABLISHED) {
                continue;
            }
            let Some(asked) = conversation.learns.take() else {
                continue;
            };
            let connection = self.host.connection(index);
            self.learnt.mss = connection.peer_mss().or(self.learnt.mss);
            let cookie = connection.offered_cookie();
            // An unrequested cookie is not stored.
            if let Some(cookie) =
                cookie.filter(|c| asked == FastOpenRequest::Cookie && !c.cookie().is_empty())
            {
                self.learnt.cookie = Some(cookie);
            }
        }
    }
}

/// Parses a key in Linux's format: four hexadecimal words with hyphens.
pub(super) fn key(text: &str) -> Result<[u8; 16], Problem> {
    let wrong = || Problem::missing(format!("the Fast Open key {text}"));
    let mut key = [0; 16];
    let words: Vec<&str> = text.split('-').collect();
    if words.len() != 4 {
        return Err(wrong());
    }
    for (word, bytes) in words.iter().zip(key.chunks_exact_mut(4)) {
        let word = u32::from_str_radix(word, 16).map_err(|_| wrong())?;
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Ok(key)
}

/// Computes SipHash-2-4 (Aumasson and Bernstein 2012) of eight bytes.
fn siphash(key: &[u8; 16], message: u64) -> u64 {
    let half = |from: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&key[from..from + 8]);
        u64::from_le_bytes(bytes)
    };
    let (k0, k1) = (half(0), half(8));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    };
    // The message, and its length in the last byte of the next word.
    for word in [message, 8 << 56] {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siphash_matches_the_published_test_vectors() {
        // Test vector of the reference implementation for the message 00 01 ... 07.
        let mut key = [0; 16];
        (0..16).for_each(|n| key[n as usize] = n);
        assert_eq!(siphash(&key, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn fast_open_cookies_equal_those_of_linux() {
        // The cookie that google/packetdrill's run_all.py expects for the key in defaults.sh.
        let settings = Settings {
            key: key("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4").expect("a key"),
            ..Settings::default()
        };
        let cookie = settings.cookie(&settings.key);
        assert_eq!(cookie, [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb]);
    }
}
