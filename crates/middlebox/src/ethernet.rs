//! Ethernet framing (IEEE 802.3 with RFC 894).

use bentpipe_link::{Framing, Tally};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

/// Payload of the shortest frame; shorter packets are padded.
const SHORTEST: u64 = 46;
/// Length of the shortest packet: an IPv4 header.
const SHORTEST_PACKET: u64 = 20;
/// Two addresses and the type before the packet, the check sequence after it.
const HEADER: u64 = 14 + 4;
/// Preamble, start delimiter and inter-frame gap.
const BETWEEN: u64 = 8 + 12;

/// Framing of one direction of a full-duplex link, or of a segment without other users.
///
/// Link addresses are known from the topology, as gaid1998's model loads its ARP tables from files
/// (section 2.2): no requests are sent, and no packet waits for a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ethernet {
    padded: u64,
}

impl Framing for Ethernet {
    fn transmit(&mut self, _packet: PacketRef, length: Bytes, _packets: &mut PacketStore) -> Bytes {
        self.padded += u64::from(length.get() < SHORTEST);
        Bytes::new(length.get().max(SHORTEST) + HEADER + BETWEEN)
    }

    fn adds(&self) -> Bytes {
        Bytes::new(SHORTEST - SHORTEST_PACKET + HEADER + BETWEEN)
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "frames_padded", self.padded);
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::{Endpoint, IpVersion, Packet};

    use super::*;

    #[test]
    fn frame_lengths_include_the_ethernet_overhead() {
        let mut packets = PacketStore::default();
        let end = Endpoint::default();
        let packet = packets.insert(Packet::new(end, end, IpVersion::V4));
        let mut ethernet = Ethernet::default();
        // 1500 bytes take 1538 on the cable (97.5% of the rate is for packets); an ACK takes 84,
        // the minimum.
        for (length, on_cable) in [(1500, 1538), (40, 84), (46, 84), (47, 85)] {
            let framed = ethernet.transmit(packet, Bytes::new(length), &mut packets);
            assert_eq!(framed.get(), on_cable);
        }
    }
}
