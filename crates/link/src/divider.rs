//! Fragmentation in front of a link.

use std::fmt::Debug;

use bentpipe_types::PacketRef;

use crate::{EndCtx, Tally};

/// IP fragmentation: packets that are too long for a link are sent as fragments, each of which is
/// queued, transmitted and lost by itself.
pub trait Divider: Debug + Send {
    /// Handles a packet offered to the link. Appends it, or its fragments, to `cx.out`.
    fn divide(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>);

    /// Reports counters by name, for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
