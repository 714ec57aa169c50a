//! `[flows.NAME]`.

use bentpipe_sim::Distribution;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{JitterBuffer, Length, RandomLength, RandomSize, Rate, Size};
use crate::schema::hints;
use crate::suggest::suggest;
use bentpipe_types::words;

/// A flow: an application at each of two hosts, and the connections between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The host that begins: it opens connections, and sends, where only one does.
    pub from: String,
    /// The host that it speaks to; or a group, whose members all get what is sent, by multicast: NAME-1 is
    /// what the first gets. Only datagrams can be sent so: those of `carousel`, and of `packets` over UDP.
    pub to: String,
    /// When it begins; may be random: with "uniform(0 s, 1 s)" each seed is another draw, also where nothing
    /// else is random, and of several flows each draws its own. Default: "0 s".
    #[serde(default = "at_once")]
    pub start: RandomLength,
    /// Makes this many alike, NAME-1 to NAME-count, between two hosts that have no count of their own.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// Where a count makes several of this flow: how long after one the next starts. It may be random:
    /// "exponential(2 s)" makes their starts a Poisson process, which begins at `start`. Default: "0 s",
    /// all at once.
    #[serde(default = "none_between")]
    pub spacing: RandomLength,
    /// What it does: this, or `mix`.
    pub app: Option<AppFile>,
    /// The flow is a user of this mix, who does one thing after another.
    pub mix: Option<String>,
}

/// Hosts that are sent to together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    /// The hosts: all of a counted one, by its name, or one of them, as in "terminal-7".
    pub members: Vec<String>,
}

fn none_between() -> RandomLength {
    RandomLength(Distribution::Constant(0.0))
}

fn at_once() -> RandomLength {
    RandomLength(Distribution::Constant(0.0))
}

