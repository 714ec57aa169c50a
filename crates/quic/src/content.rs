//! The bytes of streams: the same at the same offset of every stream, without being generated for
//! each packet.

use std::sync::LazyLock;

use bentpipe_types::filler;
use bytes::Bytes;

/// Period of the content, a prime: bytes at another offset differ, unless they are off by a
/// multiple of it.
const PERIOD: usize = 65_521;

/// Two periods, so that one slice holds any range of up to a period.
static CONTENT: LazyLock<Bytes> = LazyLock::new(|| {
    let mut content = vec![0; PERIOD];
    filler::fill(0, &mut content);
    Bytes::from([&content[..], &content[..]].concat())
});

/// Returns up to `length` bytes of the content from `offset`, and at least one if `length` is not
/// zero.
pub(crate) fn piece(offset: u64, length: u64) -> Bytes {
    let start = (offset % PERIOD as u64) as usize;
    let length = length.min(PERIOD as u64) as usize;
    CONTENT.slice(start..start + length)
}

/// Whether these are the bytes at `offset`.
pub(crate) fn matches(offset: u64, mut bytes: &[u8]) -> bool {
    let mut offset = offset;
    while !bytes.is_empty() {
        let expected = piece(offset, bytes.len() as u64);
        let (head, rest) = bytes.split_at(expected.len());
        if head != &expected[..] {
            return false;
        }
        offset += head.len() as u64;
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_at_another_offset_differs() {
        let bytes = piece(1_000_000, 1_000);
        assert_eq!(bytes.len(), 1_000);
        assert!(matches(1_000_000, &bytes));
        assert!(!matches(1_000_001, &bytes));
        assert!(!matches(1_000_000 + (1 << 16), &bytes));
        let long = [piece(PERIOD as u64 - 5, 10), piece(5, 65_000)].concat();
        assert!(matches(PERIOD as u64 - 5, &long));
    }
}
