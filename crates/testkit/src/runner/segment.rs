//! Conversion of segments between the script's numbers and the connection's.

use bentpipe_tcp::State;
use bentpipe_types::{
    Ecn, Endpoint, FastOpen, Flags, IpVersion, Packet, PacketRef, PacketStore, SackBlock,
    SackBlocks, Seq, SynOptions, Time,
};
use bentpipe_wire::{Encoder, NodeAddresses, parse};

use super::ends::{INITIAL_SEQUENCE, LOCAL, REMOTE, SERVICE};
use super::{Problem, Runner};
use crate::script::{EcnSpec, OptionSpec, PacketSpec};

/// The connection that the script is about; packetdrill has one at a time.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) local: u16,
    pub(super) remote: u16,
    pub(super) version: IpVersion,
    /// The peer's initial sequence number.
    remote_initial: u32,
    /// Initial sequence number that the script assigns to our SYN.
    script_initial: u32,
    /// Our first timestamp: the script's value and the actual one.
    first_timestamp: Option<(u32, u32)>,
    /// Our timestamps: the script's values and the actual ones.
    timestamps: Vec<(u32, u32)>,
    pub(super) exists: bool,
    /// Whether another socket listens by now.
    pub(super) is_over: bool,
}

impl Flow {
    pub(super) fn new(version: IpVersion) -> Self {
        Self {
            local: SERVICE,
            remote: 50_000,
            version,
            remote_initial: 0,
            script_initial: 0,
            first_timestamp: None,
            timestamps: Vec::new(),
            exists: false,
            is_over: false,
        }
    }

    /// Replaces it by a new connection.
    pub(super) fn renew(&mut self, local: u16, remote: u16) {
        *self = Self {
            local,
            remote,
            exists: true,
            ..Self::new(self.version)
        };
    }

    /// Returns one of our timestamps in the script's numbers.
    fn script_timestamp(&mut self, real: u32, script: u32) -> u32 {
        let (first_script, first) = *self.first_timestamp.get_or_insert((script, real));
        // Only recent timestamps can be echoed.
        if self.timestamps.len() >= 4096 {
            self.timestamps.remove(0);
        }
        self.timestamps.push((script, real));
        first_script.wrapping_add(real.wrapping_sub(first))
    }
}

/// A segment sent by the host, as on the wire.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) ecn: Ecn,
    pub(super) flags: Flags,
    pub(super) sequence: Seq,
    pub(super) acknowledgment: Seq,
    pub(super) window: u16,
    pub(super) length: u32,
    pub(super) options: Vec<OptionSpec>,
    /// Number of segments merged in it.
    pub(super) segments: u32,
}

impl Sent {
    /// Parses a packet from its encoding by `wire`.
    pub(super) fn read(
        packets: &PacketStore,
        reference: PacketRef,
        at: Time,
    ) -> Result<Self, Problem> {
        let mut bytes = Vec::new();
        let record = packets.get(reference);
        Encoder::new(NodeAddresses)
            .encode(packets, reference, &mut bytes)
            .map_err(|e| Problem::wrong("a packet that can be sent", e.to_string()))?;
        let parsed = parse(&bytes)
            .map_err(|e| Problem::wrong("a packet that can be read", e.to_string()))?;
        let tcp = parsed.tcp;
        let ip = usize::from(record.ip_version().header_length());
        let data = ip + usize::from(bytes[ip + 12] >> 4) * 4;
        Ok(Self {
            at,
            source: tcp.source_port,
            destination: tcp.destination_port,
            ecn: record.ecn(),
            flags: tcp.flags,
            sequence: tcp.sequence,
            acknowledgment: tcp.acknowledgment,
            window: tcp.window,
            length: (bytes.len() - data) as u32,
            options: options(&bytes[ip + 20..data]),
            segments: 1,
        })
    }
}