/// What a flow does. Which keys it has, its kind says.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// The application.
    pub kind: AppKind,
    /// bulk: bytes to transfer, headers not counted; default: until the scenario ends. packets: bytes of a
    /// packet, headers not counted. ftp, mail: bytes of a file (default: "1 MB"), of a message (default:
    /// "exponential(75 kB)"). Those three may be random, as in "exponential(1000 B)". carousel: bytes of a
    /// file. ping: bytes of data. Default: "56 B".
    pub size: Option<RandomSize>,
    /// bulk, ftp: which way the bytes go, seen from the host that opens the connection. Default: "upload",
    /// and "download" for ftp.
    pub direction: Option<DirectionName>,
    /// bulk: transfers, one after another on the connection. Default: 1.
    pub transfers: Option<u64>,
    /// bulk: from when all of a transfer is acknowledged to the next. request-response: from an answer to
    /// the next request. ftp, mail, voice, video-call: from the end of a file, a message, a call to the next.
    /// Random, if it is to be, but for bulk. Default: "0 s", and "exponential(30 s)" for mail.
    pub pause: Option<RandomLength>,
    /// request-response, web: bytes of a request; random where it is one of request-response. Default:
    /// "200 B", and "400 B" for web.
    pub request: Option<RandomSize>,
    /// request-response: bytes of an answer; may be random.
    pub response: Option<RandomSize>,
    /// request-response, web: how long the server thinks about a request. Default: "0 s".
    pub think: Option<Length>,
    /// request-response, ping: requests in all. Default: until the scenario ends.
    pub requests: Option<u64>,
    /// web: HTTP/1.1 on up to six connections, or HTTP/2 on one. Default: "2".
    pub http: Option<HttpName>,
    /// web: TLS. Default: "1.3".
    pub tls: Option<TlsName>,
    /// web: the first connection resumes a session of an earlier visit. Default: false.
    pub resumption: Option<bool>,
    /// web: what pages consist of. Default: "web-almanac".
    pub page: Option<PageName>,
    /// web, page = "fixed": bytes of the document. Default: "30 kB".
    pub document: Option<Size>,
    /// web, page = "fixed": objects besides the document. Default: 20.
    pub objects: Option<u32>,
    /// web, page = "fixed": bytes of each. Default: "30 kB".
    pub object_size: Option<Size>,
    /// web: levels on which objects are found: on the first in the document, on the second in objects of
    /// the first (a style sheet that names a font), and so on. Default: 2.
    pub levels: Option<u32>,
    /// web: from a page's end to the next navigation; may be random. Default: "exponential(30 s)".
    pub reading: Option<RandomLength>,
    /// web: pages in all. Default: until the scenario ends.
    pub pages: Option<u64>,
    /// packets: each a datagram, or each written to a connection as it comes. Default: "udp".
    pub transport: Option<TransportName>,
    /// packets: from one to the next; may be random, as in "exponential(20 ms)". carousel: from a file's
    /// start to the next one's; default: one follows the other. ping: from one request to the next. Default:
    /// "1 s".
    pub interval: Option<RandomLength>,
    /// packets: how long the source is on, by turns with `off`; may be random. Default: all the time.
    pub on: Option<RandomLength>,
    /// packets: how long the source is off, by turns with `on`; may be random.
    pub off: Option<RandomLength>,
    /// packets: how long the source goes on in all. video: its length. voice, video-call: the length of a call;
    /// may be random. Default: until the scenario ends.
    pub lasts: Option<RandomLength>,
    /// ftp: who opens the connections for data: the client ("passive") or the server ("active"). Default:
    /// "passive".
    pub mode: Option<FtpModeName>,
    /// ftp, carousel: files in all. Default: until the scenario ends.
    pub files: Option<u64>,
    /// carousel: bits of files per second while one is being sent, headers not counted.
    pub rate: Option<Rate>,
    /// carousel: times that each file is sent, one right after the other: what is missed the first time may
    /// come the next. Default: 1.
    pub turns: Option<u64>,
    /// carousel: bytes of a file in a datagram. Default: "1400 B". video-call: bytes of a datagram at most, RTP
    /// header included. Default: "1200 B".
    pub datagram: Option<Size>,
    /// mail: messages in all. Default: until the scenario ends.
    pub mails: Option<u64>,
    /// mail: MAIL, RCPT and DATA go together (RFC 2920). Default: false.
    pub pipelining: Option<bool>,
    /// voice: how speech is coded. Default: "g711".
    pub codec: Option<CodecName>,
    /// voice: speech in a packet. Default: "20 ms".
    pub packet: Option<Length>,
    /// voice: how long the first packet of a call is held back, so that later ones are there in time; or
    /// "adaptive": as long as the delays so far ask for (Ramjee et al., INFOCOM 1994, algorithm 4).
    /// Default: "60 ms".
    pub jitter_buffer: Option<JitterBuffer>,
    /// voice, video-call: calls in all, one after another. Default: 1.
    pub calls: Option<u64>,
    /// video-call: the least rate of the video each way, RTP headers included, and its rate at the start.
    /// Default: "150 kbit/s".
    pub min_rate: Option<Rate>,
    /// video-call: the highest rate of the video each way. Default: "1.5 Mbit/s".
    pub max_rate: Option<Rate>,
    /// video-call: frames a second. Default: 30.
    pub frame_rate: Option<u32>,
    /// video: length of a segment. Default: "4 s".
    pub segment: Option<Length>,
    /// video: the rates that there are, rising. Default: 0.4, 0.8, 1.5, 3, 6 and 12 Mbit/s.
    pub ladder: Option<Vec<Rate>>,
    /// video: how much is buffered at most. Default: "30 s".
    pub buffer: Option<Length>,
    /// video: how much is buffered before it plays, at first and after a stall. Default: a segment.
    pub start_up: Option<Length>,
    /// ping: what carries the requests. Default: "icmp".
    pub protocol: Option<EchoName>,
}

