//! Connections begin: persistent ones, and those that they carry.

use std::sync::Arc;

use bentpipe_tcp::{Config, IdleRestart, Opening, Payload, Rings, Socket};
use bentpipe_types::{Ctx, Endpoint, FlowKey, HostAddress, PacketRef, Party, Port, Seq};

use super::super::Answer;
use super::super::apart::Apart;
use super::super::legs::speak;
use super::carried::Carried;
use super::frame::{self, Answered, Open, Reason};
use super::trunk::Trunk;
use super::{Around, Multiplex, Remark, Returned, Way};

/// The first persistent connection's port, at both ends; the others' follow. (RFC 3135 has none.)
pub(super) const FIRST_PORT: u16 = 3135;
/// The least that a persistent connection's buffers take, each: some frames.
const LEAST_BUFFER: u64 = 16 << 10;
/// Of the gateway's memory, all of the buffers of one kind take as large a part at most.
const PART_OF_MEMORY: u64 = 8;
/// TCP's protocol number.
const TCP: u8 = 6;

/// A host's SYN, which asks for a connection.
pub(in super::super) struct Asks {
    pub(in super::super) key: FlowKey,
    /// Where it came from.
    pub(in super::super) from: Port,
    /// What memory there is for what the host says first.
    pub(in super::super) first: u64,
    pub(in super::super) syn: PacketRef,
}

impl<P: Payload> Multiplex<P> {
    /// A host's SYN opens a connection, unless there is no memory for what would carry it, or the other gateway is not
    /// there: then the SYN comes back.
    pub(in super::super) fn open(
        &mut self,
        asks: Asks,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let Some(slot) = self.slot(around, cx) else {
            return Some(asks.syn);
        };
        self.open_on(slot, asks, around, cx)
    }

    /// The same for a SYN that had to wait for a persistent connection in vain: one that is there already carries it, or
    /// none.
    pub(in super::super) fn open_now(
        &mut self,
        asks: Asks,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let open = |slot: &usize| self.trunks[*slot].as_ref().is_some_and(Trunk::is_trusted);
        let slots = (0..self.trunks.len()).filter(open);
        let Some(slot) = slots.min_by_key(|slot| self.streams_on(*slot)) else {
            return Some(asks.syn);
        };
        self.open_on(slot, asks, around, cx)
    }

    fn open_on(
        &mut self,
        slot: usize,
        asks: Asks,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let Asks {
            key,
            from,
            first,
            syn,
        } = asks;
        let Some(stream) = self.trunks[slot].as_mut().and_then(Trunk::number) else {
            return Some(syn);
        };
        let fast_open = cx.packets.syn_options(syn).fast_open.is_some();
        let mut carried = Carried::open(key, syn, from, (slot, stream), first, cx);
        // Fast Open's cookies are the other host's to give.
        // And that there is another gateway must be known.
        let there = self.trunks[slot].as_ref().is_some_and(Trunk::is_trusted);
        if around.settings.set_up == Answer::Early && !fast_open && there {
            carried.answer(&around.carried(&key, first), None, cx);
        }
        self.add(carried, around, cx);
        self.pump(slot, around, cx);
        None
    }

