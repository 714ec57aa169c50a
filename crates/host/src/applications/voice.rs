//! Calls: periodic packets in both directions, and the call quality at both ends.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::adaptive_playout::AdaptivePlayout;
use super::call_end::{self, CallEnd, RECEPTION_TIMEOUT, SharedCalls};
use crate::emodel::{self, Impairment};
use crate::report::SpeechQuality;
use crate::{
    Application, ApplicationProgress, Arrival, Datagram, Distribution, Report, SocketApi,
    SocketBackend, SocketId,
};

/// Codec of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// ITU-T G.711: 64 kbit/s, with packet loss concealment (its appendix I).
    G711,
    /// ITU-T G.729 with annexes A and B: 8 kbit/s.
    G729,
}

impl Codec {
    /// Returns the bit rate.
    #[must_use]
    pub fn rate(self) -> u64 {
        match self {
            Self::G711 => 64_000,
            Self::G729 => 8_000,
        }
    }

    /// Returns the look-ahead before a frame is coded (G.114 annex A).
    #[must_use]
    pub fn look_ahead(self) -> Span {
        match self {
            Self::G711 => Span::ZERO,
            Self::G729 => Span::from_millis(5),
        }
    }

    /// Returns Ie and Bpl of G.113 appendix I (tables I.1 and I.4): G.711 with concealment, G.729A
    /// with VAD.
    #[must_use]
    pub fn impairment(self) -> Impairment {
        let (codec, robustness) = match self {
            Self::G711 => (0.0, 25.1),
            Self::G729 => (11.0, 19.0),
        };
        Impairment { codec, robustness }
    }
}

/// Jitter buffer: how long a receiver holds packets, so that later ones arrive in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitterBuffer {
    /// This long for the first packet of a call; the others follow at the sending rate.
    Fixed(Span),
    /// Adapted to the delays of the packets so far: see
    /// [`adaptive_playout`](super::adaptive_playout).
    Adaptive,
}

/// Hold time of the first packet in an adaptive buffer.
pub(super) const FIRST_HOLD_BACK: Span = Span::from_millis(60);

/// Settings of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VoiceSettings {
    /// Codec.
    pub codec: Codec,
    /// Speech per packet.
    pub packet: Span,
    /// Jitter buffer.
    pub jitter_buffer: JitterBuffer,
    /// Duration of a call in seconds, or `None` until the end of the run.
    pub lasts: Option<Distribution>,
    /// Seconds from the end of a call to the next.
    pub pause: Distribution,
    /// Number of calls, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// Maximum number of consecutive missing packets.
const MOST_AHEAD: u64 = 1 << 20;

/// Length of the RTP header (RFC 3550 section 5.1).
const RTP: u64 = 12;

/// Number of packets per call in one direction.
pub(super) type SetUp = SharedCalls<u64>;

/// The sending half of an end.
#[derive(Debug, Default)]
struct SpeechSender {
    next: Option<Time>,
    index: u64,
    packets: u64,
}

/// The receiving half of an end.
#[derive(Debug)]
struct SpeechReceiver {
    call: u64,
    packets: u64,
    /// First packet to arrive: index and arrival time.
    first: Option<(u64, Time)>,
    /// Time from sending to playout. For an adaptive buffer, the sum over played packets.
    delay: Span,
    /// Schedule of an adaptive buffer, and the number of packets in `delay`.
    adaptive: Option<(AdaptivePlayout, u64)>,
    /// Packets that arrived in time, one bit each.
    played: Vec<u64>,
    highest: u64,
    late: u64,
    /// RFC 3550 section 6.4.1: last transit time, and jitter.
    transit: Span,
    jitter: f64,
    /// Playout time of the last packet.
    ends: Option<Time>,
}

impl SpeechReceiver {
    fn new(call: u64, packets: u64) -> Self {
        Self {
            call,
            packets,
            first: None,
            delay: Span::ZERO,
            adaptive: None,
            // Allocated once for the whole call, if its length is known and reasonable.
            played: Vec::with_capacity((packets.min(MOST_AHEAD) / 64 + 1) as usize),
            highest: 0,
            late: 0,
            transit: Span::ZERO,
            jitter: 0.0,
            ends: None,
        }
    }

