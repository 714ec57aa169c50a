//! IP fragmentation and reassembly at the ends of links (RFC 791 section 3.2; gaid1998, section
//! 2.3).
//!
//! A [`Fragmenter`] in front of a link fragments packets above its MTU, and a tunnel's outer
//! packets where the tunnel begins. A [`Reassembler`] at their destination reassembles them. Unlike
//! in the paper's model, fragments have real offsets, take room in queues, can be lost
//! individually, and incomplete packets take memory until their timer expires.

use std::collections::VecDeque;

use bentpipe_link::{Divider, EndCtx, FarEnd, Framing, Tally};
use bentpipe_types::{Address, FlowKey, Fragment, PacketRef, PacketStore, Span, Time};
use rustc_hash::FxHashMap;

use crate::TunnelEntry;

/// Fragments packets that exceed a link's MTU.
#[derive(Debug)]
pub struct Fragmenter {
    mtu: u32,
    tunnel: Option<TunnelEntry>,
    divided: u64,
    pieces: u64,
}

impl Fragmenter {
    /// Creates a fragmenter for a link with an MTU of `mtu` bytes, at least 28. `tunnel` is the
    /// entry of a tunnel that begins here, whose outer packets are fragmented.
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
        let EndCtx { packets, out, .. } = cx;
        if let Some(tunnel) = &mut self.tunnel {
            let length = packets.get(packet).length();
            tunnel.transmit(packet, length, packets);
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

/// Limits of a [`Reassembler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblySettings {
    /// Time after the first fragment at which an incomplete datagram is dropped.
    pub timeout: Span,
    /// Maximum memory of fragments and their records in bytes. Beyond it, the oldest datagram is
    /// dropped.
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

/// Memory counted per fragment and per datagram, in addition to the bytes.
const OVERHEAD: u64 = 64;
/// Names of completed datagrams are removed when they exceed the others by this number.
const STALE: usize = 1024;

type Key = (FlowKey, u8, u16);

/// An incomplete datagram.
#[derive(Debug)]
struct Datagram {
    /// One of its fragments, for the fields common to all.
    of: Fragment,
    /// Fragments by offset. Invariant: they do not overlap.
    pieces: Vec<(u32, u32, PacketRef)>,
    received: u32,
    /// Length of the datagram, once its last fragment has arrived.
    length: Option<u32>,
    number: u64,
    /// Whether it was rejected: later fragments are dropped until its time is over.
    refused: bool,
}

/// Reassembles datagrams addressed to one node, or all datagrams.
#[derive(Debug)]
pub struct Reassembler {
    at: Option<Address>,
    settings: ReassemblySettings,
    datagrams: FxHashMap<Key, Datagram>,
    /// Datagrams by expiry time. Completed ones are still included.
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
    /// Creates a reassembler for datagrams addressed to the node `at`, or for all with `None`.
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
            // RFC 8200 section 4.5: an exact duplicate may be dropped while the rest is kept.
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
            // RFC 5722 section 4: the datagram is dropped, later fragments included. Of two
            // datagrams with the same identification (RFC 4963) no checksum would match.
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

    /// Drops the oldest datagram, if any. Returns whether it had been rejected.
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

    /// Removes the names of completed datagrams.
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
        // A fragment may belong to a tunnelled packet that is a fragment itself.
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
