//! Application metrics.

use std::sync::Arc;

use bentpipe_tcp::{Failure, LimitedTimes};
use bentpipe_types::{Span, SpanStatistics, Time};

/// Metrics of an application.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// When it had completed its task, or `None`.
    pub finished: Option<Time>,
    /// Responses to requests.
    pub responses: Option<Responses>,
    /// Pages loaded.
    pub pages: Option<Pages>,
    /// Messages of a source of packets.
    pub messages: Option<Messages>,
    /// Transferred files.
    pub files: Option<Transfers>,
    /// Sent mails.
    pub mails: Option<Transfers>,
    /// Calls.
    pub calls: Option<Calls<SpeechQuality>>,
    /// Video watched.
    pub viewing: Option<Viewing>,
    /// Video calls.
    pub video_calls: Option<Calls<VideoQuality>>,
    /// Echoes.
    pub echoes: Option<Echoes>,
    /// Activities of a user; otherwise empty.
    pub activities: Vec<Activity>,
    /// QUIC connections at this end, if it has any.
    pub quic: Option<Box<QuicReport>>,
    /// Those at the server, in a report of both ends.
    pub quic_server: Option<Box<QuicReport>>,
}

/// QUIC connections at one end. Sizes are in bytes of UDP payload.
#[derive(Clone, Debug, Default)]
pub struct QuicReport {
    /// Number of connections begun.
    pub connections: u64,
    /// Of them, those whose handshake was completed.
    pub established: u64,
    /// Duration of the first handshake, from the connection's first datagram.
    pub handshake: Option<Span>,
    /// Time from the first datagram of the first connection to the first byte of a stream.
    pub first_byte: Option<Span>,
    /// Connections on which 0-RTT data were accepted.
    pub early_data: u64,
    /// Datagrams sent.
    pub packets_sent: u64,
    /// Datagrams received.
    pub packets_received: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes declared lost.
    pub bytes_lost: u64,
    /// Probe timeouts (RFC 9002 section 6.2).
    pub probe_timeouts: u64,
    /// Times of persistent congestion (RFC 9002 section 7.6).
    pub persistent_congestion: u64,
    /// Reductions of the window for ECN marks.
    pub ecn_marks: u64,
    /// Times at which packets were declared lost or marked. Those of one round trip reduce the
    /// window once.
    pub congestion_events: u64,
    /// Probes of the path MTU.
    pub mtu_probes: u64,
    /// Of them, those that were lost.
    pub mtu_probes_lost: u64,
    /// Black holes of the path MTU.
    pub black_holes: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// Smoothed round-trip time of the last connection.
    pub smoothed_rtt: Option<Span>,
    /// Minimum round-trip time of the last connection.
    pub minimum_rtt: Option<Span>,
    /// Maximum payload of a datagram on the last connection.
    pub mtu: u16,
    /// Congestion window of the last connection.
    pub window: u64,
    /// Times of each limit of the sender. The peer's flow control, and the limit of unacknowledged
    /// data, count as the receive window.
    pub limited: LimitedTimes,
    /// Time at which the last bytes of a stream were read.
    pub last_delivery: Option<Time>,
    /// The first failure of a connection.
    pub failed: Option<Failure>,
    /// Pieces of streams whose bytes were not those that were sent. Any value above zero is a
    /// fault.
    pub mismatches: u64,
    /// Reason why the last failed connection failed.
    pub failure: Option<String>,
}

/// Responses to requests.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// Number of requests.
    pub asked: u64,
    /// Times from writing a request's first byte to reading its response's last byte.
    pub times: Vec<Span>,
}

/// A loaded page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// Start of the navigation.
    pub start: Time,
    /// Time to the first byte of the document (TTFB).
    pub first_byte: Span,
    /// Time to the last byte of the last object: page load time.
    pub load: Span,
    /// Number of objects, the document included.
    pub objects: u32,
    /// Bytes of all objects.
    pub bytes: u64,
}

/// Pages.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Number of navigations begun.
    pub begun: u64,
    /// Completed pages in order.
    pub loaded: Vec<Page>,
}

/// Messages of a source of packets.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Number sent or written.
    pub sent: u64,
    /// Number received completely.
    pub received: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Times from sending to complete reception.
    pub delays: SpanStatistics,
    /// Time of the last reception.
    pub last: Option<Time>,
}

/// Files or mails.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// Number begun.
    pub begun: u64,
    /// Durations of completed ones: from the first command (for mail: opening the connection) to
    /// the reply that confirms it.
    pub times: Vec<Span>,
    /// Bytes of completed ones, without commands and replies.
    pub bytes: u64,
}

/// Echoes.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    /// Number of requests sent.
    pub sent: u64,
    /// Number of responses received.
    pub received: u64,
    /// Bytes of data in the responses.
    pub bytes: u64,
    /// Response times.
    pub times: SpanStatistics,
}

