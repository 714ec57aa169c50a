//! A connection: the state machine of RFC 9293, and what hangs from it.
//!
//! Sequence numbers are unwrapped to 64 bits as soon as they come in, and counted from the SYN:
//! position 0 is the SYN, position 1 + n is byte n of the stream, and the FIN follows the last byte.
//! Only packets hold 32-bit sequence numbers.
//!
//! | file | RFC 9293 |
//! |---|---|
//! | `open` | 3.5: the handshake, both sides and at once |
//! | `input` | 3.10.7: what a segment does, in the order of the RFC |
//! | `prediction` | the same, shorter, for what nearly every segment is |
//! | `known` | what is known of a connection on these shorter ways |
//! | `ack` | 3.10.7.4 step 5, RFC 5681, RFC 6298: what an acknowledgment does |
//! | `receive` | 3.10.7.4 step 7: text, the window we advertise, when to acknowledge |
//! | `sender` | 3.8: the sender's half: what was sent, what arrived, how much may be in flight |
//! | `next` | 3.8.6.2: what may be sent next |
//! | `output` | 3.8: sending it |
//! | `retransmit` | 3.8.1: what is sent again, and tail loss probes (RFC 8985) |
//! | `room` | the send buffer: when it grows, and what leaves at once |
//! | `path` | what a window rule that models the path is told; pacing |
//! | `timers` | 3.8.1, 3.8.6.1: retransmission, zero-window probes, delayed acknowledgments |
//! | `keep_alive` | 3.8.4: is a silent peer still there |
//! | `icmp` | 3.9.2.2: what the path says of a segment that did not arrive |
//! | `path_mtu` | how long packets may be (RFC 1191, RFC 4821) |
//! | `close` | 3.6: FIN, half-close, RST, TIME-WAIT |
//! | `fetch` | a connection that a packet will come to is asked for from memory |
//! | `rest` | a connection of which nothing is under way |
//! | `middle` | what a gateway asks for that has a connection with each of two hosts |

mod ack;
mod close;
mod ecn;
mod events;
mod fast_open;
mod fetch;
mod full_buffer;
mod icmp;
mod info;
mod input;
mod keep_alive;
mod known;
mod layout;
mod middle;
mod next;
mod open;
mod output;
mod path;
mod path_mtu;
mod prediction;
mod receive;
mod rest;
mod retransmit;
mod retransmit_alike;
mod room;
mod round_trip;
mod send;
mod sender;
mod sized;
mod state;
mod timers;

use std::num::NonZeroU32;

use bentpipe_types::{
    BitRate, Ctx, Endpoint, FastOpen, IcmpError, IpVersion, Packet, PacketRef, Port, Seq, Span,
    SynOptions, Time,
};

use serde::{Deserialize, Serialize};

use crate::rate_sample::RecoveryPhase;
use crate::recovery::{LossRecovery, Scoreboard};
use crate::socket::Feed;
use crate::statistics::Statistics;
use fast_open::FastOpening;
use prediction::{Foresight, Way};

#[cfg(test)]
pub(crate) use prediction::{TAKEN, Way as ShortWay};
use receive::Receive;

pub use close::reset_reply;
pub use events::Events;
pub use fast_open::{ActiveFastOpen, Opening, PassiveFastOpen};
pub use info::{CongestionState, TcpInfo};
pub use path_mtu::PathLimit;
pub use sender::{Admission, Observed, Sender};
pub use state::State;

/// Payload of an arriving segment that lies in the window. A host that keeps real bytes copies
/// `payload[skip..skip + length]` to `offset`; what was there already is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Offset in the peer's stream of the first accepted byte.
    pub offset: u64,
    /// Bytes accepted.
    pub length: u32,
    /// Bytes of the segment's payload before the first accepted one.
    pub skip: u32,
}

/// One end of a TCP connection.
///
/// In this order, and its parts in theirs, so that what nearly every segment needs lies together, and what few do lies
/// together: a user's end who has a packet now and then has left the cache, and each line of it is waited for
/// (`layout`). What either end needs of each segment lies on both sides of where the halves meet.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Connection {
    // Every segment is a copy of this one, filled in. It is a cache line. (What all have is in it before: what has just
    // been copied as a whole takes long to be read in part.)
    template: Packet,
    // The options of our SYN.
    offered: SynOptions,
    peer_mss: Option<u16>,
    // It came of a SYN that a listening host received.
    passive: bool,
    // The peer's SYN has come again, and our SYN+ACK has gone again.
    syn_answered_again: bool,
    receive: Receive,
    /// What its socket has been fed and not written yet.
    pub(crate) feed: Option<Feed>,
    // With which tick of Linux's clock the timer of keep-alive expires, without the upper bits; 0: it was never set.
    keep_alive_tick: u32,
    // Keep-alive probes, since the peer said something.
    unanswered_probes: u16,
    events: Events,
    egress: Port,
    #[serde(skip)]
    foresight: Foresight,
    state: State,
    sender: Sender,
    // What ICMP last said.
    path_error: Option<IcmpError>,
    fast_open: FastOpening,
    // Of the peer's SYN.
    peer_fast_open: Option<FastOpen>,
    // Where both ends have agreed on ECN: so far an acceptable segment has acknowledged what was sent.
    acknowledged_in_window: Seq,
}

