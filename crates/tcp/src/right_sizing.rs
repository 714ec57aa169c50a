//! The receive buffer as Linux grows it, and the acknowledgments that go with that: `tcp_input.c` and
//! `tcp_output.c` of Linux 6.18.
//!
//! Two things open the window. With every segment that arrives it may move on by two segments, up to
//! what the buffer holds (`tcp_grow_window`); and once a round trip the buffer is made as large as what
//! the application has read in it asks for (`tcp_rcv_space_adjust`, after Dynamic Right-Sizing, Fisk and
//! Feng 2001). The buffer counts memory, not bytes: what a segment takes of it, headers and the round
//! numbers of the allocator included, is its true size.

use bentpipe_types::{Span, Time, fetch};
use serde::{Deserialize, Serialize};

use crate::config::BufferSizes;

/// TCP_MAX_QUICKACKS
const QUICK_ACKS: u8 = 16;

/// TCP_MSS_DEFAULT and TCP_MIN_MSS: tcp_initialize_rcv_mss
const FIRST_GUESS: u32 = 536;
const LEAST_GUESS: u32 = 88;

/// TCP_INIT_CWND
const INITIAL_WINDOW: u64 = 10;

/// A segment below this many bytes says nothing of how the window may grow: tcp_event_data_recv.
const TOO_SHORT: u32 = 128;

/// Parts of the buffer's memory are counted in 256ths: TCP_RMEM_TO_WIN_SCALE. Before anything has come,
/// half of it is taken for payload: TCP_DEFAULT_SCALING_RATIO.
const WHOLE: u64 = 256;
const FIRST_RATIO: u8 = 128;

/// tcp_comp_sack_nr, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns; the share of a round trip is
/// fixed. TCP_FASTRETRANS_THRESH.
const COMPRESSED: u8 = 44;
const COMPRESSION: Span = Span::from_micros(1_000);
const COMPRESSION_SLACK: Span = Span::from_micros(100);
const COMPRESSION_SHARE: u64 = 20;
const DUPLICATES: u8 = 3;

/// When to acknowledge what has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Now,
    /// With the next segment, or when the timer for delayed acknowledgments expires.
    Delayed,
    /// After so long at most.
    Within(Span),
}

/// A segment with payload, as the receive buffer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Bytes of payload.
    pub(crate) length: u32,
    /// Bytes of the packet, IP header included.
    pub(crate) packet: u32,
    /// It says PSH, or is the last: its sender has no more for now.
    pub(crate) pushed: bool,
    /// The timestamp it echoes, in milliseconds ago.
    pub(crate) echo: Option<(u32, u32)>,
}

/// Where the stream stands, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// RCV.NXT
    pub(crate) next: u64,
    /// Up to where the application has read.
    pub(crate) read: u64,
    /// Bytes out of order.
    pub(crate) ahead: u64,
    /// The end of what is furthest ahead, if anything is.
    pub(crate) highest: Option<u64>,
}

/// A receive buffer that Linux would have. Two cache lines of what each segment needs, and a third.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct RightSizing {
    // lrcvtime
    data_at: Option<Time>,
    // sk_rcvbuf
    buffer: u64,
    // window_clamp
    clamp: u64,
    // rcv_ssthresh
    threshold: u64,
    // tp->rcv_wnd: as last advertised
    window: u64,
    // What a segment of `segment` bytes takes of the buffer.
    true_size: u64,
    // rcv_mss
    segment: u32,
    // The timestamp whose echo was timed last.
    echo: u32,
    // rcv_rtt_est: in eighths of a microsecond, or 0; the window that is being timed
    rtt: u64,
    rtt_end: u64,
    rtt_at: Option<Time>,
    // rcvq_space: since when it is counted what is read in a round trip
    space_at: Time,
    // SOCK_RCVBUF_LOCK: the buffer stays as it is.
    fixed: bool,
    // scaling_ratio, in 256ths
    ratio: u8,
    // icsk_ack: quick, pingpong, pending: 1 with ICSK_ACK_PUSHED, 2 with ICSK_ACK_PUSHED2
    quick: u8,
    interactive: bool,
    pushed: u8,
    // dup_ack_counter, compressed_ack
    duplicates: u8,
    compressed: u8,
    // rcvq_space: what was read in a round trip, and from where the next one is counted
    space: u64,
    space_from: u64,
    // tcp_rmem[2]
    most: u64,
    // advmss
    announced: u64,
    // compressed_ack_rcv_nxt
    duplicates_at: u64,
}

