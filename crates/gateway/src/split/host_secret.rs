//! Sequence numbers and timestamps that hosts cannot predict.

use std::hash::Hasher;
use std::net::IpAddr;

use bentpipe_tcp::Config;
use bentpipe_types::{FlowKey, HostAddress, Party, Seq, Time};
use siphasher::sip::SipHasher13;

/// A secret of the machine, and the reading of its clock when the gateway started. Both stay the
/// same for all gateways on the machine until it restarts. So values that a restarted gateway sends
/// continue those before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HostSecret {
    /// Random numbers.
    pub keys: [u64; 2],
    /// Milliseconds that the machine's clock showed at time zero.
    pub clock_ms: u64,
}

impl std::fmt::Debug for HostSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostSecret(..)")
    }
}

impl HostSecret {
    fn hash(self, key: &FlowKey, with_ports: bool) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.keys[0], self.keys[1]);
        for Party { host, port } in [key.source, key.destination] {
            match host {
                HostAddress::Node(node) => hasher.write_u16(node.0),
                HostAddress::Ip(IpAddr::V4(ip)) => hasher.write(&ip.octets()),
                HostAddress::Ip(IpAddr::V6(ip)) => hasher.write(&ip.octets()),
            }
            hasher.write_u16(if with_ports { port } else { 0 });
        }
        hasher.finish()
    }

    fn milliseconds(self, now: Time) -> u64 {
        self.clock_ms.wrapping_add(now.as_nanos() / 1_000_000)
    }

    /// Returns the initial sequence number of a connection (RFC 6528 section 3): the clock advances
    /// by one each 4 us.
    pub(super) fn sequence(self, key: &FlowKey, now: Time) -> Seq {
        let ticks = self.milliseconds(now).wrapping_mul(250);
        Seq::new(self.hash(key, true).wrapping_add(ticks) as u32)
    }

    /// Returns the present timestamp for segments between these hosts (RFC 7323 section 5.4). As in
    /// Linux, it is the same for all ports, so that a connection's timestamps are above those of an
    /// earlier one in TIME-WAIT (RFC 6191 section 2).
    fn timestamp(self, key: &FlowKey, now: Time) -> u32 {
        self.hash(key, false).wrapping_add(self.milliseconds(now)) as u32
    }
}

/// Returns the offset of the timestamps of a leg that sends packets with this key: they continue
/// `timestamp`, the latest one of the host that the leg stands for, or those of the secret. Without
/// either, as in a simulation, there is no offset.
pub(super) fn timestamp_offset(
    timestamp: Option<u32>,
    secret: Option<HostSecret>,
    key: &FlowKey,
    config: &Config,
    now: Time,
) -> u32 {
    let Some(secret) = secret else {
        return 0;
    };
    let value = timestamp.unwrap_or_else(|| secret.timestamp(key, now));
    value.wrapping_sub(config.timestamp(now))
}
