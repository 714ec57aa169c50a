//! Reading and writing of frames on a trunk, and what follows from its failure.

use std::mem::take;

use bentpipe_tcp::{Events, Payload, State, reset_reply};
use bentpipe_types::Ctx;

use super::super::split_connection::OPENER;
use super::frame::{Frame, InvalidFrame, MAX_SYN_DATA, ResetReason};
use super::trunk::{CONNECT_RETRY_INTERVAL, MAX_PENDING_RESETS, Trunk};
use super::{
    GatewayContext, Multiplex, PeerNotice, READ_CHUNK, REFUSAL_PAUSE, ReturnedSyn, SynDisposition,
};

impl<P: Payload> Multiplex<P> {
    /// Processes everything that has changed on a trunk.
    pub(super) fn on_trunk_event(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let begins = self.trunks[slot]
            .as_mut()
            .is_some_and(Trunk::note_establishment);
        if begins {
            self.slot_lost[slot] = false;
            let missed = take(&mut self.peer_absent)
                || self.notice.is_some_and(PeerNotice::is_about_absence);
            self.notice = if missed {
                Some(PeerNotice::Recovered)
            } else {
                self.notice
            };
        }
        if self.update_liveness(slot, cx) {
            self.on_recovery(slot, cx);
        }
        let broken = self.read(slot, context, cx).is_err();
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        // A gateway never closes a trunk, so a FIN is an error.
        let ends = trunk.socket.connection().is_peer_done();
        if broken || ends || trunk.pending_resets.len() > MAX_PENDING_RESETS {
            trunk.socket.abort(cx);
        }
        if trunk.socket.state() == State::Closed {
            self.on_trunk_failure(slot, context, cx);
            return;
        }
        self.pump(slot, context, cx);
    }

    /// Updates the liveness of the peer. Returns true if it was suspected down and has answered.
    fn update_liveness(&mut self, slot: usize, cx: &Ctx<'_>) -> bool {
        (self.trunks[slot].as_mut())
            .is_some_and(|trunk| trunk.liveness.update(trunk.socket.connection(), cx.now))
    }

