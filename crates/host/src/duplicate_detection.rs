//! Duplicate detection for datagrams by number.

/// Size of the window.
const WINDOW: u64 = 1024;
const WORDS: usize = (WINDOW / 64) as usize;

/// Records which of the latest numbers have arrived. Numbers older than the window count as
/// duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplicateDetection {
    /// Highest number plus one.
    next: u64,
    come: [u64; WORDS],
}

impl DuplicateDetection {
    /// Records a number. Returns whether it is new. The maximum number never is.
    pub(crate) fn note(&mut self, number: u64) -> bool {
        if number == u64::MAX {
            return false;
        }
        if number >= self.next {
            let gap = number - self.next;
            if gap >= WINDOW {
                self.come = [0; WORDS];
            } else {
                for skipped in self.next..number {
                    let (word, bit) = place(skipped);
                    self.come[word] &= !bit;
                }
            }
            self.next = number + 1;
        } else if self.next - number > WINDOW {
            return false;
        } else {
            let (word, bit) = place(number);
            if self.come[word] & bit != 0 {
                return false;
            }
        }
        let (word, bit) = place(number);
        self.come[word] |= bit;
        true
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_is_new_exactly_once(numbers in prop::collection::vec(0_u64..900, 0..400), from in 0_u64..1 << 60) {
            let (mut seen, mut known) = (DuplicateDetection::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(seen.note(from + number), known.insert(number));
            }
        }
    }

    #[test]
    fn numbers_far_below_the_highest_are_duplicates() {
        let mut seen = DuplicateDetection::default();
        assert!(seen.note(0) && seen.note(5_000) && seen.note(3_977));
        assert!(!seen.note(3_976) && !seen.note(0));
        assert!(seen.note(u64::MAX - 1) && !seen.note(u64::MAX - 1) && !seen.note(u64::MAX));
    }
}
