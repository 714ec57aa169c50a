//! A priority queue for few or many timed entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Time, fetch};

/// An entry with a time. Entries are ordered by time first.
pub trait Entry: Copy + Ord {
    /// Time of the entry. All entries of one queue use the same clock.
    fn at(self) -> Time;
}

/// A priority queue of timed entries.
///
/// Few entries are kept in a binary heap. With many entries every level of a heap costs a cache
/// miss, so they are kept unsorted in time slices, as in a calendar queue (Brown, "Calendar Queues:
/// A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem", Communications
/// of the ACM 31(10), 1988). A slice is sorted when its time comes. Later insertions into that
/// slice go to the heap, which is then small.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<E>>,
    many: Option<Box<Many<E>>>,
}

/// From this many entries on, slices are used, until the queue is dropped.
const MANY: usize = 512;

/// Length of a slice in nanoseconds, as a power of two: 4 ms.
const SLICE: u32 = 22;

/// Number of slices, about one second. Later entries are in the overflow list.
const SLICES: usize = 256;

/// Entries outside the heap. Invariant: while any exist, the first entry overall is known.
#[derive(Debug)]
struct Many<E> {
    /// Entries of the current slice in reverse order: the next entry is the last element.
    near: Vec<E>,
    /// Time at which the first slice begins, in nanoseconds.
    begin: u64,
    /// Index of the next slice. All slices before it are empty.
    next: usize,
    slices: Vec<Vec<E>>,
    later: Vec<E>,
}

impl<E> Default for Agenda<E>
where
    E: Ord,
{
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            many: None,
        }
    }
}

impl<E: Entry> Agenda<E> {
    /// Inserts an entry.
    #[inline]
    pub fn push(&mut self, entry: E) {
        match &mut self.many {
            None => {
                self.heap.push(Reverse(entry));
                if self.heap.len() == MANY {
                    self.become_many();
                }
            }
            Some(many) => many.push(entry, &mut self.heap),
        }
    }

    /// Returns the first entry.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<E> {
        let first = self.heap.peek().map(|Reverse(first)| *first);
        match &self.many {
            None => first,
            Some(many) => many.first(first),
        }
    }

    /// Removes and returns the first entry.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        match &mut self.many {
            None => self.heap.pop().map(|Reverse(first)| first),
            Some(many) => many.pop(&mut self.heap),
        }
    }

    /// Moves the first entry to a later time, if there is one. Cheaper than `pop` and `push`.
    #[inline(always)]
    pub fn postpone_first(&mut self, later: impl FnOnce(E) -> E) {
        match &mut self.many {
            None => {
                if let Some(mut first) = self.heap.peek_mut() {
                    *first = Reverse(later(first.0));
                }
            }
            Some(many) => {
                if let Some(first) = many.pop(&mut self.heap) {
                    many.push(later(first), &mut self.heap);
                }
            }
        }
    }

    /// Returns the entry that follows `others` other entries of the current slice, if there is one.
    /// Entries in the heap and in later slices are not considered.
    #[inline]
    #[must_use]
    pub fn upcoming(&self, others: usize) -> Option<E> {
        let near = &self.many.as_ref()?.near;
        near.get(near.len().checked_sub(1 + others)?).copied()
    }

    /// Prefetches the first entry of the heap.
    #[inline]
    pub fn fetch(&self) {
        if let Some(first) = self.heap.peek() {
            fetch(first, 1);
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether there are more than `count` entries.
    #[must_use]
    pub fn exceeds(&self, count: usize) -> bool {
        self.all().nth(count).is_some()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Keeps the entries for which `is_kept` returns true.
    pub fn retain(&mut self, is_kept: impl Fn(E) -> bool) {
        let kept = self.all().filter(|entry| is_kept(*entry)).collect();
        self.replace_all(kept);
    }

    /// Replaces every entry by the result of `change`.
    pub fn change(&mut self, change: impl Fn(E) -> E) {
        let changed = self.all().map(change).collect();
        self.replace_all(changed);
    }

    fn all(&self) -> impl Iterator<Item = E> {
        let many = self.many.iter().flat_map(|many| {
            let slices = many.slices.iter().flatten();
            many.near.iter().chain(slices).chain(&many.later)
        });
        let heap = self.heap.iter().map(|Reverse(entry)| entry);
        heap.chain(many).copied()
    }

    fn replace_all(&mut self, entries: Vec<E>) {
        self.many = None;
        self.heap = entries.into_iter().map(Reverse).collect();
        if self.heap.len() >= MANY {
            self.become_many();
        }
    }

    #[cold]
    fn become_many(&mut self) {
        let later = self.heap.drain().map(|Reverse(entry)| entry).collect();
        let mut many = Box::new(Many {
            near: Vec::new(),
            begin: 0,
            next: SLICES,
            slices: (0..SLICES).map(|_| Vec::new()).collect(),
            later,
        });
        many.go_on();
        self.many = Some(many);
    }
}

impl<E: Entry> Many<E> {
    /// Returns the first entry of the current slice if it precedes the heap's first entry.
    #[inline]
    fn first(&self, heap: Option<E>) -> Option<E> {
        match (self.near.last(), heap) {
            (Some(near), Some(heap)) => Some(heap.min(*near)),
            (near, heap) => near.copied().or(heap),
        }
    }

    #[inline(never)]
    fn push(&mut self, entry: E, heap: &mut BinaryHeap<Reverse<E>>) {
        let slice = self.slice_of(entry);
        if slice < self.next {
            return heap.push(Reverse(entry));
        }
        match self.slices.get_mut(slice) {
            Some(slice) => slice.push(entry),
            None => self.later.push(entry),
        }
        if self.near.is_empty() && heap.is_empty() {
            self.go_on();
        }
    }

    #[inline(never)]
    fn pop(&mut self, heap: &mut BinaryHeap<Reverse<E>>) -> Option<E> {
        let first = match (self.near.last(), heap.peek()) {
            (Some(near), Some(Reverse(first))) if first < near => heap.pop().map(|first| first.0),
            (Some(_), _) => self.near.pop(),
            (None, _) => heap.pop().map(|first| first.0),
        };
        if self.near.is_empty() && heap.is_empty() {
            self.go_on();
        }
        first
    }

    /// Returns the index of the slice of an entry, which may be beyond the last slice.
    #[inline]
    fn slice_of(&self, entry: E) -> usize {
        let since = entry.at().as_nanos().saturating_sub(self.begin);
        (since >> SLICE) as usize
    }

    /// Advances to the next slice that is not empty. If all are empty, distributes the overflow
    /// list over new slices that begin at its first entry.
    #[cold]
    fn go_on(&mut self) {
        loop {
            while self.next < SLICES {
                std::mem::swap(&mut self.near, &mut self.slices[self.next]);
                self.next += 1;
                if !self.near.is_empty() {
                    self.near.sort_unstable_by(|one, other| other.cmp(one));
                    return;
                }
            }
            let Some(first) = self.later.iter().min() else {
                return;
            };
            (self.begin, self.next) = (first.at().as_nanos(), 0);
            let mut later = std::mem::take(&mut self.later);
            later.retain(|entry| match self.slice_of(*entry) {
                slice if slice < SLICES => {
                    self.slices[slice].push(*entry);
                    false
                }
                _ => true,
            });
            self.later = later;
        }
    }
}

#[cfg(test)]
mod tests;
