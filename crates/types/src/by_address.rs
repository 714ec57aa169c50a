//! Something for each of some nodes, by address.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::Address;

/// From addresses to values: a list in the order of addresses, where so many of them have one that it takes hardly more
/// memory than a table would; else a table.
///
/// Where many share a network, each packet is for another of them, and what is looked up for it has left the cache: so
/// that it is small is what counts.
#[derive(Clone)]
pub struct ByAddress<T> {
    list: Vec<Option<T>>,
    /// What is not in the list, for its address is beyond it.
    table: FxHashMap<Address, T>,
}

/// With fewer values, there is no list.
const MANY: usize = 64;
/// The most places of a list for each value.
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
    /// The value of this address.
    #[inline]
    #[must_use]
    pub fn get(&self, address: Address) -> Option<T> {
        match self.list.get(usize::from(address.0)) {
            Some(value) => *value,
            None => self.table.get(&address).copied(),
        }
    }

    /// Gives an address a value.
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

    /// Takes an address its value.
    pub fn remove(&mut self, address: Address) {
        match self.list.get_mut(usize::from(address.0)) {
            Some(place) => *place = None,
            None => drop(self.table.remove(&address)),
        }
    }

    /// All values with their addresses, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (Address, T)> {
        let listed = (0..).map(Address).zip(&self.list);
        let listed = listed.filter_map(|(address, value)| Some((address, (*value)?)));
        listed.chain(self.table.iter().map(|(address, value)| (*address, *value)))
    }

    /// Lists what is in the table, if that is dense enough.
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
    fn many_neighbours_are_listed_and_few_or_scattered_ones_are_not() {
        assert!(with(0..10).list.is_empty());
        assert!(with((0..2_000).map(|number| number * 30)).list.is_empty());
        let many = with(1..5_000);
        assert!(many.list.len() > 4_000, "{}", many.list.len());
        assert!(many.table.len() < 1_000);
    }

    proptest! {
        #[test]
        fn it_is_a_map(changes in prop::collection::vec((0_u16..300, any::<bool>(), any::<u32>()), 0..600)) {
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