    pub(super) fn add(
        &mut self,
        mut carried: Carried<P>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        carried.hold_close(around.settings.close, cx);
        let (key, slot, stream) = (carried.key, carried.trunk, carried.stream);
        let index = self.carried.insert(Box::new(carried));
        self.flows.insert(key, index);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.insert(stream, index);
        }
        around.budget.change((0, around.state), (0, 0));
        around.counters.opened();
        self.settle(index, around, cx);
    }

    /// Streams on a persistent connection, and whether it is still to be opened.
    fn streams_on(&self, slot: usize) -> (usize, bool) {
        match &self.trunks[slot] {
            Some(trunk) => (trunk.streams.len(), false),
            None => (0, true),
        }
    }

    /// Where a new stream goes: to the persistent connection that has the fewest, to one that is open already, if that
    /// has none; if none has none, to one more.
    fn slot(&mut self, around: &mut Around<'_>, cx: &mut Ctx<'_>) -> Option<usize> {
        if self.absent {
            let asked = self.trunks.iter().position(Option::is_some);
            self.ask_anew(asked.unwrap_or(0), around, cx);
        } else if let Some(slot) = self.lost.iter().position(|lost| *lost) {
            self.ask_anew(slot, around, cx);
        }
        if self.is_doubted() {
            return None;
        }
        let may_open = cx.now >= self.refused_until && !self.absent;
        let usable = |slot: &usize| match &self.trunks[*slot] {
            Some(trunk) if trunk.began => trunk.is_trusted(),
            Some(trunk) => trunk.awaited_until.is_some() && !self.absent,
            None => may_open && !self.lost[*slot],
        };
        let slots = (0..self.trunks.len()).filter(usable);
        let slot = slots.min_by_key(|slot| self.streams_on(*slot))?;
        if self.trunks[slot].is_none() {
            self.connect(slot, around, cx);
        }
        Some(slot)
    }

    /// The other gateway has not been there, or not on this persistent connection: whether it is there now is asked again, now
    /// and then. Nobody waits for that.
    fn ask_anew(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        if cx.now < self.refused_until {
            return;
        }
        match &self.trunks[slot] {
            Some(trunk) if !trunk.is_to_be_asked_anew(cx.now) => return,
            Some(_) => self.fail(slot, around, cx),
            None => {}
        }
        self.connect(slot, around, cx);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.awaited_until = None;
        }
    }

    /// The other gateway has not answered in time. It is still asked, but those that waited wait no more.
    pub(super) fn wait_no_longer(
        &mut self,
        slot: usize,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.awaited_until = None;
        }
        self.note_absence();
        self.withdraw(slot, around, cx);
    }

    /// It was asked in vain. If it has said nothing on another persistent connection either, it is not there.
    pub(super) fn note_absence(&mut self) {
        self.absent = !self.has_trusted();
        if self.absent && !self.remark.is_some_and(Remark::is_of_absence) {
            self.remark = Some(Remark::Absent);
        }
    }

    /// Lets whatever a persistent connection is to carry go another way, if nothing was said of it: all of it is
    /// still here, and the other gateway cannot have heard.
    pub(super) fn withdraw(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let Some(trunk) = self.trunks[slot].as_mut().filter(|trunk| trunk.is_unsaid()) else {
            return;
        };
        let mut streams: Vec<_> = trunk
            .streams
            .iter()
            .map(|(at, index)| (*at, *index))
            .collect();
        // In an order that is the same in every run.
        streams.sort_unstable();
        for (stream, index) in streams {
            let Some(carried) = self.carried.get_mut(index) else {
                continue;
            };
            let (key, from) = (carried.key, carried.port);
            match carried.syn.take() {
                Some(syn) => {
                    self.remove(index, None, around, cx);
                    around.counters.taken_back();
                    self.returned.push(Returned {
                        key,
                        syn,
                        from,
                        way: Way::Anew,
                    });
                }
                None => self.follow_alias(index, (slot, stream), around, cx),
            }
        }
    }

    /// What was opened from the other side as well (simultaneous open), and was so answered, goes on where that was heard.
    fn follow_alias(
        &mut self,
        index: u32,
        (slot, stream): (usize, u32),
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.carried.get_mut(index) else {
            return;
        };
        let Some((there, number)) = carried.alias.and_then(|(there, _)| {
            let number = self.trunks[there].as_mut()?.number()?;
            Some((there, number))
        }) else {
            return;
        };
        (carried.trunk, carried.stream) = (there, number);
        (carried.speaking, carried.sending) = (false, false);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.remove(&stream);
        }
        if let Some(trunk) = &mut self.trunks[there] {
            trunk.streams.insert(number, index);
        }
        self.settle(index, around, cx);
        self.pump(there, around, cx);
    }

    /// The TCP of a persistent connection, and the memory to set aside for it, if there is enough.
    pub(super) fn config(&self, around: &Around<'_>) -> Option<(Arc<Config>, u64)> {
        let mut config = around.settings.facing_tcp.clone();
        if let Some(real) = self.with.real {
            speak(real.version(), &mut config);
        }
        let part = around.settings.memory / (PART_OF_MEMORY * self.trunks.len() as u64);
        let most = part.max(LEAST_BUFFER);
        let send = config
            .send_sizes
            .map_or(config.send_buffer, |sizes| sizes.most);
        config.send_buffer = send.clamp(LEAST_BUFFER, most);
        // It is read at once: what it holds back is only what came out of order.
        config.receive_buffer = config.most_received().clamp(LEAST_BUFFER, most);
        (config.send_sizes, config.receive_sizes) = (None, None);
        if around.settings.warm_path {
            config.idle_restart = IdleRestart::Off;
        }
        // The gateway asks itself, also beside what is outstanding (`vigil`).
        config.keep_alive = None;
        // Besides, the beginning of a frame.
        let reserved = config.send_buffer + config.receive_buffer + frame::LONGEST as u64;
        (around.budget.left() / 2 >= reserved).then_some((Arc::new(config), reserved))
    }

    pub(super) fn ends(&self, slot: usize, around: &Around<'_>) -> [Endpoint; 2] {
        [around.routes.here(), self.with.peer].map(|address| Endpoint {
            address,
            port: FIRST_PORT + slot as u16,
        })
    }

    /// How the gateway's end of a persistent connection begins, whichever end opens it.
    pub(super) fn opening<'c>(
        &self,
        slot: usize,
        config: &'c Arc<Config>,
        around: &Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Opening<'c> {
        let [local, remote] = self.ends(slot, around);
        Opening {
            config,
            local,
            remote,
            egress: around.settings.facing,
            initial_sequence: Seq::new(cx.random.bits() as u32),
        }
    }

    pub(super) fn connect(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let Some((config, reserved)) = self.config(around) else {
            return;
        };
        self.ask_the_silent(cx);
        let opening = self.opening(slot, &config, around, cx);
        let socket = Socket::connect(&opening, None, cx);
        self.put(slot, socket, reserved, around, cx);
    }

    pub(super) fn put(
        &mut self,
        slot: usize,
        socket: Socket<Rings>,
        reserved: u64,
        around: &mut Around<'_>,
        cx: &Ctx<'_>,
    ) {
        let first = u32::from(self.opens_odd(around));
        around.budget.change((0, reserved), (0, 0));
        around.counters.trunks_opened += 1;
        self.trunks[slot] = Some(Trunk::new(socket, first, reserved, cx.now));
    }

    /// What the other gateway says of two hosts with real addresses, between the nodes that stand for them here.
    fn placed<'a>(&self, open: &Open<'a>) -> Open<'a> {
        let mut open = *open;
        if let (Some(real), Some(_)) = (self.with.real, open.ip) {
            open.source.address = self.with.peer;
            open.destination.address = real.hosts;
        }
        open
    }

    /// A host behind the other gateway opens a connection.
    pub(super) fn on_open(
        &mut self,
        (slot, stream): (usize, u32),
        open: &Open<'_>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let open = &self.placed(open);
        let key = answers_to(open);
        let towards = around.routes.port_towards(open.destination.address);
        let towards = towards.filter(|towards| *towards != around.settings.facing);
        let met = match self.flows.get(&key) {
            Some(&index) => self.meets(index, (slot, stream), open, around, cx),
            None => self.meets_apart(&key, (slot, stream), open, around, cx),
        };
        let reason = match met {
            Met::Itself => return,
            Met::Earlier => Some(Reason::Earlier),
            Met::Nobody => towards.is_none().then_some(Reason::Unreachable),
        };
        self.make_room(around, cx);
        let first = around.budget.first(around.state);
        let reason = reason.or(first.is_none().then_some(Reason::NoRoom));
        let (Some(port), Some(first), None) = (towards, first, reason) else {
            around.counters.refused += u64::from(reason == Some(Reason::NoRoom));
            if let (Some(trunk), Some(reason)) = (&mut self.trunks[slot], reason) {
                trunk.reset(stream, reason);
            }
            return;
        };
        let config = around.carried(&key, first);
        let carried = Carried::opened(key, open, port, (slot, stream), (&config, first), cx);
        self.add(carried, around, cx);
    }

    /// What the host behind the other gateway opens is between the same ends as a connection that is known.
    fn meets(
        &mut self,
        index: u32,
        (slot, stream): (usize, u32),
        open: &Open<'_>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Met {
        let Some(carried) = self.carried.get_mut(index) else {
            return Met::Nobody;
        };
        if !carried.awaits_answer() {
            // The other gateway has forgotten it, but would have said if it had been reset: it has come to its
            // end there. Here it may not yet have. Its host may still have to hear what was confirmed to the
            // other, which may therefore use its port again; or that one's SYN is forged. A TCP that has not
            // come to its end doesn't take a SYN either (RFC 9293 section 3.10.7.4), and its peer sends that
            // again. In TIME-WAIT it makes way (section 3.6.1).
            if !carried.is_over() {
                return Met::Earlier;
            }
            self.remove(index, None, around, cx);
            around.counters.followed += 1;
            return Met::Nobody;
        }
        // Both hosts have opened at once (simultaneous open, RFC 9293 section 3.5), and each gateway has told
        // the other: each takes what it is told for the answer, and goes on speaking on the stream that it
        // has opened itself.
        carried.alias = Some((slot, stream));
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.insert(stream, index);
        }
        let answered = Answered {
            sequence: open.sequence,
            credit: open.credit,
            taken: 0,
            cookie: None,
        };
        self.answered(index, &answered, around, cx);
        Met::Itself
    }

    /// The same, where this gateway may have given the connection a part of its own.
    fn meets_apart(
        &mut self,
        key: &FlowKey,
        (slot, stream): (usize, u32),
        open: &Open<'_>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Met {
        match around.apart.state(key, open.sequence) {
            Apart::Unknown => return Met::Nobody,
            Apart::Over => {
                around.apart.forget(key);
                around.counters.followed += 1;
                return Met::Nobody;
            }
            Apart::Goes => {
                around.apart.ask(key, cx);
                return Met::Earlier;
            }
            Apart::Opens => {}
        }
        // Both hosts have opened at once, and only the other gateway has found a persistent connection for its one. It
        // has dropped the SYN of this one's part, or would; nothing has been said over that part, and so the connection
        // goes where the other is.
        let first = around.budget.first(around.state);
        let number = self.trunks[slot].as_mut().and_then(Trunk::number);
        let (Some(first), Some(number)) = (first, number) else {
            return Met::Earlier;
        };
        let Some((syn, port)) = around.apart.withdraw(key, cx) else {
            return Met::Earlier;
        };
        around.counters.taken_back();
        let carried = Carried::open(*key, syn, port, (slot, number), first, cx);
        self.add(carried, around, cx);
        match self.flows.get(key) {
            Some(&index) => self.meets(index, (slot, stream), open, around, cx),
            None => Met::Earlier,
        }
    }

    pub(super) fn answered(
        &mut self,
        index: u32,
        answered: &Answered,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        self.prepare(index, around, cx);
        self.drop_part(index, around, cx);
        if let Some(carried) = self.carried.get_mut(index) {
            let config = around.carried(&carried.key, carried.first);
            carried.on_answer(&config, answered, cx);
            carried.hold_close(around.settings.close, cx);
        }
        self.settle(index, around, cx);
    }
}

/// What a connection that is opened meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Met {
    /// No other between the same ends.
    Nobody,
    /// The same, opened by the other host as well.
    Itself,
    /// An earlier one that is not over.
    Earlier,
}

/// The key of what the host sends that is asked here.
fn answers_to(open: &Open<'_>) -> FlowKey {
    let hosts = match open.ip {
        Some((source, destination)) => [HostAddress::Ip(source), HostAddress::Ip(destination)],
        None => [open.source, open.destination].map(|end| HostAddress::Node(end.address)),
    };
    let party = |host, port| Party { host, port };
    FlowKey {
        source: party(hosts[1], open.destination.port),
        destination: party(hosts[0], open.source.port),
        protocol: TCP,
    }
}
