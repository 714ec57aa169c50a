//! A set of numbers with fast access to the lowest.

use serde::{Deserialize, Serialize};

/// Numbers per word.
const WORD: u64 = u64::BITS as u64;

/// Initial number of words: as many as one word of `filled` describes.
const INITIAL_WORDS: usize = WORD as usize;

/// A set of numbers within a sliding window, removed lowest first.
///
/// It has one bit per number, and one bit per word that is not empty. Insertion and removal cost
/// the same for any size and order. (Lost retransmissions come in rising order for a round, and
/// then again from the lowest on: thousands of each in a large window. A heap would compare twenty
/// entries, each at another place in memory, per removal.)
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MinBitset {
    /// The lowest number; [`NONE`] if the set is empty.
    low: u64,
    /// Upper bound of the numbers, exclusive.
    end: u64,
    /// The bits from `low`'s word on, each at its index modulo the length, which is a power of two.
    words: Vec<u64>,
    /// One bit per word that is not 0.
    filled: Vec<u64>,
}

const NONE: u64 = u64::MAX;

impl Default for MinBitset {
    fn default() -> Self {
        Self {
            low: NONE,
            end: 0,
            words: Vec::new(),
            filled: Vec::new(),
        }
    }
}

impl MinBitset {
    /// Inserts `number`. Numbers below `needed` are obsolete and may be removed.
    #[inline]
    pub(super) fn push(&mut self, number: u64, needed: u64) {
        let low = self.low.min(number);
        let end = self.end.max(number + 1);
        if (end - 1) / WORD - low / WORD >= self.words.len() as u64 {
            self.make_room(number, needed);
        } else {
            (self.low, self.end) = (low, end);
        }
        let at = self.word(number);
        let word = &mut self.words[at];
        let was_empty = *word == 0;
        *word |= 1 << (number % WORD);
        if was_empty {
            self.filled[at / WORD as usize] |= 1 << (at as u64 % WORD);
        }
    }

    /// Inserts all numbers from `start` to `end` (exclusive), a word at a time.
    pub(super) fn push_all(&mut self, start: u64, end: u64, needed: u64) {
        // The first and the last insertion make room for those between.
        self.push(start, needed);
        if end - start == 1 {
            return;
        }
        self.push(end - 1, needed);
        let mut number = start;
        while number < end {
            let at = self.word(number);
            let after = (number / WORD * WORD + WORD).min(end);
            self.words[at] |= (u64::MAX >> (WORD - (after - number))) << (number % WORD);
            self.filled[at / WORD as usize] |= 1 << (at as u64 % WORD);
            number = after;
        }
    }

    /// The lowest number.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        (self.low != NONE).then_some(self.low)
    }

    /// Removes the lowest number.
    #[inline]
    pub(super) fn remove_first(&mut self) {
        if self.low == NONE {
            return;
        }
        let word = self.word(self.low);
        let rest = self.words[word] & (self.words[word] - 1);
        self.words[word] = rest;
        if rest != 0 {
            self.low = self.low / WORD * WORD + u64::from(rest.trailing_zeros());
        } else {
            self.filled[word / WORD as usize] &= !(1 << (word as u64 % WORD));
            self.find_from(word);
        }
    }

    /// Finds the new lowest number after the one in this word was removed.
    fn find_from(&mut self, word: usize) {
        let (at, bit) = (word / WORD as usize, word as u64 % WORD);
        // The bits before it in its own word of `filled` come last, after one turn.
        for step in 0..=self.filled.len() {
            let at = (at + step) & (self.filled.len() - 1);
            let mut filled = self.filled[at];
            if step == 0 {
                filled &= u64::MAX << bit;
            }
            if filled != 0 {
                let next = at * WORD as usize + filled.trailing_zeros() as usize;
                let words_on = next.wrapping_sub(word) & (self.words.len() - 1);
                let in_word = u64::from(self.words[next].trailing_zeros());
                self.low = (self.low / WORD + words_on as u64) * WORD + in_word;
                return;
            }
        }
        (self.low, self.end) = (NONE, 0);
    }

    /// Makes room for `number`, by removing obsolete numbers or growing.
    #[cold]
    fn make_room(&mut self, number: u64, needed: u64) {
        while self.low < needed {
            self.remove_first();
        }
        let low = self.low.min(number);
        let end = self.end.max(number + 1);
        let least = (end - low / WORD * WORD).div_ceil(WORD) as usize;
        if least > self.words.len() {
            let words = least.next_power_of_two().max(INITIAL_WORDS);
            let mut wider = Self {
                low,
                end,
                words: vec![0; words],
                filled: vec![0; words / WORD as usize],
            };
            while let Some(first) = self.first() {
                wider.push(first, 0);
                self.remove_first();
            }
            *self = wider;
        }
        (self.low, self.end) = (low, end);
    }

    /// Index of the word that holds `number`.
    #[inline]
    fn word(&self, number: u64) -> usize {
        (number / WORD) as usize & (self.words.len() - 1)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Allocated memory in bytes.
    pub(super) fn allocated(&self) -> usize {
        (self.words.capacity() + self.filled.capacity()) * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Distance from the start of the window.
        Push(u64),
        /// Distance from the start of the window, and a count.
        PushAll(u64, u64),
        Remove,
        /// Advances the window by this much.
        MoveOn(u64),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0_u64..70).prop_map(Step::Push),
            4 => (0_u64..6000).prop_map(Step::Push),
            1 => (0_u64..100_000).prop_map(Step::Push),
            2 => (0_u64..6000, 1_u64..70).prop_map(|(above, count)| Step::PushAll(above, count)),
            1 => (0_u64..6000, 1_u64..6000).prop_map(|(above, count)| Step::PushAll(above, count)),
            8 => Just(Step::Remove),
            2 => (0_u64..10_000).prop_map(Step::MoveOn),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn numbers_are_removed_lowest_first(steps in prop::collection::vec(step(), 0..300)) {
            let mut numbers = MinBitset::default();
            let mut naive = BTreeSet::new();
            let mut needed = 0;
            for step in steps {
                match step {
                    Step::Push(above) => {
                        numbers.push(needed + above, needed);
                        naive.insert(needed + above);
                    }
                    Step::PushAll(above, count) => {
                        let (start, end) = (needed + above, needed + above + count);
                        numbers.push_all(start, end, needed);
                        naive.extend(start..end);
                    }
                    Step::Remove => {
                        numbers.remove_first();
                        naive.pop_first();
                    }
                    Step::MoveOn(by) => needed += by,
                    Step::Clear => {
                        numbers.clear();
                        naive.clear();
                    }
                }
                // Obsolete numbers may remain or not.
                while numbers.first().is_some_and(|first| first < needed) {
                    prop_assert!(naive.contains(&numbers.first().unwrap()));
                    numbers.remove_first();
                }
                naive = naive.split_off(&needed);
                prop_assert_eq!(numbers.first(), naive.first().copied());
                prop_assert_eq!(numbers.len(), naive.len());
                prop_assert!(numbers.allocated() <= 2 * 100_000 / 4);
            }
        }
    }

    #[test]
    fn memory_is_bounded_by_the_window() {
        let mut numbers = MinBitset::default();
        for number in 0..1_000_000_u64 {
            // No number is removed.
            numbers.push(number, number.saturating_sub(2000));
        }
        assert!(numbers.allocated() < 1000, "{}", numbers.allocated());
        assert!(numbers.first().is_some_and(|first| first <= 998_000));
    }
}