impl RightSizing {
    /// See [`Connection::fetch_more`](crate::Connection::fetch_more).
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch(&self.data_at, 3);
    }

    /// A buffer of these sizes.
    pub(crate) fn new(sizes: BufferSizes) -> Self {
        Self {
            most: sizes.most.max(sizes.initial),
            fixed: sizes.locked,
            buffer: sizes.initial,
            ratio: FIRST_RATIO,
            clamp: u64::MAX,
            threshold: 0,
            window: 0,
            announced: 0,
            segment: FIRST_GUESS,
            true_size: 2 * u64::from(FIRST_GUESS),
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
        }
    }

    /// A buffer that does not grow (SO_RCVBUF), and from which `window` bytes are advertised: with full
    /// segments in packets of `packet` bytes. What is advertised is not asked of it.
    pub(crate) fn fixed(window: u64, segment: u32, packet: u32) -> Self {
        Self::new(BufferSizes::locked(memory_for(window, segment, packet)))
    }

    /// Bytes of a full segment of the peer's, as far as is known.
    pub(crate) fn segment(&self) -> u64 {
        u64::from(self.segment)
    }

    /// tcp_win_from_space: the payload that this much of the buffer holds.
    fn payload_in(&self, memory: u64) -> u64 {
        memory.saturating_mul(u64::from(self.ratio)) / WHOLE
    }

    /// sk_rmem_alloc: what this payload takes of the buffer.
    fn memory_of(&self, payload: u64) -> u64 {
        payload.saturating_mul(self.true_size) / u64::from(self.segment.max(1))
    }

    /// tcp_space: the payload that the buffer has room for.
    fn room(&self, stream: &Stream) -> u64 {
        let queued = stream.next.saturating_sub(stream.read) + stream.ahead;
        self.payload_in(self.buffer.saturating_sub(self.memory_of(queued)))
    }

    /// tcp_select_initial_window: what a SYN offers, in whole segments of `unit` bytes.
    pub(crate) fn initial_window(&mut self, unit: u64) -> u64 {
        let space = self.payload_in(self.buffer);
        let window = if space > unit {
            space - space % unit.max(1)
        } else {
            space
        };
        self.window = window;
        self.threshold = window;
        window
    }

    /// tcp_init_buffer_space: the connection is established. `widest` is what the window field can say.
    pub(crate) fn established(&mut self, announced: u64, widest: u64, next: u64, now: Time) {
        self.announced = announced;
        self.space_from = next;
        self.space_at = now;
        let most = self.payload_in(self.buffer);
        self.clamp = widest.min(most);
        // One segment is kept back.
        if self.clamp > 2 * announced && self.clamp + announced > most {
            self.clamp = most.saturating_sub(announced).max(2 * announced);
        }
        self.threshold = self.threshold.min(self.clamp);
        let initial = INITIAL_WINDOW * announced;
        self.space = self.threshold.min(self.window).min(initial).max(1);
        // tcp_initialize_rcv_mss
        let half = u32::try_from(self.window / 2).unwrap_or(u32::MAX);
        let guess = (announced.min(u64::from(FIRST_GUESS)) as u32).min(half);
        self.segment = guess.max(LEAST_GUESS);
    }

    /// __tcp_select_window: the window to advertise, with a field in units of `1 << shift`.
    pub(crate) fn select_window(&mut self, stream: &Stream, shift: u8) -> u64 {
        let unit = 1 << shift;
        let allowed = self.payload_in(self.buffer);
        let full = self.clamp.min(allowed);
        // A segment longer than the threshold, which only a window that was none of ours lets come, would shut the
        // window for good in Linux.
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
            return free.next_multiple_of(unit);
        }
        // RFC 9293 section 3.8.6.2.2, Fr = 1/2: half of the widest window is worth saying where that is less than
        // a segment. Linux knows this only of windows of one segment, and only if its buffer is what keeps them
        // so: a threshold as low would keep what a slow reader has left of a window, be it a byte, for good.
        let widest = full.min(self.threshold);
        if self.window + segment <= free || self.window > free {
            free - free % segment
        } else if widest < 2 * segment && free > self.window + widest / 2 {
            free
        } else {
            self.window
        }
    }

    /// tcp_select_window: `window` goes out.
    pub(crate) fn advertised(&mut self, window: u64) {
        self.window = window;
    }

    /// tcp_cleanup_rbuf: with `now` bytes of window left, has the application read so much that the peer
    /// should hear of it?
    pub(crate) fn owes_update(&mut self, stream: &Stream, now: u64, shift: u8) -> bool {
        if 2 * now > self.clamp {
            return false;
        }
        let window = self.select_window(stream, shift);
        window > 0 && window >= 2 * now
    }

    /// tcp_event_data_recv: a segment has arrived in order; `stream` is as it is with it. `rto` is the
    /// timeout of this end.
    pub(crate) fn in_order(&mut self, segment: &Segment, stream: &Stream, rto: Span, now: Time) {
        self.measure_echo(segment, stream);
        self.measure_segment(segment);
        self.measure_window(stream, now);
        let waited = self.data_at.replace(now).map(|before| now.since(before));
        // The first, or the first after the sender was silent for long: it may be in slow start.
        if waited.is_none_or(|waited| waited > rto) {
            self.quicken();
        }
        if segment.length >= TOO_SHORT {
            self.grow_window(segment, stream);
        }
    }

    /// tcp_data_queue_ofo: a segment has arrived out of order, and SACK will say so if `sack`.
    pub(crate) fn out_of_order(&mut self, segment: &Segment, stream: &Stream, sack: bool) {
        self.measure_segment(segment);
        // Without SACK a window that grows would be no duplicate acknowledgment.
        if sack {
            self.grow_window(segment, stream);
        }
        self.grow_buffer(self.space, stream);
    }

    /// tcp_enter_quickack_mode: something is odd about the segments that come.
    pub(crate) fn is_odd(&mut self) {
        self.quicken();
        self.interactive = false;
    }

    /// __tcp_ack_snd_check: `unacknowledged` bytes have come since the last acknowledgment.
    pub(crate) fn when(
        &mut self,
        unacknowledged: u64,
        stream: &Stream,
        now_due: bool,
        sack: bool,
        srtt: Option<Span>,
    ) -> When {
        if now_due
            || unacknowledged > u64::from(self.segment)
            || self.quick > 0 && !self.interactive
        {
            return When::Now;
        }
        if stream.highest.is_none() {
            return When::Delayed;
        }
        if !sack || self.compressed >= COMPRESSED {
            return When::Now;
        }
        if self.duplicates_at != stream.next {
            self.duplicates_at = stream.next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            return When::Now;
        }
        self.compressed += 1;
        let mut rtt = Span::from_nanos(self.rtt * 125);
        if let Some(srtt) = srtt {
            rtt = rtt.min(srtt);
        }
        When::Within(COMPRESSION.min(rtt / COMPRESSION_SHARE) + COMPRESSION_SLACK)
    }

    /// Has a buffer that stays as it is, with unread text in it, no window to tell of that is as wide as the last? Then a
    /// second segment is no reason to acknowledge (__tcp_ack_snd_check).
    pub(crate) fn has_no_news(&mut self, stream: &Stream, shift: u8) -> bool {
        self.fixed && stream.next > stream.read && self.select_window(stream, shift) < self.window
    }

    /// tcp_event_ack_sent: an acknowledgment has gone out, of something if `scheduled`.
    #[inline]
    pub(crate) fn acknowledged(&mut self, scheduled: bool) {
        self.compressed = 0;
        if scheduled {
            self.quick = self.quick.saturating_sub(1);
            self.pushed = 0;
        }
    }

    /// The connection is interactive: what is sent carries acknowledgments ("pingpong mode").
    #[inline]
    pub(crate) fn answers(&mut self) {
        self.interactive = true;
    }

    /// Has any segment come in order? icsk_ack.ato is 0 before.
    pub(crate) fn has_received(&self) -> bool {
        self.data_at.is_some()
    }

    /// tcp_delack_timer_handler: nothing was sent that could carry the acknowledgment.
    pub(crate) fn waited_in_vain(&mut self) {
        self.interactive = false;
    }

    /// tcp_rcv_space_adjust, after the application has read: `first` bytes up to `stream.read` are of
    /// its first segment. True: the peer has no more for now and waits to hear of it (tcp_cleanup_rbuf).
    pub(crate) fn has_read(&mut self, stream: &Stream, now: Time) -> bool {
        let round = Span::from_nanos(self.rtt * 125);
        if self.rtt > 0 && now.since(self.space_at) >= round {
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
        self.pushed == 2 || self.pushed == 1 && !self.interactive
    }

    /// tcp_rcvbuf_grow: `copied` bytes were read in a round trip.
    fn grow_buffer(&mut self, copied: u64, stream: &Stream) {
        let before = std::mem::replace(&mut self.space, copied).max(1);
        if self.fixed {
            return;
        }
        // The measure is a round trip late, and in slow start the sender doubles its rate meanwhile.
        let twice = u128::from(copied) * 2;
        let grown = twice * u128::from(copied.saturating_sub(before)) / u128::from(before) * 2;
        let ahead = stream.highest.map_or(0, |end| end - stream.next);
        let window = u64::try_from(twice + grown + u128::from(ahead)).unwrap_or(u64::MAX);
        let buffer = (window.saturating_mul(WHOLE) / u64::from(self.ratio.max(1))).min(self.most);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.payload_in(buffer);
        }
    }

    /// tcp_measure_rcv_mss
    fn measure_segment(&mut self, segment: &Segment) {
        if segment.length < self.segment {
            self.pushed = (self.pushed + 1).min(2);
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
        self.pushed = self.pushed.max(u8::from(segment.pushed));
    }

    /// tcp_set_window_clamp
    fn set_clamp(&mut self, clamp: u64) {
        if clamp < self.clamp {
            self.threshold = self.threshold.min(clamp);
        } else {
            self.threshold = self.threshold.max(self.window.min(clamp));
        }
        self.clamp = clamp;
    }

    /// tcp_incr_quickack
    fn quicken(&mut self) {
        let half = match self.window / (2 * u64::from(self.segment)) {
            0 => 2,
            half => half,
        };
        let acknowledgments = half.min(u64::from(QUICK_ACKS)) as u8;
        self.quick = self.quick.max(acknowledgments);
    }

    /// tcp_grow_window
    fn grow_window(&mut self, segment: &Segment, stream: &Stream) {
        let limit = self.clamp.min(self.room(stream));
        let room = limit.saturating_sub(self.threshold);
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

    /// __tcp_grow_window: a segment that takes more room than its payload deserves.
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

    /// tcp_rcv_rtt_measure_ts: how long ago did the peer have what it answers?
    fn measure_echo(&mut self, segment: &Segment, stream: &Stream) {
        let Some((echo, milliseconds)) = segment.echo else {
            return;
        };
        if echo == self.echo {
            return;
        }
        self.echo = echo;
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

    /// tcp_rcv_rtt_measure: a window takes a round trip, at least.
    fn measure_window(&mut self, stream: &Stream, now: Time) {
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
    /// The most payload that a receive buffer of these sizes holds, in full segments of `segment` bytes
    /// and packets of `packet` bytes, IP header included.
    #[must_use]
    pub fn receivable(&self, segment: u32, packet: u32) -> u64 {
        payload_in(self.limit(), segment, packet)
    }
}

/// The most payload that `memory` holds, in full segments of `segment` bytes and packets of `packet`.
fn payload_in(memory: u64, segment: u32, packet: u32) -> u64 {
    memory.saturating_mul(u64::from(ratio(segment, true_size(packet)))) / WHOLE
}

/// The memory of a receive buffer (`tcp_rmem`, twice SO_RCVBUF) from which Linux advertises `window`
/// bytes in the end, when full segments of `segment` bytes come in packets of `packet` bytes, IP header
/// included. Until the first has come it advertises half of the memory.
#[must_use]
pub fn memory_for(window: u64, segment: u32, packet: u32) -> u64 {
    window.saturating_mul(WHOLE) / u64::from(ratio(segment, true_size(packet)))
}

/// How much of a segment's memory is payload, in 256ths.
fn ratio(length: u32, true_size: u64) -> u8 {
    (u64::from(length) * WHOLE / true_size.max(1)).clamp(1, u64::from(u8::MAX)) as u8
}

/// skb->truesize: what a packet of so many bytes, IP header included, takes of the receive buffer, as
/// the TUN device and most drivers without scatter-gather allocate it: the packet with 64 bytes before
/// it (NET_SKB_PAD) and 320 behind (skb_shared_info), up to the next size of the allocator's, and 256
/// for the record (sk_buff). A packet that needs more than a page lies in pages of its own.
fn true_size(packet: u32) -> u64 {
    const BEFORE: u64 = 64;
    const BEHIND: u64 = 320;
    const RECORD: u64 = 256;
    const SMALL: u64 = 576;
    const PAGE: u64 = 4096;
    let head = BEFORE + u64::from(packet);
    if head >= PAGE {
        return SMALL + RECORD + u64::from(packet).next_multiple_of(PAGE);
    }
    let block = head.next_multiple_of(64) + BEHIND;
    let size = if block <= SMALL {
        SMALL
    } else {
        block.next_power_of_two()
    };
    size + RECORD
}

#[cfg(test)]
mod tests;
