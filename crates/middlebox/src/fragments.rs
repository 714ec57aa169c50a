//! IP fragmentation and reassembly, at the two ends of links (RFC 791 section 3.2; gaid1998, section
//! 2.3).
//!
//! Before a link that is too narrow, packets are cut by a [`Fragmenter`]; a tunnel's outer packets
//! are, where the tunnel begins there. Where they are addressed to, a [`Reassembler`] puts them together.
//! Unlike the paper's model, pieces have their real offsets, each takes its room in queues and its
//! chance to be lost, and what is incomplete takes memory until its timer expires.

use std::collections::VecDeque;

use bentpipe_link::{Divider, EndCtx, FarEnd, Framing, Tally};
use bentpipe_types::{Address, FlowKey, Fragment, PacketRef, PacketStore, Span, Time};
use rustc_hash::FxHashMap;

use crate::TunnelEntry;

/// Cuts what is longer than a link takes.
#[derive(Debug)]
pub struct Fragmenter {
    mtu: u32,
    tunnel: Option<TunnelEntry>,
    divided: u64,
    pieces: u64,
}

impl Fragmenter {
    /// In front of a link that takes packets of `mtu` bytes, at least 28. `tunnel`: the entry of a
    /// tunnel that begins here, whose outer packets are cut.
    #[must_use]
    pub fn new(mtu: u32, tunnel: Option<TunnelEntry>) -> Self {
        Self {
            mtu,
            tunnel,
            divided: 0,
            pieces: 0,
        }
    }
}

impl Divider for Fragmenter {
    fn divide(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        if let Some(tunnel) = &mut self.tunnel {
            let length = packets.get(packet).length();
            tunnel.transmit(now, packet, length, packets);
        }
        let before = out.len();
        packets.divide(packet, self.mtu, out);
        let pieces = out.len() - before;
        if pieces > 1 {
            self.divided += 1;
            self.pieces += pieces as u64;
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        if let Some(tunnel) = &self.tunnel {
            tunnel.tally(each);
        }
        each(None, "fragmented", self.divided);
        each(None, "fragments", self.pieces);
    }
}

/// What a [`Reassembler`] may keep, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblySettings {
    /// A datagram's pieces are dropped so long after the first of them has come.
    pub timeout: Span,
    /// Bytes of pieces held at most, and of what is noted of them; beyond, the oldest datagram goes.
    pub memory: u64,
}

impl Default for ReassemblySettings {
    /// Linux's ipfrag_time and ipfrag_high_thresh.
    fn default() -> Self {
        Self {
            timeout: Span::from_secs(30),
            memory: 4 << 20,
        }
    }
}

/// What a piece takes beside its bytes, and what a datagram does.
const OVERHEAD: u64 = 64;
/// Names of datagrams that are over are forgotten when there are so many more than others.
const STALE: usize = 1024;

type Key = (FlowKey, u8, u16);

/// A datagram that is not complete.
#[derive(Debug)]
struct Datagram {
    /// One of its pieces, for what all have in common.
    of: Fragment,
    /// By where they begin; they don't overlap.
    pieces: Vec<(u32, u32, PacketRef)>,
    received: u32,
    /// Where it ends, once its last piece has come.
    length: Option<u32>,
    number: u64,
    /// Nothing will come of it: what still comes is dropped until its time is over.
    refused: bool,
}

/// Puts datagrams together that are addressed to one node, or all that come.
#[derive(Debug)]
pub struct Reassembler {
    at: Option<Address>,
    settings: ReassemblySettings,
    datagrams: FxHashMap<Key, Datagram>,
    /// By age: when each is over. Those that were completed meanwhile are still named.
    ages: VecDeque<(Time, Key, u64)>,
    count: u64,
    held: usize,
    memory: u64,
    reassembled: u64,
    timed_out: u64,
    overlapping: u64,
    crowded_out: u64,
}

impl Reassembler {
    /// In front of the node `at`, for what is addressed to it; `None`: for everything.
    #[must_use]
    pub fn new(at: Option<Address>, settings: ReassemblySettings) -> Self {
        Self {
            at,
            settings,
            datagrams: FxHashMap::default(),
            ages: VecDeque::new(),
            count: 0,
            held: 0,
            memory: 0,
            reassembled: 0,
            timed_out: 0,
            overlapping: 0,
            crowded_out: 0,
        }
    }

