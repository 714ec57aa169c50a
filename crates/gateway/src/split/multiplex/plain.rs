//! SYNs that go on as they are.
//!
//! What was opened just before the other gateway died was said to it, and is not answered. It may have heard, and have opened
//! the connection already: so it cannot be given a part of its own. But the host's SYN comes again, and then goes on as it came,
//! beside what was said: a gateway that has heard of the connection drops it, as one of a connection that it has. If it is
//! answered, no gateway there has, and the connection is the hosts' own.

use bentpipe_tcp::Payload;
use bentpipe_types::{Ctx, Flags, FlowKey, PacketRef};

use super::frame::Reason;
use super::{Around, Multiplex};

impl<P: Payload> Multiplex<P> {
    /// Is this the SYN of a connection for whose answer the other gateway has been waited for too long?
    pub(in super::super) fn lets_by(
        &mut self,
        index: u32,
        packet: PacketRef,
        cx: &Ctx<'_>,
    ) -> bool {
        let record = cx.packets.get(packet);
        let Some(carried) = self.carried.get_mut(index) else {
            return false;
        };
        let lets = record.flags.opens()
            && carried.syn.is_some()
            && record.sequence == carried.syn_sequence
            && (self.trunks[carried.trunk].as_ref()).is_some_and(|trunk| trunk.vigil.despairs());
        if lets {
            carried.touched = cx.now;
            carried.went_plain = true;
        }
        lets
    }

    /// Is this the other host's answer to such a SYN? Then the connection is none of this gateway's any more, as the other one
    /// hears when it hears again. `key`: of what the host on this side sends.
    pub(in super::super) fn was_let_by(
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
        let Some(carried) = self.carried.get_mut(index).filter(|one| one.went_plain) else {
            return false;
        };
        let Some(syn) = carried.syn else {
            return false;
        };
        let text = u32::from(cx.packets.get(syn).payload_length);
        let answered = acknowledgment - (carried.syn_sequence + 1);
        if answered > text {
            return false;
        }
        let slot = carried.trunk;
        self.remove(index, Some(Reason::Reset), around, cx);
        around.counters.taken_back();
        around.counters.passed += 1;
        self.pump(slot, around, cx);
        true
    }
}
