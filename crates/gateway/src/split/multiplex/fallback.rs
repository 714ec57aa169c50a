//! Fallback connections: a stream that may have been lost with the peer also gets a separate
//! connection.
//!
//! A stream that was opened just before the peer failed has no answer. It cannot be moved, since
//! the peer may have received the frame and have opened the connection to the host. So the
//! connection is also opened without a trunk, in parallel. A gateway that knows the stream drops
//! the SYN of the fallback connection, as one of an existing connection. Invariant: at most one of
//! the two is answered, and only that one goes on.

use bentpipe_tcp::Payload;
use bentpipe_types::{Ctx, Flags, FlowKey, PacketRef};

use super::frame::ResetReason;
use super::{GatewayContext, Multiplex, ReturnedSyn, SynDisposition};

impl<P: Payload> Multiplex<P> {
    /// Opens fallback connections for all unanswered streams of a trunk whose answer is overdue.
    pub(super) fn open_fallbacks(&mut self, slot: usize, cx: &mut Ctx<'_>) {
        let Some(trunk) = self.trunks[slot].as_ref() else {
            return;
        };
        let mut streams: Vec<_> = trunk.streams.iter().collect();
        // Sorted, so that the order is the same in every run.
        streams.sort_unstable();
        for (_, &index) in streams {
            let Some(carried) = self.connections.get_mut(index) else {
                continue;
            };
            if let Some(syn) = carried.syn
                && !carried.has_fallback
            {
                carried.has_fallback = true;
                cx.packets.retain(syn);
                self.returned_syns.push(ReturnedSyn {
                    key: carried.key,
                    syn,
                    from: carried.port,
                    disposition: SynDisposition::OpenFallback,
                });
            }
        }
    }

    /// Processes a packet from beyond the link that may answer the fallback connection's SYN. If it
    /// does, the stream is removed, the peer is sent a reset frame, and the result is true. `key`
    /// is that of packets from the host on this side.
    pub(in super::super) fn on_fallback_answer(
        &mut self,
        key: &FlowKey,
        packet: PacketRef,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let record = cx.packets.get(packet);
        let (flags, acknowledgment) = (record.flags, record.acknowledgment);
        let answers = flags.has(Flags::ACK) && flags.has(Flags::SYN.with(Flags::RST));
        let Some(index) = self.find(key).filter(|_| answers) else {
            return false;
        };
        let Some(carried) = self
            .connections
            .get_mut(index)
            .filter(|one| one.has_fallback)
        else {
            return false;
        };
        let Some(syn) = carried.syn else {
            return false;
        };
        let text = u32::from(cx.packets.get(syn).payload_length);
        if acknowledgment - (carried.syn_sequence + 1) > text {
            return false;
        }
        let slot = carried.trunk;
        self.keep_only_fallback(index, Some(ResetReason::Reset), context, cx);
        self.pump(slot, context, cx);
        true
    }

    /// Removes the stream, so that only the fallback connection goes on.
    pub(super) fn keep_only_fallback(
        &mut self,
        index: u32,
        reason: Option<ResetReason>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        self.remove(index, reason, context, cx);
        context.counters.uncount();
    }

    /// Removes the fallback connection, so that only the stream goes on, or neither.
    pub(super) fn cancel_fallback(
        &mut self,
        index: u32,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self
            .connections
            .get_mut(index)
            .filter(|one| one.has_fallback)
        else {
            return;
        };
        carried.has_fallback = false;
        let key = carried.key;
        // It may not have been opened yet, or may have failed already.
        self.returned_syns.retain(|back| {
            let its = back.disposition == SynDisposition::OpenFallback && back.key == key;
            if its {
                cx.packets.release(back.syn);
            }
            !its
        });
        if let Some((syn, _)) = context.unmultiplexed.withdraw(&key, cx) {
            cx.packets.release(syn);
            context.counters.uncount();
        }
    }
}