    fn accept(
        &mut self,
        now: Time,
        piece: PacketRef,
        fragment: Fragment,
        packets: &mut PacketStore,
    ) -> Option<PacketRef> {
        let record = packets.get(piece);
        let protocol = record.protocol();
        let start = u32::from(fragment.offset);
        let end = start + u32::from(record.payload_length);
        let key = (
            FlowKey::of(packets, piece),
            protocol,
            fragment.identification,
        );
        if !self.datagrams.contains_key(&key) {
            self.count += 1;
            let datagram = Datagram {
                of: fragment,
                pieces: Vec::new(),
                received: 0,
                length: None,
                number: self.count,
                refused: false,
            };
            self.ages
                .push_back((now + self.settings.timeout, key, self.count));
            self.datagrams.insert(key, datagram);
            self.memory += OVERHEAD;
        }
        let datagram = self.datagrams.get_mut(&key)?;
        if datagram.refused {
            packets.release(piece);
            return None;
        }
        let at = datagram.pieces.partition_point(|held| held.0 < start);
        if (datagram.pieces.get(at)).is_some_and(|held| (held.0, held.1) == (start, end))
            && fragment.is_of_same(&datagram.of)
        {
            // RFC 8200 section 4.5: an exact duplicate may be dropped, and the rest kept.
            packets.release(piece);
            return None;
        }
        let overlaps = at
            .checked_sub(1)
            .is_some_and(|before| datagram.pieces[before].1 > start)
            || datagram.pieces.get(at).is_some_and(|after| after.0 < end);
        let contradicts = match (datagram.length, fragment.more) {
            (Some(length), true) => end >= length,
            (Some(length), false) => end != length,
            (None, true) => false,
            (None, false) => (datagram.pieces.last()).is_some_and(|last| last.1 > start),
        };
        if overlaps || contradicts || !fragment.is_of_same(&datagram.of) {
            // RFC 5722 section 4: all of it goes, and what of it still comes. (Of two datagrams with one
            // number, RFC 4963, no checksum would agree.)
            self.overlapping += 1;
            packets.release(piece);
            datagram.refused = true;
            let pieces = std::mem::take(&mut datagram.pieces);
            self.let_go(&pieces, packets);
            return None;
        }
        datagram.pieces.insert(at, (start, end, piece));
        datagram.received += end - start;
        if !fragment.more {
            datagram.length = Some(end);
        }
        self.held += 1;
        self.memory += u64::from(end - start) + OVERHEAD;
        if datagram.length == Some(datagram.received) {
            let complete = self.datagrams.remove(&key)?;
            self.held -= complete.pieces.len();
            self.memory -= memory(&complete.pieces) + OVERHEAD;
            self.reassembled += 1;
            return packets.join(complete.pieces.into_iter().map(|piece| piece.2));
        }
        while self.memory > self.settings.memory
            && let Some(refused) = self.drop_oldest(packets)
        {
            self.crowded_out += u64::from(!refused);
        }
        None
    }

    fn let_go(&mut self, pieces: &[(u32, u32, PacketRef)], packets: &mut PacketStore) {
        self.held -= pieces.len();
        self.memory -= memory(pieces);
        for (.., piece) in pieces {
            packets.release(*piece);
        }
    }

    /// Drops the oldest datagram, if there is one. Had it been refused?
    fn drop_oldest(&mut self, packets: &mut PacketStore) -> Option<bool> {
        while let Some((_, key, number)) = self.ages.pop_front() {
            if (self.datagrams.get(&key)).is_some_and(|datagram| datagram.number == number)
                && let Some(datagram) = self.datagrams.remove(&key)
            {
                self.let_go(&datagram.pieces, packets);
                self.memory -= OVERHEAD;
                return Some(datagram.refused);
            }
        }
        None
    }

    /// Forgets the names of those that were completed.
    fn clean(&mut self) {
        while let Some((_, key, number)) = self.ages.front()
            && (self.datagrams.get(key)).is_none_or(|datagram| datagram.number != *number)
        {
            self.ages.pop_front();
        }
        if self.ages.len() > 2 * self.datagrams.len() + STALE {
            let datagrams = &self.datagrams;
            self.ages.retain(|(_, key, number)| {
                (datagrams.get(key)).is_some_and(|datagram| datagram.number == *number)
            });
        }
    }
}

fn memory(pieces: &[(u32, u32, PacketRef)]) -> u64 {
    (pieces.iter())
        .map(|(start, end, _)| u64::from(end - start) + OVERHEAD)
        .sum()
}

impl FarEnd for Reassembler {
    fn on_arrival(&mut self, mut packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        // A piece may be of a tunnelled packet that is itself a piece.
        while let Some(fragment) = packets
            .fragment(packet)
            .filter(|_| packets.tunnel(packet).is_none())
        {
            let destination = packets.get(packet).destination.address;
            if self.at.is_some_and(|at| at != destination) {
                break;
            }
            match self.accept(now, packet, fragment, packets) {
                Some(whole) => packet = whole,
                None => {
                    self.clean();
                    return;
                }
            }
        }
        self.clean();
        out.push(packet);
    }

    fn on_deadline(&mut self, cx: &mut EndCtx<'_>) {
        let (now, packets) = (cx.now, &mut *cx.packets);
        while let Some((at, ..)) = self.ages.front()
            && *at <= now
        {
            if self.drop_oldest(packets) == Some(false) {
                self.timed_out += 1;
            }
            self.clean();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.ages.front().map(|(at, ..)| *at)
    }

    fn held(&self) -> usize {
        self.held
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "reassembled", self.reassembled);
        each(None, "reassembly_timeouts", self.timed_out);
        each(None, "reassembly_refused", self.overlapping);
        each(None, "reassembly_crowded_out", self.crowded_out);
    }
}

#[cfg(test)]
mod tests;
