//! Probes of segments sent by a host and received by its peer.

use std::collections::VecDeque;

use bentpipe_types::{Endpoint, Packet, PacketRef, SeriesId, Time};

use super::Network;
use crate::probe::FlowQuantity;

/// A probe of the segments of one flow.
pub(super) struct SegmentProbe {
    quantity: FlowQuantity,
    flow: usize,
    series: SeriesId,
    /// Sender and receiver of the flow, once known: several flows share a server's port.
    ends: Option<(Endpoint, Endpoint)>,
    /// Stream offset after the last byte sent.
    highest: u64,
    sent: SendTimes,
}

/// Time of the last transmission of each byte of a stream.
#[derive(Default)]
struct SendTimes(VecDeque<(u64, Time)>);

/// Beyond this number of entries, those of data already delivered are removed, and later duplicates
/// of them are not recorded. It corresponds to ten large windows that were sent twice.
const REMEMBERED: usize = 1 << 16;

impl SendTimes {
    /// Records that the range from `start` to `end` was sent now. New data begin at `end`.
    fn note(&mut self, start: u64, end: u64, now: Time) {
        // Entries within a retransmitted range are replaced; the one before ends where the range
        // begins.
        let first = self.0.partition_point(|(offset, _)| *offset < start);
        if self.0.get(first).is_none_or(|(offset, _)| *offset != start) {
            self.0.insert(first, (start, now));
        }
        for entry in self.0.range_mut(first..).take_while(|entry| entry.0 < end) {
            entry.1 = now;
        }
    }

    /// Returns when the byte at this offset was last sent.
    fn of(&self, offset: u64) -> Option<Time> {
        let after = self.0.partition_point(|(start, _)| *start <= offset);
        Some(self.0.get(after.checked_sub(1)?)?.1)
    }

    /// Removes entries before this offset.
    fn forget(&mut self, before: u64) {
        while self.0.len() > REMEMBERED && self.0.get(1).is_some_and(|(next, _)| *next <= before) {
            self.0.pop_front();
        }
    }
}

impl Network {
    /// Adds a probe of a flow's segments.
    pub(super) fn probe_segments(&mut self, flow: usize, quantity: FlowQuantity, series: SeriesId) {
        let (sender, receiver) = (self.flows[flow].sender.0, self.flows[flow].receiver.0);
        self.nodes[usize::from(sender)].watched = true;
        self.nodes[usize::from(receiver)].watched = true;
        self.probes.segments.push(SegmentProbe {
            quantity,
            flow,
            series,
            ends: None,
            highest: 0,
            sent: SendTimes::default(),
        });
    }

    /// Records the segments that a node is about to send.
    pub(super) fn probe_sent(&mut self, node: u16) {
        let mut probes = std::mem::take(&mut self.probes.segments);
        for probe in &mut probes {
            let end = self.flows[probe.flow].sender;
            if end.0 != node {
                continue;
            }
            let connection = self.connection(end);
            let ends = connection.map(|connection| (connection.local(), connection.remote()));
            if probe.ends != ends {
                // Another connection with another stream.
                probe.ends = ends;
                probe.highest = 0;
                probe.sent = SendTimes::default();
            }
            for &(_, packet) in &self.outbox {
                let Some((start, end)) = text(self.packets.get(packet), probe.ends) else {
                    continue;
                };
                match probe.quantity {
                    FlowQuantity::SentSegment => {
                        self.trace.record(probe.series, self.now, start as f64);
                    }
                    FlowQuantity::Retransmitted if start < probe.highest => {
                        self.trace.record(probe.series, self.now, start as f64);
                    }
                    FlowQuantity::SegmentDelay => probe.sent.note(start, end, self.now),
                    _ => {}
                }
                probe.highest = probe.highest.max(end);
            }
        }
        self.probes.segments = probes;
    }

    /// Records a segment that reaches a node.
    #[cold]
    pub(super) fn probe_received(&mut self, node: u16, packet: PacketRef) {
        let mut probes = std::mem::take(&mut self.probes.segments);
        for probe in &mut probes {
            let (at, end) = self.flows[probe.flow].receiver;
            if at != node {
                continue;
            }
            let Some((start, _)) = text(self.packets.get(packet), probe.ends) else {
                continue;
            };
            match probe.quantity {
                FlowQuantity::ReceivedSegment => {
                    self.trace.record(probe.series, self.now, start as f64);
                }
                FlowQuantity::SegmentDelay => {
                    if let Some(sent) = probe.sent.of(start) {
                        let delay = self.now.since(sent).as_secs_f64();
                        self.trace.record(probe.series, self.now, delay);
                    }
                    let delivered = self.host(at).map_or(0, |host| host.delivered(end));
                    probe.sent.forget(delivered);
                }
                _ => {}
            }
        }
        self.probes.segments = probes;
    }
}

/// Returns the stream range of a segment's payload, if it has one and is between these ends. The
/// byte of a keep-alive probe before any data precedes the stream: it has no range.
fn text(packet: &Packet, ends: Option<(Endpoint, Endpoint)>) -> Option<(u64, u64)> {
    let ours = ends == Some((packet.source, packet.destination));
    if !packet.is_tcp() || !ours || packet.payload_length == 0 {
        return None;
    }
    let start = packet.payload_offset;
    let end = start.checked_add(u64::from(packet.payload_length))?;
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_times_are_those_of_the_latest_transmission() {
        let at = |second| Time::ZERO + bentpipe_types::Span::from_secs(second);
        let mut times = SendTimes::default();
        assert_eq!(times.of(0), None);
        for (start, second) in [(0, 1), (100, 2), (200, 3)] {
            times.note(start, start + 100, at(second));
        }
        assert_eq!(times.of(0), Some(at(1)));
        assert_eq!(times.of(199), Some(at(2)));
        times.note(100, 200, at(5));
        assert_eq!(
            [99, 100, 199, 200].map(|byte| times.of(byte)),
            [1, 5, 5, 3].map(|s| Some(at(s)))
        );
        // A retransmission of two segments, and of half a segment.
        times.note(0, 200, at(6));
        times.note(250, 300, at(7));
        assert_eq!(
            [0, 150, 249, 250].map(|byte| times.of(byte)),
            [6, 6, 3, 7].map(|s| Some(at(s)))
        );
        times.forget(1000);
        assert_eq!(times.of(0), Some(at(6)), "few are all kept");
    }
}
