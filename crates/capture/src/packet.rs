//! The headers of a packet.

use std::net::IpAddr;

use etherparse::{
    EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice,
};
use pcap_parser::Linktype;

/// Address and port of one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoint {
    /// IP address.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// Options that only a segment with SYN has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Handshake {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgments are permitted.
    pub sack_permitted: bool,
}

/// The headers of a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Source.
    pub from: Endpoint,
    /// Destination.
    pub to: Endpoint,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Bytes of payload, captured or not.
    pub payload: u32,
    /// The flags FIN, SYN, RST, PSH, ACK, URG, ECE and CWR, from the lowest bit on.
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Timestamp value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of selective acknowledgment: first byte, and the byte after the last.
    pub sack: [(u32, u32); 4],
    /// Number of blocks in `sack`.
    pub sack_blocks: u8,
    /// Options of a SYN.
    pub handshake: Handshake,
}

impl Segment {
    /// Whether SYN is set.
    #[must_use]
    pub fn is_syn(&self) -> bool {
        self.flags & 0b10 != 0
    }

    /// Whether ACK is set.
    #[must_use]
    pub fn is_ack(&self) -> bool {
        self.flags & 0b1_0000 != 0
    }
}

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Time in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Length of the IP packet in bytes, captured or not; of the frame if it is no IP packet.
    pub length: u32,
    /// The TCP segment, if it is one and its headers were captured.
    pub segment: Option<Segment>,
}

/// Returns the headers of a frame of `length` bytes, or `None` if its link type is not supported.
pub(crate) fn packet(linktype: Linktype, data: &[u8], length: u32, time_ns: i64) -> Option<Packet> {
    let ether_type = |at: usize| -> Option<EtherType> {
        let bytes = data.get(at..at + 2)?;
        Some(EtherType(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let after = |header: usize| data.get(header..).unwrap_or_default();
    let (header, sliced): (u32, _) = match linktype {
        Linktype::ETHERNET => (14, LaxSlicedPacket::from_ethernet(data).ok()),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => (0, LaxSlicedPacket::from_ip(data).ok()),
        // The pseudo-header of BSD's loopback interface is an address family.
        Linktype::NULL | Linktype::LOOP => (4, LaxSlicedPacket::from_ip(after(4)).ok()),
        // PPP with its 2 bytes of protocol, with or without address and control.
        Linktype(PPP) => {
            let header: u32 = if data.starts_with(&[0xff, 0x03]) {
                4
            } else {
                2
            };
            (
                header,
                LaxSlicedPacket::from_ip(after(header as usize)).ok(),
            )
        }
        Linktype::LINUX_SLL => {
            let kind = ether_type(14);
            (
                16,
                kind.map(|kind| LaxSlicedPacket::from_ether_type(kind, after(16))),
            )
        }
        Linktype(LINUX_SLL2) => {
            let kind = ether_type(0);
            (
                20,
                kind.map(|kind| LaxSlicedPacket::from_ether_type(kind, after(20))),
            )
        }
        _ => return None,
    };
    let frame = length.saturating_sub(header);
    let (length, segment) = sliced
        .and_then(|sliced| of_ip(&sliced, frame))
        .unwrap_or((frame, None));
    Some(Packet {
        time_ns,
        length,
        segment,
    })
}

const PPP: i32 = 9;
/// Linux cooked capture, version 2.
const LINUX_SLL2: i32 = 276;

fn of_ip(sliced: &LaxSlicedPacket<'_>, frame: u32) -> Option<(u32, Option<Segment>)> {
    // Before segmentation offload, a packet may be longer than its length field can state.
    let stated = |length: u32, header: u32| if length <= header { frame } else { length };
    let (length, headers, source, destination): (u32, u32, IpAddr, IpAddr) =
        match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let own = u32::from(header.ihl()) * 4;
                (
                    stated(u32::from(header.total_len()), own),
                    own,
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let extensions = u32::try_from(ip.extensions().slice().len()).ok()?;
                (
                    stated(u32::from(header.payload_length()) + 40, 40),
                    40 + extensions,
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            LaxNetSlice::Arp(_) => return None,
        };
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        return Some((length, None));
    };
    let own = headers + u32::from(tcp.data_offset()) * 4;
    let payload = length.saturating_sub(own);
    Some((length, Some(segment(tcp, source, destination, payload))))
}

fn segment(tcp: &TcpSlice<'_>, source: IpAddr, destination: IpAddr, payload: u32) -> Segment {
    let bits = [
        tcp.fin(),
        tcp.syn(),
        tcp.rst(),
        tcp.psh(),
        tcp.ack(),
        tcp.urg(),
        tcp.ece(),
        tcp.cwr(),
    ];
    let flags = bits
        .iter()
        .rev()
        .fold(0, |flags, bit| flags << 1 | u8::from(*bit));
    let mut segment = Segment {
        from: Endpoint {
            address: source,
            port: tcp.source_port(),
        },
        to: Endpoint {
            address: destination,
            port: tcp.destination_port(),
        },
        sequence: tcp.sequence_number(),
        acknowledgment: tcp.acknowledgment_number(),
        payload,
        flags,
        window: tcp.window_size(),
        timestamps: None,
        sack: [(0, 0); 4],
        sack_blocks: 0,
        handshake: Handshake::default(),
    };
    // An option that is cut or invalid ends the list.
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => segment.handshake.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => segment.handshake.window_scale = Some(scale),
            TcpOptionElement::SelectiveAcknowledgementPermitted => {
                segment.handshake.sack_permitted = true;
            }
            TcpOptionElement::Timestamp(value, echo) => segment.timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                let blocks = std::iter::once(first).chain(others.into_iter().flatten());
                for (place, block) in segment.sack.iter_mut().zip(blocks) {
                    *place = block;
                    segment.sack_blocks += 1;
                }
            }
            TcpOptionElement::Noop => {}
        }
    }
    segment
}
