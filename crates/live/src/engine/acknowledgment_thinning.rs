//! Thinning of a gateway's own acknowledgments.

use bentpipe_sim::Departure;
use bentpipe_types::{Flags, FlowKey, PacketRef, PacketStore, Seq};
use rustc_hash::FxHashMap;

/// Removes acknowledgments that a later one of the same series makes superfluous.
///
/// A read returns up to 64 KiB of a flow, of which a leg acknowledges every second segment. These
/// acknowledgments leave together, so that the host learns the same from the last one. The kernel
/// does so, too: it acknowledges the segments that its receive offload has joined once.
///
/// Only segments that were created in this network, without data, SACK blocks or other flags, are
/// removed, and only if the later one acknowledges more. So duplicate acknowledgments stay.
#[derive(Debug, Default)]
pub(super) struct AcknowledgmentThinning {
    /// Latest acknowledgment of each flow in the series.
    latest: FxHashMap<FlowKey, Seq>,
}

/// Returns the flow and the number of a pure acknowledgment of this network.
fn acknowledgment(packets: &PacketStore, packet: PacketRef) -> Option<(FlowKey, Seq)> {
    let record = packets.get(packet);
    let is_pure = record.is_tcp()
        && record.flags == Flags::ACK
        && record.payload_length == 0
        && packets.sack_blocks(packet).as_slice().is_empty()
        && packets.bytes(packet).is_none();
    is_pure.then(|| (FlowKey::of(packets, packet), record.acknowledgment))
}

impl AcknowledgmentThinning {
    /// Removes and releases superfluous acknowledgments.
    pub(super) fn thin(&mut self, departures: &mut Vec<Departure>, packets: &mut PacketStore) {
        self.latest.clear();
        for departure in departures.iter() {
            if let Some((key, number)) = acknowledgment(packets, departure.packet) {
                let latest = self.latest.entry(key).or_insert(number);
                if number.after(*latest) {
                    *latest = number;
                }
            }
        }
        departures.retain(|departure| {
            let packet = departure.packet;
            let Some((key, number)) = acknowledgment(packets, packet) else {
                return true;
            };
            let is_superfluous = self
                .latest
                .get(&key)
                .is_some_and(|latest| number.before(*latest));
            if is_superfluous {
                packets.release(packet);
            }
            !is_superfluous
        });
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_sim::NetworkBuilder;
    use bentpipe_types::{Address, Endpoint, IpVersion, Packet, SackBlock, SackBlocks, Time};

    use super::*;

    #[test]
    fn only_superfluous_acknowledgments_are_removed() {
        let mut builder = NetworkBuilder::new(1);
        let node = builder.attached("node");
        let mut packets = PacketStore::default();
        let mut departures = Vec::new();
        let mut add = |packets: &mut PacketStore, port: u16, number: u32, data: u16, sack: bool| {
            let end = |port| Endpoint {
                address: Address(1),
                port,
            };
            let mut packet = Packet::new(end(port), end(80), IpVersion::V4);
            packet.flags = Flags::ACK;
            packet.acknowledgment = Seq::new(number);
            packet.payload_length = data;
            let packet = packets.insert(packet);
            if sack {
                let block = SackBlock {
                    start: Seq::new(9),
                    end: Seq::new(10),
                };
                let mut blocks = SackBlocks::default();
                blocks.push(block);
                packets.set_sack_blocks(packet, &blocks);
            }
            departures.push(Departure {
                node,
                at: Time::ZERO,
                packet,
            });
        };
        for (port, number, data, sack) in [
            (1, 100, 0, false),   // superfluous
            (2, 100, 0, false),   // of another flow
            (1, 200, 0, true),    // SACK
            (1, 200, 500, false), // data
            (1, 300, 0, false),
            (1, 300, 0, false), // a duplicate
        ] {
            add(&mut packets, port, number, data, sack);
        }
        AcknowledgmentThinning::default().thin(&mut departures, &mut packets);
        assert_eq!(departures.len(), 5);
        assert_eq!(packets.held(), 5);
        let first = packets.get(departures[0].packet);
        assert_eq!(first.source.port, 2);
    }
}
