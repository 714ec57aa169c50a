//! All connections between a pair of gateways over few persistent ones.
//!
//! Gateways that face each other may open connections between themselves, and carry those of the hosts as
//! streams on them: a host's connection then opens without a handshake over the satellite, and begins with
//! a window that others have opened. The price is that a segment that is lost there holds up whatever
//! follows it on the same connection, whosever it is.
//!
//! | file | what |
//! |---|---|
//! | `frame` | what the gateways say to each other |
//! | `trunk` | a persistent connection |
//! | `carried` | a host's connection: its leg, its stream, the stream's credit |
//! | `opening` | how both begin |
//! | `speech` | what the gateways say to each other, heard and said |
//! | `vigil` | whether the other gateway lives |
//! | `beside` | what was opened when it may have died already |
//!
//! Each persistent connection has a number, and the same port at both ends: whoever needs it first opens it,
//! and if both do at once it is still one (RFC 9293 section 3.5). It stays open. When it dies, the hosts of
//! all that it carries are reset, and the next connection opens it again.

mod beside;
mod carried;
mod frame;
mod opening;
mod speech;
mod trunk;
mod vigil;

use std::sync::Arc;

use bentpipe_tcp::{Config, KeepAlive, PassiveFastOpen, Payload, Rings, Socket, reset_reply};
use bentpipe_types::{Ctx, Flags, FlowKey, HostAddress, PacketRef, Port, Routes, Seq, Span, Time};
use rustc_hash::FxHashMap;

use super::apart::Parts;
use super::budget::{Budget, CARRIED_STATE};
use super::counters::Counters;
use super::ended::Ended;
use super::legs::{Kind, LegSettings};
use super::{Multiplexing, Settings};
use crate::deadlines::Deadlines;
use crate::icmp::Complaint;
use crate::slab::Slab;
use carried::{FROM_HOST, Opened, TO_HOST};
use frame::Reason;
use opening::FIRST_PORT;
use trunk::Trunk;

pub(super) use carried::Carried;
pub(super) use opening::Asks;

/// How long a gateway that has refused a persistent connection is not asked for another.
const REFUSED: Span = Span::from_secs(60);
/// What is read at once.
const CHUNK: usize = 64 << 10;

/// What of the gateway its streams need.
pub(super) struct Around<'a> {
    pub(super) settings: &'a Settings,
    pub(super) routes: &'a Routes,
    pub(super) leg_settings: &'a mut LegSettings,
    pub(super) budget: &'a mut Budget,
    pub(super) counters: &'a mut Counters,
    /// Connections that have parts of their own.
    pub(super) apart: &'a mut dyn Parts,
    /// Bytes of state that a connection takes.
    pub(super) state: u64,
}

impl Around<'_> {
    /// The TCP of a new leg to a host that offers `first` at first.
    fn carried(&mut self, key: &FlowKey, first: u64) -> Arc<Config> {
        (self.leg_settings).of(Kind::Carried, key, first, self.settings)
    }
}

/// A host's SYN that can't be carried, after all.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) key: FlowKey,
    pub(super) syn: PacketRef,
    /// Where it came from.
    pub(super) from: Port,
    pub(super) way: Way,
}

/// Where a SYN goes that has come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The other gateway has not been told of it: another persistent connection may carry it, or it may have a part of its own.
    Anew,
    /// The other gateway has no memory for it: it passes.
    Passes,
    /// The other gateway was told of it, and may be gone: a part of its own, beside the stream.
    Beside,
}

/// What whoever runs the gateway should know of the other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Remark {
    Absent,
    Silent,
    Lost,
    Anew,
    Back,
    HasMore,
    RefusesMore,
    RefusesAll,
}

impl Remark {
    /// Does it say that the other gateway is not there, or wasn't?
    const fn is_of_absence(self) -> bool {
        matches!(self, Self::Absent | Self::Silent | Self::Lost | Self::Anew)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Absent => {
                "the other gateway does not answer: connections have parts of their own until it does"
            }
            Self::Silent => {
                "the other gateway is silent: connections have parts of their own until it answers"
            }
            Self::Lost => {
                "the other gateway was silent for too long: what went over persistent connections was reset"
            }
            Self::Anew => {
                "the other gateway has ended, or begun anew: what went over a persistent connection was reset"
            }
            Self::Back => "the other gateway answers: connections go over persistent ones",
            Self::HasMore => {
                "the other gateway asks for more persistent connections than \"multiplex\" says here: say the same at both"
            }
            Self::RefusesMore => {
                "the other gateway refuses some of the persistent connections: its \"multiplex\" is less, or it has no memory left"
            }
            Self::RefusesAll => {
                "the other gateway refuses persistent connections: it has no memory left for them, or its address is its machine's own"
            }
        }
    }
}

