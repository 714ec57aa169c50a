//! Video calls: frames in both directions at a rate that follows the path ([`nada`](crate::nada)),
//! and their quality at both ends.
//!
//! The encoder makes a frame each `1 / frames_per_second`, of the size that its rate allows at that
//! moment. A frame's packets wait in a shaping buffer, which is sent at the rate that NADA gives.
//! The receiver reports every 100 ms. It shows each complete frame at its playout time
//! ([`adaptive_playout`](super::adaptive_playout)), or on completion, if that is later and no later
//! frame was shown. Lost packets are not retransmitted, and an incomplete frame is not shown.

mod packet_label;
mod receiver;
mod sender;
mod settings;

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::call_end::{self, CallEnd, RECEPTION_TIMEOUT, SharedCalls};
use crate::nada;
use crate::report::VideoQuality;
use crate::{
    Application, ApplicationProgress, Arrival, Datagram, Report, SocketApi, SocketBackend, SocketId,
};
use packet_label::{Label, SEQUENCE};
use receiver::VideoReceiver;
use sender::VideoSender;

pub use settings::VideoCallSettings;

/// Length of an RTCP message with a report: header, two synchronization sources, and the report in
/// 8 bytes.
const FEEDBACK: u16 = 20;

/// Data of a call that both ends know.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCall {
    /// Frames in each direction; `u64::MAX` of an endless call.
    frames: u64,
    /// Times at which the caller and the called end began to send.
    starts: [Option<Time>; 2],
}

/// The calls of a flow.
pub(super) type SetUp = SharedCalls<SharedCall>;

/// One end of video calls.
#[derive(Debug)]
pub(super) struct VideoCallEnd {
    end: CallEnd<VideoQuality>,
    settings: VideoCallSettings,
    set_up: SetUp,
    sender: Option<VideoSender>,
    receiver: Option<VideoReceiver>,
    latest: Option<Span>,
    bytes: u64,
}

impl VideoCallEnd {
    /// Creates the caller's end.
    pub(super) fn caller(server: Endpoint, settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self::new(Some(server), settings, set_up)
    }

    /// Creates the other end.
    pub(super) fn called(settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self::new(None, settings, set_up)
    }

    fn new(server: Option<Endpoint>, settings: VideoCallSettings, set_up: SetUp) -> Self {
        Self {
            end: CallEnd::new(server),
            settings,
            set_up,
            sender: None,
            receiver: None,
            latest: None,
            bytes: 0,
        }
    }

    /// Returns the index of this end and of the other one in [`SharedCall::starts`].
    fn sides(&self) -> (usize, usize) {
        if self.end.is_caller() { (0, 1) } else { (1, 0) }
    }

    /// Returns the latest call whose number ends with these 7 bits, and its data.
    fn known(&self, low: u64) -> Option<(u64, SharedCall)> {
        let latest = self.set_up.latest()?;
        let number = latest.checked_sub(latest.wrapping_sub(low) & 0x7f)?;
        Some((number, self.set_up.get(number)?))
    }

    fn call<D: SocketApi>(&mut self, api: &mut D) {
        self.stop_receiving();
        let settings = &self.settings;
        let frames = call_end::intervals(settings.lasts, settings.interval(), api.random());
        let starts = [None; 2];
        if let Some(number) = self.set_up.add(SharedCall { frames, starts }) {
            self.begin(number, frames, api.now());
        }
    }

    fn begin(&mut self, number: u64, frames: u64, now: Time) {
        let (ours, _) = self.sides();
        (self.set_up).update(number, |call| call.starts[ours] = Some(now));
        self.end.begin(number, now);
        self.sender = Some(VideoSender::new(now, frames, &self.settings));
        self.receiver = Some(VideoReceiver::new(number, frames, &self.settings));
    }