/// Parses the options of a header up to the first malformed one.
fn options(mut bytes: &[u8]) -> Vec<OptionSpec> {
    let number = |b: &[u8]| b.iter().fold(0_u32, |n, &byte| n << 8 | u32::from(byte));
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        let (option, length) = match (*kind, rest) {
            (0, _) => (OptionSpec::End, 1),
            (1, _) => (OptionSpec::Nop, 1),
            (_, [length, rest @ ..]) if (2..=rest.len() + 2).contains(&usize::from(*length)) => {
                let body = &rest[..usize::from(*length) - 2];
                let option = match (*kind, body.len()) {
                    (2, 2) => OptionSpec::MaximumSegmentSize(number(body) as u16),
                    (3, 1) => OptionSpec::WindowScale(body[0]),
                    (4, 0) => OptionSpec::SackPermitted,
                    (5, _) => {
                        let block = |b: &[u8]| (number(&b[..4]), number(&b[4..]));
                        OptionSpec::Sack(body.chunks_exact(8).map(block).collect())
                    }
                    (8, 8) => OptionSpec::Timestamps(number(&body[..4]), number(&body[4..])),
                    (19, _) => OptionSpec::Md5(body.to_vec()),
                    (34, _) => OptionSpec::FastOpen(body.to_vec()),
                    (254, 2..) if body.starts_with(&[0xf9, 0x89]) => {
                        OptionSpec::FastOpenExperimental(body[2..].to_vec())
                    }
                    _ => OptionSpec::FastOpenExperimental(bytes.to_vec()),
                };
                (option, usize::from(*length))
            }
            _ => break,
        };
        options.push(option);
        bytes = &bytes[length..];
    }
    options
}

impl Runner {
    /// Converts a sent segment to the script's numbers. `spec` is the expected segment.
    pub(super) fn in_script(&mut self, sent: &Sent, spec: &PacketSpec) -> Sent {
        let flow = &mut self.flow;
        let syn = sent.flags.has(Flags::SYN);
        let mut shown = sent.clone();
        let ours = if syn { flow.script_initial } else { 0 };
        let relative = |n: Seq| Seq::new(n - INITIAL_SEQUENCE);
        shown.sequence = relative(sent.sequence) + ours;
        if sent.flags == Flags::RST.with(Flags::ACK) && sent.sequence.get() == 0 {
            // The answer to a segment without ACK: RFC 9293 section 3.10.7.1.
            shown.sequence = sent.sequence;
        }
        let theirs = if syn { 0 } else { flow.remote_initial };
        if sent.flags.has(Flags::ACK) {
            shown.acknowledgment = sent.acknowledgment - theirs;
        }
        let script_value = spec.options.iter().flatten().find_map(|o| match o {
            OptionSpec::Timestamps(value, _) => Some(*value),
            _ => None,
        });
        for option in &mut shown.options {
            match option {
                OptionSpec::Sack(blocks) => {
                    for (start, end) in blocks {
                        *start = start.wrapping_sub(flow.remote_initial);
                        *end = end.wrapping_sub(flow.remote_initial);
                    }
                }
                OptionSpec::Timestamps(value, _) => {
                    if let Some(script) = script_value {
                        *value = flow.script_timestamp(*value, script);
                    }
                }
                _ => {}
            }
        }
        shown
    }

    /// Sets our initial sequence number from a SYN that the script expects.
    pub(super) fn expect_syn(&mut self, spec: &PacketSpec) {
        if spec.flags.has(Flags::SYN) {
            self.flow.script_initial = spec.sequence;
        }
    }

    /// Delivers a segment to the host.
    pub(super) fn inject(&mut self, spec: &PacketSpec) -> Result<(), Problem> {
        let syn = spec.flags.has(Flags::SYN);
        let acknowledges = spec.flags.has(Flags::ACK);
        let (local, remote) = (self.flow.local, self.flow.remote);
        let alive = self.flow.exists
            && !self.flow.is_over
            && self
                .host
                .between(local, remote)
                .is_some_and(|conversation| {
                    let state = self.host.connection(conversation).state();
                    state != State::TimeWait
                });
        if syn && !acknowledges && !alive && self.host.listens() {
            let next = if self.flow.exists {
                remote.max(50_000) + 1
            } else {
                remote
            };
            self.flow.renew(SERVICE, next);
        }
        let opening = self.current().is_none_or(|conversation| {
            let state = self.host.connection(conversation).state();
            matches!(state, State::SynSent | State::Closed)
        });
        if syn && opening {
            self.flow.remote_initial = spec.sequence;
        }
        let reference = self.build(spec)?;
        self.host.receive(reference);
        self.after_host()
    }

