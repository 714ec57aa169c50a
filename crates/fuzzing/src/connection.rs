//! Fuzzes a connection with any sequence of calls by its application, segments of a peer that may
//! misbehave, and time.

use std::cmp::min;

use arbitrary::Arbitrary;
use bentpipe_tcp::congestion::WindowRule;
use bentpipe_tcp::{
    AvoidanceKind, Config, Connection, IdleRestart, NewRenoKind, PacingKind, QuickAcks,
    RecoveryKind, RtoRule, SlowStartKind, State,
};
use bentpipe_types::{
    Address, BitRate, Endpoint, Flags, IpVersion, Packet, Port, RandomStream, SackBlock,
    SackBlocks, Seq, Span, SynOptions, Time, World,
};

/// Settings, the SYN of a passive open, and operations.
#[derive(Arbitrary, Debug)]
pub struct Input {
    settings: Settings,
    passive: Option<Segment>,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
struct Settings {
    mss: u16,
    initial_window: u8,
    threshold: Option<u16>,
    send_buffer: u32,
    receive_buffer: u32,
    rule: u8,
    recovery: u8,
    slow_start: u8,
    pacing: u8,
    rate: u32,
    delayed_ack: Option<u8>,
    quick_acks: u8,
    switches: u16,
    initial: u32,
    sink: bool,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Write(u16),
    Read(u16),
    Close,
    Abort,
    /// Milliseconds to advance.
    Wait(u16),
    /// Advances to the connection's next deadline.
    Deadline,
    /// A valid acknowledgment of more bytes, with data.
    Valid {
        acknowledges: u16,
        data: u16,
    },
    /// A valid SYN+ACK.
    SynAck,
    /// An acknowledgment with a SACK block of `length` bytes at a distance of `from` bytes.
    Sack {
        from: u16,
        length: u16,
    },
    /// An arbitrary segment.
    Segment(Segment),
}

#[derive(Arbitrary, Debug)]
struct Segment {
    sequence: SequencePosition,
    acknowledgment: SequencePosition,
    flags: u8,
    window: u16,
    length: u16,
    timestamps: Option<(i16, i16)>,
    blocks: [Option<(SequencePosition, u16)>; 4],
    syn: Option<(Option<u16>, Option<u8>, bool)>,
}

/// A sequence number near the expected one, or anywhere.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum SequencePosition {
    Right,
    Near(i16),
    Anywhere(u32),
}

/// The peer of the connection, and the network between them.
struct Peer {
    world: World,
    /// The peer's state: its next sequence number, the connection's SND.UNA and SND.NXT, and its
    /// last timestamp.
    expected: Seq,
    acknowledged: Seq,
    highest: Seq,
    timestamp: u32,
    emitted: usize,
}

impl Peer {
    /// Takes the packets that the connection sent and updates the peer's state.
    fn drain(&mut self) {
        for (_, reference) in self.world.outbox.drain(..) {
            let packet = *self.world.packets.get(reference);
            self.world.packets.release(reference);
            self.emitted += 1;
            if packet.flags.has(Flags::RST) {
                continue;
            }
            if packet.flags.has(Flags::SYN) {
                self.highest = packet.sequence_end();
                self.acknowledged = packet.sequence;
            }
            self.highest = self.highest.latest(packet.sequence_end());
            if packet.flags.has(Flags::ACK) {
                self.expected = packet.acknowledgment;
            }
            if let Some((value, _)) = packet.timestamps() {
                self.timestamp = value;
            }
        }
        assert_eq!(self.world.packets.held(), 0, "a packet was kept");
    }

    fn at(&self, position: SequencePosition, right: Seq) -> Seq {
        match position {
            SequencePosition::Right => right,
            SequencePosition::Near(distance) => {
                Seq::new(right.get().wrapping_add_signed(distance.into()))
            }
            SequencePosition::Anywhere(number) => Seq::new(number),
        }
    }
}

const LOCAL: Endpoint = Endpoint {
    address: Address(1),
    port: 1,
};
const REMOTE: Endpoint = Endpoint {
    address: Address(2),
    port: 2,
};

