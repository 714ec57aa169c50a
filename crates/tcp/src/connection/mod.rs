//! A TCP connection: the state machine of RFC 9293 and its parts.
//!
//! Sequence numbers are unwrapped to 64 bits on arrival and counted from the SYN. Position 0 is the
//! SYN, position 1 + n is byte n of the stream, and the FIN follows the last byte. Only packets
//! hold 32-bit sequence numbers.
//!
//! | file | contents |
//! |---|---|
//! | `open` | RFC 9293 section 3.5: the handshake, of either side, and simultaneous open |
//! | `input` | RFC 9293 section 3.10.7: processing of an arriving segment |
//! | `fast` | fast paths, and their contract |
//! | `ack` | RFC 9293 section 3.10.7.4 step 5, RFC 5681, RFC 6298: acknowledgments |
//! | `receive` | RFC 9293 section 3.10.7.4 step 7: data, advertised window, ACK policy |
//! | `sender` | RFC 9293 section 3.8: state of the sending half |
//! | `next_segment` | RFC 9293 section 3.8.6.2: selection of the next segment to send |
//! | `output` | RFC 9293 section 3.8: transmission |
//! | `retransmit` | RFC 9293 section 3.8.1: retransmissions; RFC 8985: tail loss probes |
//! | `send_buffer` | growth of the send buffer, and when a write sends at once |
//! | `path_model` | delivery rate samples for model-based congestion control, and pacing |
//! | `timers` | RFC 9293 sections 3.8.1 and 3.8.6.1: timers |
//! | `keep_alive` | RFC 9293 section 3.8.4: keep-alive probes |
//! | `icmp` | RFC 9293 section 3.9.2.2: ICMP errors |
//! | `path_mtu` | RFC 1191, RFC 4821: path MTU discovery |
//! | `close` | RFC 9293 section 3.6: FIN, half-close, RST, TIME-WAIT |
//! | `suspend` | saving idle connections in compact form |
//! | `proxy` | operations for a gateway that splits a connection into two |

mod accepted;
mod ack;
mod close;
mod events;
mod fast;
mod fast_open;
mod icmp;
mod info;
mod input;
mod keep_alive;
mod linux_receive;
mod loss_timers;
mod next_segment;
mod open;
mod output;
mod path_model;
mod proxy;
mod receive;
mod receive_buffer_pruning;
mod retransmit;
mod rtt_measurement;
mod send_buffer;
mod send_state;
mod sender;
mod specialization;
mod state;
mod suspend;
mod timer_expiry;
mod timers;
mod window_probe;

use std::num::NonZeroU32;

use bentpipe_types::{
    BitRate, Ctx, Endpoint, FastOpen, IcmpError, IpVersion, Packet, PacketRef, Port, Seq, Span,
    SynOptions, Time,
};

use serde::{Deserialize, Serialize};

use crate::LinuxQuirks;
use crate::rate_sample::RecoveryPhase;
use crate::recovery::{LossRecovery, Scoreboard};
use crate::statistics::Statistics;
use crate::write_calls::Feed;
use fast::FastPath;
use fast_open::FastOpenState;
use receive::Receive;

#[cfg(test)]
pub(crate) use fast::{TAKEN_PATHS, TakenPath};

pub use accepted::Accepted;
pub use close::reset_reply;
pub use events::Events;
pub use fast_open::{ActiveFastOpen, Opening, PassiveFastOpen};
pub use info::{CongestionState, TcpInfo};
pub use sender::{Admission, Observed, PathLimit, Sender};
pub use state::State;

/// One end of a TCP connection.
///
/// The order of the fields, and of those of its parts, is chosen for the cache
/// (`fast/cache_layout.rs`): fields needed for nearly every segment are adjacent. A connection that
/// receives a packet only now and then is no longer in the cache, and each cache line costs a
/// memory access. Fields that both the sending and the receiving half need for each segment lie
/// where the two halves meet.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Connection {
    // Every segment sent is a filled-in copy of this packet, which occupies one cache line. Fields
    // common to all segments are set in the template before the copy: a partial read directly after
    // a wide copy would stall store forwarding.
    template: Packet,
    // Options offered in our SYN.
    offered: SynOptions,
    peer_mss: Option<u16>,
    // The connection was opened by a SYN that a listening host received.
    passive: bool,
    // The peer's SYN was received again, and our SYN+ACK was retransmitted.
    syn_answered_again: bool,
    receive: Receive,
    /// Data that the socket was asked to send and has not written to the connection yet.
    pub(crate) feed: Option<Feed>,
    // Tick of Linux's clock at which the keep-alive timer expires, without the upper bits; 0 if the
    // timer was never set.
    keep_alive_tick: u32,
    // Keep-alive probes sent since the last segment from the peer.
    unanswered_probes: u16,
    events: Events,
    egress: Port,
    #[serde(skip)]
    fast_path: FastPath,
    state: State,
    sender: Sender,
    // The last ICMP error.
    path_error: Option<IcmpError>,
    fast_open: FastOpenState,
    // Fast Open option of the peer's SYN.
    peer_fast_open: Option<FastOpen>,
    // With ECN negotiated: highest acknowledgment number of an acceptable segment.
    acknowledged_in_window: Seq,
}

