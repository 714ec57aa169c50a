//! Linux's autotuning of the receive buffer, and its ACK policy: `tcp_input.c` and `tcp_output.c`
//! of Linux 6.18.
//!
//! Two mechanisms open the window. Every arriving segment may extend it by two segments, up to what
//! the buffer holds (`tcp_grow_window`). Once per round trip the buffer is enlarged according to
//! what the application has read (`tcp_rcv_space_adjust`, after Dynamic Right-Sizing, Fisk and Feng
//! 2001). The buffer counts memory, not payload: the true size of a segment includes headers and
//! the rounding of the allocator.

use bentpipe_types::{Flags, Packet, Span, Time, fetch};
use serde::{Deserialize, Serialize};

use crate::HostClock;
use crate::config::BufferSizes;
use crate::options::TIMESTAMPS_LENGTH;
use skb_memory::{Buffer, Memory, Placed, Pressure, RATIO_UNIT, true_size};

pub(crate) use ack_policy::{AckTime, INITIAL_ACK_DELAY};
pub(crate) use stream_state::StreamState;

mod ack_policy;
mod skb_memory;
mod stream_state;

/// Linux's TCP_MSS_DEFAULT and TCP_MIN_MSS, for tcp_initialize_rcv_mss.
const DEFAULT_MSS: u32 = 536;
const MINIMUM_MSS: u32 = 88;

/// Lengths of a TCP header without options, of the timestamps option, and of an IP header.
const MINIMUM_HEADER: u32 = 20;
const TIMESTAMPS: u32 = TIMESTAMPS_LENGTH as u32;
const IP_HEADER: u32 = 20;

/// Length of a segment without payload, with its IP header.
const BARE_SEGMENT: u32 = 40;

/// Linux's TCP_INIT_CWND.
const INITIAL_WINDOW: u64 = 10;

/// Minimum payload of a segment that may grow the window: tcp_event_data_recv.
const MINIMUM_GROWTH_SEGMENT: u32 = 128;

/// Before any data arrives, half of the buffer's memory is assumed to be payload:
/// TCP_DEFAULT_SCALING_RATIO.
const INITIAL_RATIO: u8 = 128;

/// A segment with payload as seen by the receive buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Payload bytes.
    pub(crate) length: u32,
    /// Length of the packet in bytes, including the IP header.
    pub(crate) packet: u32,
    /// Timestamps were negotiated.
    pub(crate) stamped: bool,
    /// Flags. With PSH the sender has no more data for now; with PSH or FIN the segment may be
    /// short (TCP_REMNANT).
    pub(crate) flags: Flags,
    /// The timestamp echoed.
    pub(crate) echo: Option<u32>,
    /// It is in order, and its ECN mark requires quick acknowledgments (tcp_data_ecn_check).
    pub(crate) schedules_quick_acks: bool,
}

/// Result of pruning a full buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PruneResult {
    /// There is room now.
    pub(crate) found: bool,
    /// There is data that the application has not read.
    pub(crate) queued: bool,
    /// Start of the out-of-order data that was discarded.
    pub(crate) thrown_from: Option<u64>,
}

