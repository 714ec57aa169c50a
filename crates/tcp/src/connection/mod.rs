//! A connection.
mod events;
mod state;
use crate::{Config, Statistics};
use bentpipe_types::{Ctx, Endpoint, PacketRef, Port, Seq, Span, Time};
pub use events::Events;
pub use state::State;

/// Payload that was accepted: it lies in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Offset in the peer's stream of the first accepted byte.
    pub offset: u64,
    /// Bytes accepted.
    pub length: u32,
    /// Bytes of the segment's payload before the first accepted one.
    pub skip: u32,
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    statistics: Statistics,
}

#[allow(unused_variables, missing_docs, clippy::todo)]
impl Connection {
    pub fn connect(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
        cx: &mut Ctx<'_>,
    ) -> Self {
        todo!()
    }
    pub fn accept(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Self {
        todo!()
    }
    pub fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        todo!()
    }
    /// As on_packet, and says what part of the payload was accepted (live host).
    pub fn on_packet_accepting(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) -> Option<Accepted> {
        todo!()
    }
    pub fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        todo!()
    }
    pub fn next_deadline(&self) -> Option<Time> {
        todo!()
    }
    pub fn write(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        todo!()
    }
    pub fn writable(&self) -> u64 {
        todo!()
    }
    pub fn read(&mut self, maximum: u64, cx: &mut Ctx<'_>) -> u64 {
        todo!()
    }
    pub fn readable(&self) -> u64 {
        todo!()
    }
    pub fn set_sink(&mut self, sink: bool) {
        todo!()
    }
    pub fn close(&mut self, cx: &mut Ctx<'_>) {
        todo!()
    }
    pub fn abort(&mut self, cx: &mut Ctx<'_>) {
        todo!()
    }
    pub fn state(&self) -> State {
        todo!()
    }
    pub fn take_events(&mut self) -> Events {
        todo!()
    }
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
    pub fn local(&self) -> Endpoint {
        todo!()
    }
    pub fn remote(&self) -> Endpoint {
        todo!()
    }
    /// Payload of a full segment as negotiated.
    pub fn segment_size(&self) -> u32 {
        todo!()
    }
    pub fn congestion_window(&self) -> u64 {
        todo!()
    }
    pub fn slow_start_threshold(&self) -> u64 {
        todo!()
    }
    pub fn in_flight(&self) -> u64 {
        todo!()
    }
    pub fn smoothed_rtt(&self) -> Option<Span> {
        todo!()
    }
    pub fn rto(&self) -> Span {
        todo!()
    }
    pub fn written_offset(&self) -> u64 {
        todo!()
    }
    pub fn sent_offset(&self) -> u64 {
        todo!()
    }
    pub fn acknowledged_offset(&self) -> u64 {
        todo!()
    }
    pub fn delivered_offset(&self) -> u64 {
        todo!()
    }
    /// In-order bytes received, read or not.
    pub fn received_offset(&self) -> u64 {
        todo!()
    }
    pub fn advertised_window(&self) -> u64 {
        todo!()
    }
    pub fn peer_window(&self) -> u64 {
        todo!()
    }
}

/// RFC 9293 3.10.7.1
pub fn reset_reply(packet: PacketRef, egress: Port, cx: &mut Ctx<'_>) {
    todo!()
}