impl Connection {
    /// Behaviours of Linux that are enabled.
    #[inline(always)]
    fn quirks(&self) -> &LinuxQuirks {
        self.sender.quirks()
    }

    /// Processes a packet for this connection, and consumes it.
    #[inline(always)]
    pub fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let _ = self.process_segment::<false>(packet, cx);
    }

    /// Like [`on_packet`](Self::on_packet), and returns which part of the payload was accepted, for
    /// a host that keeps real bytes.
    pub fn on_packet_accepting(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) -> Option<Accepted> {
        self.process_segment::<true>(packet, cx)
    }

    /// Runs expired timers. To be called when [`next_deadline`](Self::next_deadline) has come; an
    /// early or late call is harmless.
    pub fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.timers_expire(cx);
    }

    /// Time at which this connection next needs to run without a packet.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.sender.timers.next()
    }

    /// Whether no timer requires work. TIME-WAIT does not count as work, nor do keep-alive probes
    /// while the peer answers them.
    #[must_use]
    pub fn has_no_work(&self) -> bool {
        let timers = &self.sender.timers;
        self.state == State::TimeWait
            || timers.next().is_none()
            || timers.runs_only(timers::Purpose::KeepAlive) && self.unanswered_probes == 0
    }

    /// The next deadline, if it is before `time`.
    #[must_use]
    #[inline]
    pub fn next_deadline_before(&self, time: Time) -> Option<Time> {
        self.sender.timers.next_before(time)
    }

    /// Writes `bytes` more bytes of the stream (RFC 9293 section 3.10.2). Returns how many of them
    /// the send buffer accepted. [`Events::WRITABLE`] is raised once it has room again.
    #[inline(always)]
    pub fn write(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        let accepted = bytes.min(self.writable_at(cx.now));
        self.sender.send.pushed = self.sender.send.end + accepted;
        self.append(bytes, accepted, cx)
    }

    /// Like [`write`](Self::write), with more data to follow at once (Linux's MSG_MORE). A partial
    /// segment waits for the next write, an acknowledgment or one retransmission timeout, and is
    /// sent without PSH.
    pub fn write_more(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        self.sender.send.more = true;
        let accepted = self.append(bytes, bytes.min(self.writable_at(cx.now)), cx);
        self.sender.send.more = false;
        accepted
    }

    /// Like [`write`](Self::write), and ends a record: later data does not share its last segment
    /// (Linux's MSG_EOR).
    pub fn write_record(&mut self, bytes: u64, cx: &mut Ctx<'_>) -> u64 {
        let accepted = bytes.min(self.writable_at(cx.now));
        if accepted == bytes {
            self.sender
                .send
                .records
                .push_back(self.sender.send.end + bytes);
            self.invalidate_fast_path();
        }
        self.write(bytes, cx)
    }

    /// Appends a write of `bytes` bytes, of which the send buffer takes `accepted`.
    #[inline(always)]
    fn append(&mut self, bytes: u64, accepted: u64, cx: &mut Ctx<'_>) -> u64 {
        // tcp_sendmsg checks for an application limit at the start of each call. A blocking call
        // continues without a new check; a non-blocking call is cut short, and the next call checks
        // again.
        if self.sender.delivery_rate.is_some()
            && !(self.sender.send.writer_waits && self.sender.config.blocking_writes)
        {
            self.sender.check_app_limited();
        }
        let waited = self.sender.send.writer_waits;
        let waits = accepted < bytes && !self.sender.send.fin;
        if !self.queue_held_back(accepted, waits, cx.now) {
            self.queue_and_send(accepted, waits, cx);
        }
        if waited && !self.sender.send.writer_waits {
            self.on_writer_done();
        }
        accepted
    }

    /// Queues `accepted` bytes in the send buffer. `writer_waits`: the writer has more.
    #[inline(always)]
    fn queue_written(&mut self, accepted: u64, writer_waits: bool, now: Time) {
        self.sender.send.writer_waits = writer_waits;
        if accepted > 0 {
            self.sender.account_write(accepted, now);
            self.sender.send.end += accepted;
        }
    }

    /// Queues `accepted` bytes in the send buffer and sends what may be sent.
    #[inline(never)]
    fn queue_and_send(&mut self, accepted: u64, writer_waits: bool, cx: &mut Ctx<'_>) {
        let mut left = accepted;
        if self.counts_memory() {
            left -= self.write_buffers(accepted, writer_waits, cx);
        }
        self.queue_written(left, writer_waits, cx.now);
        self.invalidate_fast_path();
        if accepted > 0 {
            self.output(cx);
        }
    }

    /// Turns Nagle's algorithm on or off; `false` is the socket option TCP_NODELAY. Turning it off
    /// sends the data it held back. RFC 9293 section 3.7.4: "an application MUST be able to disable
    /// the Nagle algorithm on an individual connection".
    pub fn set_nagle(&mut self, nagle: bool, cx: &mut Ctx<'_>) {
        self.sender.config_mut().nagle = nagle;
        if !nagle {
            self.flush(cx);
        }
    }

    /// Sets or removes the cork (Linux's TCP_CORK). While corked, partial segments wait for at most
    /// one retransmission timeout. Removing the cork sends them.
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

    /// Sets the size of the send buffer, in bytes.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.send.buffer = bytes.min(1 << 48);
        self.sender.send.sizing = None;
    }

    /// Sets the memory of the send buffer where [memory is counted](crate::Config::send_sizes), and
    /// stops its autotuning (Linux's SO_SNDBUF). Without memory accounting, sets the payload bytes.
    pub fn set_send_memory(&mut self, bytes: u64) {
        match &mut self.sender.send.sizing {
            Some(sizing) => sizing.lock(bytes.min(1 << 48)),
            None => self.set_send_buffer(bytes),
        }
    }

    /// Sets the number of unsent bytes above which writes are not accepted (Linux's
    /// TCP_NOTSENT_LOWAT), for a send buffer that counts memory. `None`: no limit.
    pub fn set_unsent_low_water(&mut self, bytes: Option<NonZeroU32>) {
        if let Some(sizing) = &mut self.sender.send.sizing {
            sizing.set_low_water(bytes);
        }
    }

    /// Polls for room in the send buffer, as an application that waits for any of several
    /// connections does (Linux's poll). If there is none, a send buffer that counts memory may
    /// grow; until it has, [`lacks_room`](Self::lacks_room) is true.
    pub fn poll_room(&mut self) {
        self.sender.note_poll();
    }

    /// Whether the last [poll](Self::poll_room) or [non-blocking
    /// write](Self::note_nonblocking_write) found no room and there still is none. `None`: the send
    /// buffer counts no memory.
    #[must_use]
    pub fn lacks_room(&self) -> Option<bool> {
        let sizing = self.sender.send.sizing.as_ref()?;
        Some(sizing.lacks_room())
    }

    /// Marks the last, partly accepted write as non-blocking (Linux's O_NONBLOCK). The next write
    /// takes whatever room there is.
    pub fn note_nonblocking_write(&mut self) {
        if let Some(sizing) = &mut self.sender.send.sizing {
            sizing.note_short_write();
            self.sender.send.writer_waits = false;
            self.invalidate_fast_path();
        }
    }

    /// Sets how often the SYN is retransmitted before the connection attempt is given up.
    pub fn set_maximum_syn_retransmissions(&mut self, times: u32) {
        let config = self.sender.config_mut();
        config.maximum_syn_retransmissions = times;
        // Measured: with TCP_SYNCNT, Linux 6.18.44 doubles the time.
        config.linux_quirks.handshake.linear_syn_timeouts = false;
    }

    /// Sets how long data may stay unacknowledged before the connection is closed (RFC 5482).
    /// `None`: the configured number of retransmissions applies.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        self.sender.config_mut().user_timeout = timeout;
    }

    /// Bytes that [`write`](Self::write) would accept at `now`.
    #[must_use]
    #[inline]
    pub fn writable_at(&self, now: Time) -> u64 {
        if self.sender.send.fin || self.state == State::Closed {
            return 0;
        }
        self.sender.send_buffer_room(now)
    }

    /// Bytes that [`write`](Self::write) would accept now, without regard to the pacing timer.
    #[must_use]
    #[inline]
    pub fn writable(&self) -> u64 {
        self.writable_at(Time::ZERO)
    }

    /// Reads up to `maximum` bytes that have arrived in order (RFC 9293 section 3.10.3). Returns
    /// how many were read. Reading may open the receive window.
    pub fn read(&mut self, maximum: u64, cx: &mut Ctx<'_>) -> u64 {
        let bytes = maximum.min(self.readable());
        if bytes > 0 {
            let before = self.receive.read;
            self.receive.read += bytes;
            self.receive.invalidate_window_field();
            self.sender.statistics.bytes_delivered += bytes;
            self.sender.statistics.last_delivery_at = Some(cx.now);
            if self.receive.sizing.is_some() {
                self.after_read(before, cx.now);
            }
            let due = self.receive.acknowledge_now;
            let owes = due || self.receive.owes_window_update();
            if owes
                && !due
                && let Some(sizing) = &mut self.receive.sizing
            {
                sizing.mark_unscheduled();
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

    /// With `true`, the application reads in-order data at once, so that nothing is left to
    /// [`read`](Self::read). Data that arrived before the call is read with the next segment.
    pub fn set_sink(&mut self, sink: bool) {
        self.receive.sink = sink;
    }

    /// The connection's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns and clears the events since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// Raises events, to be returned by [`take_events`](Self::take_events).
    pub(crate) fn announce(&mut self, events: Events) {
        self.events |= events;
    }

    /// Whether one of these events is pending. Clears these and keeps the others.
    #[inline]
    pub(crate) fn take_event(&mut self, events: Events) -> bool {
        let has = self.events.has(events);
        self.events = self.events.without(events);
        has
    }

    /// Whether any event is pending.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether one of these events is pending.
    #[must_use]
    pub fn has_event(&self, events: Events) -> bool {
        self.events.has(events)
    }

    /// The connection's counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.sender.statistics
    }

    /// The local endpoint.
    #[must_use]
    pub fn local(&self) -> Endpoint {
        self.template.source
    }

    /// The remote endpoint.
    #[must_use]
    pub fn remote(&self) -> Endpoint {
        self.template.destination
    }

    /// The IP version in use.
    #[must_use]
    pub fn ip_version(&self) -> IpVersion {
        self.sender.config.ip_version
    }

    /// Payload bytes of a full segment, as negotiated with the peer.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.sender.negotiated.segment
    }

    /// The congestion window, in bytes, without the inflation of fast recovery.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.sender.congestion.window().congestion_window
    }

    /// The slow-start threshold, in bytes; `u64::MAX` while unset.
    #[must_use]
    pub fn slow_start_threshold(&self) -> u64 {
        self.sender.congestion.window().slow_start_threshold
    }

    /// Bytes estimated to be in the network.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Whether fast recovery is in progress.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.sender.recovery.is_recovering()
    }

    /// Phase of loss recovery.
    #[must_use]
    pub fn recovery_phase(&self) -> RecoveryPhase {
        self.sender.recovery.phase()
    }

    /// The scoreboard: the outstanding segments.
    #[must_use]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.sender.scoreboard
    }

    /// Bytes that may be in flight: the congestion window, or in fast recovery the window of
    /// proportional rate reduction.
    #[must_use]
    #[inline]
    pub fn sending_window(&self) -> u64 {
        self.sender.sending_window()
    }

    /// Mean deviation of the round-trip times, once there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Span> {
        self.sender.rtt_deviation()
    }

    /// Smoothed round-trip time, once there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.sender.rtt.smoothed()
    }

    /// The retransmission timeout, with backoff.
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

    /// Stream offset of a sequence number of the peer, taking the candidate nearest to RCV.NXT. For
    /// hosts that process real packets, which hold 32-bit numbers.
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

    /// Bytes of the peer's data that have arrived out of order.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.receive.reassembly.bytes()
    }

    /// Advertised receive window that the peer has not used yet, in bytes.
    #[must_use]
    pub fn advertised_window(&self) -> u64 {
        self.receive.window()
    }

    /// The pacing rate; `None`: not paced.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.sender.pacing_rate()
    }

    /// The window that the peer advertised last, in bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.sender.send.window
    }
}

#[cfg(test)]
mod tests;
