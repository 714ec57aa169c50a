//! One connection under any sequence of operations.

use std::num::NonZeroU32;

use bentpipe_tcp::{Config, Connection, KeepAlive, PathLimit, State};
use bentpipe_types::{
    Address, Ecn, Endpoint, Flags, IcmpError, IpVersion, Packet, PacketRef, Port, RandomStream,
    SackBlock, SackBlocks, Seq, Span, SynOptions, Time, World,
};
use bentpipe_wire::TcpOptions;

use super::capture::{Capture, Seen};
use super::case::{Kind, least_mtu};
use super::checks::check;
use super::dice::Dice;
use super::lies::icmp;
use super::settings::{config, keep_alive};
use super::{Counts, Failure};

const LOCAL: Endpoint = Endpoint {
    address: Address(1),
    port: 1,
};
const REMOTE: Endpoint = Endpoint {
    address: Address(2),
    port: 2,
};
/// The peer's initial sequence number.
const PEER: Seq = Seq::new(0xffff_f000);

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u64),
    Read(u64),
    /// A write with MSG_MORE.
    WriteMore(u64),
    /// A write whose end is a segment boundary.
    WriteRecord(u64),
    Cork(bool),
    Nagle(bool),
    SendBuffer(u64),
    UserTimeout(Option<Span>),
    KeepAlive(Option<KeepAlive>),
    /// An ICMP error about a segment this far below the highest that was sent.
    Icmp(IcmpError, u32),
    Close,
    Abandon,
    Abort,
    /// Time passes; deadlines are processed.
    Wait(Span),
    /// Time passes until the next deadline.
    Deadline,
    SynAck,
    /// An honest segment: acknowledges this many bytes and carries this many.
    Honest {
        acknowledges: u64,
        data: u16,
    },
    /// A SACK block this far above the acknowledgment.
    Sack {
        from: u32,
        length: u32,
    },
    /// A window update without new acknowledgment.
    Window(u16),
    /// Any segment.
    Segment,
}

pub(super) struct Alone<'a> {
    dice: Dice,
    /// A separate stream, so that a seed's operations do not change.
    elsewhere: Dice,
    config: Config,
    tcp: Connection,
    peer: Peer<'a>,
}

/// The peer of the connection, and the path between them.
struct Peer<'a> {
    world: World,
    counts: Counts,
    capture: Option<&'a mut Capture>,
    // State of the peer: its next sequence number, the connection's acknowledged and highest
    // numbers, and the connection's timestamp clock.
    own: Seq,
    acknowledged: Seq,
    highest: Seq,
    clock: u32,
}

