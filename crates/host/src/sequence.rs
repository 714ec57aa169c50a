//! Initial sequence numbers: of a simulation's own luck, or that nobody can guess.

use std::hash::Hasher;
use std::net::IpAddr;

use bentpipe_types::{Address, Endpoint, FastOpen, RandomStream, Seq, Time};
use siphasher::sip::SipHasher13;

/// What only a real host knows: from the operating system's randomness.
#[derive(Clone, Copy)]
pub struct Secret(pub [u64; 2]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Where a host's initial sequence numbers come from.
#[derive(Clone, Debug)]
pub enum InitialSequences {
    /// Each application has a stream of randomness of its own for them: adding a flow changes no
    /// other's.
    PerApplication,
    /// RFC 6528.
    Secret(Secret),
    /// Always this.
    Fixed(Seq),
}

impl InitialSequences {
    /// The next, for a connection between these ends.
    pub(crate) fn next(
        &self,
        stream: &mut RandomStream,
        ports: [Endpoint; 2],
        ip: Option<(IpAddr, IpAddr)>,
        now: Time,
    ) -> Seq {
        match self {
            Self::PerApplication => {
                let sequence = Seq::new(stream.bits() as u32);
                // The other end of the flow has the draws between.
                stream.bits();
                sequence
            }
            Self::Secret(secret) => hashed(*secret, ports, ip, now),
            Self::Fixed(sequence) => *sequence,
        }
    }

    /// The Fast Open cookie of a client (RFC 7413 section 4.1.2): a function of its address, and of what only this host
    /// knows. In a simulation, where nobody guesses, of its own address.
    pub(crate) fn cookie(
        &self,
        here: Address,
        client: Address,
        ip: Option<IpAddr>,
    ) -> Option<FastOpen> {
        let keys = match self {
            Self::Secret(secret) => secret.0,
            Self::PerApplication | Self::Fixed(_) => [u64::from(here.0), 0],
        };
        // What is hashed for sequence numbers is of another length.
        let mut hasher = SipHasher13::new_with_keys(keys[0], keys[1]);
        match ip {
            Some(ip) => hash_address(ip, &mut hasher),
            None => hasher.write_u16(client.0),
        }
        FastOpen::new(&hasher.finish().to_be_bytes(), false)
    }
}

/// RFC 6528 section 3: ISN = M + F(localip, localport, remoteip, remoteport, secretkey), M the four
/// microsecond timer of RFC 9293 section 3.4.1. F is SipHash, as in Linux, where the RFC suggests MD5.
fn hashed(secret: Secret, ports: [Endpoint; 2], ip: Option<(IpAddr, IpAddr)>, now: Time) -> Seq {
    let mut hasher = SipHasher13::new_with_keys(secret.0[0], secret.0[1]);
    for ip in ip.into_iter().flat_map(|(ours, theirs)| [ours, theirs]) {
        hash_address(ip, &mut hasher);
    }
    for end in ports {
        hasher.write_u16(end.address.0);
        hasher.write_u16(end.port);
    }
    let timer = (now.as_nanos() / 4000) as u32;
    Seq::new((hasher.finish() as u32).wrapping_add(timer))
}

fn hash_address(ip: IpAddr, hasher: &mut SipHasher13) {
    match ip {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_of_ends_counts_on_and_another_starts_elsewhere() {
        let end = |port| Endpoint {
            address: Address(1),
            port,
        };
        let ip = |last| IpAddr::from([192, 0, 2, last]);
        let at = |key, port, last, nanoseconds| {
            let secret = Secret([1, key]);
            let ip = Some((ip(1), ip(last)));
            hashed(
                secret,
                [end(80), end(port)],
                ip,
                Time::from_nanos(nanoseconds),
            )
        };
        let first = at(2, 40_000, 2, 0);
        assert_eq!(at(2, 40_000, 2, 8_000) - first, 2);
        assert_ne!(at(2, 40_001, 2, 0), first);
        assert_ne!(at(2, 40_000, 3, 0), first);
        assert_ne!(at(3, 40_000, 2, 0), first);
    }
}