/// Linux's receive buffer. Fields needed for each segment occupy two cache lines, the others a
/// third.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct ReceiveBufferAutotuning {
    // lrcvtime, in whole ticks if `ticks`.
    data_at: Option<Time>,
    // sk_rcvbuf
    buffer: u64,
    // window_clamp
    clamp: u64,
    // rcv_ssthresh
    threshold: u64,
    // tp->rcv_wnd: the window last advertised.
    window: u64,
    // Memory used by a segment of `segment` bytes.
    true_size: u64,
    // rcv_mss
    segment: u32,
    // The echo of the last round-trip sample.
    echo: u32,
    // rcv_rtt_est: in eighths of a microsecond, or 0; and the window being timed.
    rtt: u64,
    rtt_end: u64,
    rtt_at: Option<Time>,
    // rcvq_space: start of the current measurement of the bytes read per round trip.
    space_at: Time,
    // SOCK_RCVBUF_LOCK: no autotuning.
    fixed: bool,
    // The ACK delay has the granularity of kernel ticks.
    ticks: bool,
    // Usage is counted by kernel buffers, not by payload.
    counted: bool,
    // scaling_ratio, in 256ths.
    ratio: u8,
    // icsk_ack: quick, pingpong, pending: 1 with ICSK_ACK_PUSHED, 2 with ICSK_ACK_PUSHED2
    quick: u8,
    interactive: bool,
    pushed: u8,
    // dup_ack_counter, compressed_ack
    duplicates: u8,
    compressed: u8,
    // `memory` is not empty.
    has_record: bool,
    // Clock of the timestamps and of the ticks.
    clock: HostClock,
    // last_seg_size: length of the previous segment, if it was shorter than a full one.
    short: u32,
    // The next acknowledgment was not scheduled by new data: it answers an unacceptable segment or
    // updates the window.
    unscheduled: bool,
    // Memory of a segment that is read at once, until it is read, if `memory` exists and need not
    // record it.
    unrecorded: u32,
    // icsk_ack.ato: delay of an acknowledgment.
    ack_delay: Span,
    // TCP_ATO_MIN: initial value of the delay.
    initial_ack_delay: Span,
    // rcvq_space: bytes read in a round trip, and start position of the next measurement.
    space: u64,
    space_from: u64,
    // tcp_rmem[2]
    most: u64,
    // advmss
    announced: u64,
    // compressed_ack_rcv_nxt
    duplicates_at: u64,
    // Usage of the buffer, if `counted`, from the first time that something must be recorded;
    // otherwise computed from the payload.
    memory: Option<Box<Memory>>,
}

impl ReceiveBufferAutotuning {
    /// See [`Connection::prefetch_more`](crate::Connection::prefetch_more).
    #[inline]
    pub(crate) fn prefetch(&self) {
        fetch(&self.data_at, 3);
    }

    /// Creates a buffer of these sizes.
    pub(crate) fn new(sizes: BufferSizes) -> Self {
        Self {
            most: sizes.most.max(sizes.initial),
            fixed: sizes.locked,
            ticks: false,
            counted: true,
            buffer: sizes.initial,
            ratio: INITIAL_RATIO,
            clamp: u64::MAX,
            threshold: 0,
            window: 0,
            announced: 0,
            segment: DEFAULT_MSS,
            true_size: 2 * u64::from(DEFAULT_MSS),
            space: 0,
            space_from: 0,
            space_at: Time::ZERO,
            rtt: 0,
            rtt_end: 0,
            rtt_at: None,
            echo: 0,
            data_at: None,
            quick: 0,
            interactive: false,
            pushed: 0,
            duplicates_at: 0,
            duplicates: 0,
            compressed: 0,
            has_record: false,
            short: 0,
            unscheduled: false,
            unrecorded: 0,
            clock: HostClock::default(),
            ack_delay: INITIAL_ACK_DELAY,
            initial_ack_delay: INITIAL_ACK_DELAY,
            memory: None,
        }
    }

    /// Creates a buffer of fixed size (SO_RCVBUF) for a window of `window` bytes with full segments
    /// in packets of `packet` bytes. It does not determine the advertised window.
    pub(crate) fn fixed(window: u64, segment: u32, packet: u32) -> Self {
        Self {
            counted: false,
            ..Self::new(BufferSizes::locked(memory_for(window, segment, packet)))
        }
    }

    /// Sets the maximum window before a full segment arrives, if given.
    pub(crate) fn with_clamp(self, clamp: Option<u64>) -> Self {
        Self {
            clamp: clamp.unwrap_or(self.clamp),
            ..self
        }
    }

    /// Sets the host's clock.
    pub(crate) fn with_clock(self, clock: HostClock) -> Self {
        Self { clock, ..self }
    }

