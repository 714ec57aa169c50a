//! The windows that servers are offered, and how servers fill them.

use bentpipe_tcp::Config;
use bentpipe_types::{Flags, IpVersion, Packet, Seq, Span};

use super::super::Settings;
use super::network::{GATEWAY, HOST, Net, SERVER, endpoint};

/// Payload of a full segment with timestamps.
const SEGMENT: u32 = 1448;

/// A server that fills the window that it was offered to the last byte, as Linux does: what is left of it behind full
/// segments is a short one.
struct Server {
    next: Seq,
    edge: Seq,
    full: u64,
    short: u64,
}

impl Server {
    fn fill(&mut self, net: &mut Net) {
        while self.edge.after(self.next) {
            let length = (self.edge - self.next).min(SEGMENT);
            let mut packet = Packet::new(endpoint(SERVER), endpoint(HOST), IpVersion::V4);
            packet.flags = Flags::ACK;
            packet.sequence = self.next;
            packet.acknowledgment = net.initial[HOST] + 1;
            packet.window = 1000;
            packet.payload_length = length as u16;
            packet.payload_offset = u64::from((self.next - net.initial[SERVER]).wrapping_sub(1));
            packet.set_timestamps(1_000_000, 0);
            packet.header_length += 12;
            self.next += length;
            match length {
                SEGMENT => self.full += 1,
                _ => self.short += 1,
            }
            net.arrives_at_gateway(packet);
        }
    }

    /// Hears what it was sent since; sends what it may then.
    fn hear(&mut self, net: &mut Net, shift: u8) {
        for seen in net.log.replace(Vec::new()).into_iter().flatten() {
            if (seen.from, seen.to) == (GATEWAY, SERVER) {
                let edge = seen.packet.acknowledgment + (u32::from(seen.packet.window) << shift);
                if edge.after(self.edge) {
                    self.edge = edge;
                }
            }
        }
        self.fill(net);
    }
}

/// Of a stream that its window holds up, few segments are much shorter than full ones, in whatever units the window is said.
#[test]
fn a_server_that_fills_its_window_sends_few_short_segments() {
    // The shift of the host's windows follows from its buffer.
    for (buffer, shift) in [(60_000, 0), (6 << 20, 7), (32 << 20, 10)] {
        let config = Config {
            mss: SEGMENT as u16,
            receive_buffer: buffer,
            ..Config::default()
        };
        let mut net = Net::new(Settings::default(), &config, &config, 1);
        net.closes = [false, false];
        net.connect(HOST);
        net.run(Span::from_secs(1));
        net.log = Some(Vec::new());
        // From now on the server is another one.
        net.filter = Box::new(|_, to, _| to != SERVER);
        let next = net.initial[SERVER] + 1;
        let mut server = Server {
            next,
            edge: next + 64_000,
            full: 0,
            short: 0,
        };
        server.fill(&mut net);
        for _ in 0..10_000 {
            net.run(Span::from_millis(2));
            server.hear(&mut net, shift);
        }
        let sent = u64::from(server.next - next);
        let least = sent / u64::from(SEGMENT);
        let (full, short) = (server.full, server.short);
        assert!(net.delivered(HOST) > 2_000_000, "{sent}");
        eprintln!(
            "{buffer}: {sent}; {full} {short} of {least}, {}",
            net.delivered(HOST)
        );
        assert!(
            full + short < least + least / 16,
            "{buffer}: {full}, {short}"
        );
    }
}
