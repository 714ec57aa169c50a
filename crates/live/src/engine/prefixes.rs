//! Nodes by IP prefix.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use bentpipe_sim::NodeId;

/// An IP prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    v4: bool,
    /// The prefix's bits, followed by zeros; for IPv4, the upper 32 bits count.
    bits: u128,
    length: u8,
}

impl Prefix {
    /// All IPv4 addresses: the Internet.
    pub const EVERYTHING_V4: Self = Self {
        v4: true,
        bits: 0,
        length: 0,
    };
    /// All IPv6 addresses.
    pub const EVERYTHING_V6: Self = Self {
        v4: false,
        bits: 0,
        length: 0,
    };

    /// Creates a prefix of `length` bits; `None` if the address is shorter.
    #[must_use]
    pub fn new(ip: IpAddr, length: u8) -> Option<Self> {
        let (v4, bits, most) = bits(ip);
        (length <= most).then(|| Self {
            v4,
            bits: bits & mask(length),
            length,
        })
    }

    /// Creates the prefix of one address.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        let (v4, bits, length) = bits(ip);
        Self { v4, bits, length }
    }
}

impl std::str::FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected an address or a prefix such as 192.0.2.0/24, got {text}");
        match text.split_once('/') {
            None => text.parse().map(Self::of).map_err(|_| wrong()),
            Some((ip, length)) => {
                let ip = ip.parse().map_err(|_| wrong())?;
                let length = length.parse().map_err(|_| wrong())?;
                Self::new(ip, length).ok_or_else(wrong)
            }
        }
    }
}

fn bits(ip: IpAddr) -> (bool, u128, u8) {
    match ip {
        IpAddr::V4(ip) => (true, u128::from(ip.to_bits()) << 96, 32),
        IpAddr::V6(ip) => (false, ip.to_bits(), 128),
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Nodes by prefix, with longest-prefix match.
// Trees instead of hash maps, since senders choose the addresses that are looked up.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    by_length: BTreeMap<(bool, Reverse<u8>), BTreeMap<u128, NodeId>>,
}

impl Prefixes {
    /// Assigns a prefix to `node`, replacing the node that had the same prefix.
    pub fn add(&mut self, prefix: Prefix, node: NodeId) {
        let same = self
            .by_length
            .entry((prefix.v4, Reverse(prefix.length)))
            .or_default();
        same.insert(prefix.bits, node);
    }

    /// Returns the node of the longest matching prefix.
    #[must_use]
    pub fn owner(&self, ip: IpAddr) -> Option<NodeId> {
        let (v4, bits, _) = bits(ip);
        let lengths = self.by_length.range((v4, Reverse(u8::MAX))..);
        lengths
            .take_while(|((version, _), _)| *version == v4)
            .find_map(|((_, Reverse(length)), same)| same.get(&(bits & mask(*length))).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sim::NetworkBuilder;

    #[test]
    fn longest_prefix_matches() {
        let mut builder = NetworkBuilder::new(1);
        let nodes = ["a", "b", "c", "d"].map(|name| builder.attached(name));
        let mut prefixes = Prefixes::default();
        let mut add = |text: &str, node| prefixes.add(text.parse().expect("a prefix"), node);
        add("192.0.2.0/24", nodes[0]);
        add("192.0.2.128/25", nodes[1]);
        add("192.0.2.200", nodes[2]);
        add("0.0.0.0/0", nodes[3]);
        add("2001:db8::/32", nodes[0]);
        let owner = |text: &str| prefixes.owner(text.parse().expect("an address"));
        assert_eq!(owner("192.0.2.5"), Some(nodes[0]));
        assert_eq!(owner("192.0.2.129"), Some(nodes[1]));
        assert_eq!(owner("192.0.2.200"), Some(nodes[2]));
        assert_eq!(owner("198.51.100.1"), Some(nodes[3]));
        assert_eq!(owner("2001:db8::9"), Some(nodes[0]));
        assert_eq!(owner("2001:db9::9"), None);
        // The same bits in the other IP version are a different address.
        assert_eq!(owner("c000:0200::"), None);
    }

    #[test]
    fn invalid_prefixes_are_rejected() {
        for text in [
            "",
            "192.0.2.0/33",
            "192.0.2/24",
            "::/129",
            "a/b",
            "1.2.3.4/-1",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
