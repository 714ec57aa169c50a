//! Numbers of which the lowest comes first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

/// Numbers, to be taken lowest first, that nearly always come in rising order: retransmissions are lost in the
/// order in which they left, the lowest first.
///
/// Such ones wait in a queue, which costs the same however many they are. Only one below the last of the queue
/// goes through a heap, which most connections never have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LowestFirst {
    rising: VecDeque<u64>,
    #[expect(
        clippy::box_collection,
        reason = "most connections never have one, and each would keep room for it"
    )]
    fallen: Option<Box<BinaryHeap<Reverse<u64>>>>,
}

impl LowestFirst {
    #[inline]
    pub(super) fn push(&mut self, number: u64) {
        if self.rising.back().is_none_or(|last| *last <= number) {
            self.rising.push_back(number);
        } else {
            (self.fallen.get_or_insert_default()).push(Reverse(number));
        }
    }

    /// The lowest.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        match (self.rising.front().copied(), self.first_fallen()) {
            (Some(risen), Some(fallen)) => Some(risen.min(fallen)),
            (risen, fallen) => risen.or(fallen),
        }
    }

    /// Takes the lowest out.
    #[inline]
    pub(super) fn remove_first(&mut self) {
        let first = self.first();
        if self.rising.front().copied() == first {
            self.rising.pop_front();
        } else if let Some(fallen) = &mut self.fallen {
            fallen.pop();
        }
    }

    #[inline]
    fn first_fallen(&self) -> Option<u64> {
        let Reverse(number) = self.fallen.as_ref()?.peek()?;
        Some(*number)
    }

    pub(super) fn clear(&mut self) {
        self.rising.clear();
        self.fallen = None;
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rising.len() + self.fallen.as_ref().map_or(0, |fallen| fallen.len())
    }

    /// Bytes of memory that it has allocated.
    pub(super) fn allocated(&self) -> usize {
        let fallen = self.fallen.as_ref().map_or(0, |fallen| fallen.capacity());
        (self.rising.capacity() + fallen) * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lowest_comes_first(steps in prop::collection::vec(prop::option::of(0_u64..20), 0..200)) {
            let mut numbers = LowestFirst::default();
            let mut naive = Vec::new();
            for step in steps {
                match step {
                    Some(number) => {
                        numbers.push(number);
                        naive.push(number);
                        naive.sort_unstable();
                    }
                    None => {
                        numbers.remove_first();
                        naive.drain(..naive.len().min(1));
                    }
                }
                prop_assert_eq!(numbers.first(), naive.first().copied());
                prop_assert_eq!(numbers.len(), naive.len());
            }
        }
    }
}
