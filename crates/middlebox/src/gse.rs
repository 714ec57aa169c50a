//! Generic Stream Encapsulation (ETSI TS 102 606-1).

use bentpipe_link::Framing;
use bentpipe_types::{Bytes, PacketRef, PacketStore};

/// Start and end indicators, label type and GSE length (clause 4.2.1).
const FIXED_HEADER: u64 = 2;
/// Protocol type and a label of six bytes.
const TYPE_AND_LABEL: u64 = 2 + 6;
/// Fragment identifier, in each fragment.
const FRAGMENT_ID: u64 = 1;
/// Total length, in the first fragment.
const TOTAL_LENGTH: u64 = 2;
/// CRC-32, at the end of the last fragment.
const CHECK: u64 = 4;
/// Largest value of the GSE length, 12 bits: the bytes that follow it.
const LONGEST: u64 = 4095;

/// GSE with labels of six bytes: ten bytes around a packet. A packet of more than 4087 bytes is
/// sent in several GSE packets.
///
/// Headers of baseband frames, and fragmentation at their ends, are not included: the efficiency of
/// a mode in EN 302 307-1, table 13, already excludes the header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gse;

/// Returns the bytes of all GSE packets of a packet of this length.
fn gse_bytes(length: u64) -> u64 {
    if length + TYPE_AND_LABEL <= LONGEST {
        return length + FIXED_HEADER + TYPE_AND_LABEL;
    }
    let in_first = LONGEST - FRAGMENT_ID - TOTAL_LENGTH - TYPE_AND_LABEL;
    let others = (length + CHECK - in_first).div_ceil(LONGEST - FRAGMENT_ID);
    length + (FIXED_HEADER + FRAGMENT_ID) * (others + 1) + TOTAL_LENGTH + TYPE_AND_LABEL + CHECK
}

/// Longest packet of a scenario; it has the most fragments.
const LONGEST_PACKET: u64 = 65_535;

impl Framing for Gse {
    fn transmit(&mut self, _packet: PacketRef, length: Bytes, _packets: &mut PacketStore) -> Bytes {
        Bytes::new(gse_bytes(length.get()))
    }

    fn adds(&self) -> Bytes {
        Bytes::new(gse_bytes(LONGEST_PACKET) - LONGEST_PACKET)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_those_of_the_standard() {
        for (length, framed) in [
            (40, 50),
            (1500, 1510),
            (4087, 4097),
            // 13 bytes before the first 4084, 3 before the others, and the CRC-32.
            (4088, 4088 + 13 + 3 + 4),
            (4084 + 4090, 4084 + 4090 + 13 + 3 + 4),
            (4084 + 4091, 4084 + 4091 + 13 + 3 + 3 + 4),
        ] {
            assert_eq!(gse_bytes(length), framed, "{length}");
        }
    }

    proptest! {
        /// Each GSE packet fits its length field, so that their number is the least possible.
        #[test]
        fn length_grows_with_the_packet(length in 20_u64..65_535) {
            prop_assert!(gse_bytes(length) > length);
            prop_assert!(gse_bytes(length) < gse_bytes(length + 1));
            prop_assert!(gse_bytes(length) - length <= Gse.adds().get());
        }
    }
}
