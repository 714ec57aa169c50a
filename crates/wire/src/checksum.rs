//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use std::net::IpAddr;

/// A running ones' complement sum of 16-bit words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes. An odd last byte is padded with zero (RFC 1071 section 1), so only the last part
    /// may have odd length.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        // RFC 1071 section 2 (C): wider words are allowed, since `finish` folds the carries.
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            self.0 += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        let rest = words.remainder();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_be_bytes(last));
        self
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(mut self, word: u16) -> Self {
        self.0 += u64::from(word);
        self
    }

    /// Adds the pseudo-header of a TCP segment: addresses, protocol, segment length.
    // RFC 9293 section 3.1 for IPv4; RFC 8200 section 8.1 for IPv6, whose wider fields only add
    // zeros.
    #[must_use]
    pub fn pseudo_header(self, source: IpAddr, destination: IpAddr, segment: usize) -> Self {
        self.pseudo_header_of(crate::protocol::TCP, source, destination, segment)
    }

    /// Adds the pseudo-header of another protocol.
    #[must_use]
    pub fn pseudo_header_of(
        self,
        protocol: u8,
        source: IpAddr,
        destination: IpAddr,
        length: usize,
    ) -> Self {
        let sum = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.bytes(&source.octets()).bytes(&destination.octets())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.bytes(&source.octets()).bytes(&destination.octets())
            }
            _ => {
                debug_assert!(false, "two IP versions in one packet");
                self
            }
        };
        let length = length as u64;
        Self(sum.0 + u64::from(protocol) + (length >> 16) + (length & 0xffff))
    }

    /// Returns the checksum: the complement of the sum. It is zero over bytes that include a
    /// correct checksum.
    #[must_use]
    pub fn finish(self) -> u16 {
        !self.folded()
    }

    fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }
}

/// Returns the checksum of bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::default().bytes(bytes).finish()
}

/// Returns the checksum after one covered 16-bit word has changed.
// RFC 1624 section 3, equation 3: HC' = ~(~HC + ~m + m'). Unlike RFC 1141's update it never turns a
// checksum of 0x0000 into 0xffff.
#[must_use]
pub fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::default().word(!checksum).word(!old).word(new).finish()
}

/// Returns the checksum after a 32-bit field has changed: an acknowledgment number or an IPv4
/// address.
///
/// The field may straddle 32-bit words if it starts at an even byte.
#[must_use]
pub fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    update(checksum, &old.to_be_bytes(), &new.to_be_bytes())
}

/// Returns the checksum after a run of bytes was replaced by another, possibly of another length.
///
/// The run starts at an even byte. Both lengths are even, or the run is the last. Fields of odd
/// length or position are replaced together with a neighbour.
#[must_use]
pub fn update(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let removed = Sum::default().bytes(old).folded();
    Sum::default()
        .word(!checksum)
        .word(!removed)
        .bytes(new)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksums_match_the_examples_of_the_rfcs() {
        // RFC 1071 section 3.
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&data), !0xddf2);
        // RFC 1624 section 4: when 0x5555 becomes 0x3285, checksum 0xdd2f becomes 0x0000, not
        // 0xffff.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    /// Adds word by word, following the definition in RFC 1071.
    fn by_definition(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn any_bytes_sum_as_defined(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(checksum(&bytes), by_definition(&bytes));
        }

        #[test]
        fn an_update_equals_a_full_sum(
            mut bytes in prop::collection::vec(any::<u8>(), 2..200),
            at in any::<prop::sample::Index>(),
            new in prop::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..20),
            length in 0usize..20,
        ) {
            // All zeros would be ambiguous, since ones' complement has +0 and -0. No header is all
            // zeros.
            bytes[0] = 0x45;
            let new = &new[..new.len() & !1];
            let at = (2 + 2 * at.index(bytes.len() / 2)).min(bytes.len());
            let length = (length & !1).min((bytes.len() - at) & !1);
            let before = checksum(&bytes);
            let old: Vec<u8> = bytes.splice(at..at + length, new.iter().copied()).collect();
            prop_assert_eq!(update(before, &old, new), checksum(&bytes));
        }

        #[test]
        fn a_field_update_equals_a_full_sum(
            mut bytes in prop::collection::vec(any::<u8>(), 20..61),
            at in 1usize..8,
            new in any::<u32>(),
        ) {
            bytes[0] = 0x45;
            let at = 2 * at;
            let before = checksum(&bytes);
            let field: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
            bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
            let after = checksum(&bytes);
            let old = u32::from_be_bytes(field);
            prop_assert_eq!(update_u32(before, old, new), after);
            let half = update_u16(before, (old >> 16) as u16, (new >> 16) as u16);
            prop_assert_eq!(update_u16(half, old as u16, new as u16), after);
        }
    }
}
