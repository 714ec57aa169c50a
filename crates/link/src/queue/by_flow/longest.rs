//! Which of many queues is the longest, without a search.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// How much a queue claims to be the longest: its bytes; of those as long, the one whose turn came
/// first. And which queue it is.
///
/// In one number, so that two are compared in one step, from the left: 48 bits of bytes, 64 of the place, of which the lower
/// claims more, 16 of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in super::super) struct Claim(u128);

impl Claim {
    /// What a queue has claimed of which nothing is known.
    pub(in super::super) const NOTHING: Self = Self(0);

    /// What a queue claims that has so many bytes.
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

/// A queue that can be the longest of many.
pub(in super::super) trait Claimant {
    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// What it claims as it is now.
    fn claim(&self, index: u32) -> Claim;

    /// What it has claimed, for [`Longest`] to keep.
    fn entered(&mut self) -> &mut Claim;

    /// Whether it may have more than it has claimed, for [`Longest`] to keep.
    fn grown(&mut self) -> &mut bool;
}

/// The longest of a number of queues, by what they have claimed.
///
/// Nobody asks before too much waits: so a queue that grows is only noted, once, and its claim entered when
/// somebody asks. One that has shrunk is found out when its claim comes up, and entered again as it is then.
/// A queue that never fills costs its packets a test each, and every search is paid for by packets that have
/// come and left.
#[derive(Debug, Default)]
pub(in super::super) struct Longest {
    /// What was entered; of a queue's entries only the one that equals its `entered` is good.
    entries: BinaryHeap<Claim>,
    /// Queues that may have more than they have claimed.
    grown: Vec<u32>,
}

impl Longest {
    /// For this many queues, all of them empty.
    pub(in super::super) fn new(queues: usize) -> Self {
        Self {
            entries: BinaryHeap::with_capacity(most_entries(queues) + 1),
            grown: Vec::with_capacity(queues),
        }
    }

    /// A queue has more than before.
    #[inline]
    pub(in super::super) fn grown(&mut self, index: u32, queue: &mut impl Claimant) {
        if !std::mem::replace(queue.grown(), true) {
            self.grown.push(index);
        }
    }

    /// The longest queue.
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
            // Most of them are old claims of queues that have grown since.
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

/// Twice as many entries as there are queues: dropping the old ones then costs each new one a step.
fn most_entries(queues: usize) -> usize {
    2 * queues + 64
}
