//! What is remembered of others is bounded: they can make up as much of it as they like.

use std::collections::BTreeMap;

use bentpipe_types::Time;

/// Forgets the oldest, if what is learned of `key` is news and `most` are known.
pub(crate) fn make_room<K: Copy + Ord, V>(
    known: &mut BTreeMap<K, V>,
    key: &K,
    most: usize,
    age: impl Fn(&V) -> Time,
) {
    if known.len() < most || known.contains_key(key) {
        return;
    }
    let oldest = known.iter().min_by_key(|(_, value)| age(value));
    if let Some(oldest) = oldest.map(|(key, _)| *key) {
        known.remove(&oldest);
    }
}
