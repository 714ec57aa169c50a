//! Test harness: two connections with a network between them, or one connection with the test as
//! its peer.

use std::collections::{BinaryHeap, VecDeque};

use bentpipe_types::{
    Address, Ctx, Endpoint, Flags, IcmpError, Packet, PacketRef, Port, RandomStream, SackBlock,
    Seq, Span, SynOptions, Time, World,
};

use crate::{Config, Connection, Events, State};

/// The end that connects.
pub(crate) const A: usize = 0;
/// The end that listens.
pub(crate) const B: usize = 1;

/// More than any test sends between two hostile ends: an acknowledgment this far ahead is of data
/// never sent.
const NEVER_SENT: u32 = 1 << 21;

pub(crate) fn endpoint(side: usize) -> Endpoint {
    Endpoint {
        address: Address(side as u16 + 1),
        port: [40_000, 80][side],
    }
}

/// Creates an empty world.
pub(crate) fn world(seed: u64) -> World {
    World::new(RandomStream::new(seed, "network", "hostility"))
}

/// A sent segment, with its SYN options and SACK blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    pub(crate) packet: Packet,
    pub(crate) options: SynOptions,
    pub(crate) sack: [Option<SackBlock>; 4],
}

/// One connection, and the test as its peer.
pub(crate) struct Single {
    pub(crate) world: World,
    pub(crate) tcp: Connection,
    /// Initial sequence numbers of the connection and of the test.
    pub(crate) ours: Seq,
    pub(crate) theirs: Seq,
    /// The timestamp in the test's segments, if any.
    pub(crate) timestamp: Option<u32>,
}

pub(crate) const OUR_ISN: Seq = Seq::new(0xffff_fff0);
pub(crate) const THEIR_ISN: Seq = Seq::new(0xffff_ff00);

impl Single {
    fn of(world: World, tcp: Connection) -> Self {
        Self {
            world,
            tcp,
            ours: OUR_ISN,
            theirs: THEIR_ISN,
            timestamp: None,
        }
    }

    /// A connection that has sent its SYN, which is still in the outbox.
    pub(crate) fn connect(config: &Config) -> Self {
        let mut world = world(1);
        let tcp = Connection::connect(
            config,
            endpoint(A),
            endpoint(B),
            Port(0),
            OUR_ISN,
            &mut world.cx(),
        );
        Self::of(world, tcp)
    }

    /// A connection created from a SYN with these options.
    pub(crate) fn accept(config: &Config, options: SynOptions) -> Self {
        let mut world = world(1);
        let mut syn = Packet::new(endpoint(B), endpoint(A), config.ip_version);
        syn.flags = Flags::SYN;
        syn.sequence = THEIR_ISN;
        syn.window = 65_535;
        let syn = world.packets.insert(syn);
        world.packets.set_syn_options(syn, options);
        let tcp = Connection::accept(
            config,
            endpoint(A),
            endpoint(B),
            Port(0),
            OUR_ISN,
            syn,
            &mut world.cx(),
        );
        Self::of(world, tcp)
    }

    /// An actively opened and established connection, without timestamps and SACK, with an
    /// advertised window of `window` bytes from the peer.
    pub(crate) fn established(config: &Config, window: u16) -> Self {
        let config = Config {
            timestamps: false,
            window_scaling: false,
            ..config.clone()
        };
        let mut single = Self::connect(&config);
        single.sent();
        single.syn_ack(
            window,
            SynOptions {
                maximum_segment_size: Some(config.mss),
                sack_permitted: config.sack,
                ..SynOptions::default()
            },
        );
        assert_eq!(single.tcp.state(), State::Established);
        assert_eq!(single.tcp.take_events(), Events::ESTABLISHED);
        let sent = single.sent();
        assert_eq!(sent.len(), 1, "the third segment of the handshake");
        assert_eq!(sent[0].packet.flags, Flags::ACK);
        single
    }