    /// Sets the initial delay of acknowledgments, and whether delays are in whole ticks.
    pub(crate) fn with_ack_delay(self, ack_delay: Option<Span>, ticks: bool) -> Self {
        let ack_delay = ack_delay.unwrap_or(INITIAL_ACK_DELAY);
        Self {
            ack_delay,
            initial_ack_delay: ack_delay,
            ticks,
            ..self
        }
    }

    /// The record of the usage, created if necessary, if usage is [counted](Self::counted).
    fn record(&mut self) -> Option<&mut Memory> {
        self.has_record |= self.counted;
        self.counted
            .then(|| &mut **self.memory.get_or_insert_with(Box::default))
    }

    /// The record of the usage, if it is not empty: otherwise its memory is not accessed.
    #[inline]
    fn nonempty_record(&mut self) -> Option<&mut Memory> {
        self.memory.as_deref_mut().filter(|_| self.has_record)
    }

    /// Estimate of the peer's full segment, in bytes.
    pub(crate) fn segment(&self) -> u64 {
        u64::from(self.segment)
    }

    /// tcp_win_from_space: the payload that this much memory holds.
    fn payload_in(&self, memory: u64) -> u64 {
        memory.saturating_mul(u64::from(self.ratio)) / RATIO_UNIT
    }

    /// sk_rmem_alloc: the memory that this much payload uses.
    fn memory_of(&self, payload: u64) -> u64 {
        payload.saturating_mul(self.true_size) / u64::from(self.segment.max(1))
    }

    /// tcp_space: the payload for which the buffer has room.
    fn room(&self, stream: &StreamState) -> u64 {
        let used = match self.memory.as_deref() {
            Some(memory) if self.has_record => memory.used(),
            Some(_) => u64::from(self.unrecorded),
            None => {
                let queued = stream.next.saturating_sub(stream.read) + stream.ahead;
                self.memory_of(queued)
            }
        };
        self.payload_in(self.buffer.saturating_sub(used))
    }

    /// tcp_select_initial_window: the window of a SYN, in whole segments of `unit` bytes.
    pub(crate) fn initial_window(&mut self, unit: u64) -> u64 {
        let space = self.payload_in(self.buffer).min(self.clamp);
        let window = if space > unit {
            space - space % unit.max(1)
        } else {
            space
        };
        self.window = window;
        self.threshold = window;
        window
    }

    /// tcp_init_buffer_space: initialises the buffer when the connection is established. `widest`:
    /// maximum of the window field.
    pub(crate) fn established(&mut self, announced: u64, widest: u64, next: u64, now: Time) {
        self.announced = announced;
        self.space_from = next;
        self.space_at = now;
        let most = self.payload_in(self.buffer);
        self.clamp = self.clamp.min(widest).min(most);
        // One segment is kept in reserve.
        if self.clamp > 2 * announced && self.clamp + announced > most {
            self.clamp = most.saturating_sub(announced).max(2 * announced);
        }
        self.threshold = self.threshold.min(self.clamp);
        let initial = INITIAL_WINDOW * announced;
        self.space = self.threshold.min(self.window).min(initial).max(1);
        // tcp_initialize_rcv_mss
        let half = u32::try_from(self.window / 2).unwrap_or(u32::MAX);
        let guess = (announced.min(u64::from(DEFAULT_MSS)) as u32).min(half);
        self.segment = guess.max(MINIMUM_MSS);
    }

