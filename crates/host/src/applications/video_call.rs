//! Video calls: frames both ways at a rate that follows the path ([`nada`](crate::nada)), and what
//! each end sees of the other.
//!
//! The encoder makes a frame each `1 / frames_per_second`, of the size that its rate allows at that
//! moment. A frame's packets wait in a shaping buffer, which is sent at the rate that NADA says.
//! The receiver reports every 100 ms, and shows each frame that is complete when its turn comes
//! ([`adaptive_playout`](super::adaptive_playout)), or at once when it is complete, if that is
//! later and no later frame has been shown. Lost packets are not sent again, and a frame that
//! misses one is not shown; the next is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::adaptive_playout::AdaptivePlayout;
use super::voice::FIRST_HOLD_BACK;
use crate::nada::{self, Receiver, Sender};
use crate::numbers::Numbers;
use crate::report::{Seen, VideoCall, VideoCalls};
use crate::video_opinion;
use crate::{
    Application, Arrival, Datagram, Distribution, Report, SocketId, Standing, Workplace, World,
};

/// Settings of a video call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VideoCallSettings {
    /// The least rate of the video each way in bit/s, RTP headers included (RMIN of RFC 8698).
    pub least_rate: u64,
    /// The highest (RMAX of RFC 8698).
    pub most_rate: u64,
    /// Frames a second.
    pub frame_rate: u32,
    /// Bytes of a datagram at most, RTP header included.
    pub datagram: u16,
    /// Seconds of a call; `None`: until the end of the run.
    pub lasts: Option<Distribution>,
    /// Seconds from a call's end to the next.
    pub pause: Distribution,
    /// Calls; `None`: until the end of the run.
    pub count: Option<u64>,
}

impl VideoCallSettings {
    /// Packets that a frame may have: 8 bits number them.
    pub const MOST_PACKETS: u64 = 255;

    /// Bytes of the shortest datagram that may be the longest: RTP's header and some video.
    pub const LEAST_DATAGRAM: u16 = 128;

    /// Packets of the largest frame.
    #[must_use]
    pub fn packets_of_largest_frame(&self) -> u64 {
        let bytes = self.most_rate / 8 / u64::from(self.frame_rate.max(1));
        bytes.div_ceil(u64::from(self.datagram.max(1)))
    }

    fn interval(&self) -> Span {
        Span::from_nanos(1_000_000_000 / u64::from(self.frame_rate.max(1)))
    }
}

/// How long after its own last packet an end waits that has seen nothing.
const PATIENCE: Span = Span::from_secs(5);
/// RFC 3550 section 5.1: RTP's header, and what a datagram needs to be told from others.
const LEAST_PACKET: u16 = 12 + Datagram::LEAST;
/// An RTCP message with a report: header, two synchronization sources, and the report in 8 bytes.
const FEEDBACK: u16 = 20;
/// Frames of which some packets are remembered; a frame is given up where later ones are more.
const MOST_PARTIAL: usize = 256;
/// Frames shown whose average duration a freeze is compared with.
const FREEZE_FRAMES: usize = 30;
/// How much longer than the average a freeze is.
const FREEZE: Span = Span::from_millis(150);

/// Data of a call known to both ends without packets: signalling is not modelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Frames each way; `u64::MAX` of a call without an end.
    frames: u64,
    /// When the caller and the called began to send.
    starts: [Option<Time>; 2],
}

/// The calls of a flow.
pub(super) type SetUp = Arc<Mutex<Vec<Known>>>;

/// Content of a datagram's number.
///
/// From the highest bit: 1 for a report, and 7 of the call's number. A report continues with 8
/// unused bits and the 48 of the report. A packet of video continues with 16 bits of the frame's
/// number, 24 of the packet's, 8 of the number of packets in the frame before it, and 8 of the
/// number of packets in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    Report(u64),
    Video {
        frame: u16,
        sequence: u32,
        place: u8,
        of: u8,
    },
}