    /// Handles a received packet.
    fn receive(&mut self, index: u64, sent: Time, now: Time, settings: &VoiceSettings) {
        // Bounds the memory, one bit per packet, against invented numbers.
        if index > self.highest + MOST_AHEAD {
            return;
        }
        let transit = now.since(sent);
        if self.first.is_some() {
            let change = transit.abs_diff(self.transit).as_secs_f64();
            self.jitter += (change - self.jitter) / 16.0;
        }
        self.transit = transit;
        self.highest = self.highest.max(index);
        let is_late = match settings.jitter_buffer {
            JitterBuffer::Fixed(buffer) => self.misses_fixed(index, now, buffer, settings.packet),
            JitterBuffer::Adaptive => self.misses_adaptive(index, sent, now, settings.packet),
        };
        if is_late {
            self.late += 1;
            return;
        }
        let word = (index / 64) as usize;
        if word >= self.played.len() {
            self.played.resize(word + 1, 0);
        }
        self.played[word] |= 1 << (index % 64);
    }

    /// Whether a packet is too late for a fixed buffer of length `buffer`.
    fn misses_fixed(&mut self, index: u64, now: Time, buffer: Span, packet: Span) -> bool {
        let transit = self.transit;
        let (first, anchor) = *self.first.get_or_insert_with(|| {
            self.delay = transit + buffer;
            if self.packets < u64::MAX {
                let left = self.packets.saturating_sub(index + 1);
                self.ends = Some(now + buffer + packet * left);
            }
            (index, now)
        });
        // Playout is at anchor + jitter buffer + (index - first) packets; the sum may be before the
        // anchor.
        if index >= first {
            now > anchor + buffer + packet * (index - first)
        } else {
            now + packet * (first - index) > anchor + buffer
        }
    }

    /// Whether a packet is too late for an adaptive buffer.
    fn misses_adaptive(&mut self, index: u64, sent: Time, now: Time, packet: Span) -> bool {
        self.first.get_or_insert((index, now));
        let (mut playout, mut played) = self.adaptive.unwrap_or_else(|| {
            (
                AdaptivePlayout::new(index, sent, now, packet, FIRST_HOLD_BACK),
                0,
            )
        });
        let mut delay = self.delay;
        playout.play_until(now, self.packets, |index, of_this| {
            if self.is_there(index) {
                delay += of_this;
                played += 1;
            }
        });
        self.delay = delay;
        let is_late = playout.has_passed(index);
        playout.observe(self.transit);
        if self.packets < u64::MAX {
            self.ends = Some(playout.played_by(self.packets.saturating_sub(1)));
        }
        self.adaptive = Some((playout, played));
        is_late
    }

    /// Whether a packet arrived in time.
    fn is_there(&self, index: u64) -> bool {
        let word = self.played.get((index / 64) as usize);
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Returns the time from sending to playout; for an adaptive buffer, the mean over packets that
    /// arrived in time.
    fn playout_delay(&self) -> Span {
        let Some((mut playout, mut played)) = self.adaptive else {
            return self.delay;
        };
        let mut total = self.delay;
        playout.play_until(Time::LAST, self.highest + 1, |index, delay| {
            if self.is_there(index) {
                total += delay;
                played += 1;
            }
        });
        match played {
            0 => playout.delay(),
            played => total / played,
        }
    }

    /// Returns the result; in a completed call all missing packets were lost.
    fn quality(&self, is_over: bool, settings: &VoiceSettings) -> SpeechQuality {
        let packets = match (is_over, self.first) {
            (true, _) if self.packets < u64::MAX => self.packets,
            (_, None) => 0,
            (_, Some(_)) => self.highest + 1,
        };
        let (mut lost, mut bursts, mut before) = (0_u64, 0_u64, true);
        for index in 0..packets {
            let is_there = self.is_there(index);
            lost += u64::from(!is_there);
            bursts += u64::from(before && !is_there);
            before = is_there;
        }
        let share = if packets == 0 {
            0.0
        } else {
            lost as f64 / packets as f64
        };
        // G.107 section 7.5: mean burst length relative to that of random loss, 1 / (1 - share).
        let burst_ratio = if bursts == 0 {
            1.0
        } else {
            (lost as f64 / bursts as f64 * (1.0 - share)).max(1.0)
        };
        let codec = settings.codec;
        let delay = self
            .first
            .map(|_| self.playout_delay() + settings.packet + codec.look_ahead());
        let rating = emodel::rating(
            codec.impairment(),
            delay.unwrap_or(Span::ZERO),
            share,
            burst_ratio,
        );
        SpeechQuality {
            packets,
            lost: lost.saturating_sub(self.late),
            late: self.late.min(lost),
            delay,
            jitter: Span::from_secs_f64(self.jitter),
            rating,
            opinion: emodel::opinion(rating),
        }
    }
}

/// One end of calls.
#[derive(Debug)]
pub(super) struct Voice {
    end: CallEnd<SpeechQuality>,
    settings: VoiceSettings,
    set_up: SetUp,
    sender: SpeechSender,
    receiver: Option<SpeechReceiver>,
    bytes: u64,
}

impl Voice {
    /// Creates the caller's end.
    pub(super) fn caller(server: Endpoint, settings: VoiceSettings, set_up: SetUp) -> Self {
        Self::new(Some(server), settings, set_up)
    }