/// Calls of one kind, in order of their numbers. `Q` is the quality at one end.
#[derive(Clone, Debug)]
pub struct Calls<Q> {
    /// Every call once, also those of which no packet arrived.
    pub calls: Vec<Call<Q>>,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call<Q> {
    /// Number within the flow, from 0.
    pub number: u64,
    /// Start time.
    pub start: Time,
    /// Duration for which the caller sent, or `None` if it continues.
    pub lasts: Option<Span>,
    /// Quality at the called end.
    pub there: Option<Q>,
    /// Quality at the caller's end.
    pub back: Option<Q>,
}

impl<Q> Call<Q> {
    /// Creates a call that begins.
    pub(crate) fn new(number: u64, start: Time) -> Self {
        Self {
            number,
            start,
            lasts: None,
            there: None,
            back: None,
        }
    }
}

impl<Q: Copy> Calls<Q> {
    /// Returns the quality at each end of each call, as far as it is known.
    pub fn qualities(&self) -> impl Iterator<Item = Q> {
        let ends = self.calls.iter().flat_map(|call| [call.there, call.back]);
        ends.flatten()
    }

    /// Merges the calls as both ends know them.
    fn of_both(mut caller: Self, called: Option<Self>) -> Self {
        caller.calls.sort_by_key(|call| call.number);
        let called = called.map_or_else(Vec::new, |called| called.calls);
        for call in &mut caller.calls {
            let there = called.iter().filter(|there| there.number == call.number);
            let there = there.filter_map(|there| there.there).next_back();
            call.there = there.or(call.there);
        }
        caller
    }
}

/// Quality of speech at one end of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpeechQuality {
    /// Number of packets sent or due.
    pub packets: u64,
    /// Number of packets that did not arrive.
    pub lost: u64,
    /// Number of packets too late to be played.
    pub late: u64,
    /// Mouth-to-ear delay: packet, codec, network and jitter buffer; `None` if nothing arrived.
    pub delay: Option<Span>,
    /// RFC 3550's interarrival jitter at the end.
    pub jitter: Span,
    /// R of ITU-T G.107.
    pub rating: f64,
    /// Mean opinion score for that rating.
    pub opinion: f64,
}

/// Quality of video at one end of a call.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct VideoQuality {
    /// Packets of video sent, up to the last that arrived.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived after their frame or a later one had been shown.
    pub late: u64,
    /// Number of frames due.
    pub frames: u64,
    /// Number of frames shown.
    pub shown: u64,
    /// Freezes: intervals between shown frames that are at least 150 ms longer than the average of
    /// the previous 30, and at least three times as long (`freezeCount` of W3C's WebRTC
    /// statistics).
    pub freezes: u64,
    /// Total duration of freezes.
    pub frozen: Span,
    /// Mean time from capture to display of shown frames, or `None` without any.
    pub delay: Option<Span>,
    /// Mean rate of received video in bit/s, RTP headers included.
    pub rate: f64,
    /// Mean opinion score of ITU-T G.1070.
    pub opinion: f64,
}

/// Watched video.
#[derive(Clone, Debug, Default)]
pub struct Viewing {
    /// Times from the start to the first picture, of each video that got so far.
    pub start_ups: Vec<Span>,
    /// Number of stalls.
    pub stalls: u64,
    /// Total duration of stalls.
    pub stalled: Span,
    /// Total playing time.
    pub played: Span,
    /// Number of segments fetched.
    pub segments: u64,
    /// Bits of these at their rates.
    pub bits: f64,
    /// Number of rate changes.
    pub switches: u64,
    /// Latest rate.
    pub last_rate: u64,
    /// Duration of the fetched segments.
    pub fetched: Span,
}

/// A user's activities of one application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Name in the mix.
    pub name: Arc<str>,
    /// Number begun.
    pub begun: u64,
    /// Number finished.
    pub finished: u64,
    /// Number failed.
    pub failed: u64,
}

/// Merges two optional metrics.
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
    /// Adds the metrics of another application of the same end.
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

    /// Merges the metrics of both ends of a flow.
    #[must_use]
    pub fn of_both(opener: Self, server: Self) -> Self {
        let messages = match (opener.messages, server.messages) {
            (Some(sender), Some(receiver)) => Some(Messages {
                sent: sender.sent.max(receiver.sent),
                ..receiver
            }),
            (one, other) => one.or(other),
        };
        // The sender has finished before the last message arrives.
        let last = messages.as_ref().and_then(|messages| messages.last);
        let finished = (opener.finished.or(server.finished)).map(|at| at.max(last.unwrap_or(at)));
        // One end has begun them, the other received them.
        let files = match (opener.files, server.files) {
            (Some(sender), Some(receiver)) => Some(Transfers {
                begun: sender.begun.max(receiver.begun),
                ..receiver
            }),
            (one, other) => one.or(other),
        };
        let calls = opener.calls;
        let calls = calls.map(|calls| Calls::of_both(calls, server.calls));
        let video_calls = opener.video_calls;
        let video_calls = video_calls.map(|calls| Calls::of_both(calls, server.video_calls));
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
            quic: opener.quic,
            quic_server: server.quic,
        }
    }
}