impl Label {
    fn pack(self, call: u64) -> u64 {
        let call = (call & 0x7f) << 56;
        match self {
            Self::Report(bits) => 1 << 63 | call | bits & 0xffff_ffff_ffff,
            Self::Video {
                frame,
                sequence,
                place,
                of,
            } => {
                let (frame, sequence) = (u64::from(frame) << 40, u64::from(sequence & SEQUENCE));
                call | frame | sequence << 16 | u64::from(place) << 8 | u64::from(of)
            }
        }
    }

    /// The low bits of the call's number, and the rest.
    fn unpack(number: u64) -> (u64, Self) {
        let call = number >> 56 & 0x7f;
        let label = if number >> 63 == 1 {
            Self::Report(number & 0xffff_ffff_ffff)
        } else {
            Self::Video {
                frame: (number >> 40) as u16,
                sequence: (number >> 16) as u32 & SEQUENCE,
                place: (number >> 8) as u8,
                of: number as u8,
            }
        };
        (call, label)
    }
}

/// The bits of a packet's number.
const SEQUENCE: u32 = (1 << 24) - 1;

/// The number nearest to `near` whose low bits these are, as many as `mask` has (RFC 3550 appendix
/// A.1 extends sequence numbers so). Numbers begin with 0.
fn extend(low: u64, mask: u64, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near) & mask;
    if ahead <= mask / 2 {
        near + ahead
    } else {
        near.checked_sub(mask + 1 - ahead).unwrap_or(near + ahead)
    }
}

/// A packet in the shaping buffer.
#[derive(Clone, Copy, Debug)]
struct Shaped {
    frame: u64,
    place: u8,
    of: u8,
    bytes: u16,
}

/// The sending half of an end in a call.
#[derive(Debug)]
struct Camera {
    start: Time,
    interval: Span,
    frames: u64,
    /// The next frame to be encoded.
    next_frame: u64,
    next_sequence: u64,
    rate: Sender,
    frames_per_second: f64,
    /// The shaping buffer, and its bytes.
    buffer: VecDeque<Shaped>,
    buffered: u64,
    /// The earliest time of the next packet.
    next_packet: Time,
    /// Bits that frames have been short of their share, for whole bytes.
    remainder: f64,
}

impl Camera {
    fn new(start: Time, frames: u64, settings: &VideoCallSettings) -> Self {
        Self {
            start,
            interval: settings.interval(),
            frames,
            next_frame: 0,
            next_sequence: 0,
            rate: Sender::new(settings.least_rate, settings.most_rate),
            frames_per_second: f64::from(settings.frame_rate),
            buffer: VecDeque::new(),
            buffered: 0,
            next_packet: start,
            remainder: 0.0,
        }
    }

    /// When the next frame is encoded.
    fn next_capture(&self) -> Option<Time> {
        let is_left = self.next_frame < self.frames;
        is_left.then(|| self.start + self.interval * self.next_frame)
    }

    /// When there is something to do next.
    fn next(&self) -> Option<Time> {
        let packet = (!self.buffer.is_empty()).then_some(self.next_packet);
        [self.next_capture(), packet].into_iter().flatten().min()
    }

    /// Encodes a frame into the shaping buffer.
    fn encode(&mut self, datagram: u16) {
        let rate = self
            .rate
            .encoder_rate(self.buffered, self.frames_per_second);
        let bytes = rate / 8.0 / self.frames_per_second + self.remainder;
        self.remainder = bytes - bytes.floor();
        let bytes = (bytes as u64).max(u64::from(LEAST_PACKET));
        let most = VideoCallSettings::MOST_PACKETS;
        let of = bytes.div_ceil(u64::from(datagram)).clamp(1, most);
        for place in 0..of {
            // As equal as whole bytes allow.
            let share = bytes * (place + 1) / of - bytes * place / of;
            let share = share.clamp(u64::from(LEAST_PACKET), u64::from(datagram)) as u16;
            self.buffered += u64::from(share);
            self.buffer.push_back(Shaped {
                frame: self.next_frame,
                place: place as u8,
                of: of as u8,
                bytes: share,
            });
        }
        self.next_frame += 1;
    }

