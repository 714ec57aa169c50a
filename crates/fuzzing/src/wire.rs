//! Fuzzes the packet parser: any bytes are handled, and an accepted packet, written again, parses
//! to the same.

use std::convert::Infallible;
use std::net::IpAddr;

use bentpipe_types::{Address, Flags, IpVersion, PacketStore};
use bentpipe_wire::{Addressing, Encoder, Parsed, parse, parse_ignoring_checksums};

/// The two ends of one packet.
struct Ends([IpAddr; 2]);

impl Addressing for Ends {
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr> {
        let ip = self.0[usize::from(address.0)];
        (ip.is_ipv4() == (version == IpVersion::V4)).then_some(ip)
    }
}

fn again(parsed: &Parsed<'_>) {
    let ends = [parsed.ip.source(), parsed.ip.destination()];
    let mut packets = PacketStore::default();
    let node_of = |ip| Ok::<_, Infallible>(Address(u16::from(ip != ends[0])));
    let Ok(packet) = parsed.insert(&mut packets, node_of);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(Ends(ends));
    let encoded = encoder.encode_with(&packets, packet, &mut bytes, |_, out| {
        out.copy_from_slice(parsed.payload);
    });
    if let Err(error) = encoded {
        // The encoded packet may be too long: its options differ from the original's, and a SYN
        // with SACK blocks may exceed the TCP header.
        let _ = error.to_string();
        return;
    }
    let second = parse(&bytes).expect("what we write, we read");
    assert_eq!(second.payload, parsed.payload);
    assert_eq!(
        (second.tcp.sequence, second.tcp.acknowledgment),
        (parsed.tcp.sequence, parsed.tcp.acknowledgment)
    );
    assert_eq!(
        (second.tcp.flags, second.tcp.window),
        (parsed.tcp.flags, parsed.tcp.window)
    );
    assert_eq!(second.tcp.options.timestamps, parsed.tcp.options.timestamps);
    assert_eq!(
        second.tcp.options.sack_blocks,
        parsed.tcp.options.sack_blocks
    );
    if parsed.tcp.flags.has(Flags::SYN) {
        assert_eq!(second.tcp.options.syn, parsed.tcp.options.syn);
    }
    assert_eq!(second.ip.source(), parsed.ip.source());
    assert_eq!(second.ip.ecn(), parsed.ip.ecn());
}

/// Parses these bytes as an IP packet.
///
/// # Panics
/// If a packet that was accepted changes when it is written again, or an error has no reason.
pub fn run(bytes: &[u8]) {
    match parse_ignoring_checksums(bytes) {
        Ok(parsed) => again(&parsed),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(parse(bytes).is_err(), "{error}");
        }
    }
    if let Err(error) = parse(bytes) {
        assert!(error.is_checksum() || parse_ignoring_checksums(bytes).is_err());
    }
}