    pub(crate) fn syn_ack(&mut self, window: u16, options: SynOptions) {
        let mut packet = self.segment(0, 1, 0, Flags::SYN.with(Flags::ACK));
        packet.window = window;
        self.arrives_with(packet, options);
    }

    /// A segment of the peer; sequence and acknowledgment number are relative to the ISNs.
    pub(crate) fn segment(&self, sequence: u32, ack: u32, length: u16, flags: Flags) -> Packet {
        let mut packet = Packet::new(endpoint(B), endpoint(A), bentpipe_types::IpVersion::V4);
        packet.sequence = self.theirs + sequence;
        packet.acknowledgment = self.ours + ack;
        packet.flags = flags;
        packet.window = 65_535;
        packet.payload_length = length;
        packet.payload_offset = u64::from(sequence.wrapping_sub(1));
        if let Some(value) = self.timestamp {
            packet.set_timestamps(value, 0);
            packet.header_length += 12;
        }
        packet
    }

    pub(crate) fn arrives(&mut self, packet: Packet) {
        let packet = self.world.packets.insert(packet);
        self.tcp.on_packet(packet, &mut self.world.cx());
    }

    pub(crate) fn arrives_with(&mut self, packet: Packet, options: SynOptions) {
        let packet = self.world.packets.insert(packet);
        self.world.packets.set_syn_options(packet, options);
        self.tcp.on_packet(packet, &mut self.world.cx());
    }

    /// Processes an acknowledgment of everything before `ack`, with this window.
    pub(crate) fn ack(&mut self, ack: u32, window: u16) {
        let mut packet = self.segment(1, ack, 0, Flags::ACK);
        packet.window = window;
        self.arrives(packet);
    }

    /// Processes a data segment.
    pub(crate) fn data(&mut self, sequence: u32, length: u16) {
        let ack = (self.tcp.sent_offset() + 1) as u32;
        self.arrives(self.segment(sequence, ack, length, Flags::ACK));
    }

    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        self.tcp.write(bytes, &mut self.world.cx())
    }

    pub(crate) fn read(&mut self, bytes: u64) -> u64 {
        self.tcp.read(bytes, &mut self.world.cx())
    }

    pub(crate) fn close(&mut self) {
        self.tcp.close(&mut self.world.cx());
    }

    /// Advances the time and runs the deadlines in it.
    pub(crate) fn wait(&mut self, span: Span) {
        let end = self.world.now + span;
        while let Some(at) = self.tcp.next_deadline()
            && at <= end
        {
            self.world.now = self.world.now.max(at);
            self.tcp.on_deadline(&mut self.world.cx());
        }
        self.world.now = end;
    }

    /// The segments sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<Seen> {
        let outbox = std::mem::take(&mut self.world.outbox);
        let packets = &mut self.world.packets;
        let mut seen = Vec::new();
        for (_, reference) in outbox {
            let blocks = packets.sack_blocks(reference);
            let mut sack = [None; 4];
            for (slot, block) in sack.iter_mut().zip(blocks.as_slice()) {
                *slot = Some(*block);
            }
            seen.push(Seen {
                at: self.world.now,
                packet: *packets.get(reference),
                options: packets.syn_options(reference),
                sack,
            });
            packets.release(reference);
        }
        seen
    }

    /// The segments sent since the last call, as (sequence, length) relative to our ISN.
    pub(crate) fn sent_ranges(&mut self) -> Vec<(u32, u16)> {
        let ours = self.ours;
        self.sent()
            .iter()
            .map(|s| (s.packet.sequence - ours, s.packet.payload_length))
            .collect()
    }

    /// The acknowledgment numbers sent since the last call, relative to their ISN.
    pub(crate) fn sent_acks(&mut self) -> Vec<u32> {
        let theirs = self.theirs;
        self.sent()
            .iter()
            .map(|s| s.packet.acknowledgment - theirs)
            .collect()
    }
}