impl Peer<'_> {
    /// Takes the packets that were sent, and updates the peer's state.
    fn drain(&mut self) -> usize {
        let outbox = std::mem::take(&mut self.world.outbox);
        for &(_, reference) in &outbox {
            if let Some(capture) = &mut self.capture {
                capture.record(
                    &self.world.packets,
                    reference,
                    0,
                    Seen::Leaving,
                    self.world.now,
                );
            }
            let packet = *self.world.packets.get(reference);
            self.world.packets.release(reference);
            self.counts.packets += 1;
            if packet.flags.has(Flags::RST) {
                continue;
            }
            if packet.flags.has(Flags::SYN) {
                self.highest = packet.sequence_end();
                self.acknowledged = packet.sequence;
            }
            self.highest = self.highest.latest(packet.sequence_end());
            if packet.flags.has(Flags::ACK) {
                self.own = packet.acknowledgment;
            }
            if let Some((value, _)) = packet.timestamps() {
                self.clock = value;
            }
        }
        outbox.len()
    }

    fn honest(&self, config: &Config, flags: Flags) -> Packet {
        let mut packet = Packet::new(REMOTE, LOCAL, config.ip_version);
        packet.sequence = self.own;
        packet.acknowledgment = self.acknowledged;
        packet.flags = flags;
        packet.window = 60_000;
        if config.timestamps {
            let value = 1000 + (self.world.now.as_nanos() / 1_000_000) as u32;
            packet.set_timestamps(value, self.clock);
        }
        packet
    }

    fn near(dice: &mut Dice, right: Seq) -> Seq {
        match dice.below(8) {
            0..=3 => right,
            4..=6 => right + dice.below(20_000) as u32 - 10_000,
            _ => Seq::new(dice.bits() as u32),
        }
    }

    fn insert(&mut self, packet: Packet, blocks: &SackBlocks, syn: SynOptions) -> PacketRef {
        let reference = self.world.packets.insert(packet);
        self.world.packets.set_syn_options(reference, syn);
        if !blocks.as_slice().is_empty() {
            self.world.packets.set_sack_blocks(reference, blocks);
        }
        let options = TcpOptions::of(&self.world.packets, reference).length() as u8;
        let record = self.world.packets.get_mut(reference);
        record.header_length = record.ip_version().header_length() + 20 + options;
        if let Some(capture) = &mut self.capture {
            capture.record(
                &self.world.packets,
                reference,
                0,
                Seen::Arriving,
                self.world.now,
            );
        }
        reference
    }

    /// Creates an arbitrary segment.
    fn segment(&mut self, dice: &mut Dice, version: IpVersion) -> PacketRef {
        let mut packet = Packet::new(REMOTE, LOCAL, version);
        packet.sequence = Self::near(dice, self.own);
        packet.acknowledgment = Self::near(dice, self.highest);
        packet.flags = match dice.below(24) {
            0 => Flags(dice.bits() as u8),
            // Random RSTs would end most cases early.
            _ => Flags(dice.bits() as u8 & !Flags::RST.0).with(Flags::ACK),
        };
        packet.window = dice.bits() as u16;
        packet.set_ecn(dice.pick(&[
            Ecn::NotCapable,
            Ecn::NotCapable,
            Ecn::Capable0,
            Ecn::Congestion,
        ]));
        packet.payload_length = if dice.coin() {
            dice.below(3000) as u16
        } else {
            0
        };
        if dice.coin() {
            let value = 1000 + (self.world.now.as_nanos() / 1_000_000) as u32;
            packet.set_timestamps(
                value.wrapping_add(dice.below(2000) as u32),
                self.clock.wrapping_sub(dice.below(2000) as u32),
            );
        }
        let mut syn = SynOptions::default();
        let mut blocks = SackBlocks::default();
        if packet.flags.has(Flags::SYN) {
            syn.maximum_segment_size = dice.coin().then(|| dice.bits() as u16);
            syn.window_scale = dice.coin().then(|| dice.bits() as u8);
            syn.sack_permitted = dice.coin();
        } else {
            for _ in 0..dice.below(4) {
                let start = Self::near(dice, self.acknowledged);
                let end = start + dice.below(9000) as u32;
                blocks.push(SackBlock { start, end });
            }
        }
        self.insert(packet, &blocks, syn)
    }
}

impl<'a> Alone<'a> {
    pub(super) fn new(seed: u64, capture: Option<&'a mut Capture>) -> Self {
        let mut dice = Dice::new(seed, "operations");
        let version = dice.pick(&[IpVersion::V4, IpVersion::V6]);
        let config = config(&mut dice, version);
        let mut peer = Peer {
            world: World::new(RandomStream::new(seed, "hostile", "connection")),
            counts: Counts::default(),
            capture,
            own: PEER,
            acknowledged: Seq::default(),
            highest: Seq::default(),
            clock: 0,
        };
        let initial = Seq::new(dice.bits() as u32);
        let tcp = if dice.one_in(4) {
            let mut syn = peer.honest(&config, Flags::SYN);
            syn.sequence = PEER;
            if dice.coin() {
                syn.flags = syn.flags.with(Flags::ECE).with(Flags::CWR);
            }
            let options = Self::offer(&mut dice);
            let reference = peer.insert(syn, &SackBlocks::default(), options);
            let mut cx = peer.world.cx();
            Connection::accept(&config, LOCAL, REMOTE, Port(0), initial, reference, &mut cx)
        } else {
            let mut cx = peer.world.cx();
            Connection::connect(&config, LOCAL, REMOTE, Port(0), initial, &mut cx)
        };
        let mut alone = Self {
            dice,
            elsewhere: Dice::new(seed, "elsewhere"),
            config,
            tcp,
            peer,
        };
        alone.tcp.set_sink(alone.dice.coin());
        alone
    }

    fn offer(dice: &mut Dice) -> SynOptions {
        SynOptions {
            maximum_segment_size: Some(dice.pick(&[1460, 536, 9000, 100])),
            window_scale: dice.coin().then_some(3),
            sack_permitted: !dice.one_in(4),
            ..SynOptions::default()
        }
    }