    /// Takes the next packet out of the shaping buffer.
    fn send(&mut self, now: Time) -> Option<(Shaped, u64)> {
        let rate = self
            .rate
            .sending_rate(self.buffered, self.frames_per_second);
        let packet = self.buffer.pop_front()?;
        self.buffered -= u64::from(packet.bytes);
        let lasts = Span::from_secs_f64(f64::from(packet.bytes) * 8.0 / rate);
        self.next_packet = now + lasts;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Some((packet, sequence))
    }
}

/// The receiving half of an end in a call.
#[derive(Debug)]
struct Screen {
    call: u64,
    interval: Span,
    frames: u64,
    /// When the other end began to send.
    origin: Time,
    nada: Receiver,
    arrived: Numbers,
    highest: Option<u64>,
    packets: u64,
    bytes: u64,
    late: u64,
    /// Frames that lack packets: how many.
    partial: BTreeMap<u64, u8>,
    /// Frames that are complete and have not been shown.
    complete: BTreeSet<u64>,
    playout: Option<AdaptivePlayout>,
    display: Display,
    first_arrival: Option<Time>,
    last_arrival: Time,
    /// When the next report is due, and whether packets have come since the last.
    next_report: Option<Time>,
    has_news: bool,
    /// When the latest packet was sent and when it arrived.
    latest: Option<(Time, Time)>,
    /// When the last frame has been shown.
    ends: Option<Time>,
}

/// The frames that have been shown.
#[derive(Clone, Debug, Default)]
struct Display {
    /// Frames whose turn has come.
    frames: u64,
    shown: u64,
    /// From capture to display, of all.
    delay: Span,
    /// The last frame shown, and when.
    last: Option<(u64, Time)>,
    /// Durations of the latest frames.
    durations: VecDeque<Span>,
    freezes: u64,
    frozen: Span,
}

impl Display {
    /// Whether this frame or a later one has been shown.
    fn has_shown(&self, frame: u64) -> bool {
        self.last.is_some_and(|(last, _)| frame <= last)
    }

    /// Shows a frame at `at`, `delay` after it was captured.
    fn show(&mut self, frame: u64, at: Time, delay: Span) {
        self.shown += 1;
        self.delay += delay;
        if let Some((_, last)) = self.last {
            let lasts = at.since(last);
            if !self.durations.is_empty() {
                let total = self.durations.iter().fold(Span::ZERO, |sum, of| sum + *of);
                let average = total / self.durations.len() as u64;
                if lasts >= (average * 3).max(average + FREEZE) {
                    self.freezes += 1;
                    self.frozen += lasts;
                }
            }
            if self.durations.len() == FREEZE_FRAMES {
                self.durations.pop_front();
            }
            self.durations.push_back(lasts);
        }
        self.last = Some((frame, at));
    }
}

impl Screen {
    fn new(call: u64, frames: u64, settings: &VideoCallSettings) -> Self {
        Self {
            call,
            interval: settings.interval(),
            frames,
            origin: Time::ZERO,
            nada: Receiver::default(),
            arrived: Numbers::default(),
            highest: None,
            packets: 0,
            bytes: 0,
            late: 0,
            partial: BTreeMap::new(),
            complete: BTreeSet::new(),
            playout: None,
            display: Display::default(),
            first_arrival: None,
            last_arrival: Time::ZERO,
            next_report: None,
            has_news: false,
            latest: None,
            ends: None,
        }
    }

