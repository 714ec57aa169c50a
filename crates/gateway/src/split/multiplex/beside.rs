//! Connections that are opened twice over.
//!
//! What was opened just before the other gateway died was said to it, and is not answered. It may have heard, and have opened
//! the connection already: so the stream cannot be taken back. But the connection gets a part of its own beside it: a gateway that
//! has heard of the stream drops the SYN of that, as one of a connection that it has; so whichever of the two is answered is
//! the only one.

use bentpipe_tcp::Payload;
use bentpipe_types::{Ctx, Flags, FlowKey, PacketRef};

use super::frame::Reason;
use super::{Around, Multiplex, Returned, Way};

impl<P: Payload> Multiplex<P> {
    /// What was said on this persistent connection has waited for too long.
    pub(super) fn open_beside(&mut self, slot: usize, cx: &mut Ctx<'_>) {
        let Some(trunk) = self.trunks[slot].as_ref() else {
            return;
        };
        let mut streams: Vec<_> = trunk.streams.iter().collect();
        // In an order that is the same in every run.
        streams.sort_unstable();
        for (_, &index) in streams {
            let Some(carried) = self.carried.get_mut(index) else {
                continue;
            };
            if let Some(syn) = carried.syn
                && !carried.has_part
            {
                carried.has_part = true;
                cx.packets.retain(syn);
                self.returned.push(Returned {
                    key: carried.key,
                    syn,
                    from: carried.port,
                    way: Way::Beside,
                });
            }
        }
    }

    /// The other host answers over the part: the stream is no more, as the other gateway hears when it hears again. `key`: of
    /// what the host on this side sends.
    pub(in super::super) fn gives_way(
        &mut self,
        key: &FlowKey,
        packet: PacketRef,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let record = cx.packets.get(packet);
        let (flags, acknowledgment) = (record.flags, record.acknowledgment);
        let answers = flags.has(Flags::ACK) && flags.has(Flags::SYN.with(Flags::RST));
        let Some(index) = self.find(key).filter(|_| answers) else {
            return false;
        };
        let Some(carried) = self.carried.get_mut(index).filter(|one| one.has_part) else {
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
        self.leave_to_part(index, Some(Reason::Reset), around, cx);
        self.pump(slot, around, cx);
        true
    }

    /// Only the part goes on.
    pub(super) fn leave_to_part(
        &mut self,
        index: u32,
        reason: Option<Reason>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        self.remove(index, reason, around, cx);
        around.counters.taken_back();
    }

    /// Only the stream goes on, or neither does.
    pub(super) fn drop_part(&mut self, index: u32, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let Some(carried) = self.carried.get_mut(index).filter(|one| one.has_part) else {
            return;
        };
        carried.has_part = false;
        let key = carried.key;
        // It may not have been made yet, or have been given up.
        self.returned.retain(|back| {
            let its = back.way == Way::Beside && back.key == key;
            if its {
                cx.packets.release(back.syn);
            }
            !its
        });
        if let Some((syn, _)) = around.apart.withdraw(&key, cx) {
            cx.packets.release(syn);
            around.counters.taken_back();
        }
    }
}
