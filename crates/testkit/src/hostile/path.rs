//! The path between the two ends, with its impairments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bentpipe_types::{Ecn, Flags, IcmpError, Packet, PacketRef, PacketStore, Seq, Span, Time};
use bentpipe_wire::{Encoder, NodeAddresses, parse};

use super::case::{Case, Kind, Network, Stall};
use super::dice::Dice;
use super::lies;

/// A packet in transit. The earliest is the greatest, for `BinaryHeap`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct InTransit(Reverse<(Time, u64)>, usize, usize);

/// An ICMP error.
pub(super) struct IcmpInTransit {
    /// The end that it is sent to.
    pub(super) to: usize,
    pub(super) error: IcmpError,
    /// The segment that it quotes, which that end had sent.
    pub(super) quoted: Packet,
}

/// Packets in transit and the impairments.
pub(super) struct Path {
    kind: Kind,
    network: Network,
    liar: usize,
    // Whether each end's window probes carry a byte.
    ahead: [bool; 2],
    dice: Dice,
    in_transit: BinaryHeap<InTransit>,
    /// ICMP errors in transit, earliest first.
    icmp_in_transit: BTreeMap<(Time, u64), IcmpInTransit>,
    slots: Vec<Option<PacketRef>>,
    free: Vec<usize>,
    count: u64,
    losing: bool,
    // The last true acknowledgment of the lying end.
    last: Option<Seq>,
    // Initial sequence numbers of forged SYNs.
    forged_syns: Vec<Seq>,
    encoder: Encoder<NodeAddresses>,
    bytes: Vec<u8>,
    /// Packets with changed bits that passed the checksums.
    pub(super) undetected: u64,
}