    fn draw(&mut self) -> Operation {
        let dice = &mut self.dice;
        match dice.below(42) {
            40 => Operation::Icmp(icmp(dice), dice.below(20_000) as u32),
            41 if dice.one_in(4) => Operation::KeepAlive(dice.coin().then(|| keep_alive(dice))),
            0..=3 => Operation::Write(dice.below(60_000)),
            4 => Operation::WriteMore(dice.below(5_000)),
            5 => match dice.below(5) {
                0 => Operation::Cork(dice.coin()),
                1 => Operation::Nagle(dice.coin()),
                2 => Operation::SendBuffer(dice.below(100_000)),
                3 => {
                    let short = Span::from_millis(dice.between(1, 60_000));
                    Operation::UserTimeout(dice.one_in(4).then_some(short))
                }
                _ => Operation::WriteRecord(dice.below(5_000)),
            },
            6..=7 => Operation::Read(dice.below(60_000)),
            8 if dice.one_in(8) => Operation::Close,
            8 if dice.one_in(16) => Operation::Abort,
            8 if dice.one_in(16) => Operation::Abandon,
            8..=11 => Operation::Wait(Span::from_millis(dice.below(500))),
            12 => Operation::Wait(Span::from_millis(dice.below(100_000))),
            13..=17 => Operation::Deadline,
            18 => Operation::SynAck,
            19..=28 => Operation::Honest {
                acknowledges: dice.below(30_000),
                data: if dice.coin() {
                    dice.below(3000) as u16
                } else {
                    0
                },
            },
            29..=33 => Operation::Sack {
                from: dice.below(30_000) as u32,
                length: dice.below(9000) as u32,
            },
            34..=35 => Operation::Window(dice.pick(&[0, 0, 1, 1000, u16::MAX])),
            _ => Operation::Segment,
        }
    }

    pub(super) fn run(mut self) -> Result<Counts, Failure> {
        let result = self.drive();
        result.map_err(|what| Failure {
            kind: Kind::Fraud,
            what: format!("{what}\n{:?}\n{:?}", self.tcp, self.config),
        })?;
        Ok(self.peer.counts)
    }

    fn drive(&mut self) -> Result<(), String> {
        self.check()?;
        // Most cases begin with a handshake.
        if !self.dice.one_in(8) {
            self.apply(Operation::SynAck)?;
            self.apply(Operation::Honest {
                acknowledges: 1,
                data: 0,
            })?;
        }
        for count in 0..self.dice.between(10, 300) {
            let operation = self.draw();
            self.apply(operation)
                .map_err(|what| format!("{what}, after operation {count}, {operation:?}"))?;
        }
        Ok(())
    }

