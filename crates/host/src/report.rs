//! What applications have to tell of themselves.

use std::sync::Arc;

use bentpipe_types::{Span, SpanStatistics, Time};

/// What an application has to tell of itself when it is asked for results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// When it had done all that it set out to do; `None` of one that has not, or never will have.
    pub finished: Option<Time>,
    /// Answers to requests.
    pub responses: Option<Responses>,
    /// Pages loaded.
    pub pages: Option<Pages>,
    /// Messages of a source of packets.
    pub messages: Option<Messages>,
    /// Files transferred.
    pub files: Option<Transfers>,
    /// Mails handed over.
    pub mails: Option<Transfers>,
    /// Calls.
    pub calls: Option<Calls>,
    /// Video watched.
    pub viewing: Option<Viewing>,
    /// Video calls.
    pub video_calls: Option<VideoCalls>,
    /// Echoes.
    pub echoes: Option<Echoes>,
    /// What a user did; empty of anything else.
    pub activities: Vec<Activity>,
}

/// Answers to requests.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// Requests made.
    pub asked: u64,
    /// From a request's first byte written to its answer's last byte read, in order.
    pub times: Vec<Span>,
}

/// A page that was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// When navigation started.
    pub start: Time,
    /// From there to the first byte of the document: TTFB.
    pub first_byte: Span,
    /// From there to the last byte of the last object: page load time.
    pub load: Span,
    /// Objects, the document among them.
    pub objects: u32,
    /// Bytes of them all.
    pub bytes: u64,
}

/// Pages.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Navigations begun.
    pub begun: u64,
    /// Those that were completed, in order.
    pub loaded: Vec<Page>,
}

/// Messages of a source of packets.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Sent, or written.
    pub sent: u64,
    /// Received whole.
    pub received: u64,
    /// Bytes received.
    pub bytes: u64,
    /// From sent to received whole.
    pub delays: SpanStatistics,
    /// When the last was received.
    pub last: Option<Time>,
}

/// Files or mails.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// Those begun.
    pub begun: u64,
    /// Of those that came through: from the first command (of mail: the connection's opening) to the
    /// reply that says so.
    pub times: Vec<Span>,
    /// Bytes of those, commands and replies not counted.
    pub bytes: u64,
}

/// Echoes.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    /// Requests sent.
    pub sent: u64,
    /// Those that were answered.
    pub received: u64,
    /// Bytes of data in the answers.
    pub bytes: u64,
    /// From request to answer.
    pub times: SpanStatistics,
}

/// Calls, in order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Each once; one that no packet of has come through, too.
    pub calls: Vec<Call>,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Call {
    /// The flow's first is 0.
    pub number: u64,
    /// When it began.
    pub start: Time,
    /// How long its caller spoke; `None` of one that goes on.
    pub lasts: Option<Span>,
    /// Packets of it that were to be sent each way; `None` of one without an end.
    pub packets: Option<u64>,
    /// What the one who was called heard.
    pub there: Option<Heard>,
    /// What the caller heard.
    pub back: Option<Heard>,
}

/// How a call sounded at one end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heard {
    /// Packets that there were, or should have been.
    pub packets: u64,
    /// Those that did not come.
    pub lost: u64,
    /// Those that came too late to be played.
    pub late: u64,
    /// From mouth to ear: packet, codec, network and jitter buffer; `None` where nothing came.
    pub delay: Option<Span>,
    /// RFC 3550's interarrival jitter, at the end.
    pub jitter: Span,
    /// R of ITU-T G.107.
    pub rating: f64,
    /// The mean opinion score that goes with it.
    pub opinion: f64,
}

/// Video calls, in order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct VideoCalls {
    /// Each once; a call of which no packet came through is among them.
    pub calls: Vec<VideoCall>,
}

/// A video call.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct VideoCall {
    /// The flow's first is 0.
    pub number: u64,
    /// When it began.
    pub start: Time,
    /// How long its caller sent; `None` of one that goes on.
    pub lasts: Option<Span>,
    /// What the other end saw of the caller.
    pub there: Option<Seen>,
    /// What the caller saw of the other end.
    pub back: Option<Seen>,
}

/// What one end of a video call saw of the other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Seen {
    /// Packets of video sent, up to the last that arrived.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived after their frame or a later one had been shown.
    pub late: u64,
    /// Frames whose turn has come.
    pub frames: u64,
    /// Frames that were shown.
    pub shown: u64,
    /// Freezes: times from one frame shown to the next that are at least 150 ms longer than the average of the
    /// 30 before, and at least three times as long (`freezeCount` of W3C's WebRTC statistics).
    pub freezes: u64,
    /// How long those were in all.
    pub frozen: Span,
    /// Mean time from capture to display of the frames shown; `None` without any.
    pub delay: Option<Span>,
    /// Mean rate of the video that arrived, in bit/s, RTP headers included.
    pub rate: f64,
    /// Mean opinion score of ITU-T G.1070.
    pub opinion: f64,
}