fn config(settings: &Settings) -> Config {
    let on = |bit: u32| settings.switches >> bit & 1 == 1;
    let rate = BitRate::new(u64::from(settings.rate).max(1000));
    Config {
        mss: settings.mss.clamp(48, 9000),
        initial_window: settings.initial_window.into(),
        initial_slow_start_threshold: settings.threshold.map(Into::into),
        send_buffer: u64::from(settings.send_buffer % 300_000),
        receive_buffer: u64::from(settings.receive_buffer % 300_000),
        window_scaling: on(0),
        timestamps: on(1),
        sack: on(2),
        delayed_ack: settings.delayed_ack.map(|ms| Span::from_millis(ms.into())),
        quick_acks: QuickAcks::First(settings.quick_acks.into()),
        nagle: on(3),
        rto_rule: if on(4) {
            RtoRule::Linux
        } else {
            RtoRule::Rfc6298
        },
        limited_transmit: on(5),
        congestion_control: {
            let rules = WindowRule::ALL;
            rules[usize::from(settings.rule) % rules.len()].into()
        },
        channel_capacity: rate,
        pacing: match (settings.pacing % 4, rate) {
            (0, _) => PacingKind::AsRule,
            (1, _) => PacingKind::Off,
            (2, Some(rate)) => PacingKind::AtMost(rate),
            _ => PacingKind::On,
        },
        recovery: RecoveryKind::ALL[usize::from(settings.recovery) % RecoveryKind::ALL.len()],
        proportional_rate_reduction: on(6),
        rack: on(7),
        tail_loss_probe: on(8),
        f_rto: on(9),
        undo: on(10),
        newreno: NewRenoKind::ALL[usize::from(!on(11))],
        slow_start: match settings.slow_start % 3 {
            0 => SlowStartKind::Standard,
            1 => SlowStartKind::HyStart { limit_segments: 8 },
            _ => SlowStartKind::AppropriateByteCounting { limit_segments: 2 },
        },
        avoidance: if on(12) {
            AvoidanceKind::PerAcknowledgment
        } else {
            AvoidanceKind::ByteCounting
        },
        window_validation: on(13),
        idle_restart: match settings.switches >> 14 {
            0 => IdleRestart::Off,
            1 => IdleRestart::RestartWindow,
            _ => IdleRestart::Decay,
        },
        ..Config::default()
    }
}

fn packet(peer: &mut Peer, segment: &Segment) -> bentpipe_types::PacketRef {
    let mut packet = Packet::new(REMOTE, LOCAL, IpVersion::V4);
    packet.sequence = peer.at(segment.sequence, peer.expected);
    packet.acknowledgment = peer.at(segment.acknowledgment, peer.highest);
    packet.flags = Flags(segment.flags);
    packet.window = segment.window;
    packet.payload_length = min(segment.length, 9000);
    if let Some((value, echo)) = segment.timestamps {
        packet.set_timestamps(
            1000_u32.wrapping_add_signed(value.into()),
            peer.timestamp.wrapping_add_signed(echo.into()),
        );
    }
    let blocks: SackBlocks = segment
        .blocks
        .iter()
        .flatten()
        .map(|&(start, length)| {
            let start = peer.at(start, peer.acknowledged);
            SackBlock {
                start,
                end: start + u32::from(length),
            }
        })
        .collect();
    let reference = peer.world.packets.insert(packet);
    if let Some((mss, scale, sack)) = segment.syn {
        let options = SynOptions {
            maximum_segment_size: mss,
            window_scale: scale,
            sack_permitted: sack,
            ..SynOptions::default()
        };
        peer.world.packets.set_syn_options(reference, options);
    }
    if !blocks.as_slice().is_empty() {
        peer.world.packets.set_sack_blocks(reference, &blocks);
    }
    reference
}

fn valid_packet(peer: &Peer, timestamps: bool, flags: Flags) -> Packet {
    let mut packet = Packet::new(REMOTE, LOCAL, IpVersion::V4);
    packet.sequence = peer.expected;
    packet.acknowledgment = peer.acknowledged;
    packet.flags = flags;
    packet.window = 60_000;
    if timestamps {
        let value = 1000 + (peer.world.now.as_nanos() / 1_000_000) as u32;
        packet.set_timestamps(value, peer.timestamp);
    }
    packet
}

/// Runs the connection at its deadlines until `end`.
fn wait(connection: &mut Connection, peer: &mut Peer, end: Time) {
    let mut idle = 0;
    for _ in 0..2000 {
        let Some(deadline) = connection.next_deadline().filter(|at| *at <= end) else {
            break;
        };
        idle = if deadline <= peer.world.now {
            idle + 1
        } else {
            0
        };
        assert!(
            idle < 100,
            "it wants to run again and again, at the same time"
        );
        peer.world.now = peer.world.now.max(deadline);
        connection.on_deadline(&mut peer.world.cx());
        check(connection, peer);
    }
    peer.world.now = peer.world.now.max(end);
}

fn check(connection: &Connection, peer: &mut Peer) {
    let emitted = peer.world.outbox.len();
    // The send buffer in the smallest segments, with retransmissions and acknowledgments.
    assert!(emitted < 20_000, "{emitted} packets at once");
    peer.drain();
    let window = connection.congestion_window();
    assert!(
        window >= u64::from(connection.segment_size()),
        "window {window}"
    );
    assert!(window < 1 << 50, "window {window}");
    let (acknowledged, sent) = (connection.acknowledged_offset(), connection.sent_offset());
    assert!(acknowledged <= sent && sent <= connection.written_offset());
    // NewReno counts bytes that the deflation of the window holds back (RFC 6582 section 3.2 step
    // 3) as in flight, so that the count may exceed the bytes sent.
    assert!(connection.in_flight() < 1 << 40);
    assert!(connection.readable() <= 300_000 + 9000);
    let state = connection.state();
    let owes = connection.written_offset() > acknowledged && state.is_synchronized();
    assert!(
        !owes || state == State::TimeWait || connection.next_deadline().is_some(),
        "asleep with data to send: {connection:?}"
    );
    assert_eq!(connection.statistics().payload_mismatches, 0);
}