    fn build(&mut self, spec: &PacketSpec) -> Result<PacketRef, Problem> {
        let flow = &self.flow;
        let syn = spec.flags.has(Flags::SYN);
        let (remote, local) = spec.ports.unwrap_or((flow.remote, flow.local));
        let source = Endpoint {
            address: REMOTE,
            port: remote,
        };
        let destination = Endpoint {
            address: LOCAL,
            port: local,
        };
        let mut packet = Packet::new(source, destination, flow.version);
        let offset = if syn { 0 } else { flow.remote_initial };
        packet.sequence = Seq::new(spec.sequence.wrapping_add(offset));
        packet.flags = spec.flags;
        if spec.flags.has(Flags::ACK) {
            let ours = if syn { flow.script_initial } else { 0 };
            packet.acknowledgment = INITIAL_SEQUENCE + spec.acknowledgment.wrapping_sub(ours);
        }
        packet.window = spec.window.unwrap_or(0);
        packet.payload_length = spec.length;
        // The sequence number alone determines the stream offset.
        let first = spec
            .sequence
            .wrapping_sub(if syn { spec.sequence } else { 1 });
        packet.payload_offset = u64::from(first);
        if let EcnSpec::Is(ecn) = spec.ecn {
            packet.set_ecn(ecn);
        }
        let mut syn_options = SynOptions::default();
        let mut blocks = SackBlocks::default();
        for option in spec.options.iter().flatten() {
            match option {
                OptionSpec::Nop | OptionSpec::End | OptionSpec::Md5(_) => {}
                OptionSpec::MaximumSegmentSize(size) => {
                    syn_options.maximum_segment_size = Some(*size);
                }
                OptionSpec::WindowScale(shift) => syn_options.window_scale = Some(*shift),
                OptionSpec::SackPermitted => syn_options.sack_permitted = true,
                OptionSpec::Sack(all) => {
                    for (start, end) in all {
                        blocks.push(SackBlock {
                            start: INITIAL_SEQUENCE + *start,
                            end: INITIAL_SEQUENCE + *end,
                        });
                    }
                }
                OptionSpec::Timestamps(value, echo) => {
                    let echo = if spec.flags.has(Flags::ACK) {
                        self.echo(*echo)?
                    } else {
                        *echo
                    };
                    packet.set_timestamps(*value, echo);
                    packet.header_length += 12;
                }
                OptionSpec::FastOpen(cookie) => {
                    syn_options.fast_open = FastOpen::new(cookie, false);
                }
                OptionSpec::FastOpenExperimental(cookie) => {
                    syn_options.fast_open = FastOpen::new(cookie, true);
                }
            }
        }
        let reference = self.host.world.packets.insert(packet);
        if syn_options != SynOptions::default() {
            self.host
                .world
                .packets
                .set_syn_options(reference, syn_options);
        }
        if !blocks.as_slice().is_empty() {
            self.host.world.packets.set_sack_blocks(reference, &blocks);
        }
        Ok(reference)
    }

    /// Returns our timestamp that the script echoes.
    fn echo(&self, script: u32) -> Result<u32, Problem> {
        let known = self.flow.timestamps.iter().rev();
        if let Some((_, real)) = known.into_iter().find(|(s, _)| *s == script) {
            return Ok(*real);
        }
        match self.flow.first_timestamp {
            Some((first_script, first)) if self.setup.scale_echoes => {
                Ok(first.wrapping_add(script.wrapping_sub(first_script)))
            }
            _ => Err(Problem::wrong(
                format!("a timestamp {script} of ours to echo"),
                "no segment of ours with it",
            )),
        }
    }
}
