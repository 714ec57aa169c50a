//! A host with our TCP that receives real packets.
//!
//! It wraps [`bentpipe_host::Host`] and handles what a simulated host never receives: packets from
//! impossible addresses, malformed segments, and ICMP.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};

use bentpipe_host::{Host, InitialSequences, Limits, Remote, Secret};
use bentpipe_tcp::Rings;
use bentpipe_types::{
    Agent, Ctx, DropReason, Endpoint, Gauge, Holdings, IcmpError, Packet, PacketRef, PacketStore,
    Port, Routes, Seq, StreamCheck, Time,
};
use bentpipe_wire::checksum::update_u16;
use bentpipe_wire::{Addressing, NodeAddresses, SegmentError};

/// IANA protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMP_V6: u8 = 58;

/// Types of ICMP messages (RFC 792, RFC 4443 section 4).
const ECHO_V4: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];

/// A host with our TCP, as a node of a network that receives real packets.
#[derive(Debug)]
pub struct LiveHost {
    host: Host<Rings>,
    /// Packets from a source address that is not unicast.
    martian: u64,
    /// TCP packets that are malformed or have a wrong checksum.
    malformed: u64,
    icmp_errors: u64,
    echoes: u64,
}

impl LiveHost {
    /// Creates a host without applications. Its initial sequence numbers cannot be predicted (RFC
    /// 6528 section 3).
    ///
    /// # Errors
    /// Without `/dev/urandom`.
    pub fn new(limits: Limits) -> io::Result<Self> {
        Ok(Self::with_secret(limits, secret()?))
    }

    /// Creates a host without applications that uses this secret.
    #[must_use]
    pub fn with_secret(limits: Limits, secret: Secret) -> Self {
        Self {
            host: Host::new(limits, InitialSequences::Secret(secret)),
            martian: 0,
            malformed: 0,
            icmp_errors: 0,
            echoes: 0,
        }
    }

    /// Returns the host, to add applications or to listen.
    pub fn host_mut(&mut self) -> &mut Host<Rings> {
        &mut self.host
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> &Host<Rings> {
        &self.host
    }

    /// Handles a packet that is no TCP segment.
    fn on_datagram(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if let Some(error) = ConnectionIcmpError::read(packet, cx.packets) {
            self.icmp_errors += 1;
            cx.packets.release(packet);
            let ConnectionIcmpError {
                local_port,
                remote,
                error,
                sequence,
            } = error;
            self.host.on_icmp(local_port, remote, error, sequence, cx);
        } else if let Some(reply) = echo_reply(packet, cx.packets) {
            self.echoes += 1;
            cx.packets.release(packet);
            cx.emit(from, reply);
        } else if cx.packets.get(packet).protocol() == TCP {
            self.malformed += 1;
            cx.discard(packet, DropReason::Malformed);
        } else {
            self.host.on_packet(from, packet, cx);
        }
    }
}

impl Agent for LiveHost {
    fn routes(&mut self, routes: Routes) {
        self.host.routes(routes);
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if let Some((source, destination)) = cx.packets.ip(packet)
            && (!is_unicast(source) || source == destination)
        {
            self.martian += 1;
            cx.discard(packet, DropReason::Malformed);
        } else if cx.packets.get(packet).is_tcp() {
            self.host.on_packet(from, packet, cx);
        } else {
            self.on_datagram(from, packet, cx);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.host.on_deadline(cx);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.host.next_deadline()
    }

    fn holdings(&self) -> Holdings {
        self.host.holdings()
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.host.counters(visit);
        visit("martian", self.martian);
        visit("malformed", self.malformed);
        visit("icmp_errors", self.icmp_errors);
        visit("echoes", self.echoes);
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.host.gauges()
    }

    fn gauge(&self, index: usize) -> f64 {
        self.host.gauge(index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.host.stream_check()
    }

    fn is_quiet(&self) -> bool {
        self.host.is_quiet()
    }
}

/// Content of an ICMP error about a connection of this host.
struct ConnectionIcmpError {
    local_port: u16,
    remote: Remote,
    error: IcmpError,
    sequence: Seq,
}

impl ConnectionIcmpError {
    /// Reads an ICMP error: from the bytes of a real packet, or from the record of one that a
    /// simulated router sent, which refers to nodes.
    fn read(packet: PacketRef, packets: &PacketStore) -> Option<Self> {
        let record = packets.get(packet);
        if let Some(bytes) = packets.bytes(packet) {
            if !matches!(record.protocol(), ICMP | ICMP_V6) {
                return None;
            }
            let SegmentError {
                error,
                source,
                destination,
                sequence,
            } = SegmentError::read(bytes)?;
            let between = (source.ip(), destination.ip());
            return Some(Self {
                local_port: source.port(),
                remote: remote(record.source, destination, between),
                error,
                sequence,
            });
        }
        let quote = record.icmp_quote()?;
        let ip = |end: Endpoint| NodeAddresses.ip_address(end.address, record.ip_version());
        let between = (ip(quote.source)?, ip(quote.destination)?);
        Some(Self {
            local_port: quote.source.port,
            remote: Remote {
                endpoint: quote.destination,
                ip: Some(between),
            },
            error: quote.error,
            sequence: quote.sequence,
        })
    }
}

/// Identifies a peer by real addresses, since several peers may be behind one node.
fn remote(through: Endpoint, to: SocketAddr, between: (IpAddr, IpAddr)) -> Remote {
    Remote {
        endpoint: Endpoint {
            address: through.address,
            port: to.port(),
        },
        ip: Some(between),
    }
}

/// Returns the reply to an echo request (RFC 1122 section 3.2.2.6, RFC 4443 section 4.2), or `None`
/// for any other packet.
fn echo_reply(packet: PacketRef, packets: &mut PacketStore) -> Option<PacketRef> {
    let record = *packets.get(packet);
    let [request, reply] = match record.protocol() {
        ICMP => ECHO_V4,
        ICMP_V6 => ECHO_V6,
        _ => return None,
    };
    let ip = packets.ip(packet)?;
    let mut message = packets.payload(packet)?.to_vec();
    let [kind, code, ..] = *message.first_chunk::<8>()?;
    if [kind, code] != [request, 0] {
        return None;
    }
    message[0] = reply;
    let sum = u16::from_be_bytes([message[2], message[3]]);
    let word = |kind: u8| u16::from_be_bytes([kind, 0]);
    // The addresses are swapped, which leaves their sum (part of ICMPv6's checksum) unchanged.
    let sum = update_u16(sum, word(request), word(reply));
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let (here, there) = (record.destination, record.source);
    let mut answer = Packet::datagram(here, there, record.ip_version(), record.protocol());
    answer.payload_length = record.payload_length;
    let answer = packets.insert(answer);
    packets.set_payload(answer, |payload| payload.copy_from_slice(&message));
    packets.set_ip(answer, (ip.1, ip.0));
    Some(answer)
}

/// Whether an address is permitted as a source address (RFC 1122 sections 3.2.1.3 and 4.2.3.10).
fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified()),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    }
}

/// Returns a secret for initial sequence numbers, from the operating system's randomness.
///
/// # Errors
/// Without `/dev/urandom`.
pub fn secret() -> io::Result<Secret> {
    let mut bytes = [[0; 8]; 2];
    let mut source = File::open("/dev/urandom")?;
    for key in &mut bytes {
        source.read_exact(key)?;
    }
    Ok(Secret(bytes.map(u64::from_ne_bytes)))
}

#[cfg(test)]
mod tests;
