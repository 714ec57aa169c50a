//! The bytes of a simulated stream.
//!
//! In simulation a payload is a range of its sender's stream. On the wire it is filler: byte `i` of
//! every stream is byte `i % 8`, little-endian, of the 64-bit [`block`]`(i / 8)`. So a retransmission
//! carries the bytes that were sent first, any range is made without those before it, and whoever has
//! the bytes can tell ([`first_difference`]) whether they are the ones that belong there.
//!
//! A block is output `i / 8` of splitmix64 seeded with zero, of each byte of which six bits are kept
//! and the others set so that it lies in 0x40..0x80: letters, mostly. Of bytes without that
//! restriction, Wireshark takes about one segment in 200 for some protocol, and then a malformed one.

use crate::splitmix64;

const RANDOM_BITS: u64 = 0x3f3f_3f3f_3f3f_3f3f;
const LETTER_BITS: u64 = 0x4040_4040_4040_4040;

/// Block `index`: the eight bytes from stream offset `8 * index`, as a little-endian number.
#[must_use]
pub const fn block(index: u64) -> u64 {
    splitmix64(index) & RANDOM_BITS | LETTER_BITS
}

/// Fills `out` with the stream's bytes from `offset`.
pub fn fill(offset: u64, out: &mut [u8]) {
    let mut index = offset / 8;
    // The rest of a block that starts before the range.
    let skip = (offset % 8) as usize;
    let head = if skip == 0 {
        0
    } else {
        out.len().min(8 - skip)
    };
    let (head, body) = out.split_at_mut(head);
    if !head.is_empty() {
        head.copy_from_slice(&block(index).to_le_bytes()[skip..skip + head.len()]);
        index += 1;
    }
    let mut blocks = body.chunks_exact_mut(8);
    for bytes in &mut blocks {
        bytes.copy_from_slice(&block(index).to_le_bytes());
        index += 1;
    }
    let tail = blocks.into_remainder();
    tail.copy_from_slice(&block(index).to_le_bytes()[..tail.len()]);
}

/// Index of the first of `bytes` that is not the stream's byte at `offset` plus that index.
#[must_use]
pub fn first_difference(offset: u64, bytes: &[u8]) -> Option<usize> {
    let mut expected = [0; 512];
    for (i, piece) in bytes.chunks(expected.len()).enumerate() {
        let start = i * expected.len();
        let expected = &mut expected[..piece.len()];
        fill(offset.wrapping_add(start as u64), expected);
        if let Some(at) = piece.iter().zip(&*expected).position(|(a, b)| a != b) {
            return Some(start + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_generator_is_what_it_says() {
        // The first outputs of the published splitmix64 for seed 0.
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(1), 0x6e78_9e6a_a1b9_65f4);
        // Frozen: captures of the same run are the same in every version.
        let mut start = [0; 20];
        fill(0, &mut start);
        assert_eq!(&start, b"oM]{yh`bteyaj^xnOEI@");
    }

    proptest! {
        #[test]
        fn any_range_is_part_of_the_same_stream(
            start in prop_oneof![0u64..64, any::<u64>().prop_map(|n| n >> 1)],
            length in 0usize..1500,
            from in any::<prop::sample::Index>(),
        ) {
            let mut whole = vec![0; length];
            fill(start, &mut whole);
            let from = from.index(length + 1);
            let mut part = vec![0; length - from];
            fill(start + from as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[from..]);
            prop_assert_eq!(first_difference(start, &whole), None);
            if let Some(byte) = whole.get_mut(from) {
                *byte ^= 1;
                prop_assert_eq!(first_difference(start, &whole), Some(from));
            }
        }
    }
}
