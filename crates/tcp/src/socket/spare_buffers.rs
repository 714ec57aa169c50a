//! Buffers that are not in use, kept for the next stream that needs one.
//!
//! A busy connection holds nothing many times a second. A buffer that is returned to the system
//! each time costs a page fault per 4 KiB when it is needed again.

use std::cell::RefCell;
use std::mem;

/// Limit of the bytes kept by a thread. Further buffers are freed.
const LIMIT: usize = 16 << 20;

/// Number of lengths that are kept.
const EXPONENTS: usize = LIMIT.ilog2() as usize + 1;

/// Spare buffers of a thread.
#[derive(Debug, Default)]
struct SpareBuffers {
    /// Buffers of each length, a power of two, by its exponent.
    by_exponent: [Vec<Vec<u8>>; EXPONENTS],
    bytes: usize,
}

thread_local! {
    static SPARE: RefCell<SpareBuffers> = RefCell::default();
}

/// Returns a buffer of `length` bytes, a power of two. Its content is not specified.
pub(super) fn take(length: usize) -> Vec<u8> {
    let spare = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let found = spare.by_exponent.get_mut(length.ilog2() as usize)?.pop()?;
        spare.bytes -= length;
        Some(found)
    });
    spare.ok().flatten().unwrap_or_else(|| vec![0; length])
}

/// Keeps a buffer whose length is a power of two, if there is room.
pub(super) fn give(buffer: Vec<u8>) {
    let length = buffer.len();
    if !length.is_power_of_two() {
        return;
    }
    // At the end of a thread, it is freed.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.bytes + length <= LIMIT {
            spare.bytes += length;
            spare.by_exponent[length.ilog2() as usize].push(buffer);
        }
    });
}

/// Frees the buffers that this thread keeps.
pub fn free_spare_buffers() {
    let kept = SPARE.try_with(|spare| mem::take(&mut *spare.borrow_mut()));
    drop(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        SPARE.with(|spare| spare.borrow().bytes)
    }

    #[test]
    fn buffers_are_used_again_up_to_a_limit() {
        free_spare_buffers();
        let buffer = take(4096);
        let address = buffer.as_ptr();
        give(buffer);
        assert_eq!(kept(), 4096);
        assert_eq!((take(8192).len(), kept()), (8192, 4096));
        let buffer = take(4096);
        assert_eq!((buffer.as_ptr(), buffer.len(), kept()), (address, 4096, 0));
        give(Vec::new());
        for _ in 0..40 {
            give(vec![0; 1 << 20]);
        }
        assert_eq!(kept(), LIMIT);
        free_spare_buffers();
        assert_eq!(kept(), 0);
    }
}
