//! Which of many queues is the longest, without a search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much a queue claims to be the longest: its bytes; of those as long, the one whose turn came
/// first.
pub(super) type Claim = (u64, Reverse<u64>);

/// The longest of a number of queues, by what they have claimed.
///
/// A claim that has grown is entered; one that has shrunk is found out only when it comes up, and
/// entered again as it is then. So a queue that never fills costs its packets a comparison each, and
/// every search is paid for by packets that have left.
#[derive(Debug)]
pub(super) struct Longest {
    /// What was entered; of a queue's entries only the one that equals its bound is good.
    entries: BinaryHeap<(Claim, u32)>,
    /// At least each queue's claim.
    bounds: Vec<Claim>,
}

const NOTHING: Claim = (0, Reverse(u64::MAX));

impl Longest {
    /// For this many queues, all of them empty.
    pub(super) fn new(queues: usize) -> Self {
        Self {
            entries: BinaryHeap::with_capacity(most_entries(queues) + 1),
            bounds: vec![NOTHING; queues],
        }
    }

    /// A queue has more than before.
    pub(super) fn grown(&mut self, queue: u32, claim: Claim) {
        let bound = &mut self.bounds[queue as usize];
        if claim <= *bound {
            return;
        }
        *bound = claim;
        if self.entries.len() >= most_entries(self.bounds.len()) {
            // Most of them are old claims of queues that have grown since.
            let bounds = &self.bounds;
            self.entries
                .retain(|(claim, queue)| *claim == bounds[*queue as usize]);
        }
        self.entries.push((claim, queue));
    }

    /// The longest queue; `claim` says what a queue claims now.
    pub(super) fn find(&mut self, claim: impl Fn(u32) -> Claim) -> Option<u32> {
        while let Some((entered, queue)) = self.entries.peek().copied() {
            let bound = &mut self.bounds[queue as usize];
            let now = claim(queue);
            if entered == *bound && entered == now {
                return Some(queue);
            }
            self.entries.pop();
            if entered == *bound {
                *bound = now;
                if now.0 > 0 {
                    self.entries.push((now, queue));
                } else {
                    *bound = NOTHING;
                }
            }
        }
        None
    }
}

/// Twice as many entries as there are queues: dropping the old ones then costs each new one a step.
fn most_entries(queues: usize) -> usize {
    2 * queues + 64
}