/// Impairments of a network. Probabilities are per packet.
#[derive(Clone, Debug)]
pub(crate) struct Hostility {
    pub(crate) delay: Span,
    /// Maximum additional delay, drawn for each packet; reorders packets.
    pub(crate) jitter: Span,
    pub(crate) loss: f64,
    /// Mean length of a run of losses.
    pub(crate) burst: f64,
    pub(crate) duplication: f64,
    /// A copy with a random change of a header field arrives in addition.
    pub(crate) corruption: f64,
    /// The changes include those that no TCP can compensate.
    pub(crate) lies: bool,
    /// Longer packets are dropped.
    pub(crate) mtu: u32,
    /// Packets that are too long cause an ICMP error, one delay later.
    pub(crate) speaks: bool,
    /// From then on there are no impairments, so that both ends can finish.
    pub(crate) until: Time,
}

impl Default for Hostility {
    fn default() -> Self {
        Self {
            delay: Span::from_millis(10),
            jitter: Span::ZERO,
            loss: 0.0,
            burst: 1.0,
            duplication: 0.0,
            corruption: 0.0,
            lies: false,
            mtu: u32::MAX,
            speaks: true,
            until: Time::LAST,
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Arrival {
    // Reversed, because `BinaryHeap` returns the greatest first.
    order: std::cmp::Reverse<(Time, u64)>,
    to: usize,
    slot: usize,
}

type Filter = Box<dyn FnMut(usize, &Packet) -> bool>;

/// Two connections, A to B, and a network.
pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) ends: [Option<Connection>; 2],
    configs: [Config; 2],
    pub(crate) initial: [Seq; 2],
    pub(crate) network: Hostility,
    /// Called for every packet, with its sender; false drops the packet.
    pub(crate) filter: Filter,
    pub(crate) events: [Events; 2],
    pub(crate) sink: [bool; 2],
    arrivals: BinaryHeap<Arrival>,
    slots: Vec<Option<PacketRef>>,
    free_slots: Vec<usize>,
    /// ICMP errors in transit: time, receiver, quoted sequence number.
    complaints: VecDeque<(Time, usize, Seq)>,
    sent: u64,
    losing: bool,
    pub(crate) steps: u64,
    /// Packets sent, per sender: (side, time, packet).
    pub(crate) log: Option<Vec<(usize, Time, Packet)>>,
}

impl Pair {
    pub(crate) fn new(a: &Config, b: &Config, network: Hostility, seed: u64) -> Self {
        let mut world = world(seed);
        let initial = [
            Seq::new(world.random.bits() as u32 | 0xffff_f000),
            Seq::new(world.random.bits() as u32),
        ];
        let mut pair = Self {
            world,
            ends: [None, None],
            configs: [a.clone(), b.clone()],
            initial,
            network,
            filter: Box::new(|_, _| true),
            events: [Events::NONE; 2],
            sink: [true; 2],
            arrivals: BinaryHeap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            complaints: VecDeque::new(),
            sent: 0,
            losing: false,
            steps: 0,
            log: None,
        };
        pair.connect(A);
        pair
    }

    /// Opens a connection actively from this side.
    pub(crate) fn connect(&mut self, side: usize) {
        let mut connection = Connection::connect(
            &self.configs[side],
            endpoint(side),
            endpoint(1 - side),
            Port(0),
            self.initial[side],
            &mut self.world.cx(),
        );
        connection.set_sink(self.sink[side]);
        self.ends[side] = Some(connection);
        self.after(side);
    }

    pub(crate) fn a(&self) -> &Connection {
        self.ends[A].as_ref().unwrap()
    }

    pub(crate) fn b(&self) -> &Connection {
        self.ends[B].as_ref().unwrap()
    }

    /// Calls a function on one end, as its application.
    pub(crate) fn with<R>(
        &mut self,
        side: usize,
        action: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> R,
    ) -> R {
        let mut connection = self.ends[side].take().unwrap();
        let result = action(&mut connection, &mut self.world.cx());
        self.ends[side] = Some(connection);
        self.after(side);
        result
    }