    /// __tcp_select_window: the window to advertise, in units of `1 << shift`.
    pub(crate) fn select_window(&mut self, stream: &StreamState, shift: u8) -> u64 {
        let unit = 1 << shift;
        let allowed = self.payload_in(self.buffer);
        let full = self.clamp.min(allowed);
        // A segment longer than the threshold, which only arrives in a window that was not ours,
        // would close the window for ever in Linux.
        let segment = u64::from(self.segment).min(full).min(self.threshold.max(1));
        let mut free = self.room(stream);
        if segment == 0 {
            return 0;
        }
        if free < full / 2 {
            self.quick = 0;
            free -= free % unit;
            if free < allowed / 16 || free < segment {
                return 0;
            }
        }
        let free = free.min(self.threshold);
        if shift > 0 {
            return whole_units(free, shift);
        }
        // RFC 9293 section 3.8.6.2.2, Fr = 1/2: an increase by half of the largest window is
        // advertised, if that is less than a segment. Linux does so only for windows of one segment
        // that are limited by the buffer. With an equally low threshold, a slow reader's small
        // remaining window would stay for ever.
        let widest = full.min(self.threshold);
        if self.window + segment <= free || self.window > free {
            free - free % segment
        } else if widest < 2 * segment && free > self.window + widest / 2 {
            free
        } else {
            self.window
        }
    }

    /// tcp_select_window: records the advertised `window`.
    pub(crate) fn advertised(&mut self, window: u64) {
        self.window = window;
    }

    /// tcp_cleanup_rbuf: whether a window update is due after a read, with `now` bytes of window
    /// left.
    pub(crate) fn owes_update(&mut self, stream: &StreamState, now: u64, shift: u8) -> bool {
        if 2 * now > self.clamp {
            return false;
        }
        let window = self.select_window(stream, shift);
        window > 0 && window >= 2 * now
    }

    /// tcp_event_data_recv: processes an in-order segment, which `stream` includes. `rto`:
    /// retransmission timeout of this end.
    #[inline]
    pub(crate) fn in_order(
        &mut self,
        segment: &Segment,
        stream: &StreamState,
        rto: impl Fn() -> Span,
        now: Time,
    ) {
        self.measure_echo(segment, stream, now);
        self.measure_segment(segment);
        self.measure_window(stream, now);
        self.adapt_ack_delay(rto, now);
        if segment.schedules_quick_acks {
            self.schedule_two_quick_acks();
        }
        if segment.length >= MINIMUM_GROWTH_SEGMENT && self.threshold < self.clamp {
            self.grow_window(segment, self.room(stream));
        }
    }

    /// tcp_data_queue_ofo: processes an out-of-order segment, of which the data from `start` to
    /// `end` was accepted. `new`: no part of it was present. `sack`: SACK was negotiated.
    pub(crate) fn out_of_order(
        &mut self,
        segment: &Segment,
        (start, end): (u64, u64),
        new: bool,
        stream: &StreamState,
        sack: bool,
    ) {
        self.measure_segment(segment);
        // Its own buffer does not count yet.
        let recorded = self.record().map(|memory| {
            let before = memory.used();
            let buffer = Buffer::of(start, (end - start) as u32, segment.packet);
            (before, memory.insert_out_of_order(buffer))
        });
        let grows = recorded.map_or(new, |(_, placed)| placed != Placed::Nowhere);
        // Without SACK, the acknowledgment with a larger window would not count as a duplicate.
        if sack && grows && self.threshold < self.clamp {
            let room = match recorded {
                Some((before, _)) => self.payload_in(self.buffer.saturating_sub(before)),
                None => self.room(stream),
            };
            self.grow_window(segment, room);
        }
        self.grow_buffer(self.space, stream);
    }

    /// tcp_queue_rcv: queues an in-order segment. Its data begins at `start`, possibly with data
    /// received before, and was accepted up to `end`. If the application reads it `at_once`, it
    /// need not be recorded, unless other data is. (Linux accepts all of it. Data beyond the window
    /// is not read, and a buffer is freed when its data was read.)
    pub(crate) fn queue(&mut self, segment: &Segment, start: u64, end: u64, at_once: bool) {
        if at_once && !self.has_record {
            if self.memory.is_some() {
                self.unrecorded = true_size(segment.packet) as u32;
            }
        } else if let Some(memory) = self.record() {
            let length = end.saturating_sub(start).min(u64::from(segment.length));
            memory.queue(Buffer::of(start, length as u32, segment.packet));
        }
    }

