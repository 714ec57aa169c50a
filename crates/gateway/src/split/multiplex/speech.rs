//! What the gateways say to each other over a persistent connection: heard, and said.

use std::mem::take;

use bentpipe_tcp::{Events, Payload, State, reset_reply};
use bentpipe_types::Ctx;

use super::super::pair::OPENER;
use super::frame::{Broken, Frame, MOST_ON_SYN, Reason};
use super::trunk::{ASKED_ANEW, MOST_RESETS, Trunk};
use super::{Around, CHUNK, Multiplex, REFUSED, Remark, Returned, Way};

impl<P: Payload> Multiplex<P> {
    /// Something has happened to a persistent connection.
    pub(super) fn look(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let begins = self.trunks[slot]
            .as_mut()
            .is_some_and(Trunk::note_beginning);
        if begins {
            self.lost[slot] = false;
            let missed = take(&mut self.absent) || self.remark.is_some_and(Remark::is_of_absence);
            self.remark = if missed {
                Some(Remark::Back)
            } else {
                self.remark
            };
        }
        if self.note(slot, cx) {
            self.trust(slot, cx);
        }
        let broken = self.read(slot, around, cx).is_err();
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        // Nobody here closes one.
        let ends = trunk.socket.connection().is_peer_done();
        if broken || ends || trunk.resets.len() > MOST_RESETS {
            trunk.socket.abort(cx);
        }
        if trunk.socket.state() == State::Closed {
            self.fail(slot, around, cx);
            return;
        }
        self.pump(slot, around, cx);
    }

    /// Notes what has been heard on a persistent connection. True: it was doubted.
    fn note(&mut self, slot: usize, cx: &Ctx<'_>) -> bool {
        (self.trunks[slot].as_mut())
            .is_some_and(|trunk| trunk.vigil.note(trunk.socket.connection(), cx.now))
    }

