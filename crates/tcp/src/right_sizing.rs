//! The receive buffer as Linux grows it, and the acknowledgments that go with that: `tcp_input.c` and
//! `tcp_output.c` of Linux 6.18.
//!
//! Two things open the window. With every segment that arrives it may move on by two segments, up to
//! what the buffer holds (`tcp_grow_window`); and once a round trip the buffer is made as large as what
//! the application has read in it asks for (`tcp_rcv_space_adjust`, after Dynamic Right-Sizing, Fisk and
//! Feng 2001). The buffer counts memory, not bytes: what a segment takes of it, headers and the round
//! numbers of the allocator included, is its true size.

use bentpipe_types::{Flags, Packet, Span, Time, fetch};
use serde::{Deserialize, Serialize};

use crate::config::BufferSizes;
use crate::options::TIMESTAMPS_LENGTH;
use crate::timestamp;
use memory::{Buffer, Memory, Placed, Pressure, true_size};

pub(crate) use acknowledging::{FIRST_PATIENCE, When};

mod acknowledging;
mod memory;

/// TCP_MSS_DEFAULT and TCP_MIN_MSS: tcp_initialize_rcv_mss
const FIRST_GUESS: u32 = 536;
const LEAST_GUESS: u32 = 88;

/// A TCP header without options, what timestamps take of it, and an IP header.
const MINIMUM_HEADER: u32 = 20;
const STAMPS: u32 = TIMESTAMPS_LENGTH as u32;
const IP_HEADER: u32 = 20;

/// With an IP header.
const BARE_SEGMENT: u32 = 40;

/// TCP_INIT_CWND
const INITIAL_WINDOW: u64 = 10;

/// A segment below this many bytes says nothing of how the window may grow: tcp_event_data_recv.
const TOO_SHORT: u32 = 128;

/// Parts of the buffer's memory are counted in 256ths: TCP_RMEM_TO_WIN_SCALE. Before anything has come,
/// half of it is taken for payload: TCP_DEFAULT_SCALING_RATIO.
const WHOLE: u64 = 256;
const FIRST_RATIO: u8 = 128;

/// A segment with payload, as the receive buffer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Bytes of payload.
    pub(crate) length: u32,
    /// Bytes of the packet, IP header included.
    pub(crate) packet: u32,
    /// All segments have timestamps.
    pub(crate) stamped: bool,
    /// With PSH its sender has no more for now; with that or FIN it may be shorter than others (TCP_REMNANT).
    pub(crate) flags: Flags,
    /// The timestamp it echoes.
    pub(crate) echo: Option<u32>,
    /// It is in order, and its mark a reason to acknowledge sooner (tcp_data_ecn_check).
    pub(crate) hurries: bool,
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

/// What came of a search for room in a full buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// There is some now.
    pub(crate) found: bool,
    /// There is text that the application has not read.
    pub(crate) queued: bool,
    /// What was ahead from here on was thrown away.
    pub(crate) thrown_from: Option<u64>,
}