words! {
    /// An application.
    AppKind {
        /// Sends as fast as TCP takes it, then closes.
        Bulk = "bulk",
        /// Asks, waits for the answer, pauses, and asks again, over one connection.
        RequestResponse = "request-response",
        /// Loads web pages. The host `from` is the browser, `to` the server.
        Web = "web",
        /// Sends packets of random sizes at random times.
        Packets = "packets",
        /// Sends files in datagrams to whoever listens, each a number of times, and again and again: what
        /// reaches a group at once. Says how much each has got, and how long whole files took.
        Carousel = "carousel",
        /// Transfers files by FTP, with a connection for commands and one for each file.
        Ftp = "ftp",
        /// Sends mail by SMTP, step by step.
        Mail = "mail",
        /// Calls by voice over IP, both ways; says how they sound.
        Voice = "voice",
        /// Watches a video in segments, each at the highest rate that the path sustains.
        Video = "video",
        /// Video calls, both ways, at a rate that follows the path (NADA, RFC 8698); says what each end sees.
        VideoCall = "video-call",
        /// Asks for echoes, and says how long they take.
        Ping = "ping",
    }
}

words! {
    /// Who opens FTP's connections for data.
    FtpModeName {
        /// The client (PASV).
        Passive = "passive",
        /// The server (PORT).
        Active = "active",
    }
}

words! {
    /// How speech is coded.
    CodecName {
        /// 64 kbit/s; lost packets are concealed.
        G711 = "g711",
        /// 8 kbit/s (annexes A and B).
        G729 = "g729",
    }
}

words! {
    /// What carries echo requests.
    EchoName {
        /// ICMP: every host answers.
        Icmp = "icmp",
        /// UDP, port 7.
        Udp = "udp",
    }
}

words! {
    /// Which way a bulk transfer goes, seen from the host that opens the connection.
    DirectionName {
        /// The host `from` sends.
        Upload = "upload",
        /// The host `from` receives.
        Download = "download",
        /// Both send and receive at once.
        Both = "both",
    }
}

words! {
    /// HTTP's version.
    HttpName {
        /// HTTP/1.1: one request at a time on each of up to six connections.
        One = "1.1",
        /// HTTP/2: all requests at once on one connection.
        Two = "2",
    }
}

words! {
    /// TLS's version.
    TlsName {
        /// RFC 8446: a round trip.
        V13 = "1.3",
        /// RFC 5246: two round trips, one where a session is resumed.
        V12 = "1.2",
        /// http:, without TLS.
        Off = "off",
    }
}

words! {
    /// What web pages consist of.
    PageName {
        /// Desktop pages of today, by the HTTP Archive's Web Almanac: 2.4 MB and 71 requests at the median.
        WebAlmanac = "web-almanac",
        /// 3GPP's of about 2003 (TR 25.892): 10.7 kB, and 3.95 objects of 7.8 kB, on average.
        ThreeGpp = "3gpp",
        /// All alike: `document`, `objects`, `object_size`.
        Fixed = "fixed",
    }
}

words! {
    /// What carries packets.
    TransportName {
        /// Each is a datagram.
        Udp = "udp",
        /// Each is written to one connection.
        Tcp = "tcp",
    }
}