/// A gateway's side of the persistent connections to its peer.
#[derive(Debug)]
pub(super) struct Multiplex<P> {
    with: Multiplexing,
    /// When it is asked whether it lives.
    keep_alive: KeepAlive,
    /// It has still to say that it is there.
    begins_anew: bool,
    trunks: Vec<Option<Trunk>>,
    /// Of each, whether the last one in its place was silent for too long. Nobody waits for another one there, until it is.
    lost: Vec<bool>,
    carried: Slab<Box<Carried<P>>>,
    /// By the key of what the hosts on this side send.
    flows: FxHashMap<FlowKey, u32>,
    deadlines: Deadlines,
    ended: Ended,
    /// SYNs that can't be carried.
    returned: Vec<Returned>,
    /// The other gateway has no memory for more persistent connections, or knows of none, or has just been asked in vain: until
    /// then, it is not asked again.
    refused_until: Time,
    /// It didn't answer when it was last waited for. It is still asked, but nobody waits for it.
    absent: bool,
    /// What is to be known of it.
    remark: Option<Remark>,
    scratch: Vec<u8>,
}

impl<P: Payload> Multiplex<P> {
    /// Such persistent connections.
    pub(super) fn new(with: Multiplexing, settings: &Settings) -> Self {
        Self {
            with,
            keep_alive: (settings.facing_tcp.keep_alive).unwrap_or(vigil::KEEP_ALIVE),
            // A process that is started knows of none before it.
            begins_anew: with.real.is_some(),
            trunks: (0..with.connections).map(|_| None).collect(),
            lost: vec![false; with.connections],
            carried: Slab::default(),
            flows: FxHashMap::default(),
            deadlines: Deadlines::default(),
            ended: Ended::new([&settings.host_tcp; 2]),
            returned: Vec::new(),
            refused_until: Time::ZERO,
            absent: false,
            remark: None,
            scratch: Vec::new(),
        }
    }

    /// This gateway and the other, as both know them.
    fn gateways(&self, around: &Around<'_>) -> [HostAddress; 2] {
        match self.with.real {
            Some(real) => [real.own, real.peer].map(HostAddress::Ip),
            None => [around.routes.here(), self.with.peer].map(HostAddress::Node),
        }
    }

    /// Of the two, one opens the streams with odd numbers: is it this one?
    fn opens_odd(&self, around: &Around<'_>) -> bool {
        let [here, there] = self.gateways(around);
        here > there
    }

    /// Bytes that a connection counts besides its stream.
    pub(super) const fn state_bytes() -> usize {
        const {
            assert!(
                size_of::<Carried<P>>() + 2 * (size_of::<FlowKey>() + 16) + 48 <= CARRIED_STATE
            );
        }
        CARRIED_STATE
    }

    /// Is there nothing left of all that it has carried?
    pub(super) fn is_forgotten(&self) -> bool {
        self.carried.len() == 0 && self.flows.is_empty()
    }

