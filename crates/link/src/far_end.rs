//! Processing at the receiving end of a direction.

use std::fmt::Debug;

use bentpipe_types::{PacketRef, PacketStore, Time};

use crate::Tally;

/// Context of a [`FarEnd`] and of a [`Divider`](crate::Divider).
#[derive(Debug)]
pub struct EndCtx<'a> {
    /// Current time.
    pub now: Time,
    /// Packet store.
    pub packets: &'a mut PacketStore,
    /// Output: packets that continue.
    pub out: &'a mut Vec<PacketRef>,
}

impl<'a> EndCtx<'a> {
    /// Creates the context.
    pub fn new(now: Time, packets: &'a mut PacketStore, out: &'a mut Vec<PacketRef>) -> Self {
        Self { now, packets, out }
    }
}

/// Processing of arrived packets: the exit of a tunnel, an expander of compacted acknowledgments, a
/// spacer. It takes each arriving packet and releases packets to the node, at once or later.
///
/// Sans-IO: it receives the time and returns its next deadline, like an agent.
pub trait FarEnd: Debug + Send {
    /// Takes an arrived packet, which it appends to `cx.out` now or later, or releases and counts.
    /// Packets in `cx.out` continue to the node in that order.
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>);

    /// Called when the time returned by `next_deadline` has come.
    fn on_deadline(&mut self, cx: &mut EndCtx<'_>);

    /// Returns when it next wants to run without a packet. Called after every call; cheap.
    fn next_deadline(&self) -> Option<Time>;

    /// Returns the number of held packets.
    fn held(&self) -> usize;

    /// Reports counters by name, for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
