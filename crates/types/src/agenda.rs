//! What comes next of few or of many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Time, fetch};

/// Something that has a time. It is in order by time first.
pub trait Entry: Copy + Ord {
    /// Its time, by the same clock as that of all others.
    fn at(self) -> Time;
}

/// Entries, of which the first is taken, again and again.
///
/// Few are a heap. Of many, each step into a heap's depth waits for memory, and few of them are looked at soon. So
/// they are put down by slices of time, in no order (as in a calendar queue; Brown, "Calendar Queues: A Fast O(1)
/// Priority Queue Implementation for the Simulation Event Set Problem", Communications of the ACM 31(10), 1988), and a
/// slice is put in order when it is its turn. What is entered into a slice after that is in the heap, which is small then.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<E>>,
    many: Option<Box<Many<E>>>,
}

/// With so many entries, they are many, for good.
const MANY: usize = 512;

/// How long a slice is, in nanoseconds: two to this power.
const SLICE: u32 = 22;

/// How many slices there are, about a second's; what is later is looked through when it is its turn.
const SLICES: usize = 256;

/// Those of many that are not in the heap. If there are any, the first of all is known.
#[derive(Debug)]
struct Many<E> {
    /// Those of the slice whose turn it is, the first last.
    near: Vec<E>,
    /// When the first slice begins.
    begin: u64,
    /// Which slice is next; those before it are empty.
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
    /// Enters one.
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

    /// The first.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<E> {
        let first = self.heap.peek().map(|Reverse(first)| *first);
        match &self.many {
            None => first,
            Some(many) => many.first(first),
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        match &mut self.many {
            None => self.heap.pop().map(|Reverse(first)| first),
            Some(many) => many.pop(&mut self.heap),
        }
    }

    /// Moves the first to a later time, if there is one: cheaper than taking it and entering another.
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

    /// Of many: the one that comes after so many others, unless it was entered late, or its slice's turn is to come.
    #[inline]
    #[must_use]
    pub fn upcoming(&self, others: usize) -> Option<E> {
        let near = &self.many.as_ref()?.near;
        near.get(near.len().checked_sub(1 + others)?).copied()
    }

    /// Asks for the first of few from memory.
    #[inline]
    pub fn fetch(&self) {
        if let Some(first) = self.heap.peek() {
            fetch(first, 1);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Keeps those that `is_kept` says.
    pub fn retain(&mut self, is_kept: impl Fn(E) -> bool) {
        let kept = self.all().filter(|entry| is_kept(*entry)).collect();
        self.replace_all(kept);
    }

    /// Changes all of them.
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
    /// The first, where this is the first of the heap.
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

    /// The slice that it is in, if there are so many.
    #[inline]
    fn slice_of(&self, entry: E) -> usize {
        let since = entry.at().as_nanos().saturating_sub(self.begin);
        (since >> SLICE) as usize
    }

    /// It is the turn of the next slice that is not empty. If all are, there are new ones, from the first on of what is
    /// later.
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
