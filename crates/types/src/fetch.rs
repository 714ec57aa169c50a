//! Asking for memory before it is looked at.

/// A cache line, in bytes.
const LINE: usize = 64;

/// Asks for so many cache lines, from that of this value on, which will be looked at soon: where memory is far, they come
/// while something else is done. Nothing is read, so that there may be less than is asked for. For a value whose size
/// divides a cache line, or for one line.
#[inline(always)]
pub fn fetch<T>(first: &T, lines: usize) {
    debug_assert!(lines == 1 || LINE.is_multiple_of(size_of::<T>()));
    for line in 0..lines {
        let further = line * (LINE / size_of::<T>());
        prefetch_index::prefetch_index(std::slice::from_ref(first), further);
    }
}