    /// Memory set aside for persistent connections.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> u64 {
        self.trunks
            .iter()
            .flatten()
            .map(|trunk| trunk.reserved)
            .sum()
    }

    /// Says something on a persistent connection that may be no frame.
    #[cfg(test)]
    pub(super) fn say(&mut self, slot: usize, bytes: &[u8], cx: &mut Ctx<'_>) {
        self.trunks[slot]
            .as_mut()
            .expect("it is open")
            .write(bytes, true, cx);
    }

    /// The connections that it carries,
    pub(super) fn carried(&self) -> impl Iterator<Item = &Carried<P>> {
        self.carried.iter().map(Box::as_ref)
    }

    /// and those that carry them.
    pub(super) fn trunks(&self) -> impl Iterator<Item = &Socket<Rings>> {
        self.trunks.iter().flatten().map(|trunk| &trunk.socket)
    }

    /// Has no persistent connection anything to do of itself? They stay open when they carry nothing, and go on asking
    /// whether the other gateway is there; their last acknowledgment may be a delayed one.
    pub(super) fn is_quiet(&self) -> bool {
        let mut trunks = self.trunks.iter().flatten();
        trunks.all(|trunk| trunk.socket.has_no_work() && !trunk.vigil.asks())
    }

    /// SYNs that it keeps.
    pub(super) fn syns(&self) -> u64 {
        self.carried.iter().filter(|one| one.syn.is_some()).count() as u64
    }

    /// A SYN that can't be carried, after all.
    pub(super) fn take_returned(&mut self) -> Option<Returned> {
        self.returned.pop()
    }

    /// What is to be known of the other gateway, in one line.
    pub(super) fn remark(&self) -> Option<&'static str> {
        self.remark.map(Remark::text)
    }

    /// Which of the persistent connections a packet belongs to, or would if there were as many as the other gateway
    /// has.
    pub(super) fn trunk_of(
        &self,
        routes: &Routes,
        packet: PacketRef,
        cx: &Ctx<'_>,
    ) -> Option<usize> {
        let record = cx.packets.get(packet);
        let (source, destination) = (record.source, record.destination);
        let slot = usize::from(destination.port.checked_sub(FIRST_PORT)?);
        (destination.address == routes.here()
            && source.address == self.with.peer
            && source.port == destination.port
            && cx.packets.ip(packet).is_none())
        .then_some(slot)
    }

    /// A SYN came from beyond the link, where the other gateway has given a connection a part of its own. Does the one between
    /// the same ends that is carried here make way for it? It does if it is over.
    pub(super) fn makes_way(
        &mut self,
        key: &FlowKey,
        sequence: Seq,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let Some(index) = self.find(key) else {
            return true;
        };
        let carried = self.carried.get_mut(index);
        let over = carried.is_none_or(|one| one.is_over() && one.is_followed_beyond(sequence));
        if over {
            self.remove(index, None, around, cx);
            around.counters.followed += 1;
        }
        over
    }

    /// Which of the connections it carries a host's packet belongs to.
    #[inline]
    pub(super) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.flows.get(key).copied()
    }

    /// The gateway ends, in order: whoever is left hears of it.
    pub(super) fn retire(&mut self, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        for index in 0..self.carried.end() {
            let Some(carried) = self.carried.get_mut(index) else {
                continue;
            };
            if !carried.over {
                carried.aborted = true;
                carried.abort(cx);
                if let Some(syn) = carried.syn.take() {
                    reset_reply(syn, carried.port, cx);
                }
            }
            self.remove(index, None, around, cx);
        }
        // (They stay, so that results say how many there were.)
        for trunk in self.trunks.iter_mut().flatten() {
            trunk.socket.abort(cx);
            around.budget.change((trunk.reserved, 0), (trunk.held, 0));
            (trunk.reserved, trunk.held) = (0, 0);
        }
    }

    /// When something next wants to be done.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let trunks = self.trunks.iter().flatten();
        let trunks = trunks.flat_map(|trunk| [trunk.socket.next_deadline(), trunk.awaited_until]);
        let looks = self.deadlines.next().into_iter().chain(self.next_look());
        trunks.flatten().chain(looks).min()
    }

    /// A packet of a persistent connection. Consumes it.
    pub(super) fn on_trunk_packet(
        &mut self,
        slot: usize,
        packet: PacketRef,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        if slot >= self.trunks.len() {
            if cx.packets.get(packet).flags.has(Flags::SYN) {
                self.remark = Some(Remark::HasMore);
            }
            reset_reply(packet, around.settings.facing, cx);
            return;
        }
        let begins = |trunk: &Trunk| trunk.begins_with(cx.packets.get(packet));
        if self.trunks[slot].as_ref().is_some_and(begins) {
            self.write_out(slot, around, cx);
        }
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.vigil.comes(cx.now);
            trunk.socket.on_packet(packet, cx);
            self.look(slot, around, cx);
            return;
        }
        let flags = cx.packets.get(packet).flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST));
        let Some((config, reserved)) = self.config(around).filter(|_| opens) else {
            reset_reply(packet, around.settings.facing, cx);
            return;
        };
        let opening = self.opening(slot, &config, around, cx);
        let socket = Socket::accept(&opening, packet, PassiveFastOpen::Ignore, cx);
        self.put(slot, socket, reserved, around, cx);
        self.look(slot, around, cx);
    }

    /// A packet of a host whose connection is carried. Handed back, where it begins another one between the
    /// same ends. Otherwise consumes it.
    pub(super) fn on_host_packet(
        &mut self,
        index: u32,
        packet: PacketRef,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let record = cx.packets.get(packet);
        let (flags, sequence) = (record.flags, record.sequence);
        let opens = flags.opens();
        let carried = self.carried.get_mut(index)?;
        let slot = carried.trunk;
        if carried.syn.is_some() {
            // Not answered yet. The SYN itself: the other gateway's goes again when its time comes.
            let own = sequence == carried.syn_sequence;
            if opens && own {
                carried.touched = cx.now;
            }
            if !opens && flags.has(Flags::RST) && sequence == carried.syn_sequence + 1 {
                // It has given up.
                self.drop_part(index, around, cx);
                self.remove(index, Some(Reason::Reset), around, cx);
                self.pump(slot, around, cx);
            } else if !opens {
                around.counters.early_words += 1;
            }
            cx.packets.release(packet);
            return None;
        }
        if opens && carried.is_over() && carried.is_followed_by(sequence) {
            self.remove(index, None, around, cx);
            around.counters.followed += 1;
            return Some(packet);
        }
        around.counters.packets_split += 1;
        self.prepare(index, around, cx);
        if let Some(carried) = self.carried.get_mut(index) {
            carried.on_packet(packet, cx);
        }
        self.settle(index, around, cx);
        self.pump(slot, around, cx);
        None
    }

    /// Something is said of a segment: of a persistent connection, or of a leg to a host. Is it?
    pub(super) fn on_icmp(
        &mut self,
        said: &Complaint,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let [here, there] = self.gateways(around);
        let slot = (said.port_between(here, there))
            .and_then(|port| port.checked_sub(FIRST_PORT))
            .map(usize::from);
        if let Some(slot) = slot
            && self.trunks.get(slot).is_some_and(Option::is_some)
        {
            self.on_trunk_icmp(slot, said, around, cx);
            return true;
        }
        let Some(index) = said.keys().find_map(|key| self.find(&key)) else {
            return false;
        };
        self.prepare(index, around, cx);
        let Some(carried) = self.carried.get_mut(index) else {
            return false;
        };
        let slot = carried.trunk;
        if let Some(leg) = &mut carried.leg {
            leg.on_icmp(said.error, said.sequence, cx);
        }
        self.settle(index, around, cx);
        self.pump(slot, around, cx);
        true
    }

    /// Deadlines have come.
    pub(super) fn on_deadline(&mut self, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        self.keep_vigil(around, cx);
        for slot in 0..self.trunks.len() {
            if let Some(trunk) = &mut self.trunks[slot]
                && trunk.socket.next_deadline().is_some_and(|at| at <= cx.now)
            {
                trunk.socket.on_deadline(cx);
                self.look(slot, around, cx);
            }
            let until = self.trunks[slot]
                .as_ref()
                .and_then(|trunk| trunk.awaited_until);
            if until.is_some_and(|until| until <= cx.now) {
                self.wait_no_longer(slot, around, cx);
            }
        }
        while let Some(index) = self.deadlines.due(cx.now) {
            let Some(carried) = self.carried.get_mut(index) else {
                continue;
            };
            let slot = carried.trunk;
            if !carried.over && cx.now.since(carried.touched) >= around.settings.idle_timeout {
                around.counters.idle += 1;
                carried.abort(cx);
                self.drop_part(index, around, cx);
                self.remove(index, Some(Reason::Reset), around, cx);
            } else {
                self.prepare(index, around, cx);
                if let Some(carried) = self.carried.get_mut(index) {
                    carried.on_deadline(cx);
                }
                self.settle(index, around, cx);
            }
            self.pump(slot, around, cx);
        }
    }

    /// Before anything is done with a connection: so much may be promised to its host from now on.
    fn prepare(&mut self, index: u32, around: &Around<'_>, cx: &mut Ctx<'_>) {
        if let Some(carried) = self.carried.get_mut(index) {
            let allowed = around.budget.allowed(carried.promised[FROM_HOST]);
            carried.limit(allowed, cx);
        }
    }

    /// Lets a connection do what it can, counts what it holds, and notes what it next wants.
    fn settle(&mut self, index: u32, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let Some(carried) = self.carried.get_mut(index) else {
            return;
        };
        let failed = match carried.progress() {
            Opened::Failed(reason) => Some(reason),
            Opened::Waits | Opened::Answered => (!carried.work(cx)).then_some(Reason::Reset),
        };
        if let Some(reason) = failed {
            match reason {
                Reason::Refused => around.counters.refusals += 1,
                Reason::Unreachable => around.counters.unreachable += 1,
                Reason::Reset | Reason::NoRoom | Reason::Earlier => carried.aborted = true,
            }
            self.remove(index, Some(reason), around, cx);
            return;
        }
        carried.offer(cx);
        count(carried, around.budget);
        // What the other gateway may send has its part of what is left now.
        let most = around.settings.most_to_host();
        let allowed = around.budget.allowed(carried.promised[TO_HOST]);
        carried.give_credit(allowed.min(most));
        count(carried, around.budget);
        let ends = !carried.over && carried.is_over();
        if ends {
            carried.over = true;
            around.counters.ended(carried.aborted);
            // Nobody has anything to say of it any more.
            for (slot, stream) in carried.streams() {
                if let Some(trunk) = &mut self.trunks[slot] {
                    trunk.streams.remove(&stream);
                }
            }
        }
        if carried.is_gone() {
            self.remove(index, None, around, cx);
            return;
        }
        if ends {
            self.ended.add(index, cx.now);
        }
        if let Some(trunk) = &mut self.trunks[carried.trunk] {
            if !carried.speaking && carried.has_word() {
                carried.speaking = true;
                trunk.speaking.push_back(carried.stream);
            }
            if !carried.sending && carried.has_data() {
                carried.sending = true;
                trunk.sending.push_back(carried.stream);
            }
        }
        let idle = (!carried.over).then(|| carried.touched + around.settings.idle_timeout);
        let deadline = match (carried.next_deadline(), idle) {
            (Some(deadline), Some(idle)) => Some(deadline.min(idle)),
            (deadline, idle) => deadline.or(idle),
        };
        if let Some(at) = deadline {
            self.deadlines.arm(index, at);
        }
    }

    /// One more connection is to be carried. Those that are over make room, while there is little.
    pub(super) fn make_room(&mut self, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        while around.budget.is_short()
            && let Some(index) = self.ended.take()
        {
            if self.carried.get_mut(index).is_some_and(|one| one.over) {
                self.remove(index, None, around, cx);
            }
        }
    }

    /// Forgets a connection; the other side is to hear why, if it doesn't know.
    fn remove(
        &mut self,
        index: u32,
        reason: Option<Reason>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.carried.remove(index) else {
            return;
        };
        if !carried.over {
            around.counters.ended(carried.aborted);
        }
        if let Some(syn) = carried.syn {
            cx.packets.release(syn);
        }
        for stream in [FROM_HOST, TO_HOST] {
            let (promised, held) = (carried.promised[stream], carried.held[stream]);
            around.budget.change((promised, 0), (held, 0));
        }
        around.budget.change((around.state, 0), (0, 0));
        around.counters.carried_ended(&carried);
        if self.flows.get(&carried.key) == Some(&index) {
            self.flows.remove(&carried.key);
        }
        for (slot, stream) in carried.streams() {
            let Some(trunk) = &mut self.trunks[slot] else {
                continue;
            };
            if trunk.streams.get(&stream) != Some(&index) {
                continue;
            }
            trunk.streams.remove(&stream);
            if let Some(reason) = reason.filter(|_| stream == carried.stream) {
                trunk.resets.push_back((stream, reason));
            }
        }
        self.deadlines.disarm(index);
    }
}

/// Counts what a connection is promised, and what is held of it.
fn count<P: Payload>(carried: &mut Carried<P>, budget: &mut Budget) {
    for stream in [FROM_HOST, TO_HOST] {
        let (promised, held) = carried.count(stream);
        let before = (carried.promised[stream], carried.held[stream]);
        budget.change((before.0, promised), (before.1, held));
        (carried.promised[stream], carried.held[stream]) = (promised, held);
    }
}
