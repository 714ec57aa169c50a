//! Initial sequence numbers that nobody can guess.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use bentpipe_types::{Seq, Time};
use siphasher::sip::SipHasher13;

/// What only this host knows: from the operating system's randomness.
#[derive(Clone, Copy)]
pub struct Secret(pub [u64; 2]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// RFC 6528 section 3: ISN = M + F(localip, localport, remoteip, remoteport, secretkey), M the four
/// microsecond timer of RFC 9293 section 3.4.1. F is SipHash, as in Linux, where the RFC suggests MD5.
pub(super) fn initial_sequence(
    secret: Secret,
    local: SocketAddr,
    remote: SocketAddr,
    now: Time,
) -> Seq {
    let mut hasher = SipHasher13::new_with_keys(secret.0[0], secret.0[1]);
    for end in [local, remote] {
        match end.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(end.port());
    }
    let timer = (now.as_nanos() / 4000) as u32;
    Seq::new((hasher.finish() as u32).wrapping_add(timer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_of_ends_counts_on_and_another_starts_elsewhere() {
        let secret = Secret([1, 2]);
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (local, remote) = (end("10.0.0.1:80"), end("10.0.0.2:40000"));
        let at =
            |nanoseconds| initial_sequence(secret, local, remote, Time::from_nanos(nanoseconds));
        assert_eq!(at(8_000) - at(0), 2);
        let other = initial_sequence(secret, local, end("10.0.0.2:40001"), Time::ZERO);
        assert_ne!(other, at(0));
        let guessed = initial_sequence(Secret([1, 3]), local, remote, Time::ZERO);
        assert_ne!(guessed, at(0));
    }
}
