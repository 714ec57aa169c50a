//! Resets the connections that a killed process has left behind.
//!
//! Their hosts wait for data that was lost with the process, possibly for ever. Each is sent a
//! segment outside its window. It answers with an acknowledgment (RFC 9293 section 3.10.7.4), which
//! shows the sequence number that it expects, and is reset with that number. Segments that hosts
//! send by themselves are answered in the same way.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, Write};
use std::net::{IpAddr, SocketAddr};

use bentpipe_types::{Span, Time};
use bentpipe_wire::checksum::checksum;
use bentpipe_wire::set_tcp_checksum;
use rustc_hash::FxHashMap;
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::journal::Ends;

/// Probes sent at once, so that they do not fill queues.
const PROBES_AT_ONCE: usize = 200;
/// Number of probes to a host that does not answer, and the interval.
const PROBES: u8 = 3;
const PROBE_INTERVAL: Span = Span::from_secs(1);
/// Time after which hosts that have sent nothing are left to themselves.
const LIFETIME: Span = Span::from_secs(120);

/// IANA protocol number.
const TCP: u8 = 6;

// TCP's flags.
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Connections of a killed process whose hosts have yet to be reset.
#[derive(Debug)]
pub(super) struct OldConnections {
    /// Which hosts have been reset, by the ends of the connection.
    connections: FxHashMap<Ends, [bool; 2]>,
    /// Probes to be sent: time, connection, which end sends, and number.
    probes: VecDeque<(Time, Ends, usize, u8)>,
    /// A TUN device, whose packets the kernel routes.
    device: File,
    last: Time,
}

/// A TCP segment on the wire.
struct Segment {
    source: SocketAddr,
    destination: SocketAddr,
    acknowledgment: u32,
    flags: u8,
}

fn segment(packet: &[u8]) -> Option<Segment> {
    let (source, destination, at): (IpAddr, IpAddr, usize) = match packet.first()? >> 4 {
        4 if *packet.get(9)? == TCP => {
            let ip = |at: usize| Some(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?.into());
            (ip(12)?, ip(16)?, usize::from(packet[0] & 15) * 4)
        }
        6 if *packet.get(6)? == TCP => {
            let ip = |at: usize| Some(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?.into());
            (ip(8)?, ip(24)?, 40)
        }
        _ => return None,
    };
    let tcp = packet.get(at..at + 20)?;
    let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    Some(Segment {
        source: SocketAddr::new(source, word(0)),
        destination: SocketAddr::new(destination, word(2)),
        acknowledgment: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]),
        flags: tcp[13],
    })
}

/// Returns a segment without data.
fn bare_segment(source: SocketAddr, destination: SocketAddr, sequence: u32, flags: u8) -> Vec<u8> {
    let mut bytes = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0];
            ip.extend(source.octets());
            ip.extend(destination.octets());
            let sum = checksum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 20, TCP, 64];
            ip.extend(source.octets());
            ip.extend(destination.octets());
            ip
        }
        _ => return Vec::new(),
    };
    let start = bytes.len();
    bytes.extend(source.port().to_be_bytes());
    bytes.extend(destination.port().to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend([5 << 4, flags, 0, 0, 0, 0, 0, 0]);
    set_tcp_checksum(&mut bytes[start..], source.ip(), destination.ip());
    bytes
}

impl OldConnections {
    /// Takes over connections. Packets are written to a TUN device.
    pub(super) fn new(connections: Vec<Ends>, device: File, now: Time) -> Self {
        let probes = connections
            .iter()
            .flat_map(|ends| [0, 1].map(|end| (now, *ends, end, 1)))
            .collect();
        Self {
            connections: (connections.into_iter())
                .map(|ends| (ends, [false; 2]))
                .collect(),
            probes,
            device,
            last: now + LIFETIME,
        }
    }

    /// Sends the probes that are due. Returns true while there is something to do.
    pub(super) fn advance(&mut self, now: Time) -> bool {
        for _ in 0..PROBES_AT_ONCE {
            let Some((at, ends, end, number)) = self.probes.front().copied() else {
                break;
            };
            if at > now {
                break;
            }
            self.probes.pop_front();
            // A host that was reset, or has reset the connection itself, needs no probe.
            if self
                .connections
                .get(&ends)
                .is_some_and(|reset| !reset[1 - end])
            {
                let (source, destination) = (ends[end], ends[1 - end]);
                self.send(&bare_segment(source, destination, 0, ACK));
                if number < PROBES {
                    let next = (now + PROBE_INTERVAL, ends, end, number + 1);
                    self.probes.push_back(next);
                }
            }
        }
        if now >= self.last {
            self.connections.clear();
        }
        !self.connections.is_empty()
    }

