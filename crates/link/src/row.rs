//! A first-in-first-out ring of small values.

/// A first-in-first-out ring of small values with random access.
///
/// The number of slots is a power of two. Positions grow from 0, and a position's slot is given by
/// its low bits, which takes fewer steps than a wrap-around test. It doubles when it is full and
/// never shrinks.
#[derive(Debug)]
pub(crate) struct Row<T> {
    slots: Box<[T]>,
    /// Position of the first value.
    start: u64,
    /// Position of the next value to be added.
    end: u64,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Self {
            slots: Box::default(),
            start: 0,
            end: 0,
        }
    }
}

impl<T: Copy> Row<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// Returns the value `number` positions behind the first.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        let is_there = number < self.len();
        is_there.then(|| &self.slots[self.slot(self.start + number as u64)])
    }

    #[inline]
    pub(crate) fn push(&mut self, last: T) {
        if self.len() == self.slots.len() {
            self.grow(last);
        }
        let slot = self.slot(self.end);
        self.slots[slot] = last;
        self.end += 1;
    }

    /// Removes the first value.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = *self.first()?;
        self.start += 1;
        Some(first)
    }

    /// Iterates from the first value to the last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (self.start..self.end).map(|position| &self.slots[self.slot(position)])
    }

    /// Keeps the values for which `is_kept` returns true, in order.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        for _ in 0..self.len() {
            if let Some(first) = self.pop()
                && is_kept(&first)
            {
                self.push(first);
            }
        }
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & self.slots.len().wrapping_sub(1)
    }

    /// Doubles the slots; unused ones are filled with `filler`.
    #[cold]
    fn grow(&mut self, filler: T) {
        let size = (2 * self.slots.len()).max(4);
        let mut slots = vec![filler; size].into_boxed_slice();
        for position in self.start..self.end {
            slots[position as usize & (size - 1)] = self.slots[self.slot(position)];
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn operations_equal_those_of_a_deque(steps in prop::collection::vec(0_u8..8, 0..400)) {
            let mut row = Row::default();
            let mut witness = VecDeque::new();
            for (step, number) in steps.into_iter().zip(0_u32..) {
                match step {
                    0..4 => {
                        row.push(number);
                        witness.push_back(number);
                    }
                    4..7 => prop_assert_eq!(row.pop(), witness.pop_front()),
                    _ => {
                        row.retain(|each| each % 3 > 0);
                        witness.retain(|each| each % 3 > 0);
                    }
                }
                prop_assert_eq!(row.len(), witness.len());
                prop_assert_eq!(row.is_empty(), witness.is_empty());
                prop_assert_eq!(row.first(), witness.front());
                prop_assert_eq!(row.get(3), witness.get(3));
                prop_assert!(row.iter().eq(&witness));
            }
        }
    }
}