    fn apply(&mut self, operation: Operation) -> Result<(), String> {
        self.peer.counts.events += 1;
        match operation {
            Operation::Write(bytes) => {
                self.tcp.write(bytes, &mut self.peer.world.cx());
                if self.elsewhere.one_in(4) {
                    self.tcp.note_nonblocking_write();
                }
                if self.elsewhere.one_in(4) {
                    self.tcp.poll_room();
                }
            }
            Operation::Read(bytes) => {
                self.tcp.read(bytes, &mut self.peer.world.cx());
            }
            Operation::WriteMore(bytes) => {
                self.tcp.write_more(bytes, &mut self.peer.world.cx());
            }
            Operation::WriteRecord(bytes) => {
                self.tcp.write_record(bytes, &mut self.peer.world.cx());
            }
            Operation::Cork(cork) => self.tcp.set_cork(cork, &mut self.peer.world.cx()),
            Operation::Nagle(nagle) => self.tcp.set_nagle(nagle, &mut self.peer.world.cx()),
            Operation::SendBuffer(bytes) => {
                if self.elsewhere.one_in(4) {
                    self.tcp.set_send_buffer(bytes);
                } else {
                    self.tcp.set_send_memory(bytes);
                }
                if self.elsewhere.coin() {
                    let low_water = self.elsewhere.between(0, 2 * bytes) as u32;
                    self.tcp.set_unsent_low_water(NonZeroU32::new(low_water));
                }
            }
            Operation::UserTimeout(timeout) => self.tcp.set_user_timeout(timeout),
            Operation::KeepAlive(keep_alive) => {
                self.tcp
                    .set_keep_alive(keep_alive, &mut self.peer.world.cx());
            }
            Operation::Icmp(error, below) => {
                let sequence = Seq::new(self.peer.highest.get().wrapping_sub(below));
                self.tcp.on_icmp(error, sequence, &mut self.peer.world.cx());
                // Another connection to the same host received this error about an unknown segment.
                if self.elsewhere.one_in(4) {
                    let least = least_mtu(self.config.ip_version);
                    self.tcp.limit_path(PathLimit {
                        mtu: self.elsewhere.between(least.into(), 2_000) as u32,
                        until: self.peer.world.now + self.elsewhere.millis(600_000),
                    });
                }
            }
            Operation::Abandon => self.tcp.abandon(&mut self.peer.world.cx()),
            Operation::Close => self.tcp.close(&mut self.peer.world.cx()),
            Operation::Abort => self.tcp.abort(&mut self.peer.world.cx()),
            Operation::Wait(span) => self.wait(self.peer.world.now + span)?,
            Operation::Deadline => {
                if let Some(at) = self.tcp.next_deadline() {
                    self.wait(at.max(self.peer.world.now))?;
                }
            }
            Operation::SynAck => {
                self.peer.acknowledged = self.peer.highest;
                let mut flags = Flags::SYN.with(Flags::ACK);
                if self.dice.coin() {
                    flags = flags.with(Flags::ECE);
                }
                let mut packet = self.peer.honest(&self.config, flags);
                packet.sequence = PEER;
                let options = Self::offer(&mut self.dice);
                self.arrives(packet, &SackBlocks::default(), options);
            }
            Operation::Honest { acknowledges, data } => {
                let outstanding = self.peer.highest - self.peer.acknowledged;
                self.peer.acknowledged += outstanding.min(acknowledges as u32);
                let mut packet = self.peer.honest(&self.config, Flags::ACK);
                packet.payload_length = data;
                self.arrives(packet, &SackBlocks::default(), SynOptions::default());
            }
            Operation::Sack { from, length } => {
                let packet = self.peer.honest(&self.config, Flags::ACK);
                let start = self.peer.acknowledged + from;
                let end = start + length;
                let blocks = [SackBlock { start, end }].into_iter().collect();
                self.arrives(packet, &blocks, SynOptions::default());
            }
            Operation::Window(window) => {
                let mut packet = self.peer.honest(&self.config, Flags::ACK);
                packet.window = window;
                self.arrives(packet, &SackBlocks::default(), SynOptions::default());
            }
            Operation::Segment => {
                let version = self.config.ip_version;
                let reference = self.peer.segment(&mut self.dice, version);
                let record = self.peer.world.packets.get_mut(reference);
                // Data on a SYN are the beginning of the stream.
                if self.tcp.state() != State::SynSent {
                    record.payload_offset = self.tcp.offset_of(record.sequence);
                }
                self.tcp.on_packet(reference, &mut self.peer.world.cx());
            }
        }
        self.check()
    }

    fn arrives(&mut self, mut packet: Packet, blocks: &SackBlocks, syn: SynOptions) {
        packet.payload_offset = self.tcp.offset_of(packet.sequence);
        let reference = self.peer.insert(packet, blocks, syn);
        self.tcp.on_packet(reference, &mut self.peer.world.cx());
    }

    fn wait(&mut self, end: Time) -> Result<(), String> {
        let mut calls_at_one_time = 0;
        for _ in 0..10_000 {
            let Some(at) = self.tcp.next_deadline().filter(|&at| at <= end) else {
                break;
            };
            calls_at_one_time = if at <= self.peer.world.now {
                calls_at_one_time + 1
            } else {
                0
            };
            if calls_at_one_time > 100 {
                return Err("it wants to run again and again at the same time".to_owned());
            }
            self.peer.world.now = self.peer.world.now.max(at);
            self.peer.counts.events += 1;
            self.tcp.on_deadline(&mut self.peer.world.cx());
            self.check()?;
        }
        self.peer.world.now = self.peer.world.now.max(end);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let sent = self.peer.drain();
        // A send buffer of small segments, and acknowledgments.
        if sent > 10_000 {
            return Err(format!("{sent} packets at once"));
        }
        if self.peer.world.packets.held() > 0 {
            return Err("a packet was kept".to_owned());
        }
        let _ = self.tcp.take_events();
        if self.tcp.state() == State::Closed && self.tcp.next_deadline().is_some() {
            return Err("a deadline of a connection that is no more".to_owned());
        }
        check(&self.tcp, self.config.maximum_stored(), self.peer.world.now)
    }
}