    /// Creates the other end.
    pub(super) fn called(settings: VoiceSettings, set_up: SetUp) -> Self {
        Self::new(None, settings, set_up)
    }

    fn new(server: Option<Endpoint>, settings: VoiceSettings, set_up: SetUp) -> Self {
        Self {
            end: CallEnd::new(server),
            settings,
            set_up,
            sender: SpeechSender::default(),
            receiver: None,
            bytes: 0,
        }
    }

    fn call<D: SocketApi>(&mut self, api: &mut D) {
        self.stop_receiving();
        let settings = &self.settings;
        let packets = call_end::intervals(settings.lasts, settings.packet, api.random());
        if let Some(number) = self.set_up.add(packets) {
            self.begin(number, packets, api.now());
        }
    }

    /// Begins a call. The first packet is sent once its speech is complete.
    fn begin(&mut self, number: u64, packets: u64, now: Time) {
        self.end.begin(number, now);
        self.receiver = Some(SpeechReceiver::new(number, packets));
        self.sender = SpeechSender {
            next: Some(now + self.settings.packet),
            index: 0,
            packets,
        };
    }

    fn send_packet<D: SocketApi>(&mut self, at: Time, api: &mut D) {
        let Some(call) = self.receiver.as_ref().map(|receiver| receiver.call) else {
            self.sender.next = None;
            return;
        };
        let bits = self.settings.codec.rate() as f64 * self.settings.packet.as_secs_f64();
        let datagram = Datagram {
            length: (RTP + (bits / 8.0) as u64) as u16,
            number: call << 32 | self.sender.index & 0xffff_ffff,
            sent: at,
        };
        self.end.send(datagram, api);
        self.sender.index += 1;
        let is_left = self.sender.index < self.sender.packets;
        self.sender.next = is_left.then_some(at + self.settings.packet);
        if !is_left {
            self.end.end_sending(at);
            if let Some(receiver) = &mut self.receiver {
                receiver.ends.get_or_insert(at + RECEPTION_TIMEOUT);
            }
        }
    }

    fn stop_receiving(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            let quality = receiver.quality(true, &self.settings);
            self.end.complete(receiver.call, quality);
        }
    }

    /// Returns the playout time of the other end's last packet; `None` while it is unknown.
    fn reception_ends(&self) -> Option<Time> {
        self.receiver.as_ref().and_then(|receiver| receiver.ends)
    }
}

impl<P: SocketBackend> Application<P> for Voice {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.call(api);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        let Arrival {
            from, to, datagram, ..
        } = arrival;
        let (call, index) = (datagram.number >> 32, datagram.number & 0xffff_ffff);
        let Some(packets) = self.set_up.get(call).filter(|packets| index < *packets) else {
            return;
        };
        let current = self.receiver.as_ref().map(|receiver| receiver.call);
        if self.end.is_new(call, current) {
            // The other end starts sending when it receives a call.
            self.stop_receiving();
            self.end.answer(from, to);
            self.begin(call, packets, api.now());
        }
        if let Some(receiver) = &mut self.receiver
            && receiver.call == call
        {
            self.bytes += u64::from(datagram.length);
            receiver.receive(index, datagram.sent, api.now(), &self.settings);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        while let Some(at) = self.sender.next
            && at <= now
        {
            self.send_packet(at, api);
        }
        if self.sender.next.is_none() {
            if self.reception_ends().is_some_and(|at| at <= now) {
                self.stop_receiving();
            }
            if self.end.awaits_completion() && self.reception_ends().is_none() {
                self.stop_receiving();
                (self.end).schedule(self.settings.count, self.settings.pause, api);
            }
        }
        if self.end.take_due_call(now) {
            self.call(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        // After its last packet, an end receives until the other end's last one.
        let ends = self.reception_ends();
        let ends = ends.filter(|_| self.sender.next.is_none());
        let all = [self.sender.next, self.end.next_call, ends];
        ApplicationProgress {
            next: all.into_iter().flatten().min(),
            finished: self.end.finished,
            latest: None,
        }
    }

    fn datagram_bytes(&self) -> u64 {
        self.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        let settings = &self.settings;
        let current = self.receiver.as_ref();
        let current = current.map(|receiver| (receiver.call, receiver.quality(false, settings)));
        let without_packets = |lasts: Span| {
            let packets = lasts.as_nanos() / settings.packet.as_nanos().max(1);
            SpeechReceiver::new(0, packets).quality(true, settings)
        };
        report.finished = self.end.finished;
        report.calls = Some(self.end.report(current, without_packets));
    }
}