/// A receive buffer that Linux would have. Two cache lines of what each segment needs, and a third.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct RightSizing {
    // lrcvtime, the time of a tick where `ticks`
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
    // How long an acknowledgment waits is counted in ticks of the kernel's clock.
    ticks: bool,
    // What of the buffer is taken counts by the kernel's buffers, not by the payload.
    counted: bool,
    // scaling_ratio, in 256ths
    ratio: u8,
    // icsk_ack: quick, pingpong, pending: 1 with ICSK_ACK_PUSHED, 2 with ICSK_ACK_PUSHED2
    quick: u8,
    interactive: bool,
    pushed: u8,
    // dup_ack_counter, compressed_ack
    duplicates: u8,
    compressed: u8,
    // Something lies in `memory`.
    remembers: bool,
    // last_seg_size: the segment before was so long, and shorter than others
    short: u32,
    // The next acknowledgment answers what asks for none, or tells of the window.
    unasked: bool,
    // What the segment takes that is read at once, until it is, where there is a `memory` that need not remember it.
    passing: u32,
    // icsk_ack.ato: how long an acknowledgment waits
    patience: Span,
    // TCP_ATO_MIN: and at first
    first_patience: Span,
    // rcvq_space: what was read in a round trip, and from where the next one is counted
    space: u64,
    space_from: u64,
    // tcp_rmem[2]
    most: u64,
    // advmss
    announced: u64,
    // compressed_ack_rcv_nxt
    duplicates_at: u64,
    // What of the buffer is taken, where that is `counted`, from the first time on that something is to be remembered; else
    // it is worked out of the payload.
    memory: Option<Box<Memory>>,
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
            ticks: false,
            counted: true,
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
            remembers: false,
            short: 0,
            unasked: false,
            passing: 0,
            patience: FIRST_PATIENCE,
            first_patience: FIRST_PATIENCE,
            memory: None,
        }
    }

    /// A buffer that does not grow (SO_RCVBUF), and from which `window` bytes are advertised: with full
    /// segments in packets of `packet` bytes. What is advertised is not asked of it.
    pub(crate) fn fixed(window: u64, segment: u32, packet: u32) -> Self {
        Self {
            counted: false,
            ..Self::new(BufferSizes::locked(memory_for(window, segment, packet)))
        }
    }

    /// No wider window is offered before a full segment has come, if there is such a clamp.
    pub(crate) fn clamped(self, clamp: Option<u64>) -> Self {
        Self {
            clamp: clamp.unwrap_or(self.clamp),
            ..self
        }
    }

    /// An acknowledgment waits for so long before anything is known of the peer, and for whole ticks if `ticks`.
    pub(crate) fn waiting_for(self, patience: Option<Span>, ticks: bool) -> Self {
        let patience = patience.unwrap_or(FIRST_PATIENCE);
        Self {
            patience,
            first_patience: patience,
            ticks,
            ..self
        }
    }

    /// What of the buffer is taken, to be remembered from now on, if it is [counted](Self::counted).
    fn remembered(&mut self) -> Option<&mut Memory> {
        self.remembers |= self.counted;
        self.counted
            .then(|| &mut **self.memory.get_or_insert_with(Box::default))
    }

    /// What lies in it, if anything does: else it need not be fetched.
    #[inline]
    fn held(&mut self) -> Option<&mut Memory> {
        self.memory.as_deref_mut().filter(|_| self.remembers)
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
        let taken = match self.memory.as_deref() {
            Some(memory) if self.remembers => memory.taken(),
            Some(_) => u64::from(self.passing),
            None => {
                let queued = stream.next.saturating_sub(stream.read) + stream.ahead;
                self.memory_of(queued)
            }
        };
        self.payload_in(self.buffer.saturating_sub(taken))
    }

    /// tcp_select_initial_window: what a SYN offers, in whole segments of `unit` bytes.
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

    /// tcp_init_buffer_space: the connection is established. `widest` is what the window field can say.
    pub(crate) fn established(&mut self, announced: u64, widest: u64, next: u64, now: Time) {
        self.announced = announced;
        self.space_from = next;
        self.space_at = now;
        let most = self.payload_in(self.buffer);
        self.clamp = self.clamp.min(widest).min(most);
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
            return whole_units(free, shift);
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
    #[inline]
    pub(crate) fn in_order(
        &mut self,
        segment: &Segment,
        stream: &Stream,
        rto: impl Fn() -> Span,
        now: Time,
    ) {
        self.measure_echo(segment, stream, now);
        self.measure_segment(segment);
        self.measure_window(stream, now);
        self.follows(rto, now);
        if segment.hurries {
            self.should_hurry();
        }
        if segment.length >= TOO_SHORT && self.threshold < self.clamp {
            self.grow_window(segment, self.room(stream));
        }
    }

    /// tcp_data_queue_ofo: a segment has arrived out of order, whose text was taken from `start` up to `end`, and SACK will say
    /// so if `sack`. `new`: no part of it was there.
    pub(crate) fn out_of_order(
        &mut self,
        segment: &Segment,
        (start, end): (u64, u64),
        new: bool,
        stream: &Stream,
        sack: bool,
    ) {
        self.measure_segment(segment);
        // What its own buffer takes does not count yet.
        let remembered = self.remembered().map(|memory| {
            let before = memory.taken();
            let buffer = Buffer::of(start, (end - start) as u32, segment.packet);
            (before, memory.put_ahead(buffer))
        });
        let grows = remembered.map_or(new, |(_, placed)| placed != Placed::Nowhere);
        // Without SACK a window that grows would be no duplicate acknowledgment.
        if sack && grows && self.threshold < self.clamp {
            let room = match remembered {
                Some((before, _)) => self.payload_in(self.buffer.saturating_sub(before)),
                None => self.room(stream),
            };
            self.grow_window(segment, room);
        }
        self.grow_buffer(self.space, stream);
    }

    /// tcp_queue_rcv: the next segment's text begins at `start`, and has come before in part or not. Up to `end` it was taken.
    /// (Linux takes all of it. What is trimmed to the window is not read, and a buffer is given back when its text was.)
    /// `at_once`: it is read before anything else comes, and need not be remembered where nothing else is.
    pub(crate) fn queue(&mut self, segment: &Segment, start: u64, end: u64, at_once: bool) {
        if at_once && !self.remembers {
            if self.memory.is_some() {
                self.passing = true_size(segment.packet) as u32;
            }
        } else if let Some(memory) = self.remembered() {
            let length = end.saturating_sub(start).min(u64::from(segment.length));
            memory.queue(Buffer::of(start, length as u32, segment.packet));
        }
    }

    /// The peer's FIN follows all that has come. (One that comes with text lies in its buffer, and one without in that of
    /// the text before it.)
    pub(crate) fn fin_is_next(&mut self, position: u64) {
        if self.memory.is_some()
            && let Some(memory) = self.remembered()
        {
            memory.queue(Buffer::of(position, 0, BARE_SEGMENT));
        }
    }

    /// The peer's FIN, without text, lies ahead of a gap.
    pub(crate) fn fin_ahead(&mut self, position: u64, stream: &Stream, sack: bool) {
        let fin = Segment {
            length: 0,
            packet: BARE_SEGMENT,
            stamped: false,
            flags: Flags::FIN,
            echo: None,
            hurries: false,
        };
        self.out_of_order(&fin, (position, position), true, stream, sack);
    }

    /// Is there memory for this packet without asking for more pages (sk_forward_alloc)?
    pub(crate) fn has_pages_for(&self, packet: &Packet) -> bool {
        let size = true_size(packet.length().get() as u32);
        self.memory
            .as_deref()
            .is_some_and(|memory| memory.has_pages_for(size))
    }

    /// The application is gone, and with it what it has not read.
    pub(crate) fn forget(&mut self) {
        if let Some(memory) = self.memory.as_deref_mut() {
            *memory = Memory::default();
            self.remembers = false;
        }
    }

    /// tcp_ofo_queue: the next segment ends at `next`, and what was ahead may follow it.
    pub(crate) fn advance(&mut self, next: u64) {
        if let Some(memory) = self.held() {
            memory.advance(next);
        }
    }

    /// tcp_eat_recv_skb: the application has read up to here.
    pub(crate) fn eat(&mut self, read: u64) {
        self.passing = 0;
        if let Some(memory) = self.held() {
            memory.read(read);
            self.remembers = !memory.is_empty();
        }
    }

    /// tcp_can_ingest: is more of the buffer taken than there is?
    #[inline]
    pub(crate) fn is_overfull(&self) -> bool {
        (self.memory.as_deref())
            .is_some_and(|memory| self.remembers && memory.taken() > self.buffer)
    }

    /// tcp_prune_queue, for a segment that begins at `incoming`.
    #[cold]
    pub(crate) fn prune(&mut self, incoming: u64, stream: &Stream) -> Room {
        let Some(taken) = self.memory.as_deref().map(Memory::taken) else {
            return Room::default();
        };
        self.clamp_window(taken);
        let (allowed, ratio) = (self.buffer, self.ratio);
        let Some(memory) = self.memory.as_deref_mut().filter(|_| taken > allowed) else {
            return Room {
                found: true,
                ..Room::default()
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
        Room {
            thrown_from,
            found: memory.taken() <= allowed,
            queued: memory.has_queued(),
        }
    }

    /// tcp_clamp_window: so much is taken, more than the buffer may hold, which grows if it can.
    fn clamp_window(&mut self, taken: u64) {
        self.quick = 0;
        if !self.fixed && self.buffer < self.most {
            self.buffer = taken.min(self.most);
        }
        if taken > self.buffer {
            self.threshold = self.clamp.min(2 * self.announced);
        }
    }

    /// Has a buffer with unread text in it no window to tell of that is as wide as the last? Then a second segment is no
    /// reason to acknowledge (__tcp_ack_snd_check).
    pub(crate) fn has_no_news(&mut self, stream: &Stream, shift: u8) -> bool {
        self.counted && stream.next > stream.read && self.select_window(stream, shift) < self.window
    }

    /// tcp_rcv_space_adjust: is what the application has read in a round trip to be looked at?
    #[inline]
    pub(crate) fn is_round_over(&self, now: Time) -> bool {
        let round = Span::from_nanos(self.rtt * 125);
        self.rtt > 0 && now.since(self.space_at) >= round
    }

    /// The same, looked at, after the application has read the first segment of what it reads at once.
    #[inline(never)]
    pub(crate) fn round_is_over(&mut self, stream: &Stream, now: Time) {
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

    /// The peer has no more for now and waits to hear that it was read (tcp_cleanup_rbuf).
    pub(crate) fn peer_waits(&self) -> bool {
        self.pushed == 2 || self.pushed == 1 && !self.interactive
    }

    /// tcp_rcvbuf_grow: `copied` bytes were read in a round trip.
    fn grow_buffer(&mut self, copied: u64, stream: &Stream) {
        let before = std::mem::replace(&mut self.space, copied).max(1);
        if self.fixed || self.buffer >= self.most {
            return;
        }
        // The measure is a round trip late, and in slow start the sender doubles its rate meanwhile.
        let twice = u128::from(copied) * 2;
        let grown = match copied.saturating_sub(before) {
            0 => 0,
            more => twice * u128::from(more) / u128::from(before) * 2,
        };
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

    /// The same, of one that is shorter than what a full segment is taken for. Where two in a row are equally short, and it
    /// is not for want of more to send, that is what full segments are now.
    fn measure_short(&mut self, segment: &Segment, before: u32) {
        let whole = segment.packet.saturating_sub(IP_HEADER);
        let usual = MINIMUM_HEADER + if segment.stamped { STAMPS } else { 0 };
        let remnant = segment.flags.has(Flags::PSH.with(Flags::FIN));
        let full = |least| whole >= least + MINIMUM_HEADER;
        if full(FIRST_GUESS) || full(LEAST_GUESS) && !remnant {
            // (Without what SACK blocks take, if they take it of the text.)
            self.short = whole.saturating_sub(usual);
            if self.short == before {
                self.segment = self.short;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
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

    /// tcp_grow_window, with room for so much payload (tcp_space)
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
    fn measure_echo(&mut self, segment: &Segment, stream: &Stream, now: Time) {
        let Some(echo) = segment.echo.filter(|echo| *echo != self.echo) else {
            return;
        };
        self.echo = echo;
        let milliseconds = timestamp(now).wrapping_sub(echo);
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

/// As many whole units of a window field as this takes, of `1 << shift` bytes each.
#[inline]
pub(crate) const fn whole_units(window: u64, shift: u8) -> u64 {
    (window + (1 << shift) - 1) >> shift << shift
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

#[cfg(test)]
mod tests;