    /// Shows what is due before `now`.
    fn show_until(&mut self, now: Time, end: u64) {
        let Self {
            playout: Some(playout),
            complete,
            display,
            origin,
            interval,
            ..
        } = self
        else {
            return;
        };
        playout.play_until(now, end, |frame, delay| {
            display.frames += 1;
            if complete.remove(&frame) && !display.has_shown(frame) {
                display.show(frame, *origin + *interval * frame + delay, delay);
            }
        });
    }

    /// A packet of video has arrived. Returns how long its frame took from capture on, if it is
    /// complete now.
    fn take(&mut self, label: Label, datagram: &Datagram, now: Time) -> Option<Span> {
        let Label::Video {
            frame,
            sequence,
            place,
            of,
        } = label
        else {
            return None;
        };
        let near = self.highest.unwrap_or(0);
        let sequence = extend(u64::from(sequence), u64::from(SEQUENCE), near);
        if place >= of || !self.arrived.note(sequence) {
            return None;
        }
        self.show_until(now, self.frames);
        let frame = extend(u64::from(frame), 0xffff, self.display.frames);
        if frame >= self.frames {
            return None;
        }
        self.highest = self.highest.max(Some(sequence));
        self.packets += 1;
        self.bytes += u64::from(datagram.length);
        self.first_arrival.get_or_insert(now);
        self.last_arrival = now;
        self.latest = Some((datagram.sent, now));
        self.has_news = true;
        self.next_report.get_or_insert(now + nada::DELTA);
        self.nada
            .arrive(sequence, datagram.length, datagram.sent, now);
        self.late += u64::from(self.display.has_shown(frame));
        let missing = self.partial.entry(frame).or_insert(of);
        *missing = missing.saturating_sub(1);
        if *missing > 0 {
            if self.partial.len() > MOST_PARTIAL {
                self.partial.pop_first();
            }
            return None;
        }
        self.partial.remove(&frame);
        let captured = self.origin + self.interval * frame;
        let delay = now.since(captured);
        let mut playout = self.playout.unwrap_or_else(|| {
            AdaptivePlayout::new(frame, captured, now, self.interval, FIRST_HOLD_BACK)
        });
        playout.observe(delay);
        if self.frames < u64::MAX {
            self.ends = Some(playout.played_by(self.frames.saturating_sub(1)));
        }
        if !playout.has_passed(frame) {
            self.complete.insert(frame);
        } else if !self.display.has_shown(frame) {
            self.display.show(frame, now, delay);
        }
        self.playout = Some(playout);
        Some(delay)
    }

    /// Returns the result so far; of a completed call, for all its frames.
    fn seen(&self, is_over: bool, settings: &VideoCallSettings) -> Seen {
        let mut whole = Self {
            complete: self.complete.clone(),
            display: self.display.clone(),
            playout: self.playout,
            origin: self.origin,
            ..Self::new(self.call, self.frames, settings)
        };
        let arrived = whole.complete.last().map_or(0, |last| last + 1);
        let has_end = is_over && self.frames < u64::MAX;
        whole.show_until(Time::LAST, if has_end { self.frames } else { arrived });
        let mut display = whole.display;
        if has_end {
            // Without a single frame nothing had its turn.
            display.frames = self.frames;
        }
        let packets = self.highest.map_or(0, |highest| highest + 1);
        let lost = packets.saturating_sub(self.packets);
        let share = |part: u64| {
            if packets == 0 {
                1.0
            } else {
                part as f64 / packets as f64
            }
        };
        // The last packet is not in the time from the first to it.
        let lasted = self
            .first_arrival
            .map(|first| self.last_arrival.since(first));
        let rate = match lasted {
            Some(lasted) if lasted > Span::ZERO => {
                self.bytes as f64 * 8.0 / (lasted + settings.interval()).as_secs_f64()
            }
            _ => 0.0,
        };
        Seen {
            packets,
            lost,
            late: self.late,
            frames: display.frames,
            shown: display.shown,
            freezes: display.freezes,
            frozen: display.frozen,
            delay: (display.shown > 0).then(|| display.delay / display.shown),
            rate,
            opinion: video_opinion::opinion(
                rate / 1_000.0,
                f64::from(settings.frame_rate),
                share(lost + self.late),
            ),
        }
    }
}

