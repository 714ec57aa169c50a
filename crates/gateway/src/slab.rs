//! A table of items with stable indices.

/// Free entries are reused. Growing moves all items, so large ones are better boxed.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Inserts an item, and returns its index.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(thing);
            return index;
        }
        self.places.push(Some(thing));
        (self.places.len() - 1) as u32
    }

    /// Returns the item at an index, for reading.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.as_ref()
    }

    /// Returns the item at an index.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    /// Removes and returns the item at an index.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let thing = self.places.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(thing)
    }

    /// Returns all items.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(Option::as_ref)
    }

    /// Returns a bound: all indices are below it.
    pub(crate) fn end(&self) -> u32 {
        self.places.len() as u32
    }

    /// Number of entries, used or free.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slab = Slab::default();
        assert_eq!((slab.insert('a'), slab.insert('b')), (0, 1));
        assert_eq!(slab.remove(0), Some('a'));
        assert_eq!(slab.remove(0), None);
        assert_eq!(slab.insert('c'), 0);
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [&'c', &'b']);
    }
}