    /// Accounts for a FIN that follows all received data. (A FIN with data is in its buffer; a FIN
    /// without data is in that of the previous data.)
    pub(crate) fn fin_is_next(&mut self, position: u64) {
        if self.memory.is_some()
            && let Some(memory) = self.record()
        {
            memory.queue(Buffer::of(position, 0, BARE_SEGMENT));
        }
    }

    /// Accounts for an out-of-order FIN without data.
    pub(crate) fn fin_ahead(&mut self, position: u64, stream: &StreamState, sack: bool) {
        let fin = Segment {
            length: 0,
            packet: BARE_SEGMENT,
            stamped: false,
            flags: Flags::FIN,
            echo: None,
            schedules_quick_acks: false,
        };
        self.out_of_order(&fin, (position, position), true, stream, sack);
    }

    /// Whether the packet fits into the pages already reserved (sk_forward_alloc).
    pub(crate) fn has_pages_for(&self, packet: &Packet) -> bool {
        let size = true_size(packet.length().get() as u32);
        self.memory
            .as_deref()
            .is_some_and(|memory| memory.has_pages_for(size))
    }

    /// Discards unread data because the application has ended.
    pub(crate) fn discard_unread(&mut self) {
        if let Some(memory) = self.memory.as_deref_mut() {
            *memory = Memory::default();
            self.has_record = false;
        }
    }

    /// tcp_ofo_queue: moves out-of-order data into order after in-order data up to `next`.
    pub(crate) fn advance(&mut self, next: u64) {
        if let Some(memory) = self.nonempty_record() {
            memory.advance(next);
        }
    }

    /// tcp_eat_recv_skb: frees the data that the application has read.
    pub(crate) fn free_read(&mut self, read: u64) {
        self.unrecorded = 0;
        if let Some(memory) = self.nonempty_record() {
            memory.read(read);
            self.has_record = !memory.is_empty();
        }
    }

    /// tcp_can_ingest: whether more memory is used than allowed.
    #[inline]
    pub(crate) fn is_overfull(&self) -> bool {
        (self.memory.as_deref())
            .is_some_and(|memory| self.has_record && memory.used() > self.buffer)
    }

    /// tcp_prune_queue, for a segment that begins at `incoming`.
    #[cold]
    pub(crate) fn prune(&mut self, incoming: u64, stream: &StreamState) -> PruneResult {
        let Some(used) = self.memory.as_deref().map(Memory::used) else {
            return PruneResult::default();
        };
        self.clamp_window(used);
        let (allowed, ratio) = (self.buffer, self.ratio);
        let Some(memory) = self.memory.as_deref_mut().filter(|_| used > allowed) else {
            return PruneResult {
                found: true,
                ..PruneResult::default()
            };
        };
        let pressure = Pressure {
            allowed,
            incoming,
            read: stream.read,
            next: stream.next,
            ratio,
        };
        let thrown_from = memory.prune(&pressure);
        PruneResult {
            thrown_from,
            found: memory.used() <= allowed,
            queued: memory.has_queued(),
        }
    }

    /// tcp_clamp_window: enlarges the buffer for its usage if possible, and otherwise limits the
    /// window.
    fn clamp_window(&mut self, used: u64) {
        self.quick = 0;
        if !self.fixed && self.buffer < self.most {
            self.buffer = used.min(self.most);
        }
        if used > self.buffer {
            self.threshold = self.clamp.min(2 * self.announced);
        }
    }

    /// __tcp_ack_snd_check: whether a buffer with unread data could only advertise a smaller window
    /// than the last. A second segment then causes no acknowledgment.
    pub(crate) fn window_would_shrink(&mut self, stream: &StreamState, shift: u8) -> bool {
        self.counted && stream.next > stream.read && self.select_window(stream, shift) < self.window
    }

