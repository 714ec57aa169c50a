//! Initial sequence numbers, and Fast Open cookies.

use std::hash::Hasher;
use std::net::IpAddr;

use bentpipe_types::{Address, Endpoint, FastOpen, RandomStream, Seq, Time};
use siphasher::sip::SipHasher13;

/// A secret of a real host, from the operating system's random source.
#[derive(Clone, Copy)]
pub struct Secret(pub [u64; 2]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Source of a host's initial sequence numbers.
#[derive(Clone, Debug)]
pub enum InitialSequences {
    /// A random stream per application, so that adding a flow changes no other's numbers.
    PerApplication,
    /// RFC 6528.
    Secret(Secret),
    /// This number, always.
    Fixed(Seq),
}

impl InitialSequences {
    /// Returns the initial sequence number of a connection between these ends.
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
                // The draws in between belong to the other end of the flow.
                stream.bits();
                sequence
            }
            Self::Secret(secret) => hashed(*secret, ports, ip, now),
            Self::Fixed(sequence) => *sequence,
        }
    }

    /// Returns the Fast Open cookie of a client (RFC 7413 section 4.1.2): a function of its address
    /// and the host's secret. In simulation, of its own address.
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
        // Its input length differs from that of sequence numbers.
        let mut hasher = SipHasher13::new_with_keys(keys[0], keys[1]);
        match ip {
            Some(ip) => hash_address(ip, &mut hasher),
            None => hasher.write_u16(client.0),
        }
        FastOpen::new(&hasher.finish().to_be_bytes(), false)
    }
}

/// RFC 6528 section 3: ISN = M + F(localip, localport, remoteip, remoteport, secretkey), where M is
/// the four-microsecond timer of RFC 9293 section 3.4.1. F is SipHash, as in Linux; the RFC
/// suggests MD5.
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
    fn initial_sequence_numbers_increase_per_address_pair_and_differ_between_pairs() {
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
