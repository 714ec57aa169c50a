//! What stands at the receiving end of a direction and works on what arrives there.

use std::fmt::Debug;

use bentpipe_types::{PacketRef, PacketStore, Time};

use crate::Tally;

/// What the ends of a direction work with: a [`FarEnd`], and a [`Divider`](crate::Divider).
#[derive(Debug)]
pub struct EndCtx<'a> {
    /// The time.
    pub now: Time,
    /// All packets.
    pub packets: &'a mut PacketStore,
    /// Where packets go that go on.
    pub out: &'a mut Vec<PacketRef>,
}

impl<'a> EndCtx<'a> {
    /// Of these.
    pub fn new(now: Time, packets: &'a mut PacketStore, out: &'a mut Vec<PacketRef>) -> Self {
        Self { now, packets, out }
    }
}

/// The receiving end of a tunnel, an expander of compacted acknowledgments, a spacer: it takes each
/// packet that arrives and lets out, at once or later, what goes on to the node.
///
/// Sans-IO: it is told the time and names its next deadline, as an agent does.
pub trait FarEnd: Debug + Send {
    /// A packet has arrived. It is the far end's now: it goes to `cx.out`, now or later, or is released
    /// and counted. What is pushed there goes on to the node in that order.
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>);

    /// `next_deadline` has come.
    fn on_deadline(&mut self, cx: &mut EndCtx<'_>);

    /// When it next wants to run without a packet. Asked after every call; cheap.
    fn next_deadline(&self) -> Option<Time>;

    /// Packets it holds back.
    fn held(&self) -> usize;

    /// Tells what it has done, by name: for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