/// Video watched.
#[derive(Clone, Debug, Default)]
pub struct Viewing {
    /// From pressing play to the first picture, of each video that got so far.
    pub start_ups: Vec<Span>,
    /// Times it stopped for want of data.
    pub stalls: u64,
    /// How long in all.
    pub stalled: Span,
    /// How long it played.
    pub played: Span,
    /// Segments fetched.
    pub segments: u64,
    /// Bits of them, at their rate.
    pub bits: f64,
    /// Times another rate was chosen.
    pub switches: u64,
    /// The rate chosen last.
    pub last_rate: u64,
    /// Seconds of video in those segments.
    pub fetched: Span,
}

/// What a user did of one application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// The application, as the mix calls it.
    pub name: Arc<str>,
    /// Times it was begun.
    pub begun: u64,
    /// Times it came to its end.
    pub finished: u64,
    /// Times it could not.
    pub failed: u64,
}

/// Both, if both have it.
fn join<T>(one: &mut Option<T>, other: Option<T>, add: impl FnOnce(&mut T, T)) {
    match (one.as_mut(), other) {
        (Some(one), Some(other)) => add(one, other),
        (None, other) => *one = other,
        (Some(_), None) => {}
    }
}

impl Messages {
    fn absorb(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.bytes += other.bytes;
        self.delays.add(&other.delays);
        self.last = self.last.max(other.last);
    }
}

impl Transfers {
    fn absorb(&mut self, other: &Self) {
        self.begun += other.begun;
        self.times.extend(&other.times);
        self.bytes += other.bytes;
    }
}

impl Echoes {
    fn absorb(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.bytes += other.bytes;
        self.times.add(&other.times);
    }
}

impl Viewing {
    fn absorb(&mut self, other: &Self) {
        self.start_ups.extend(&other.start_ups);
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.played += other.played;
        self.segments += other.segments;
        self.bits += other.bits;
        self.switches += other.switches;
        self.last_rate = other.last_rate;
        self.fetched += other.fetched;
    }
}

impl Report {
    /// Takes in what another application of the same end tells.
    pub fn absorb(&mut self, other: Self) {
        self.finished = self.finished.max(other.finished);
        join(&mut self.responses, other.responses, |all, more| {
            all.asked += more.asked;
            all.times.extend(more.times);
        });
        join(&mut self.pages, other.pages, |all, more| {
            all.begun += more.begun;
            all.loaded.extend(more.loaded);
        });
        join(&mut self.messages, other.messages, |all, more| {
            all.absorb(&more);
        });
        join(&mut self.files, other.files, |all, more| all.absorb(&more));
        join(&mut self.mails, other.mails, |all, more| all.absorb(&more));
        join(&mut self.calls, other.calls, |all, more| {
            all.calls.extend(more.calls);
        });
        join(&mut self.viewing, other.viewing, |all, more| {
            all.absorb(&more);
        });
        join(&mut self.video_calls, other.video_calls, |all, more| {
            all.calls.extend(more.calls);
        });
        join(&mut self.echoes, other.echoes, |all, more| {
            all.absorb(&more);
        });
        self.activities.extend(other.activities);
    }

    /// What both ends of a flow tell, as one.
    #[must_use]
    pub fn of_both(opener: Self, server: Self) -> Self {
        let messages = match (opener.messages, server.messages) {
            (Some(sender), Some(receiver)) => Some(Messages {
                sent: sender.sent.max(receiver.sent),
                ..receiver
            }),
            (one, other) => one.or(other),
        };
        // What is sent is not there yet: who sends has finished before it has come.
        let last = messages.as_ref().and_then(|messages| messages.last);
        let finished = (opener.finished.or(server.finished)).map(|at| at.max(last.unwrap_or(at)));
        // The one end has begun them, the other got them.
        let files = match (opener.files, server.files) {
            (Some(sender), Some(receiver)) => Some(Transfers {
                begun: sender.begun.max(receiver.begun),
                ..receiver
            }),
            (one, other) => one.or(other),
        };
        let calls = opener.calls.map(|mut calls| {
            calls.calls.sort_by_key(|call| call.number);
            let heard = server.calls.unwrap_or_default().calls;
            for call in &mut calls.calls {
                let there = heard.iter().filter(|there| there.number == call.number);
                let there = there.filter_map(|there| there.there).next_back();
                call.there = there.or(call.there);
            }
            calls
        });
        let video_calls = opener.video_calls.map(|mut calls| {
            calls.calls.sort_by_key(|call| call.number);
            let seen = server.video_calls.unwrap_or_default().calls;
            for call in &mut calls.calls {
                let there = seen.iter().filter(|there| there.number == call.number);
                let there = there.filter_map(|there| there.there).next_back();
                call.there = there.or(call.there);
            }
            calls
        });
        Self {
            finished,
            responses: opener.responses.or(server.responses),
            pages: opener.pages.or(server.pages),
            messages,
            files,
            mails: opener.mails.or(server.mails),
            calls,
            viewing: opener.viewing.or(server.viewing),
            video_calls,
            echoes: opener.echoes.or(server.echoes),
            activities: opener.activities,
        }
    }
}