    /// Reads and processes all complete frames.
    pub(super) fn read(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Result<(), InvalidFrame> {
        while let Some(trunk) = &mut self.trunks[slot]
            && trunk.socket.readable() > 0
        {
            let mut inbox = take(&mut trunk.partial_frame);
            let (begins, more) = (inbox.len(), trunk.socket.readable().min(READ_CHUNK as u64));
            inbox.resize(begins + more as usize, 0);
            trunk.socket.read_bytes(&mut inbox[begins..], cx);
            let mut at = 0;
            while let Some((stream, frame, length)) = super::frame::read(&inbox[at..])? {
                at += length;
                self.on_frame(slot, stream, &frame, context, cx)?;
            }
            inbox.drain(..at);
            if inbox.is_empty() && inbox.capacity() > READ_CHUNK {
                inbox = Vec::new();
            }
            if let Some(trunk) = &mut self.trunks[slot] {
                trunk.partial_frame = inbox;
            }
        }
        Ok(())
    }

    pub(super) fn on_frame(
        &mut self,
        slot: usize,
        stream: u32,
        frame: &Frame<'_>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Result<(), InvalidFrame> {
        let others = u32::from(!self.opens_odd_streams(context));
        let Some(trunk) = &mut self.trunks[slot] else {
            return Ok(());
        };
        if let Frame::Open(open) = frame {
            // Stream numbers increase, and their parity shows who has opened the stream.
            if stream % 2 != others
                || trunk
                    .latest_peer_stream
                    .is_some_and(|latest| stream <= latest)
            {
                return Err(InvalidFrame);
            }
            trunk.latest_peer_stream = Some(stream);
            self.on_open((slot, stream), open, context, cx);
            return Ok(());
        }
        // The stream may have been reset here, and the peer not know yet.
        let Some(&index) = trunk.streams.get(&stream) else {
            return Ok(());
        };
        if let Frame::Reset(reason) = frame {
            trunk.streams.remove(&stream);
            self.on_reset(index, *reason, context, cx);
            return Ok(());
        }
        if let Frame::Answer(answered) = frame {
            let of_ours = self
                .connections
                .get_mut(index)
                .is_some_and(|one| one.side == OPENER);
            if !of_ours || usize::from(answered.taken) > MAX_SYN_DATA {
                return Err(InvalidFrame);
            }
            self.on_answer_frame(index, answered, context, cx);
            return Ok(());
        }
        self.update_window_limit(index, context, cx);
        let Some(carried) = self.connections.get_mut(index) else {
            return Ok(());
        };
        match *frame {
            Frame::Data { push, bytes } => {
                if !carried.on_data(push, bytes, cx) {
                    return Err(InvalidFrame);
                }
            }
            Frame::Credit(offset) => carried.on_credit(offset),
            Frame::End => carried.on_end(cx.now),
            Frame::Confirm => carried.on_confirm(cx.now),
            Frame::Open(_) | Frame::Answer(_) | Frame::Reset(_) => {}
        }
        self.advance(index, context, cx);
        Ok(())
    }

    /// Processes a reset frame: the connection does not exist at the other gateway.
    pub(super) fn on_reset(
        &mut self,
        index: u32,
        reason: ResetReason,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.connections.get_mut(index) else {
            return;
        };
        if carried.has_fallback && reason == ResetReason::EarlierConnection {
            // The peer's earlier connection is our fallback connection.
            self.keep_only_fallback(index, None, context, cx);
            return;
        }
        self.cancel_fallback(index, context, cx);
        let Some(carried) = self.connections.get_mut(index) else {
            return;
        };
        carried.abort(cx);
        if let Some(syn) = carried.syn.take() {
            match reason {
                ResetReason::NoMemory => {
                    context.counters.refused += 1;
                    self.returned_syns.push(ReturnedSyn {
                        key: carried.key,
                        syn,
                        from: carried.port,
                        disposition: SynDisposition::Forward,
                    });
                }
                ResetReason::Unreachable => {
                    context.counters.unreachable += 1;
                    cx.packets.release(syn);
                }
                // The host retransmits its SYN until the earlier connection has ended.
                ResetReason::EarlierConnection => cx.packets.release(syn),
                ResetReason::Refused | ResetReason::Reset => {
                    context.counters.refused_by_host += 1;
                    // Answer as the other host would: with a RST that acknowledges the SYN.
                    let port = carried.port;
                    reset_reply(syn, port, cx);
                }
            }
        }
        self.remove(index, None, context, cx);
    }

    /// Removes a failed trunk, and resets the connections that it carried.
    pub(super) fn on_trunk_failure(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        self.return_unsent_syns(slot, context, cx);
        let Some(mut trunk) = self.trunks[slot].take() else {
            return;
        };
        context.budget.change((trunk.reserved, 0), (trunk.held, 0));
        context.counters.trunk_ended(&trunk.socket);
        context.counters.trunks_failed += 1;
        // A SYN from the peer shows that it is, or was, there.
        let reset = trunk.socket.take_events().has(Events::RESET);
        if (trunk.socket.connection().peer_initial_sequence()).is_none() {
            self.pause_until = cx.now
                + if reset {
                    REFUSAL_PAUSE
                } else {
                    CONNECT_RETRY_INTERVAL
                };
            self.note_refusal(reset);
        }
        let mut streams: Vec<_> = trunk.streams.into_iter().collect();
        // Sorted, so that the order is the same in every run.
        streams.sort_unstable();
        for (_, index) in streams {
            let Some(carried) = self.connections.get_mut(index) else {
                continue;
            };
            if carried.has_fallback {
                self.keep_only_fallback(index, None, context, cx);
                continue;
            }
            carried.challenge_remote_host(context.settings.facing, cx);
            carried.abort(cx);
            let from = carried.port;
            // A host that was never answered is sent a RST if the peer may have received the open
            // frame.
            match carried.syn.take() {
                Some(syn) if trunk.was_established => {
                    carried.aborted = true;
                    reset_reply(syn, from, cx);
                }
                Some(syn) => {
                    context.counters.unreachable += 1;
                    cx.packets.release(syn);
                }
                None => carried.aborted = true,
            }
            context.counters.carried_reset += u64::from(carried.aborted);
            self.remove(index, None, context, cx);
        }
        if trunk.was_established {
            self.suspect_all(cx);
            if reset {
                self.notice = Some(PeerNotice::Restarted);
            }
        }
    }

    /// A trunk could not be opened: the peer has refused it, or not answered.
    fn note_refusal(&mut self, refused: bool) {
        match (refused, self.has_usable_trunk()) {
            (true, true) => self.notice = Some(PeerNotice::RefusesMore),
            (true, false) => self.notice = Some(PeerNotice::RefusesAll),
            (false, _) => self.mark_absent(),
        }
    }

    /// Writes control frames, and data as far as possible. Nothing is written to a trunk that is
    /// not established yet, so that its streams may still move elsewhere.
    pub(super) fn pump(&mut self, slot: usize, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        if self.trunks[slot]
            .as_ref()
            .is_some_and(Trunk::is_established)
        {
            self.write_frames(slot, context, cx);
        }
    }

    pub(super) fn write_frames(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let mut scratch = take(&mut self.scratch);
        while let Some(trunk) = &mut self.trunks[slot] {
            trunk.write_resets(&mut scratch, cx);
            let speaks = !trunk.control_queue.is_empty();
            let room = trunk.data_space();
            let next = if speaks && trunk.has_control_space() {
                trunk.control_queue.pop_front()
            } else if !speaks && room.is_some() {
                trunk.data_queue.pop_front()
            } else {
                None
            };
            let Some(stream) = next else {
                break;
            };
            let Some(&index) = trunk.streams.get(&stream) else {
                continue;
            };
            self.update_window_limit(index, context, cx);
            let (Some(carried), Some(trunk)) =
                (self.connections.get_mut(index), &mut self.trunks[slot])
            else {
                continue;
            };
            scratch.clear();
            let at_once = if speaks {
                carried.control_queued = false;
                carried.write_control_frames(&mut scratch, cx);
                true
            } else {
                carried.data_queued = false;
                carried.send(room.unwrap_or(0), &mut scratch, cx)
            };
            trunk.write(&scratch, at_once, cx);
            self.advance(index, context, cx);
        }
        self.scratch = scratch;
        if let Some(trunk) = &mut self.trunks[slot] {
            let holds = trunk.holds();
            context.budget.change((0, 0), (trunk.held, holds));
            trunk.held = holds;
            trunk.liveness.update(trunk.socket.connection(), cx.now);
        }
    }
}