    /// Handles a packet from a host. Returns true if it belongs to an old connection, and is not to
    /// be forwarded.
    pub(super) fn takes(&mut self, packet: &[u8]) -> bool {
        if self.connections.is_empty() {
            return false;
        }
        let Some(segment) = segment(packet) else {
            return false;
        };
        let Segment {
            source,
            destination,
            acknowledgment,
            flags,
        } = segment;
        let (ends, end) = if self.connections.contains_key(&[source, destination]) {
            ([source, destination], 0)
        } else if self.connections.contains_key(&[destination, source]) {
            ([destination, source], 1)
        } else {
            return false;
        };
        if flags & SYN != 0 {
            // A new connection between the same ends.
            self.connections.remove(&ends);
            return false;
        }
        if flags & RST == 0 {
            self.send(&bare_segment(destination, source, acknowledgment, RST));
        }
        if let Some(reset) = self.connections.get_mut(&ends) {
            reset[end] = true;
            if *reset == [true; 2] {
                self.connections.remove(&ends);
            }
        }
        true
    }

    /// Number of connections of which a host has yet to be reset.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.connections.len()
    }

    fn send(&mut self, packet: &[u8]) {
        let offload = [0; VIRTIO_NET_HDR_LEN];
        let parts = [IoSlice::new(&offload), IoSlice::new(packet)];
        // A lost packet is sent again, or its host sends one.
        let _ = self.device.write_vectored(&parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        ["10.1.0.1:4000", "10.2.0.2:80"].map(|end| end.parse().expect("an address"))
    }

    /// Returns an empty list of two old connections, whose packets go nowhere.
    fn old(connections: &[Ends]) -> OldConnections {
        let device = File::options()
            .write(true)
            .open("/dev/null")
            .expect("a device");
        OldConnections::new(connections.to_vec(), device, Time::ZERO)
    }

    fn packet(source: SocketAddr, destination: SocketAddr, flags: u8) -> Vec<u8> {
        bare_segment(source, destination, 5, flags)
    }

    #[test]
    fn both_hosts_are_reset_once_they_send() {
        let [opener, responder] = ends();
        let mut all = old(&[ends()]);
        assert!(all.takes(&packet(opener, responder, ACK)));
        assert_eq!(all.count(), 1);
        assert!(
            all.takes(&packet(opener, responder, ACK)),
            "again, if the RST was lost"
        );
        assert!(all.takes(&packet(responder, opener, ACK)));
        assert_eq!(all.count(), 0);
        assert!(!all.takes(&packet(opener, responder, ACK)));
    }

    #[test]
    fn a_new_connection_and_others_pass() {
        let [opener, responder] = ends();
        let mut all = old(&[ends()]);
        let other: SocketAddr = "10.1.0.1:4001".parse().expect("an address");
        assert!(!all.takes(&packet(other, responder, ACK)));
        assert!(!all.takes(&[0x45]));
        assert!(!all.takes(&packet(opener, responder, SYN)));
        assert!(!all.takes(&packet(opener, responder, ACK)));
    }

    #[test]
    fn silent_hosts_are_probed_three_times_and_then_forgotten() {
        let mut all = old(&[ends()]);
        let mut probes = 0;
        for second in 0..10 {
            let before = all.probes.len();
            assert!(all.advance(Time::ZERO + Span::from_secs(second)));
            probes += usize::from(before > 0);
        }
        assert_eq!(probes, 3);
        assert!(!all.advance(Time::ZERO + LIFETIME));
    }

    #[test]
    fn segments_have_valid_checksums() {
        let six: Ends = ["[fd00::1]:4000", "[fd00::2]:80"].map(|end| end.parse().expect("one"));
        for [source, destination] in [ends(), six] {
            let bytes = bare_segment(source, destination, 77, RST);
            assert!(bentpipe_wire::parse(&bytes).is_ok());
        }
    }
}