/// One end of video calls: the caller's, which knows where to call, or the other.
#[derive(Debug)]
pub(super) struct VideoCallEnd {
    server: Option<Endpoint>,
    /// The other end of the current call, and the port it sends to.
    peer: Option<(Endpoint, u16)>,
    settings: VideoCallSettings,
    set_up: SetUp,
    calls: Vec<VideoCall>,
    camera: Option<Camera>,
    screen: Option<Screen>,
    seen: Vec<(u64, Seen)>,
    next_call: Option<Time>,
    finished: Option<Time>,
    latest: Option<Span>,
    bytes: u64,
}

impl VideoCallEnd {
    /// The caller's end.
    pub(super) fn caller(server: Endpoint, settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self::new(Some(server), settings, set_up)
    }

    /// The other end.
    pub(super) fn called(settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self::new(None, settings, set_up)
    }

    fn new(server: Option<Endpoint>, settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self {
            server,
            peer: None,
            settings,
            set_up,
            calls: Vec::new(),
            camera: None,
            screen: None,
            seen: Vec::new(),
            next_call: None,
            finished: None,
            latest: None,
            bytes: 0,
        }
    }

    /// This end's and the other's place in [`Known::starts`].
    fn sides(&self) -> (usize, usize) {
        if self.server.is_some() {
            (0, 1)
        } else {
            (1, 0)
        }
    }

    /// The call whose number ends with these 7 bits, the latest of several, and what is known of
    /// it.
    fn known(&self, low: u64) -> Option<(u64, Known)> {
        let calls = self.set_up.lock().ok()?;
        let latest = (calls.len() as u64).checked_sub(1)?;
        let number = latest.checked_sub(latest.wrapping_sub(low) & 0x7f)?;
        Some((number, *calls.get(number as usize)?))
    }

    fn call<D: Workplace>(&mut self, desk: &mut D) {
        self.stop_watching(true);
        let frames = match self.settings.lasts {
            Some(lasts) => {
                let lasts = lasts.span(desk.random()).as_nanos();
                (lasts / self.settings.interval().as_nanos().max(1)).max(1)
            }
            None => u64::MAX,
        };
        let number = match self.set_up.lock() {
            Ok(mut calls) => {
                calls.push(Known {
                    frames,
                    starts: [None; 2],
                });
                calls.len() as u64 - 1
            }
            Err(_) => return,
        };
        self.begin(number, frames, desk.now());
    }

    fn begin(&mut self, number: u64, frames: u64, now: Time) {
        if let Ok(mut calls) = self.set_up.lock()
            && let Some(known) = calls.get_mut(number as usize)
        {
            known.starts[self.sides().0] = Some(now);
        }
        self.calls.push(VideoCall {
            number,
            start: now,
            ..VideoCall::default()
        });
        self.camera = Some(Camera::new(now, frames, &self.settings));
        self.screen = Some(Screen::new(number, frames, &self.settings));
    }

    fn transmit<D: Workplace>(&self, datagram: Datagram, desk: &mut D) {
        match (self.server, self.peer) {
            (Some(server), _) => desk.send(server, datagram),
            (None, Some((peer, port))) => desk.send_from(port, peer, datagram),
            (None, None) => false,
        };
    }