    /// Transmits the packets that this side has sent, and checks invariants.
    fn after(&mut self, side: usize) {
        if let Some(connection) = &mut self.ends[side] {
            self.events[side] |= connection.take_events();
            let window = connection.congestion_window();
            assert!(window >= u64::from(connection.segment_size()));
            if let Some(at) = connection.next_deadline() {
                assert!(at > self.world.now || at >= self.world.now, "{at:?}");
            }
        }
        let outbox = std::mem::take(&mut self.world.outbox);
        for &(_, packet) in &outbox {
            self.send(side, packet);
        }
        self.world.outbox = outbox;
        self.world.outbox.clear();
    }

    fn send(&mut self, from: usize, packet: PacketRef) {
        let record = *self.world.packets.get(packet);
        if let Some(log) = &mut self.log {
            log.push((from, self.world.now, record));
        }
        let network = self.network.clone();
        let hostile = self.world.now < network.until;
        let random = &mut self.world.random;
        if hostile && network.loss > 0.0 {
            // A two-state chain with the given share and mean run length of losses.
            let leave = 1.0 / network.burst.max(1.0);
            let enter = network.loss * leave / (1.0 - network.loss);
            let change = if self.losing { leave } else { enter };
            if random.happens(change.min(1.0)) {
                self.losing = !self.losing;
            }
        }
        if record.length().get() > u64::from(network.mtu) {
            self.world.packets.release(packet);
            if network.speaks && !(hostile && self.losing) {
                let at = self.world.now + network.delay;
                self.complaints.push_back((at, from, record.sequence));
            }
            return;
        }
        let lost = hostile && self.losing || !(self.filter)(from, &record);
        if hostile && network.corruption > 0.0 && self.world.random.happens(network.corruption) {
            let copy = self.world.packets.duplicate(packet);
            self.corrupt(copy);
            self.enqueue(1 - from, copy);
        }
        if hostile && network.duplication > 0.0 && self.world.random.happens(network.duplication) {
            let copy = self.world.packets.duplicate(packet);
            self.enqueue(1 - from, copy);
        }
        if lost {
            self.world.packets.release(packet);
        } else {
            self.enqueue(1 - from, packet);
        }
    }

    fn enqueue(&mut self, to: usize, packet: PacketRef) {
        let jitter = self.network.jitter.as_nanos() as f64 * self.world.random.uniform();
        let jitter = if self.world.now < self.network.until {
            jitter as u64
        } else {
            0
        };
        let at = self.world.now + self.network.delay + Span::from_nanos(jitter);
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(packet);
        self.sent += 1;
        self.arrivals.push(Arrival {
            order: std::cmp::Reverse((at, self.sent)),
            to,
            slot,
        });
    }

    /// Changes a header field: near its value, or arbitrarily. Payload and its stream offset stay
    /// consistent: real data with a false sequence number would corrupt the stream, which no TCP
    /// can detect.
    ///
    /// Changes that a connection need not survive require `lies`: false acknowledgments of sent
    /// data, false ends of data, timestamps from the future, and resets. Without `lies`, a false
    /// acknowledgment is of data never sent. A RST is unchanged, because it may reset if moved.
    /// With flags exchanged, a zero acknowledgment number of a segment without ACK would be taken
    /// for a real one (RFC 9293 section 3.10.7.4).
    fn corrupt(&mut self, packet: PacketRef) {
        let random = &mut self.world.random;
        let lies = self.network.lies;
        let choice = random.bits() % if lies { 7 } else { 4 };
        let bits = random.bits();
        let near = (bits >> 32) as u32 % 8000;
        let record = self.world.packets.get_mut(packet);
        if !lies {
            if record.flags.has(Flags::SYN.with(Flags::RST)) {
                return;
            }
            record.flags = Flags(record.flags.0 & !Flags::FIN.0);
        }
        match choice {
            0 => {
                let by = if bits & 1 == 0 { bits as u32 } else { near };
                record.payload_length = 0;
                record.sequence = record.sequence + by - 4000;
            }
            1 if lies => record.acknowledgment = Seq::new(bits as u32),
            1 => record.acknowledgment += (bits as u32).max(NEVER_SENT),
            2 => record.window = bits as u16,
            3 if lies => record.flags = Flags(bits as u8),
            3 => {
                record.flags = Flags(bits as u8 & !(Flags::RST.0 | Flags::FIN.0));
                record.payload_length = 0;
            }
            4 => record.acknowledgment += near,
            5 => record.set_timestamps(bits as u32, (bits >> 32) as u32),
            _ => {
                record.payload_length = bits as u16 % 3000;
                record.payload_offset += u64::from(near);
                record.sequence += near;
            }
        }
    }

