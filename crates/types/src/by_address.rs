//! A map from node addresses to values.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::Address;

/// A map from addresses to values: a list indexed by address where addresses are dense, otherwise a
/// hash table.
///
/// In networks of many users the looked-up entry is usually not in the cache, so a small map is
/// faster than a large one.
#[derive(Clone)]
pub struct ByAddress<T> {
    list: Vec<Option<T>>,
    /// Entries whose address is beyond the list.
    table: FxHashMap<Address, T>,
}

/// Fewer values than this are kept in the table alone.
const MANY: usize = 64;
/// Most list entries per value.
const SPARSE: usize = 4;

impl<T> Default for ByAddress<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            table: FxHashMap::default(),
        }
    }
}

impl<T: Copy> ByAddress<T> {
    /// Returns the value of an address.
    #[inline]
    #[must_use]
    pub fn get(&self, address: Address) -> Option<T> {
        match self.list.get(usize::from(address.0)) {
            Some(value) => *value,
            None => self.table.get(&address).copied(),
        }
    }

    /// Sets the value of an address.
    pub fn insert(&mut self, address: Address, value: T) {
        if let Some(place) = self.list.get_mut(usize::from(address.0)) {
            *place = Some(value);
            return;
        }
        self.table.insert(address, value);
        let count = self.table.len();
        if count >= MANY && count.is_power_of_two() {
            self.make_list();
        }
    }

    /// Removes the value of an address.
    pub fn remove(&mut self, address: Address) {
        match self.list.get_mut(usize::from(address.0)) {
            Some(place) => *place = None,
            None => drop(self.table.remove(&address)),
        }
    }

    /// Iterates over all addresses and values in any order.
    pub fn iter(&self) -> impl Iterator<Item = (Address, T)> {
        let listed = (0..).map(Address).zip(&self.list);
        let listed = listed.filter_map(|(address, value)| Some((address, (*value)?)));
        listed.chain(self.table.iter().map(|(address, value)| (*address, *value)))
    }

    /// Moves the table's entries to the list if they are dense enough.
    #[cold]
    fn make_list(&mut self) {
        let last = self
            .table
            .keys()
            .map(|address| usize::from(address.0))
            .max();
        let length = last.map_or(0, |last| last + 1);
        if length > SPARSE * (self.list.len() / SPARSE + self.table.len()) {
            return;
        }
        self.list.resize(length, None);
        for (address, value) in self.table.drain() {
            self.list[usize::from(address.0)] = Some(value);
        }
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for ByAddress<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn with(addresses: impl IntoIterator<Item = u16>) -> ByAddress<u32> {
        let mut map = ByAddress::default();
        for address in addresses {
            map.insert(Address(address), u32::from(address));
        }
        map
    }

    #[test]
    fn only_many_dense_addresses_use_the_list() {
        assert!(with(0..10).list.is_empty());
        assert!(with((0..2_000).map(|number| number * 30)).list.is_empty());
        let many = with(1..5_000);
        assert!(many.list.len() > 4_000, "{}", many.list.len());
        assert!(many.table.len() < 1_000);
    }

    proptest! {
        #[test]
        fn operations_equal_those_of_a_map(changes in prop::collection::vec((0_u16..300, any::<bool>(), any::<u32>()), 0..600)) {
            let mut map = ByAddress::default();
            let mut witness = BTreeMap::new();
            for (address, stays, value) in changes {
                if stays {
                    map.insert(Address(address), value);
                    witness.insert(address, value);
                } else {
                    map.remove(Address(address));
                    witness.remove(&address);
                }
            }
            for address in 0..310 {
                prop_assert_eq!(map.get(Address(address)), witness.get(&address).copied());
            }
            let mut all: Vec<_> = map.iter().map(|(address, value)| (address.0, value)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, witness.into_iter().collect::<Vec<_>>());
        }
    }
}