impl Path {
    pub(super) fn new(case: &Case, seed: u64) -> Self {
        Self {
            kind: case.kind,
            network: case.network.clone(),
            liar: case.liar,
            ahead: [0, 1].map(|side| !case.configs[side].linux_quirks.timers.sends_empty_probes),
            dice: Dice::new(seed, "path"),
            in_transit: BinaryHeap::new(),
            icmp_in_transit: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            count: 0,
            losing: false,
            last: None,
            forged_syns: Vec::new(),
            encoder: Encoder::new(NodeAddresses),
            bytes: Vec::new(),
            undetected: 0,
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.in_transit.peek().map(|packet| packet.0.0.0)
    }

    /// Returns the next packet to arrive, and its destination.
    pub(super) fn arrive(&mut self) -> Option<(usize, PacketRef)> {
        let InTransit(_, to, slot) = self.in_transit.pop()?;
        self.free.push(slot);
        self.slots[slot].take().map(|packet| (to, packet))
    }

    /// Accepts a packet sent by `from`.
    pub(super) fn send(
        &mut self,
        from: usize,
        packet: PacketRef,
        packets: &mut PacketStore,
        now: Time,
    ) {
        let hostile = now < self.network.until;
        let record = *packets.get(packet);
        if !record.is_tcp() {
            // An ICMP error that a node forwarded. No error is sent about it.
            let gone = self.kind == Kind::Stall(Stall::DeadPath) && !hostile;
            if gone || hostile && self.dice.happens(self.network.loss) {
                packets.release(packet);
            } else {
                self.enqueue(1 - from, packet, now);
            }
            return;
        }
        if record.length().get() > u64::from(self.network.mtu) {
            packets.release(packet);
            let told = self.network.sends_icmp && !(hostile && self.losing);
            if told {
                let mtu = self.network.mtu;
                self.send_icmp_error(from, IcmpError::TooBig { mtu }, &record, now);
            }
            return;
        }
        // Only the ends may end a handshake.
        let quoted = !record.flags.has(Flags::SYN) || self.kind == Kind::Fraud;
        if hostile && quoted && self.dice.happens(self.network.false_icmp) {
            let error = lies::icmp(&mut self.dice);
            self.send_icmp_error(from, error, &record, now);
        }
        if !hostile {
            self.after(from, packet, packets, now);
            return;
        }
        if from == self.liar {
            self.lie(from, packet, packets, now);
        }
        let leave = 1.0 / self.network.burst;
        let enter = self.network.loss * leave / (1.0 - self.network.loss);
        let change = if self.losing { leave } else { enter };
        if self.dice.happens(change.min(1.0)) {
            self.losing = !self.losing;
        }
        let mut lost = self.losing || self.dice.happens(self.network.single_loss);
        if self.dice.happens(self.network.corruption) {
            self.undetected += u64::from(self.passes_changed(packet, packets));
            lost = true;
        }
        if self.dice.happens(self.network.unseen_corruption) {
            let copy = packets.duplicate(packet);
            lies::corrupt(&mut self.dice, packets, copy, self.ahead[1 - from]);
            self.note_forgery(&record, packets.get(copy));
            self.enqueue(1 - from, copy, now);
        }
        if record.ecn() != Ecn::NotCapable && self.dice.happens(self.network.marks) {
            packets.get_mut(packet).set_ecn(Ecn::Congestion);
        }
        if self.dice.happens(self.network.duplication) {
            let copy = packets.duplicate(packet);
            self.enqueue(1 - from, copy, now);
        }
        if lost {
            packets.release(packet);
        } else {
            self.shut(from, packet, packets);
            self.enqueue(1 - from, packet, now);
        }
    }

    /// Sends an ICMP error about a packet of `to` back to it.
    fn send_icmp_error(&mut self, to: usize, error: IcmpError, quoted: &Packet, now: Time) {
        let at = now + self.delay(now);
        self.count += 1;
        let quoted = *quoted;
        let next_icmp_error = IcmpInTransit { to, error, quoted };
        self.icmp_in_transit
            .insert((at, self.count), next_icmp_error);
    }

    pub(super) fn next_complaint(&self) -> Option<Time> {
        self.icmp_in_transit
            .first_key_value()
            .map(|((at, _), _)| *at)
    }

    /// Returns the next ICMP error to arrive.
    pub(super) fn next_icmp_error(&mut self) -> Option<IcmpInTransit> {
        self.icmp_in_transit
            .pop_first()
            .map(|(_, next_icmp_error)| next_icmp_error)
    }

    /// Handles a packet after the impairments have ended, or on a path that stays broken.
    fn after(&mut self, from: usize, packet: PacketRef, packets: &mut PacketStore, now: Time) {
        if self.kind == Kind::Stall(Stall::DeadPath) {
            packets.release(packet);
            return;
        }
        self.shut(from, packet, packets);
        self.enqueue(1 - from, packet, now);
    }

    fn shut(&self, from: usize, packet: PacketRef, packets: &mut PacketStore) {
        if self.kind == Kind::Stall(Stall::ShutWindow) && from == 1 {
            packets.get_mut(packet).window = 0;
        }
    }

    fn lie(&mut self, from: usize, packet: PacketRef, packets: &mut PacketStore, now: Time) {
        let truth = *packets.get(packet);
        if self.dice.happens(self.network.lies) {
            let mut more = Vec::new();
            if self.kind == Kind::Fraud && self.dice.coin() {
                lies::defraud(&mut self.dice, packets, packet);
                self.note_forgery(&truth, packets.get(packet));
            } else {
                lies::lie(&mut self.dice, packets, packet, self.last, &mut more);
            }
            for packet in more {
                self.enqueue(1 - from, packet, now);
            }
        }
        if truth.flags.has(Flags::ACK) {
            self.last = Some(truth.acknowledgment);
        }
    }

    fn note_forgery(&mut self, truth: &Packet, record: &Packet) {
        if record.flags.has(Flags::SYN) && !truth.flags.has(Flags::SYN) {
            self.forged_syns.push(record.sequence);
        }
    }

    /// Whether a forged SYN had this sequence number.
    pub(super) fn has_forged_syn(&self, initial: Seq) -> bool {
        self.forged_syns.contains(&initial)
    }

    /// Whether any SYN was forged.
    pub(super) fn has_any_forged_syn(&self) -> bool {
        !self.forged_syns.is_empty()
    }

    /// Inverts one to four header bits. Returns whether the result is valid for a receiver and
    /// differs from the original.
    fn passes_changed(&mut self, packet: PacketRef, packets: &PacketStore) -> bool {
        let record = packets.get(packet);
        let headers = u64::from(record.header_length);
        let encoded = self.encoder.encode(packets, packet, &mut self.bytes);
        if encoded.is_err() {
            return false;
        }
        let Ok(before) = parse(&self.bytes).map(|parsed| parsed.tcp) else {
            return true;
        };
        for _ in 0..self.dice.between(1, 5) {
            let bit = self.dice.below(8 * headers);
            self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
        parse(&self.bytes).is_ok_and(|parsed| parsed.tcp != before)
    }

    fn delay(&self, now: Time) -> Span {
        let delays = &self.network.delays;
        let index = delays.partition_point(|&(from, _)| from <= now);
        delays[index.max(1) - 1].1
    }

    fn enqueue(&mut self, to: usize, packet: PacketRef, now: Time) {
        let mut at = now + self.delay(now);
        if now < self.network.until {
            let jitter = self.network.jitter.as_nanos();
            at += Span::from_nanos(self.dice.below(jitter + 1));
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(packet);
        self.count += 1;
        let order = Reverse((at, self.count));
        self.in_transit.push(InTransit(order, to, slot));
    }

    /// Removes all packets in transit.
    pub(super) fn clear(&mut self, packets: &mut PacketStore) {
        for packet in self.slots.drain(..).flatten() {
            packets.release(packet);
        }
        self.in_transit.clear();
        self.free.clear();
    }
}