    /// Reads what has come.
    pub(super) fn read(
        &mut self,
        slot: usize,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Result<(), Broken> {
        while let Some(trunk) = &mut self.trunks[slot]
            && trunk.socket.readable() > 0
        {
            let mut inbox = take(&mut trunk.inbox);
            let (begins, more) = (inbox.len(), trunk.socket.readable().min(CHUNK as u64));
            inbox.resize(begins + more as usize, 0);
            trunk.socket.read_bytes(&mut inbox[begins..], cx);
            let mut at = 0;
            while let Some((stream, frame, length)) = super::frame::read(&inbox[at..])? {
                at += length;
                self.on_frame(slot, stream, &frame, around, cx)?;
            }
            inbox.drain(..at);
            if inbox.is_empty() && inbox.capacity() > CHUNK {
                inbox = Vec::new();
            }
            if let Some(trunk) = &mut self.trunks[slot] {
                trunk.inbox = inbox;
            }
        }
        Ok(())
    }

    pub(super) fn on_frame(
        &mut self,
        slot: usize,
        stream: u32,
        frame: &Frame<'_>,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) -> Result<(), Broken> {
        let others = u32::from(!self.opens_odd(around));
        let Some(trunk) = &mut self.trunks[slot] else {
            return Ok(());
        };
        if let Frame::Open(open) = frame {
            // Numbers go up, and say who has opened.
            if stream % 2 != others || trunk.latest.is_some_and(|latest| stream <= latest) {
                return Err(Broken);
            }
            trunk.latest = Some(stream);
            self.on_open((slot, stream), open, around, cx);
            return Ok(());
        }
        // A stream that was reset here may not be there yet.
        let Some(&index) = trunk.streams.get(&stream) else {
            return Ok(());
        };
        if let Frame::Reset(reason) = frame {
            trunk.streams.remove(&stream);
            self.on_reset(index, *reason, around, cx);
            return Ok(());
        }
        if let Frame::Answer(answered) = frame {
            let of_ours = self
                .carried
                .get_mut(index)
                .is_some_and(|one| one.side == OPENER);
            if !of_ours || usize::from(answered.taken) > MOST_ON_SYN {
                return Err(Broken);
            }
            self.answered(index, answered, around, cx);
            return Ok(());
        }
        self.prepare(index, around, cx);
        let Some(carried) = self.carried.get_mut(index) else {
            return Ok(());
        };
        match *frame {
            Frame::Data { push, bytes } => {
                if !carried.on_data(push, bytes, cx) {
                    return Err(Broken);
                }
            }
            Frame::Credit(offset) => carried.on_credit(offset),
            Frame::End => carried.on_end(cx.now),
            Frame::Confirm => carried.on_confirm(cx.now),
            Frame::Open(_) | Frame::Answer(_) | Frame::Reset(_) => {}
        }
        self.settle(index, around, cx);
        Ok(())
    }

    /// There is no connection at the other side.
    pub(super) fn on_reset(
        &mut self,
        index: u32,
        reason: Reason,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.carried.get_mut(index) else {
            return;
        };
        if carried.has_part && reason == Reason::Earlier {
            // What the other gateway has is the part.
            self.leave_to_part(index, None, around, cx);
            return;
        }
        self.drop_part(index, around, cx);
        let Some(carried) = self.carried.get_mut(index) else {
            return;
        };
        carried.abort(cx);
        if let Some(syn) = carried.syn.take() {
            match reason {
                Reason::NoRoom => {
                    around.counters.refused += 1;
                    self.returned.push(Returned {
                        key: carried.key,
                        syn,
                        from: carried.port,
                        way: Way::Passes,
                    });
                }
                Reason::Unreachable => {
                    around.counters.unreachable += 1;
                    cx.packets.release(syn);
                }
                // The SYN comes again, until the earlier one is over.
                Reason::Earlier => cx.packets.release(syn),
                Reason::Refused | Reason::Reset => {
                    around.counters.refusals += 1;
                    // As the other host would have: the RST acknowledges the SYN.
                    let port = carried.port;
                    reset_reply(syn, port, cx);
                }
            }
        }
        self.remove(index, None, around, cx);
    }

    /// A persistent connection is no more: neither is what it carried.
    pub(super) fn fail(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        self.withdraw(slot, around, cx);
        let Some(mut trunk) = self.trunks[slot].take() else {
            return;
        };
        around.budget.change((trunk.reserved, 0), (trunk.held, 0));
        around.counters.trunk_ended(&trunk.socket);
        around.counters.trunks_failed += 1;
        // (Where its SYN has come, it is there, or has been.)
        let reset = trunk.socket.take_events().has(Events::RESET);
        if (trunk.socket.connection().peer_initial_sequence()).is_none() {
            self.refused_until = cx.now + if reset { REFUSED } else { ASKED_ANEW };
            self.note_refusal(reset);
        }
        let mut streams: Vec<_> = trunk.streams.into_iter().collect();
        // In an order that is the same in every run.
        streams.sort_unstable();
        for (_, index) in streams {
            let Some(carried) = self.carried.get_mut(index) else {
                continue;
            };
            if carried.has_part {
                self.leave_to_part(index, None, around, cx);
                continue;
            }
            carried.ask_beyond(around.settings.facing, cx);
            carried.abort(cx);
            let from = carried.port;
            // Who was never answered is told if the other gateway may have heard of it.
            match carried.syn.take() {
                Some(syn) if trunk.began => {
                    carried.aborted = true;
                    reset_reply(syn, from, cx);
                }
                Some(syn) => {
                    around.counters.unreachable += 1;
                    cx.packets.release(syn);
                }
                None => carried.aborted = true,
            }
            around.counters.carried_reset += u64::from(carried.aborted);
            self.remove(index, None, around, cx);
        }
        if trunk.began {
            self.doubt(cx);
            if reset {
                self.remark = Some(Remark::Anew);
            }
        }
    }

    /// A persistent connection was not to be had: the other gateway has refused it, or said nothing.
    fn note_refusal(&mut self, refused: bool) {
        match (refused, self.has_trusted()) {
            (true, true) => self.remark = Some(Remark::RefusesMore),
            (true, false) => self.remark = Some(Remark::RefusesAll),
            (false, _) => self.note_absence(),
        }
    }

    /// Writes what there is to say, and data as far as it can go. While a persistent connection is not there yet, what it
    /// is to carry may still go another way, and so nothing is said of it.
    pub(super) fn pump(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        if self.trunks[slot].as_ref().is_some_and(Trunk::is_open) {
            self.write_out(slot, around, cx);
        }
    }

    pub(super) fn write_out(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let mut scratch = take(&mut self.scratch);
        while let Some(trunk) = &mut self.trunks[slot] {
            trunk.tell_resets(&mut scratch, cx);
            let speaks = !trunk.speaking.is_empty();
            let room = trunk.room_for_data();
            let next = if speaks && trunk.has_room() {
                trunk.speaking.pop_front()
            } else if !speaks && room.is_some() {
                trunk.sending.pop_front()
            } else {
                None
            };
            let Some(stream) = next else {
                break;
            };
            let Some(&index) = trunk.streams.get(&stream) else {
                continue;
            };
            self.prepare(index, around, cx);
            let (Some(carried), Some(trunk)) =
                (self.carried.get_mut(index), &mut self.trunks[slot])
            else {
                continue;
            };
            scratch.clear();
            let at_once = if speaks {
                carried.speaking = false;
                carried.speak(&mut scratch, cx);
                true
            } else {
                carried.sending = false;
                carried.send(room.unwrap_or(0), &mut scratch, cx)
            };
            trunk.write(&scratch, at_once, cx);
            self.settle(index, around, cx);
        }
        self.scratch = scratch;
        if let Some(trunk) = &mut self.trunks[slot] {
            let holds = trunk.holds();
            around.budget.change((0, 0), (trunk.held, holds));
            trunk.held = holds;
            trunk.vigil.note(trunk.socket.connection(), cx.now);
        }
    }
}
