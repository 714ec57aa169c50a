//! Closing a connection: FIN, RST, TIME-WAIT.

use bentpipe_types::{Ctx, Flags, Packet, PacketRef, Port, Seq, Time};

use super::{Connection, Events, State};
use crate::options::TIMESTAMPS_LENGTH;
use crate::sender_limits::Limit;
use crate::statistics::{Failure, FailureKind};

impl Connection {
    /// Closes the sending direction (RFC 9293 section 3.10.4). Written data is still sent, followed
    /// by a FIN. Data is received until the peer closes too.
    pub fn close(&mut self, cx: &mut Ctx<'_>) {
        if self.sender.send.fin {
            return;
        }
        self.sender.send.writer_waits = false;
        match self.state {
            State::Closed | State::TimeWait => return,
            State::SynSent if self.sender.send.end == 1 => {
                self.enter_closed(Events::NONE, cx.now);
                return;
            }
            // The FIN is queued until the connection is established. RFC 9293 would discard data
            // written in SYN-SENT; an application that writes everything and closes wants it sent.
            State::SynSent | State::SynReceived => {}
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck => return,
        }
        self.sender.send.fin = true;
        self.output(cx);
    }

    /// Closes both directions, because the application has ended. Like [`close`](Self::close), but
    /// unread and later data is answered with a RST. RFC 9293 section 3.6.1: "its TCP
    /// implementation SHOULD send a RST to show that data was lost" (see also
    /// RFC 2525 section 2.17).
    pub fn abandon(&mut self, cx: &mut Ctx<'_>) {
        self.receive.reader_gone = true;
        self.invalidate_fast_path();
        if let Some(sizing) = &mut self.receive.sizing {
            sizing.discard_unread();
        }
        self.receive.invalidate_window_field();
        // In TIME-WAIT the peer has closed too and is not told about unread data. Its
        // retransmissions must be acknowledged as long as they may arrive (Linux's __tcp_close
        // finds the socket closed; tcp_time_wait has replaced it).
        if self.readable() > 0 && self.state != State::TimeWait {
            if matches!(self.state, State::Closing | State::LastAck) {
                // abort() sends no RST in these states, because the application has closed before.
                let position = self.acceptable_position();
                self.send_reset(self.sender.send.wire(position), true, cx);
            }
            self.abort(cx);
        } else {
            self.close(cx);
        }
    }

    /// Resets the connection in answer to data for an application that has ended.
    pub(super) fn reset_for_data(&mut self, packet: &Packet, cx: &mut Ctx<'_>) {
        self.send_reset(packet.acknowledgment, false, cx);
        self.enter_closed(Events::NONE, cx.now);
    }

    /// Ends the connection at once with a RST to the peer (RFC 9293 section 3.10.5).
    pub fn abort(&mut self, cx: &mut Ctx<'_>) {
        match self.state {
            State::Closed => return,
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => {
                let position = self.acceptable_position();
                self.send_reset(self.sender.send.wire(position), true, cx);
            }
            State::SynSent | State::Closing | State::LastAck | State::TimeWait => {}
        }
        self.enter_closed(Events::NONE, cx.now);
    }

    /// Moves to CLOSED, with `why` among the events.
    pub(super) fn enter_closed(&mut self, why: Events, now: Time) {
        if let Some(why) = self.failure_kind(why) {
            self.sender.statistics.failure = Some(Failure { at: now, why });
        }
        self.state = State::Closed;
        self.invalidate_fast_path();
        self.events |= Events::CLOSED | why;
        self.sender.timers.stop_all();
        self.receive.acknowledge_now = false;
        self.sender.send.writer_waits = false;
        self.sender.statistics.limited.set(Limit::Idle, now);
    }

    /// The kind of failure that closing for this reason is in the current state.
    fn failure_kind(&self, why: Events) -> Option<FailureKind> {
        if why.has(Events::TIMED_OUT) {
            return Some(FailureKind::TimedOut);
        }
        if why.has(Events::UNREACHABLE) {
            return Some(FailureKind::Unreachable);
        }
        // RFC 9293 section 3.10.7.3 and section 3.10.7.4 step 2: before the handshake is complete,
        // a RST means that the connection was refused.
        let refused = matches!(self.state, State::SynSent | State::SynReceived);
        why.has(Events::RESET).then_some(if refused {
            FailureKind::Refused
        } else {
            FailureKind::Reset
        })
    }

    /// Sends a RST with this sequence number, and with an acknowledgment if the peer's SYN was
    /// received.
    pub(super) fn send_reset(&mut self, sequence: Seq, acknowledge: bool, cx: &mut Ctx<'_>) {
        let mut packet = self.bare_template();
        packet.sequence = sequence;
        packet.flags = Flags::RST;
        if acknowledge {
            packet.flags = Flags::RST.with(Flags::ACK);
            packet.acknowledgment = self.receive.wire();
            // RFC 7323 section 3.2 and RFC 7323 section 5.2: a RST carries timestamps too, once
            // negotiated.
            if self.sender.negotiated.timestamps {
                packet.header_length += TIMESTAMPS_LENGTH;
                let stamp = self.sender.config.clock.timestamp(cx.now);
                packet.set_timestamps(stamp, self.receive.timestamp_recent);
            }
        }
        self.sender.statistics.control_segments_sent += 1;
        let reference = cx.packets.insert(packet);
        let told = acknowledge && self.quirks().acks.sends_sack_in_reset;
        if told && self.sender.negotiated.sack && self.receive.has_blocks() {
            self.add_sack(reference, 0, cx);
        }
        cx.emit(self.egress, reference);
    }

    /// Changes the state when our FIN is acknowledged (RFC 9293 section 3.10.7.4 step 5).
    pub(super) fn fin_acknowledged(&mut self, cx: &Ctx<'_>) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.start_keep_alive_timer(cx.now);
            }
            State::Closing => self.enter_time_wait(cx.now),
            State::LastAck => self.enter_closed(Events::NONE, cx.now),
            _ => {}
        }
    }

    /// Changes the state when the peer's FIN is in order (RFC 9293 section 3.10.7.4 step 8).
    pub(super) fn on_peer_fin(&mut self, cx: &Ctx<'_>) {
        self.events |= Events::PEER_CLOSED;
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(cx.now),
            _ => {}
        }
    }
}

/// Answers a segment that belongs to no connection and no listener (RFC 9293 section 3.5.2,
/// RFC 9293 section 3.10.7.1), with the addresses swapped. Consumes it.
pub fn reset_reply(packet: PacketRef, egress: Port, cx: &mut Ctx<'_>) {
    let segment = *cx.packets.get(packet);
    let ip = cx.packets.ip(packet);
    cx.packets.release(packet);
    if segment.flags.has(Flags::RST) {
        return;
    }
    let mut reply = Packet::new(segment.destination, segment.source, segment.ip_version());
    if segment.flags.has(Flags::ACK) {
        reply.sequence = segment.acknowledgment;
        reply.flags = Flags::RST;
    } else {
        reply.acknowledgment = segment.sequence_end();
        reply.flags = Flags::RST.with(Flags::ACK);
    }
    let reply = cx.packets.insert(reply);
    if let Some((source, destination)) = ip {
        cx.packets.set_ip(reply, (destination, source));
    }
    cx.emit(egress, reply);
}