/// Performs the operations of `input`.
///
/// # Panics
/// If the connection breaks a rule of the target.
pub fn run(input: &Input) {
    let config = config(&input.settings);
    let mut peer = Peer {
        world: World::new(RandomStream::new(1, "fuzz", "connection")),
        expected: Seq::new(7_000),
        acknowledged: Seq::default(),
        highest: Seq::default(),
        timestamp: 0,
        emitted: 0,
    };
    let initial = Seq::new(input.settings.initial);
    let mut connection = match &input.passive {
        None => Connection::connect(
            &config,
            LOCAL,
            REMOTE,
            Port(0),
            initial,
            &mut peer.world.cx(),
        ),
        Some(syn) => {
            let reference = packet(&mut peer, syn);
            let mut cx = peer.world.cx();
            Connection::accept(&config, LOCAL, REMOTE, Port(0), initial, reference, &mut cx)
        }
    };
    connection.set_sink(input.settings.sink);
    check(&connection, &mut peer);
    for operation in input.operations.iter().take(300) {
        match *operation {
            Operation::Write(bytes) => {
                connection.write(bytes.into(), &mut peer.world.cx());
            }
            Operation::Read(bytes) => {
                connection.read(bytes.into(), &mut peer.world.cx());
            }
            Operation::Close => connection.close(&mut peer.world.cx()),
            Operation::Abort => connection.abort(&mut peer.world.cx()),
            Operation::Wait(ms) => {
                let end = peer.world.now + Span::from_millis(ms.into());
                wait(&mut connection, &mut peer, end);
            }
            Operation::Deadline => {
                if let Some(at) = connection.next_deadline() {
                    let end = at.max(peer.world.now);
                    wait(&mut connection, &mut peer, end);
                }
            }
            Operation::SynAck => {
                peer.acknowledged = peer.highest;
                let mut packet =
                    valid_packet(&peer, config.timestamps, Flags::SYN.with(Flags::ACK));
                packet.sequence = Seq::new(7_000);
                let reference = peer.world.packets.insert(packet);
                let options = SynOptions {
                    maximum_segment_size: Some(1460),
                    window_scale: Some(3),
                    sack_permitted: true,
                    ..SynOptions::default()
                };
                peer.world.packets.set_syn_options(reference, options);
                connection.on_packet(reference, &mut peer.world.cx());
            }
            Operation::Valid { acknowledges, data } => {
                let outstanding = peer.highest - peer.acknowledged;
                peer.acknowledged += min(u32::from(acknowledges), outstanding);
                let mut packet = valid_packet(&peer, config.timestamps, Flags::ACK);
                packet.payload_length = min(data, 9000);
                packet.payload_offset = connection.offset_of(packet.sequence);
                let reference = peer.world.packets.insert(packet);
                connection.on_packet(reference, &mut peer.world.cx());
            }
            Operation::Sack { from, length } => {
                let packet = valid_packet(&peer, config.timestamps, Flags::ACK);
                let reference = peer.world.packets.insert(packet);
                let start = peer.acknowledged + u32::from(from);
                let block = SackBlock {
                    start,
                    end: start + u32::from(length),
                };
                let blocks = [block].into_iter().collect();
                peer.world.packets.set_sack_blocks(reference, &blocks);
                connection.on_packet(reference, &mut peer.world.cx());
            }
            Operation::Segment(ref segment) => {
                let reference = packet(&mut peer, segment);
                let record = peer.world.packets.get_mut(reference);
                // Data on a SYN begins after the SYN, which has the first sequence number.
                record.payload_offset = if record.flags.has(Flags::SYN) {
                    0
                } else {
                    connection.offset_of(record.sequence)
                };
                let before = connection.delivered_offset();
                let accepted = connection.on_packet_accepting(reference, &mut peer.world.cx());
                if let Some(accepted) = accepted {
                    // Bounded by the receive buffer and by the segment.
                    let end = accepted.offset + u64::from(accepted.length);
                    assert!(accepted.offset >= before);
                    assert!(end <= before + config.receive_buffer + 1);
                    assert!(accepted.skip + accepted.length <= u32::from(segment.length));
                }
            }
        }
        let _ = connection.take_events();
        check(&connection, &mut peer);
    }
    assert!(peer.emitted < 5_000_000);
}