    /// Processes the next event, if it is before `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let arrival = self.arrivals.peek().map(|a| a.order.0.0);
        let deadlines =
            [0, 1].map(|side| self.ends[side].as_ref().and_then(Connection::next_deadline));
        let complaint = self.complaints.front().map(|(at, ..)| *at);
        let Some(next) = [arrival, deadlines[0], deadlines[1], complaint]
            .into_iter()
            .flatten()
            .min()
        else {
            return false;
        };
        if next > end {
            return false;
        }
        self.steps += 1;
        self.world.now = self.world.now.max(next);
        if complaint == Some(next)
            && let Some((_, to, sequence)) = self.complaints.pop_front()
        {
            let error = IcmpError::TooBig {
                mtu: self.network.mtu,
            };
            self.with(to, |tcp, cx| tcp.on_icmp(error, sequence, cx));
            return true;
        }
        if arrival == Some(next) {
            let arrival = self.arrivals.pop().unwrap();
            let packet = self.slots[arrival.slot].take().unwrap();
            self.free_slots.push(arrival.slot);
            self.arrives(arrival.to, packet);
            return true;
        }
        for side in [A, B] {
            if deadlines[side] == Some(next) {
                self.with(side, |tcp, cx| tcp.on_deadline(cx));
            }
        }
        true
    }

    fn arrives(&mut self, to: usize, packet: PacketRef) {
        if self.ends[to].is_some() {
            self.with(to, |tcp, cx| tcp.on_packet(packet, cx));
            return;
        }
        let flags = self.world.packets.get(packet).flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            crate::reset_reply(packet, Port(0), &mut self.world.cx());
            self.after(to);
            return;
        }
        let mut connection = Connection::accept(
            &self.configs[to],
            endpoint(to),
            endpoint(1 - to),
            Port(0),
            self.initial[to],
            packet,
            &mut self.world.cx(),
        );
        connection.set_sink(self.sink[to]);
        self.ends[to] = Some(connection);
        self.after(to);
    }

    /// Runs until `end`, or until no event is left.
    pub(crate) fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.world.now = self.world.now.max(end);
    }

    /// Runs for `span`.
    pub(crate) fn run(&mut self, span: Span) {
        self.run_until(self.world.now + span);
    }

    /// A sends `bytes` and closes; B closes after receiving them. Runs until both are closed, at
    /// most until `end`.
    pub(crate) fn transfer(&mut self, bytes: u64, end: Time) {
        let mut written = 0;
        loop {
            if self.a().writable() > 0 && written < bytes {
                written += self.with(A, |tcp, cx| tcp.write(bytes - written, cx));
                if written == bytes {
                    self.with(A, |tcp, cx| tcp.close(cx));
                }
            }
            if self.events[B].has(Events::PEER_CLOSED) {
                self.events[B] = Events::NONE;
                self.with(B, |tcp, cx| tcp.close(cx));
            }
            if !self.step(end) {
                break;
            }
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for slot in self.slots.iter().flatten() {
            self.world.packets.release(*slot);
        }
        assert_eq!(self.world.packets.held(), 0, "packets lost or kept");
    }
}