impl AppKind {
    /// The keys that mean something to this kind.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Bulk => &["size", "direction", "transfers", "pause"],
            Self::RequestResponse => &["request", "response", "think", "pause", "requests"],
            Self::Web => &[
                "http",
                "tls",
                "resumption",
                "page",
                "document",
                "objects",
                "object_size",
                "levels",
                "request",
                "think",
                "reading",
                "pages",
            ],
            Self::Packets => &["transport", "size", "interval", "on", "off", "lasts"],
            Self::Carousel => &["size", "datagram", "rate", "turns", "interval", "files"],
            Self::Ftp => &["mode", "direction", "size", "pause", "files"],
            Self::Mail => &["size", "pause", "mails", "pipelining"],
            Self::Voice => &[
                "codec",
                "packet",
                "jitter_buffer",
                "lasts",
                "pause",
                "calls",
            ],
            Self::Video => &["segment", "ladder", "buffer", "start_up", "lasts"],
            Self::VideoCall => &[
                "min_rate",
                "max_rate",
                "frame_rate",
                "datagram",
                "lasts",
                "pause",
                "calls",
            ],
            Self::Ping => &["protocol", "size", "interval", "requests"],
        }
    }

    /// What this kind has, where something else is asked of it.
    fn has(self) -> String {
        format!(
            "a {:?} application has {}",
            self.name(),
            self.keys().join(", ")
        )
    }

    /// What is said of a key of another kind.
    pub(crate) fn has_no(self) -> String {
        format!("has no effect: {}", self.has())
    }

    /// What is wrong with this key, whatever its value, if it is none of this kind's.
    pub(crate) fn refuses(self, key: &str) -> Option<String> {
        if key == "kind" || self.keys().contains(&key) {
            return None;
        }
        let is_anothers = Self::ALL.iter().any(|kind| kind.keys().contains(&key));
        Some(match suggest(key, self.keys().iter().copied()) {
            _ if is_anothers => self.has_no(),
            Some(near) => hints::unknown_key_near(near),
            None => format!("unknown key; {}", self.has()),
        })
    }
}

impl AppFile {
    /// One of this kind, of which nothing more is said.
    pub(crate) fn of(kind: AppKind) -> Self {
        Self {
            kind,
            size: None,
            direction: None,
            transfers: None,
            pause: None,
            request: None,
            response: None,
            think: None,
            requests: None,
            http: None,
            tls: None,
            resumption: None,
            page: None,
            document: None,
            objects: None,
            object_size: None,
            levels: None,
            reading: None,
            pages: None,
            transport: None,
            interval: None,
            on: None,
            off: None,
            lasts: None,
            mode: None,
            files: None,
            rate: None,
            turns: None,
            datagram: None,
            mails: None,
            pipelining: None,
            codec: None,
            packet: None,
            jitter_buffer: None,
            calls: None,
            min_rate: None,
            max_rate: None,
            frame_rate: None,
            segment: None,
            ladder: None,
            buffer: None,
            start_up: None,
            protocol: None,
        }
    }

    /// The keys that the file gives, besides `kind`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("size", self.size.is_some()),
            ("direction", self.direction.is_some()),
            ("transfers", self.transfers.is_some()),
            ("pause", self.pause.is_some()),
            ("request", self.request.is_some()),
            ("response", self.response.is_some()),
            ("think", self.think.is_some()),
            ("requests", self.requests.is_some()),
            ("http", self.http.is_some()),
            ("tls", self.tls.is_some()),
            ("resumption", self.resumption.is_some()),
            ("page", self.page.is_some()),
            ("document", self.document.is_some()),
            ("objects", self.objects.is_some()),
            ("object_size", self.object_size.is_some()),
            ("levels", self.levels.is_some()),
            ("reading", self.reading.is_some()),
            ("pages", self.pages.is_some()),
            ("transport", self.transport.is_some()),
            ("interval", self.interval.is_some()),
            ("on", self.on.is_some()),
            ("off", self.off.is_some()),
            ("lasts", self.lasts.is_some()),
            ("mode", self.mode.is_some()),
            ("files", self.files.is_some()),
            ("rate", self.rate.is_some()),
            ("turns", self.turns.is_some()),
            ("datagram", self.datagram.is_some()),
            ("mails", self.mails.is_some()),
            ("pipelining", self.pipelining.is_some()),
            ("codec", self.codec.is_some()),
            ("packet", self.packet.is_some()),
            ("jitter_buffer", self.jitter_buffer.is_some()),
            ("calls", self.calls.is_some()),
            ("min_rate", self.min_rate.is_some()),
            ("max_rate", self.max_rate.is_some()),
            ("frame_rate", self.frame_rate.is_some()),
            ("segment", self.segment.is_some()),
            ("ladder", self.ladder.is_some()),
            ("buffer", self.buffer.is_some()),
            ("start_up", self.start_up.is_some()),
            ("protocol", self.protocol.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}
