//! The longest of many queues, without a search.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Rank of a queue as the longest: by bytes; among equals, the one served earlier. Includes the
/// queue's index.
///
/// One number, so that a comparison is one step; from the left: 48 bits of bytes, 64 of the
/// inverted place, 16 of the index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in super::super) struct Claim(u128);

impl Claim {
    /// Rank of an unknown queue.
    pub(in super::super) const NOTHING: Self = Self(0);

    /// Creates the rank of a queue with this many bytes.
    #[inline]
    pub(in super::super) fn of(index: u32, bytes: u64, place: u64) -> Self {
        debug_assert!(bytes < 1 << 48 && index < 1 << 16, "each has its bits");
        Self(u128::from(bytes) << 80 | u128::from(!place) << 16 | u128::from(index))
    }

    #[inline]
    fn index(self) -> u32 {
        u32::from(self.0 as u16)
    }
}

/// A queue that can be ranked.
pub(in super::super) trait Claimant {
    /// Returns the backlog in bytes.
    fn bytes(&self) -> u64;

    /// Returns the current rank.
    fn claim(&self, index: u32) -> Claim;

    /// The rank entered in [`Longest`].
    fn entered(&mut self) -> &mut Claim;

    /// Whether the queue may have grown since then.
    fn grown(&mut self) -> &mut bool;
}

/// The longest of a number of queues.
///
/// It is needed only when too much is queued. A queue that grows is therefore only marked, and its
/// rank is entered on demand. A queue that has shrunk is detected when its rank comes up, and
/// entered again. A queue that never fills costs a test per packet, and every search is amortised
/// over packets that have come and left.
#[derive(Debug, Default)]
pub(in super::super) struct Longest {
    /// Entered ranks. Of a queue's entries only the one that equals its `entered` is valid.
    entries: BinaryHeap<Claim>,
    /// Queues that may have grown.
    grown: Vec<u32>,
}

impl Longest {
    /// Creates the ranking of this many empty queues.
    pub(in super::super) fn new(queues: usize) -> Self {
        Self {
            entries: BinaryHeap::with_capacity(most_entries(queues) + 1),
            grown: Vec::with_capacity(queues),
        }
    }

    /// Marks a queue as grown.
    #[inline]
    pub(in super::super) fn grown(&mut self, index: u32, queue: &mut impl Claimant) {
        if !std::mem::replace(queue.grown(), true) {
            self.grown.push(index);
        }
    }

    /// Returns the longest queue.
    pub(in super::super) fn find(&mut self, queues: &mut [impl Claimant]) -> Option<u32> {
        for index in self.grown.drain(..) {
            let queue = &mut queues[index as usize];
            *queue.grown() = false;
            let claim = queue.claim(index);
            if claim > *queue.entered() && queue.bytes() > 0 {
                *queue.entered() = claim;
                self.entries.push(claim);
            }
        }
        if self.entries.len() > most_entries(queues.len()) {
            // Most of them are old ranks of queues that have grown since.
            self.entries
                .retain(|claim| *claim == *queues[claim.index() as usize].entered());
        }
        while let Some(mut entry) = self.entries.peek_mut() {
            let entered = *entry;
            let index = entered.index();
            let queue = &mut queues[index as usize];
            if entered != *queue.entered() {
                PeekMut::pop(entry);
                continue;
            }
            let now = queue.claim(index);
            if entered == now {
                return Some(index);
            }
            if queue.bytes() > 0 {
                *queue.entered() = now;
                *entry = now;
            } else {
                *queue.entered() = Claim::NOTHING;
                PeekMut::pop(entry);
            }
        }
        None
    }
}

/// Twice as many entries as queues: removing invalid ones then costs each new entry one step.
fn most_entries(queues: usize) -> usize {
    2 * queues + 64
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Queue {
        bytes: u64,
        entered: Claim,
        grown: bool,
    }

    impl Claimant for Queue {
        fn bytes(&self) -> u64 {
            self.bytes
        }

        fn claim(&self, index: u32) -> Claim {
            Claim::of(index, self.bytes, 0)
        }

        fn entered(&mut self) -> &mut Claim {
            &mut self.entered
        }

        fn grown(&mut self) -> &mut bool {
            &mut self.grown
        }
    }

    /// Queues that grow for ever leave invalid entries behind; their number is bounded.
    #[test]
    fn entries_are_bounded() {
        let mut queues: Vec<Queue> = (0..100)
            .map(|_| Queue {
                bytes: 0,
                entered: Claim::NOTHING,
                grown: false,
            })
            .collect();
        let mut longest = Longest::new(queues.len());
        for round in 1..50_u64 {
            for (queue, index) in queues.iter_mut().zip(0_u32..) {
                queue.bytes += 1 + (u64::from(index) * 37 + round * 11) % 100;
                longest.grown(index, queue);
            }
            let most = queues.iter().map(|queue| queue.bytes).max();
            let found = longest.find(&mut queues).map(|index| index as usize);
            assert_eq!(found.map(|index| queues[index].bytes), most);
            assert!(longest.entries.len() <= 2 * 100 + 64);
        }
    }
}
