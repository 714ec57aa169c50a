//! Bounded tables of data about remote hosts, which can supply any amount of it.

use std::collections::BTreeMap;

use bentpipe_types::Time;

/// Removes the oldest entry if `key` is new and the table has `most` entries.
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