impl Connection {
    /// A packet for this connection has arrived. Consumes it.
    #[inline(always)]
    pub fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let _ = self.segment_arrives::<false>(packet, cx);
    }

    /// Like [`on_packet`](Self::on_packet), and says which part of the payload was accepted, for a
    /// host that keeps real bytes.
    pub fn on_packet_accepting(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) -> Option<Accepted> {
        self.segment_arrives::<true>(packet, cx)
    }

    /// [`next_deadline`](Self::next_deadline) has come. Too early, or too late, does no harm.
    pub fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.timers_expire(cx);
    }

    /// When this connection next wants to run without a packet.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.sender.timers.next()
    }

    /// Is there nothing to do of itself? To remember the connection in TIME-WAIT is not, nor to ask now and then
    /// whether a silent peer is still there, as long as it answers.
    #[must_use]
    pub fn has_no_work(&self) -> bool {
        let timers = &self.sender.timers;
        self.state == State::TimeWait
            || timers.next().is_none()
            || timers.runs_only(timers::Purpose::KeepAlive) && self.unanswered_probes == 0
    }

    /// The same, if it is before this time.
    #[must_use]
    #[inline]
    pub fn next_deadline_before(&self, time: Time) -> Option<Time> {
        self.sender.timers.next_before(time)
    }

    /// Writes `bytes` more bytes of the stream. Returns how many the send buffer took; once it has
    /// room again, [`Events::WRITABLE`] says so.
    #[inline(always)]
    pub fn write(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        let accepted = bytes.min(self.writable_at(cx.now));
        self.sender.send.pushed = self.sender.send.end + accepted;
        self.append(bytes, accepted, cx)
    }

    /// Like [`write`](Self::write), with more to come at once (Linux's MSG_MORE): a segment that
    /// isn't full waits until the next write, or acknowledgment, or a retransmission timeout at
    /// most; and nothing says PSH.
    pub fn write_more(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        self.sender.send.more = true;
        let accepted = self.append(bytes, bytes.min(self.writable_at(cx.now)), cx);
        self.sender.send.more = false;
        accepted
    }

    /// Like [`write`](Self::write), and what comes after does not go into the same segment (Linux's
    /// MSG_EOR).
    pub fn write_record(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        let accepted = bytes.min(self.writable_at(cx.now));
        if accepted == bytes {
            self.sender
                .send
                .records
                .push_back(self.sender.send.end + bytes);
            self.changed();
        }
        self.write(bytes, cx)
    }

    /// Of these bytes, the send buffer takes `accepted`.
    #[inline(always)]
    fn append(&mut self, bytes: u64, accepted: u64, cx: &mut Ctx<'_>) -> u64 {
        // tcp_sendmsg asks at the beginning of each call. One that blocks goes on without; one that does not is cut
        // short, and the next begins.
        if self.sender.delivery_rate.is_some()
            && !(self.sender.send.writer_waits && self.sender.config.blocking_writes)
        {
            self.sender.check_app_limited();
        }
        let held_up = self.is_held_up(cx.now);
        let waited = self.sender.send.writer_waits;
        let waits = accepted < bytes && !self.sender.send.fin;
        if held_up {
            self.took(accepted, waits, cx.now);
            Way::Write.taken();
        } else {
            self.take_and_send(accepted, waits, cx);
        }
        if waited && !self.sender.send.writer_waits {
            self.waits_no_longer();
        }
        accepted
    }

    /// The send buffer takes `accepted` bytes, and the writer has more, or not.
    #[inline(always)]
    fn took(&mut self, accepted: u64, writer_waits: bool, now: Time) {
        self.sender.send.writer_waits = writer_waits;
        if accepted > 0 {
            self.sender.before_write(accepted, now);
            self.sender.send.end += accepted;
        }
    }

    /// The send buffer takes `accepted` bytes, which may have something to let out.
    #[inline(never)]
    fn take_and_send(&mut self, accepted: u64, writer_waits: bool, cx: &mut Ctx<'_>) {
        let mut left = accepted;
        if self.counts_memory() {
            left -= self.write_buffers(accepted, writer_waits, cx);
        }
        self.took(left, writer_waits, cx.now);
        self.changed();
        if accepted > 0 {
            self.output(cx);
        }
    }

    /// Nagle's algorithm, from now on: `false` is the socket option TCP_NODELAY. What it held back
    /// goes out.
    pub fn set_nagle(&mut self, nagle: bool, cx: &mut Ctx<'_>) {
        self.sender.config_mut().nagle = nagle;
        if !nagle {
            self.flush(cx);
        }
    }

    /// While corked, segments that aren't full wait (Linux's TCP_CORK), a retransmission timeout at
    /// most. What was held back goes out with the cork.
    pub fn set_cork(&mut self, cork: bool, cx: &mut Ctx<'_>) {
        self.sender.send.cork = cork;
        if !cork {
            self.flush(cx);
        }
    }

    fn flush(&mut self, cx: &mut Ctx<'_>) {
        let cork = std::mem::take(&mut self.sender.send.cork);
        self.output(cx);
        self.sender.send.cork = cork;
    }

    /// The send buffer, from now on, in bytes.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.send.buffer = bytes.min(1 << 48);
        self.sender.send.sizing = None;
    }

    /// The memory of the send buffer, from now on, where [memory is counted](crate::Config::send_sizes): it does not grow any
    /// more (Linux's SO_SNDBUF). Elsewhere, so many bytes of payload.
    pub fn set_send_memory(&mut self, bytes: u64) {
        match &mut self.sender.send.sizing {
            Some(sizing) => sizing.lock(bytes.min(1 << 48)),
            None => self.set_send_buffer(bytes),
        }
    }

    /// Where so many bytes are unsent, no more are taken, from now on (Linux's TCP_NOTSENT_LOWAT, for a send buffer that counts
    /// memory); `None`: any.
    pub fn set_unsent_low_water(&mut self, bytes: Option<NonZeroU32>) {
        if let Some(sizing) = &mut self.sender.send.sizing {
            sizing.set_low_water(bytes);
        }
    }

    /// Whoever waits for any of many connections asks whether this one has room (Linux's poll). If not, a send buffer that counts
    /// memory may grow for it, and [`lacks_room`](Self::lacks_room) until it has.
    pub fn poll_room(&mut self) {
        self.sender.polled();
    }

    /// Was whoever [asked](Self::poll_room) last, or wrote [without waiting](Self::does_not_wait), told that there is no room, and
    /// is there none still? `None`: the send buffer counts no memory.
    #[must_use]
    pub fn lacks_room(&self) -> Option<bool> {
        let sizing = self.sender.send.sizing.as_ref()?;
        Some(sizing.lacks_room())
    }

    /// The last write was cut short, and does not wait (Linux's O_NONBLOCK): the next takes what there is room for, however little
    /// that is.
    pub fn does_not_wait(&mut self) {
        if let Some(sizing) = &mut self.sender.send.sizing {
            sizing.was_cut_short();
            self.sender.send.writer_waits = false;
            self.changed();
        }
    }

    /// How often the SYN goes again before the connection is given up, from now on.
    pub fn set_maximum_syn_retransmissions(&mut self, times: u32) {
        let config = self.sender.config_mut();
        config.maximum_syn_retransmissions = times;
        // (Measured: with TCP_SYNCNT, Linux 6.18.44 doubles the time.)
        config.habits.spaces_syns_evenly = false;
    }

    /// How long data may stay unacknowledged before the connection is given up (RFC 5482); `None`:
    /// as many retransmissions as the configuration says.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        self.sender.config_mut().user_timeout = timeout;
    }

    /// Bytes that [`write`](Self::write) would take at this time.
    #[must_use]
    #[inline]
    pub fn writable_at(&self, now: Time) -> u64 {
        if self.sender.send.fin || self.state == State::Closed {
            return 0;
        }
        self.sender.room_in_send_buffer(now)
    }

    /// Bytes that [`write`](Self::write) would take now, whether the pacer's time has come or not.
    #[must_use]
    #[inline]
    pub fn writable(&self) -> u64 {
        self.writable_at(Time::ZERO)
    }

    /// Reads up to `maximum` bytes that have arrived in order, and returns how many. That may open
    /// the window.
    pub fn read(&mut self, maximum: u64, cx: &mut Ctx<'_>) -> u64 {
        let bytes = maximum.min(self.readable());
        if bytes > 0 {
            let before = self.receive.read;
            self.receive.read += bytes;
            self.receive.reconsider_window();
            self.sender.statistics.bytes_delivered += bytes;
            self.sender.statistics.last_delivery_at = Some(cx.now);
            if self.receive.sizing.is_some() {
                self.has_read(before, cx.now);
            }
            let due = self.receive.acknowledge_now;
            let owes = due || self.receive.owes_window_update();
            if owes
                && !due
                && let Some(sizing) = &mut self.receive.sizing
            {
                sizing.is_unasked();
            }
            if self.state.can_receive() && owes {
                self.receive.acknowledge_now = true;
                self.output(cx);
            }
        }
        bytes
    }

    /// Bytes that have arrived in order and were not read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receive.in_order_end() - self.receive.read
    }

    /// With `true`, the application reads whatever arrives, the moment it is in order: there is
    /// never anything left to [`read`](Self::read). What has arrived before waits for the next
    /// segment.
    pub fn set_sink(&mut self, sink: bool) {
        self.receive.sink = sink;
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What has happened since this was last asked.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// To be taken with what else has happened.
    pub(crate) fn announce(&mut self, events: Events) {
        self.events |= events;
    }

    /// Has one of these happened since this was last asked? Others stay to be taken.
    #[inline]
    pub(crate) fn take_event(&mut self, events: Events) -> bool {
        let has = self.events.has(events);
        self.events = self.events.without(events);
        has
    }

    /// Has anything happened since [`take_events`](Self::take_events)?
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Is one of these among them?
    #[must_use]
    pub fn has_event(&self, events: Events) -> bool {
        self.events.has(events)
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.sender.statistics
    }

    /// This end.
    #[must_use]
    pub fn local(&self) -> Endpoint {
        self.template.source
    }

    /// The other end.
    #[must_use]
    pub fn remote(&self) -> Endpoint {
        self.template.destination
    }

    /// The version of IP below.
    #[must_use]
    pub fn ip_version(&self) -> IpVersion {
        self.sender.config.ip_version
    }

    /// Payload of a full segment, as agreed with the peer.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.sender.negotiated.segment
    }

    /// The congestion window, in bytes, without the inflation of fast recovery.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.sender.congestion.window().congestion_window
    }

    /// The slow-start threshold, in bytes; `u64::MAX` while there is none.
    #[must_use]
    pub fn slow_start_threshold(&self) -> u64 {
        self.sender.congestion.window().slow_start_threshold
    }

    /// Bytes believed to be in the network.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Is fast recovery under way?
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.sender.recovery.is_recovering()
    }

    /// Where loss recovery stands.
    #[must_use]
    pub fn recovery_phase(&self) -> RecoveryPhase {
        self.sender.recovery.phase()
    }

    /// What was sent and is not acknowledged, segment by segment.
    #[must_use]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.sender.scoreboard
    }

    /// Bytes that may be in flight: the congestion window, or what proportional rate reduction
    /// makes of it in fast recovery.
    #[must_use]
    #[inline]
    pub fn sending_window(&self) -> u64 {
        self.sender.sending_window()
    }

    /// The mean deviation of round-trip times, once there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Span> {
        self.sender.rtt_deviation()
    }

    /// The smoothed round-trip time, once there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.sender.rtt.smoothed()
    }

    /// The retransmission timeout, backed off.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.sender.rtt.rto()
    }

    /// Bytes written by the application.
    #[must_use]
    pub fn written_offset(&self) -> u64 {
        self.sender.send.end - 1
    }

    /// Stream offset after the highest byte sent.
    #[must_use]
    pub fn sent_offset(&self) -> u64 {
        self.sender.send.offset(self.sender.send.sequence.highest)
    }

    /// Stream offset up to which the peer has acknowledged.
    #[must_use]
    pub fn acknowledged_offset(&self) -> u64 {
        self.sender
            .send
            .offset(self.sender.send.sequence.unacknowledged)
    }

    /// Stream offset up to which the application has read the peer's data.
    #[must_use]
    pub fn delivered_offset(&self) -> u64 {
        self.receive.read - 1
    }

    /// The offset in the peer's stream that a sequence number of its stands for, if it is the
    /// nearest such to what is expected next. For a host of real packets, which do not say it.
    #[must_use]
    pub fn offset_of(&self, sequence: Seq) -> u64 {
        let after = i64::from(sequence.distance_from(self.receive.wire()));
        self.receive.next.wrapping_sub(1).wrapping_add_signed(after)
    }

    /// Stream offset up to which the peer's data has arrived in order.
    #[must_use]
    pub fn received_offset(&self) -> u64 {
        self.receive.in_order_end() - 1
    }

    /// Bytes of the peer's data that have arrived ahead of a gap.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.receive.reassembly.bytes()
    }

    /// Bytes of window that we have last advertised and the peer has not yet used.
    #[must_use]
    pub fn advertised_window(&self) -> u64 {
        self.receive.window()
    }

    /// The rate at which segments may leave; `None`: at any.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.sender.pacing_rate()
    }

    /// The window that the peer has last advertised, in bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.sender.send.window
    }
}

#[cfg(test)]
mod tests;
