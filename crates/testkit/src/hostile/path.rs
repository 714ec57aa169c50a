//! The path between the two ends, and what it does to packets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bentpipe_types::{Ecn, Flags, IcmpError, Packet, PacketRef, PacketStore, Seq, Span, Time};
use bentpipe_wire::{Encoder, NodeAddresses, parse};

use super::case::{Case, Kind, Network, Stall};
use super::dice::Dice;
use super::lies;

/// A packet under way: the earliest is the greatest, for `BinaryHeap`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay(Reverse<(Time, u64)>, usize, usize);

/// An ICMP error.
pub(super) struct Complaint {
    /// The end that it goes to,
    pub(super) to: usize,
    pub(super) error: IcmpError,
    /// and the segment that it speaks of, which that end had sent.
    pub(super) quoted: Packet,
}

/// Packets under way, and what may become of them.
pub(super) struct Path {
    kind: Kind,
    network: Network,
    liar: usize,
    // Whether each end's probes have a byte in them.
    ahead: [bool; 2],
    dice: Dice,
    under_way: BinaryHeap<UnderWay>,
    /// ICMP errors under way, the earliest first.
    complaints: BTreeMap<(Time, u64), Complaint>,
    slots: Vec<Option<PacketRef>>,
    free: Vec<usize>,
    count: u64,
    losing: bool,
    // The last acknowledgment that the liar sent in truth.
    last: Option<Seq>,
    // Where streams begin according to SYNs that were none.
    forged_syns: Vec<Seq>,
    encoder: Encoder<NodeAddresses>,
    bytes: Vec<u8>,
    /// Packets whose changed bits no checksum told of.
    pub(super) undetected: u64,
}

impl Path {
    pub(super) fn new(case: &Case, seed: u64) -> Self {
        Self {
            kind: case.kind,
            network: case.network.clone(),
            liar: case.liar,
            ahead: [0, 1].map(|side| !case.configs[side].habits.sends_empty_probes),
            dice: Dice::new(seed, "path"),
            under_way: BinaryHeap::new(),
            complaints: BTreeMap::new(),
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
        self.under_way.peek().map(|packet| packet.0.0.0)
    }

    /// The next packet to arrive, and where.
    pub(super) fn arrive(&mut self) -> Option<(usize, PacketRef)> {
        let UnderWay(_, to, slot) = self.under_way.pop()?;
        self.free.push(slot);
        self.slots[slot].take().map(|packet| (to, packet))
    }

    /// A packet leaves `from`.
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
            // An ICMP error that a node has let pass. Of it nobody complains.
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
            let told = self.network.speaks && !(hostile && self.losing);
            if told {
                let mtu = self.network.mtu;
                self.complain(from, IcmpError::TooBig { mtu }, &record, now);
            }
            return;
        }
        // (That a handshake is over is for nobody to say but the ends.)
        let quoted = !record.flags.has(Flags::SYN) || self.kind == Kind::Fraud;
        if hostile && quoted && self.dice.happens(self.network.false_icmp) {
            let error = lies::icmp(&mut self.dice);
            self.complain(from, error, &record, now);
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

    /// An ICMP error about a packet of `to`'s is on its way back.
    fn complain(&mut self, to: usize, error: IcmpError, quoted: &Packet, now: Time) {
        let at = now + self.delay(now);
        self.count += 1;
        let quoted = *quoted;
        let complaint = Complaint { to, error, quoted };
        self.complaints.insert((at, self.count), complaint);
    }

    pub(super) fn next_complaint(&self) -> Option<Time> {
        self.complaints.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next ICMP error.
    pub(super) fn complaint(&mut self) -> Option<Complaint> {
        self.complaints.pop_first().map(|(_, complaint)| complaint)
    }

    /// The path is well, or will never be.
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

    /// Did a SYN with this number come out of a segment that was none?
    pub(super) fn has_forged_syn(&self, initial: Seq) -> bool {
        self.forged_syns.contains(&initial)
    }

    /// Did a SYN come out of any segment that was none?
    pub(super) fn has_forged_a_syn(&self) -> bool {
        !self.forged_syns.is_empty()
    }

    /// Changes one to four bits of the headers. Does a receiver take it for whole, and other than it
    /// was?
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
        self.under_way.push(UnderWay(order, to, slot));
    }

    /// Nothing is under way any more.
    pub(super) fn clear(&mut self, packets: &mut PacketStore) {
        for packet in self.slots.drain(..).flatten() {
            packets.release(packet);
        }
        self.under_way.clear();
        self.free.clear();
    }
}