    /// Encodes and sends what is due.
    fn film<D: Workplace>(&mut self, desk: &mut D) {
        let now = desk.now();
        let Some(call) = self.screen.as_ref().map(|screen| screen.call) else {
            self.camera = None;
            return;
        };
        while let Some(camera) = &mut self.camera
            && camera.next().is_some_and(|at| at <= now)
        {
            if camera.next_capture().is_some_and(|at| at <= now) {
                camera.encode(self.settings.datagram);
            } else if let Some((packet, sequence)) = camera.send(now) {
                let label = Label::Video {
                    frame: packet.frame as u16,
                    sequence: sequence as u32 & SEQUENCE,
                    place: packet.place,
                    of: packet.of,
                };
                let datagram = Datagram {
                    length: packet.bytes,
                    number: label.pack(call),
                    sent: now,
                };
                self.transmit(datagram, desk);
            }
        }
        let is_done = self
            .camera
            .as_ref()
            .is_some_and(|camera| camera.next().is_none());
        if is_done {
            self.camera = None;
            if let Some(call) = self.calls.last_mut() {
                call.lasts = Some(now.since(call.start));
            }
            if let Some(screen) = &mut self.screen {
                screen.ends.get_or_insert(now + PATIENCE);
            }
        }
    }

    /// Reports to the other end, if that is due.
    fn report_to_peer<D: Workplace>(&mut self, desk: &mut D) {
        let now = desk.now();
        let Some(screen) = &mut self.screen else {
            return;
        };
        if screen.next_report.is_none_or(|at| at > now) {
            return;
        }
        // Without packets there is nothing to report: the next one starts the clock again.
        screen.next_report = screen.has_news.then(|| now + nada::DELTA);
        if !std::mem::take(&mut screen.has_news) {
            return;
        }
        let bits = screen.nada.report(now).pack();
        let held = screen
            .latest
            .map_or(Span::ZERO, |(_, arrival)| now.since(arrival));
        let sent = screen.latest.map_or(now, |(sent, _)| sent);
        let datagram = Datagram {
            length: FEEDBACK,
            number: Label::Report(bits).pack(screen.call),
            // When the packet that it answers was sent, and how long it waited here: what is
            // missing until the report arrives is the round trip (RFC 3550 section 6.4.1, LSR and
            // DLSR).
            sent: sent + held,
        };
        self.transmit(datagram, desk);
    }

    fn stop_watching(&mut self, is_over: bool) {
        if let Some(screen) = self.screen.take() {
            let seen = screen.seen(is_over, &self.settings);
            self.seen.push((screen.call, seen));
        }
    }

    /// When the end has seen all of the call; unknown while it still sends.
    fn ends(&self) -> Option<Time> {
        let ends = self.screen.as_ref().and_then(|screen| screen.ends);
        ends.filter(|_| self.camera.is_none())
    }

    /// Ends the call where the caller has sent and seen all of it: begins the next, or is done.
    fn hang_up<D: Workplace>(&mut self, desk: &mut D) {
        let is_busy = self.camera.is_some() || self.screen.is_some() || self.calls.is_empty();
        let waits = self.next_call.is_some() || self.finished.is_some();
        if self.server.is_none() || is_busy || waits {
            return;
        }
        if self.settings.count == Some(self.calls.len() as u64) {
            self.finished = Some(desk.now());
        } else {
            let pause = self.settings.pause.span(desk.random());
            self.next_call = Some(desk.now() + pause);
        }
    }
}

