//! Prefetching of memory.
//!
//! A cache line is requested before it is needed, so that it arrives while other work is done.
//! Nothing is read; the requested lines may lie beyond the end of a value. They begin at a value
//! whose size divides a cache line.

/// A cache line, in bytes.
const LINE: usize = 64;

/// Asks for so many cache lines, from that of this value on, which will be looked at soon. For one
/// line, the value may be of any size.
#[inline(always)]
pub fn fetch<T>(first: &T, lines: usize) {
    for line in 0..lines {
        fetch_behind(first, line);
    }
}

/// Asks for the cache line that is so many further than that of this value.
#[inline(always)]
pub fn fetch_behind<T>(first: &T, further: usize) {
    debug_assert!(further == 0 || LINE.is_multiple_of(size_of::<T>()));
    let index = further * (LINE / size_of::<T>());
    prefetch_index::prefetch_index(std::slice::from_ref(first), index);
}

/// Asks for all cache lines of a value, which begins with this part of it.
#[inline(always)]
pub fn fetch_whole<T, F>(whole: &T, first: &F) {
    let start = std::ptr::from_ref(whole).addr();
    debug_assert_eq!(start, std::ptr::from_ref(first).addr(), "its first part");
    for line in 0..(start % LINE + size_of::<T>()).div_ceil(LINE) {
        fetch_behind(first, line);
    }
}
