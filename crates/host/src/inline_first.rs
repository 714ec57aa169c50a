//! Numbered places, the first of which is stored inline.

/// Places numbered from 0. Most hosts of a large network have one connection, which is found
/// without indirection or bounds check.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct InlineFirst<T> {
    first: T,
    others: Vec<T>,
    count: u32,
}

impl<T: Default> InlineFirst<T> {
    /// Returns the place with this number. The first place exists, empty, before it is created.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        match number {
            0 => Some(&self.first),
            _ => self.others.get(number as usize - 1),
        }
    }

    /// Returns the place with this number for modification.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match number {
            0 => Some(&mut self.first),
            _ => self.others.get_mut(number as usize - 1),
        }
    }

    /// Returns the number of places.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns two different places.
    pub(crate) fn pair_mut(&mut self, one: u32, other: u32) -> Option<[&mut T; 2]> {
        match (one, other) {
            (0, 0) => None,
            (0, n) => Some([&mut self.first, self.others.get_mut(n as usize - 1)?]),
            (n, 0) => Some([self.others.get_mut(n as usize - 1)?, &mut self.first]),
            (n, m) => {
                let numbers = [n as usize - 1, m as usize - 1];
                self.others.get_disjoint_mut(numbers).ok()
            }
        }
    }

    /// Creates the next place and returns its number.
    pub(crate) fn push(&mut self) -> u32 {
        if self.count > 0 {
            self.others.push(T::default());
        }
        self.count += 1;
        self.count - 1
    }

    /// Iterates over all places in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first)
            .chain(&self.others)
            .take(self.count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_slot() {
        let mut places = InlineFirst::<u32>::default();
        assert_eq!(places.iter().count(), 0);
        for number in 0..4 {
            assert_eq!(places.push(), number);
            if let Some(place) = places.get_mut(number) {
                *place = 10 + number;
            }
        }
        assert_eq!(places.iter().copied().collect::<Vec<_>>(), [10, 11, 12, 13]);
        assert_eq!(places.get(2), Some(&12));
        assert_eq!(places.get(4), None);
    }

    #[test]
    fn pair_mut_requires_two_distinct_existing_slots() {
        let mut places = InlineFirst::<u32>::default();
        for number in 0..3 {
            places.push();
            if let Some(place) = places.get_mut(number) {
                *place = number;
            }
        }
        for (one, other) in [(0, 1), (2, 0), (1, 2)] {
            let pair = places.pair_mut(one, other);
            assert_eq!(pair.map(|[a, b]| (*a, *b)), Some((one, other)));
        }
        for (one, other) in [(0, 0), (1, 1), (0, 3), (3, 1)] {
            assert_eq!(places.pair_mut(one, other), None);
        }
    }
}