impl<P: World> Application<P> for VideoCallEnd {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        self.call(desk);
        self.film(desk);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Desk<'_, '_>) {}

    fn on_datagram(&mut self, arrival: Arrival, desk: &mut P::Desk<'_, '_>) {
        let Arrival { from, to, datagram } = arrival;
        let now = desk.now();
        let (low, label) = Label::unpack(datagram.number);
        let Some((call, known)) = self.known(low) else {
            return;
        };
        let current = self.screen.as_ref().map(|screen| screen.call);
        if let Label::Report(bits) = label {
            if current == Some(call)
                && let Some(camera) = &mut self.camera
            {
                let round_trip = now.since(datagram.sent);
                camera
                    .rate
                    .update(nada::Report::unpack(bits), round_trip, now);
            }
            return;
        }
        if self.server.is_none() && current.is_none_or(|current| call > current) {
            if self.seen.last().is_some_and(|(last, _)| *last >= call) {
                return;
            }
            self.stop_watching(true);
            self.peer = Some((from, to));
            self.begin(call, known.frames, now);
        }
        let (_, theirs) = self.sides();
        let Some(screen) = self.screen.as_mut().filter(|screen| screen.call == call) else {
            return;
        };
        let Some(origin) = known.starts[theirs] else {
            return;
        };
        screen.origin = origin;
        self.bytes += u64::from(datagram.length);
        self.latest = screen.take(label, &datagram, now).or(self.latest);
        if self
            .camera
            .as_ref()
            .is_some_and(|camera| camera.next() == Some(now))
        {
            self.film(desk);
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        let now = desk.now();
        self.film(desk);
        self.report_to_peer(desk);
        if self.ends().is_some_and(|at| at <= now) {
            self.stop_watching(true);
        }
        self.hang_up(desk);
        if self.next_call.is_some_and(|at| at <= now) {
            self.next_call = None;
            self.call(desk);
            self.film(desk);
        }
    }

    fn standing(&self) -> Standing {
        let camera = self.camera.as_ref().and_then(Camera::next);
        let report = self.screen.as_ref().and_then(|screen| screen.next_report);
        let all = [camera, report, self.next_call, self.ends()];
        Standing {
            next: all.into_iter().flatten().min(),
            finished: self.finished,
            latest: self.latest,
        }
    }

    fn datagram_bytes(&self) -> u64 {
        self.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        let mut seen = self.seen.clone();
        if let Some(screen) = &self.screen {
            seen.push((screen.call, screen.seen(false, &self.settings)));
        }
        let mut calls = self.calls.clone();
        for call in &mut calls {
            let seen = seen.iter().find(|(number, _)| *number == call.number);
            let seen = seen.map(|(_, seen)| *seen);
            if self.server.is_some() {
                // Of a call that is over, an end that received nothing saw nothing.
                let nothing = call.lasts.map(|lasts| {
                    let frames = lasts.as_nanos() / self.settings.interval().as_nanos().max(1) + 1;
                    Screen::new(call.number, frames, &self.settings).seen(true, &self.settings)
                });
                call.there = nothing;
                call.back = seen.or(nothing);
            } else {
                call.there = seen;
            }
        }
        report.finished = self.finished;
        report.video_calls = Some(VideoCalls { calls });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_packed_into_datagram_numbers_and_unpacked_equal() {
        for label in [
            Label::Report(0xffff_0000_1234),
            Label::Video {
                frame: 0xfedc,
                sequence: 0x12_3456,
                place: 254,
                of: 255,
            },
            Label::Video {
                frame: 0,
                sequence: SEQUENCE,
                place: 0,
                of: 1,
            },
        ] {
            assert_eq!(Label::unpack(label.pack(127)), (127, label));
            assert_eq!(Label::unpack(label.pack(128)), (0, label));
        }
    }

    #[test]
    fn sequence_numbers_are_extended_to_the_nearest_value() {
        for (near, number) in [
            (0, 5),
            (70_000, 65_535),
            (65_535, 65_536),
            (131_000, 131_073),
        ] {
            assert_eq!(extend(number & 0xffff, 0xffff, near), number);
        }
    }

    #[test]
    fn a_freeze_is_150_ms_longer_than_the_frames_before_it() {
        let frame = Span::from_millis(33);
        // 33 + 149 ms are none, 33 + 150 are one. (Three times 33 is less.)
        for (longer, freezes) in [(149, 0), (150, 1)] {
            let mut display = Display::default();
            let mut at = Time::ZERO;
            for number in 0..50 {
                display.show(number, at, Span::ZERO);
                at += frame;
            }
            display.show(50, at + Span::from_millis(longer), Span::ZERO);
            assert_eq!(display.freezes, freezes);
            assert_eq!(display.frozen, Span::from_millis(183) * freezes);
        }
    }
}