    /// tcp_rcv_space_adjust: whether the measurement of the bytes read in a round trip has ended.
    #[inline]
    pub(crate) fn is_measurement_over(&self, now: Time) -> bool {
        let round = Span::from_nanos(self.rtt * 125);
        self.rtt > 0 && now.since(self.space_at) >= round
    }

    /// Ends the measurement, after the application has read the first segment of what it reads at
    /// once.
    #[inline(never)]
    pub(crate) fn end_measurement(&mut self, stream: &StreamState, now: Time) {
        let waiting = stream.next.saturating_sub(stream.read);
        let copied = stream
            .read
            .saturating_sub(self.space_from)
            .saturating_sub(waiting);
        if copied > self.space {
            self.grow_buffer(copied, stream);
        }
        self.space_from = stream.read;
        self.space_at = now;
    }

    /// Whether the sender has no more data for now and waits for an acknowledgment
    /// (tcp_cleanup_rbuf).
    pub(crate) fn peer_waits(&self) -> bool {
        self.pushed == 2 || self.pushed == 1 && !self.interactive
    }

    /// tcp_rcvbuf_grow: enlarges the buffer for `copied` bytes read in a round trip.
    fn grow_buffer(&mut self, copied: u64, stream: &StreamState) {
        let before = std::mem::replace(&mut self.space, copied).max(1);
        if self.fixed || self.buffer >= self.most {
            return;
        }
        // The measurement is one round trip late, and in slow start the sender doubles its rate
        // meanwhile.
        let twice = u128::from(copied) * 2;
        let grown = match copied.saturating_sub(before) {
            0 => 0,
            more => twice * u128::from(more) / u128::from(before) * 2,
        };
        let ahead = stream.highest.map_or(0, |end| end - stream.next);
        let window = u64::try_from(twice + grown + u128::from(ahead)).unwrap_or(u64::MAX);
        let buffer =
            (window.saturating_mul(RATIO_UNIT) / u64::from(self.ratio.max(1))).min(self.most);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.payload_in(buffer);
        }
    }

    /// tcp_measure_rcv_mss: estimates the peer's full segment.
    fn measure_segment(&mut self, segment: &Segment) {
        let short_before = std::mem::take(&mut self.short);
        if segment.length < self.segment {
            self.measure_short(segment, short_before);
            return;
        }
        if segment.length > self.segment || self.data_at.is_none() {
            self.true_size = true_size(segment.packet);
        }
        if segment.length > self.segment {
            let before = std::mem::replace(&mut self.ratio, ratio(segment.length, self.true_size));
            if before != self.ratio {
                self.set_clamp(self.payload_in(self.buffer));
                self.space = self.space.min(self.clamp).max(1);
            }
        }
        self.segment = segment.length;
        self.pushed = (self.pushed).max(u8::from(segment.flags.has(Flags::PSH)));
    }

    /// Processes a segment shorter than the estimate. Two in a row of equal length give the new
    /// estimate, unless they were short for lack of data.
    fn measure_short(&mut self, segment: &Segment, before: u32) {
        let whole = segment.packet.saturating_sub(IP_HEADER);
        let usual = MINIMUM_HEADER + if segment.stamped { TIMESTAMPS } else { 0 };
        let remnant = segment.flags.has(Flags::PSH.with(Flags::FIN));
        let full = |least| whole >= least + MINIMUM_HEADER;
        if full(DEFAULT_MSS) || full(MINIMUM_MSS) && !remnant {
            // The length of SACK blocks is not subtracted.
            self.short = whole.saturating_sub(usual);
            if self.short == before {
                self.segment = self.short;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// Changes the clamp (tcp_set_window_clamp).
    fn set_clamp(&mut self, clamp: u64) {
        if clamp < self.clamp {
            self.threshold = self.threshold.min(clamp);
        } else {
            self.threshold = self.threshold.max(self.window.min(clamp));
        }
        self.clamp = clamp;
    }

    /// tcp_grow_window, with `room` bytes of payload free (tcp_space).
    fn grow_window(&mut self, segment: &Segment, room: u64) {
        let room = self.clamp.min(room).saturating_sub(self.threshold);
        if room == 0 {
            return;
        }
        let size = true_size(segment.packet);
        let length = u64::from(segment.length);
        let growth = if self.payload_in(size) <= length {
            2 * self.announced
        } else {
            self.growth_of_short(size, length)
        };
        if growth > 0 {
            self.threshold += growth.max(2 * length).min(room);
            self.quick |= 1;
        }
    }

    /// __tcp_grow_window: for a segment that uses more memory than its payload justifies.
    fn growth_of_short(&self, size: u64, length: u64) -> u64 {
        let mut size = self.payload_in(size) / 2;
        let mut window = self.payload_in(self.most) / 2;
        while self.threshold <= window && window > 0 {
            if size <= length {
                return 2 * u64::from(self.segment);
            }
            size /= 2;
            window /= 2;
        }
        0
    }

    /// tcp_rcv_rtt_measure_ts: samples the round trip from the timestamp echo.
    fn measure_echo(&mut self, segment: &Segment, stream: &StreamState, now: Time) {
        let Some(echo) = segment.echo.filter(|echo| *echo != self.echo) else {
            return;
        };
        self.echo = echo;
        let milliseconds = self.clock.timestamp(now).wrapping_sub(echo);
        if segment.length >= self.segment && milliseconds < 1 << 21 {
            let waits = stream.next.saturating_sub(u64::from(segment.length)) > stream.read;
            let sample = u64::from(milliseconds.max(1)) * 1_000;
            if self.rtt == 0 || sample * 8 < self.rtt {
                self.rtt = sample * 8;
            } else if !waits {
                self.rtt = self.rtt - self.rtt / 8 + sample;
            }
        }
    }

    /// tcp_rcv_rtt_measure: samples the round trip from the time for one window of data.
    fn measure_window(&mut self, stream: &StreamState, now: Time) {
        if let Some(since) = self.rtt_at {
            if stream.next < self.rtt_end {
                return;
            }
            let sample = (now.since(since).as_nanos() / 1_000).max(1) * 8;
            if self.rtt == 0 || sample < self.rtt {
                self.rtt = sample;
            }
        }
        self.rtt_end = stream.next + self.window;
        self.rtt_at = Some(now);
    }
}

impl BufferSizes {
    /// Payload that fits into a receive buffer of these sizes, in full segments of `segment` bytes
    /// and packets of `packet` bytes, including the IP header.
    #[must_use]
    pub fn receivable(&self, segment: u32, packet: u32) -> u64 {
        payload_in(self.limit(), segment, packet)
    }
}

/// Rounds a window up to whole units of `1 << shift` bytes.
#[inline]
pub(crate) const fn whole_units(window: u64, shift: u8) -> u64 {
    (window + (1 << shift) - 1) >> shift << shift
}

/// Payload that fits into `memory`, in full segments of `segment` bytes and packets of `packet`
/// bytes.
fn payload_in(memory: u64, segment: u32, packet: u32) -> u64 {
    memory.saturating_mul(u64::from(ratio(segment, true_size(packet)))) / RATIO_UNIT
}

/// Memory of a receive buffer (`tcp_rmem`, twice SO_RCVBUF) from which Linux eventually advertises
/// `window` bytes. Full segments have `segment` bytes of payload and packets `packet` bytes,
/// including the IP header. Before the first arrives, Linux advertises half of the memory.
#[must_use]
pub fn memory_for(window: u64, segment: u32, packet: u32) -> u64 {
    window.saturating_mul(RATIO_UNIT) / u64::from(ratio(segment, true_size(packet)))
}

/// Share of payload in a segment's memory, in 256ths.
fn ratio(length: u32, true_size: u64) -> u8 {
    (u64::from(length) * RATIO_UNIT / true_size.max(1)).clamp(1, u64::from(u8::MAX)) as u8
}

#[cfg(test)]
mod tests;
