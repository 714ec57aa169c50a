//! Storage of the packets of many queues.

use bentpipe_types::PacketRef;

/// No place.
const NONE: u32 = u32::MAX;

/// A queued packet, its note, and the place of the next one.
#[derive(Clone, Copy, Debug)]
struct Place<N> {
    packet: PacketRef,
    length: u32,
    next: u32,
    note: N,
}

/// A queue: first and last place.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct List {
    first: u32,
    last: u32,
}

impl List {
    #[inline]
    pub(in super::super) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl Default for List {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

/// The packets of many first-in-first-out queues in one slab, as large as the maximum total
/// backlog. The place that became free last is used next. A note is stored with each packet, empty
/// by default.
#[derive(Debug)]
pub(in super::super) struct Slab<N = ()> {
    places: Vec<Place<N>>,
    free: u32,
}

impl<N> Default for Slab<N> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
        }
    }
}

impl<N: Copy> Slab<N> {
    #[inline]
    pub(in super::super) fn push(
        &mut self,
        list: &mut List,
        packet: PacketRef,
        length: u32,
        note: N,
    ) {
        let place = Place {
            packet,
            length,
            next: NONE,
            note,
        };
        let index = self.free;
        let index = if let Some(free) = self.places.get_mut(index as usize) {
            self.free = free.next;
            *free = place;
            index
        } else {
            self.places.push(place);
            (self.places.len() - 1) as u32
        };
        match self.places.get_mut(list.last as usize) {
            Some(last) => last.next = index,
            None => list.first = index,
        }
        list.last = index;
    }

    /// Returns the first packet of a queue and its length.
    #[inline]
    pub(in super::super) fn first(&self, list: &List) -> Option<(PacketRef, u32)> {
        let place = self.places.get(list.first as usize)?;
        Some((place.packet, place.length))
    }

    /// Removes the first packet of a queue. Returns it with its length and note.
    #[inline]
    pub(in super::super) fn pop(&mut self, list: &mut List) -> Option<(PacketRef, u32, N)> {
        let place = self.places.get_mut(list.first as usize)?;
        let taken = (place.packet, place.length, place.note);
        let behind = std::mem::replace(&mut place.next, self.free);
        self.free = list.first;
        list.first = behind;
        if behind == NONE {
            list.last = NONE;
        }
        Some(taken)
    }
}
