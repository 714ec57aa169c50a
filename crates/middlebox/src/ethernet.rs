//! Ethernet frames on a link: IEEE 802.3, as RFC 894 puts IP packets into them.

use bentpipe_link::{Framing, Tally};
use bentpipe_types::{Bytes, PacketRef, PacketStore, Time};

/// Payload of the shortest frame: what is shorter is padded.
const SHORTEST: u64 = 46;
/// The shortest packet: an IPv4 header.
const SHORTEST_PACKET: u64 = 20;
/// Two addresses and the type in front of the packet, the check sequence behind it.
const HEADER: u64 = 14 + 4;
/// What every frame takes of the cable besides: preamble and start, and the gap to the next one.
const BETWEEN: u64 = 8 + 12;

/// The frames of one direction of a full-duplex link, or of a segment that nobody else uses.
///
/// Neighbours' addresses are known from the topology, as gaid1998's model loads its ARP tables from files
/// (section 2.2): nothing is asked, and no packet waits for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ethernet {
    padded: u64,
}

impl Framing for Ethernet {
    fn transmit(
        &mut self,
        _now: Time,
        _packet: PacketRef,
        length: Bytes,
        _packets: &mut PacketStore,
    ) -> Bytes {
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
    fn frames_are_as_long_as_on_the_cable() {
        let mut packets = PacketStore::default();
        let end = Endpoint::default();
        let packet = packets.insert(Packet::new(end, end, IpVersion::V4));
        let mut ethernet = Ethernet::default();
        // 1500 bytes: 1538 on the cable (97.5% of the rate is for packets); an ACK: 84, as the shortest.
        for (length, on_cable) in [(1500, 1538), (40, 84), (46, 84), (47, 85)] {
            let framed = ethernet.transmit(Time::ZERO, packet, Bytes::new(length), &mut packets);
            assert_eq!(framed.get(), on_cable);
        }
    }
}
