//! Packets of a log as rows for a table, in the notation of tcpdump.

use bentpipe_scenario::{End, LoggedPacket, PacketLog, Scenario};
use bentpipe_types::{Endpoint, Packet};
use serde_json::{Value, json};

/// Names for the rows of a log.
pub(crate) struct Names {
    nodes: Vec<String>,
    /// Link and the nodes at its ends.
    links: Vec<(String, [usize; 2])>,
}

impl Names {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let nodes = scenario.nodes.iter().map(|node| node.name.clone());
        let links = scenario.links.iter();
        Self {
            nodes: nodes.collect(),
            links: links
                .map(|link| (link.name.clone(), link.between))
                .collect(),
        }
    }

    /// Returns at most `most` packets from an instant on, and the number of packets before it.
    pub(crate) fn rows(&self, log: &PacketLog, from_ns: u64, most: usize) -> Value {
        let packets = log.packets();
        let first = packets.partition_point(|packet| packet.at.as_nanos() < from_ns);
        let rows = packets[first..].iter().take(most);
        json!({
            "before": first,
            "packets": packets.len(),
            "omitted": log.omitted(),
            "rows": rows.map(|row| self.row(row)).collect::<Vec<_>>(),
        })
    }

    fn row(&self, row: &LoggedPacket) -> Value {
        let (link, ends) = &self.links[row.link];
        let at = match row.end {
            End::First => ends[0],
            End::Second => ends[1],
        };
        let node = self.nodes.get(at).map_or("", String::as_str);
        let packet = &row.packet;
        json!({
            "time_s": row.at.as_nanos() as f64 / 1e9,
            "link": link,
            "node": node,
            "event": if row.received { "received" } else { "sent" },
            "from": self.endpoint(packet.source),
            "to": self.endpoint(packet.destination),
            "bytes": packet.length().get(),
            "text": text(packet),
        })
    }

    fn endpoint(&self, end: Endpoint) -> String {
        match self.nodes.get(usize::from(end.address.0)) {
            Some(name) => format!("{name}:{}", end.port),
            None => format!("{:?}:{}", end.address, end.port),
        }
    }
}

/// Returns flags, sequence numbers and lengths of a packet.
fn text(packet: &Packet) -> String {
    if !packet.is_tcp() {
        return format!("protocol {}", packet.protocol());
    }
    let first = packet.sequence.get();
    let length = u32::from(packet.payload_length);
    let mut text = format!("Flags [{:?}], seq {first}", packet.flags);
    if length > 0 {
        text.push_str(&format!(":{}", first.wrapping_add(length)));
    }
    if packet.flags.has(bentpipe_types::Flags::ACK) {
        text.push_str(&format!(", ack {}", packet.acknowledgment.get()));
    }
    text.push_str(&format!(", win {}, length {length}", packet.window));
    if packet.has_sack_blocks() {
        text.push_str(", sack");
    }
    text
}