    /// Encodes frames and sends packets that are due.
    fn send_due<D: SocketApi>(&mut self, api: &mut D) {
        let now = api.now();
        let Some(call) = self.receiver.as_ref().map(|receiver| receiver.call) else {
            self.sender = None;
            return;
        };
        let Some(sender) = &mut self.sender else {
            return;
        };
        while sender.next().is_some_and(|at| at <= now) {
            if sender.next_capture().is_some_and(|at| at <= now) {
                sender.encode(self.settings.datagram);
            } else if let Some((packet, sequence)) = sender.send(now) {
                let label = Label::Video {
                    frame: packet.frame as u16,
                    sequence: sequence as u32 & SEQUENCE,
                    index: packet.index,
                    of: packet.of,
                };
                let datagram = Datagram {
                    length: packet.bytes,
                    number: label.pack(call),
                    sent: now,
                };
                self.end.send(datagram, api);
            }
        }
        if sender.next().is_none() {
            self.sender = None;
            self.end.end_sending(now);
            if let Some(receiver) = &mut self.receiver {
                receiver.ends.get_or_insert(now + RECEPTION_TIMEOUT);
            }
        }
    }

    /// Sends a report to the other end, if one is due.
    fn report_to_peer<D: SocketApi>(&mut self, api: &mut D) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        if let Some((bits, sent)) = receiver.report(api.now()) {
            let datagram = Datagram {
                length: FEEDBACK,
                number: Label::Report(bits).pack(receiver.call),
                sent,
            };
            self.end.send(datagram, api);
        }
    }

    fn stop_receiving(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            let quality = receiver.quality(true, &self.settings);
            self.end.complete(receiver.call, quality);
        }
    }

    /// Returns the time by which the last frame has been shown; `None` while this end sends.
    fn reception_ends(&self) -> Option<Time> {
        let ends = self.receiver.as_ref().and_then(|receiver| receiver.ends);
        ends.filter(|_| self.sender.is_none())
    }
}

impl<P: SocketBackend> Application<P> for VideoCallEnd {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.call(api);
        self.send_due(api);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        let Arrival {
            from, to, datagram, ..
        } = arrival;
        let now = api.now();
        let (low, label) = Label::unpack(datagram.number);
        let Some((call, known)) = self.known(low) else {
            return;
        };
        let current = self.receiver.as_ref().map(|receiver| receiver.call);
        if let Label::Report(bits) = label {
            if current == Some(call)
                && let Some(sender) = &mut self.sender
            {
                let round_trip = now.since(datagram.sent);
                (sender.rate).update(nada::Report::unpack(bits), round_trip, now);
            }
            return;
        }
        if self.end.is_new(call, current) {
            self.stop_receiving();
            self.end.answer(from, to);
            self.begin(call, known.frames, now);
        }
        let (_, theirs) = self.sides();
        let receiver = self.receiver.as_mut();
        let receiver = receiver.filter(|receiver| receiver.call == call);
        let (Some(receiver), Some(origin)) = (receiver, known.starts[theirs]) else {
            return;
        };
        receiver.origin = origin;
        self.bytes += u64::from(datagram.length);
        self.latest = receiver.receive(label, &datagram, now).or(self.latest);
        let sender = self.sender.as_ref();
        if sender.is_some_and(|sender| sender.next() == Some(now)) {
            self.send_due(api);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        self.send_due(api);
        self.report_to_peer(api);
        if self.reception_ends().is_some_and(|at| at <= now) {
            self.stop_receiving();
        }
        let is_complete = self.sender.is_none() && self.receiver.is_none();
        if is_complete && self.end.awaits_completion() {
            (self.end).schedule(self.settings.count, self.settings.pause, api);
        }
        if self.end.take_due_call(now) {
            self.call(api);
            self.send_due(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        let packet = self.sender.as_ref().and_then(VideoSender::next);
        let receiver = self.receiver.as_ref();
        let report = receiver.and_then(|receiver| receiver.next_report);
        let all = [packet, report, self.end.next_call, self.reception_ends()];
        ApplicationProgress {
            next: all.into_iter().flatten().min(),
            finished: self.end.finished,
            latest: self.latest,
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
            let frames = lasts.as_nanos() / settings.interval().as_nanos().max(1) + 1;
            VideoReceiver::new(0, frames, settings).quality(true, settings)
        };
        report.finished = self.end.finished;
        report.video_calls = Some(self.end.report(current, without_packets));
    }
}
