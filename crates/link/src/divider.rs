//! What cuts packets before they wait for a link.

use std::fmt::Debug;

use bentpipe_types::PacketRef;

use crate::{EndCtx, Tally};

/// IP fragmentation: what is too long for a link goes over it in pieces, each of which waits, is
/// transmitted and lost by itself.
pub trait Divider: Debug + Send {
    /// A packet is offered to the link. It, or what becomes of it, is added to `cx.out`.
    fn divide(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>);

    /// Tells what it has done, by name: for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
