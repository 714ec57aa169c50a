//! `[flows.NAME]`.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::hints;
use crate::quantity::jitter_buffer::JitterBuffer;
use crate::quantity::random::{RandomLength, RandomSize};
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::suggest::suggest;

/// The application of a flow. Its `kind` determines which keys apply.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// The application.
    pub kind: AppKind,
    /// bulk: bytes to transfer, without headers; default: until the scenario ends. packets: bytes
    /// of a packet, without headers. ftp, mail: bytes of a file (default: "1 MB") or of a message
    /// (default: "exponential(75 kB)"). For these three it may be random, as in "exponential(1000
    /// B)". carousel: bytes of a file. ping: bytes of data. Default: "56 B".
    pub size: Option<RandomSize>,
    /// bulk, ftp: direction of the data, seen from the host that opens the connection. Default:
    /// "upload"; "download" for ftp.
    pub direction: Option<DirectionName>,
    /// bulk: number of transfers, in sequence on one connection. Default: 1.
    pub transfers: Option<u64>,
    /// Pause. bulk: from the acknowledgment of a whole transfer to the next. request-response: from
    /// a response to the next request. ftp, mail, voice, video-call: from the end of a file, a
    /// message or a call to the next. It may be random, except for bulk. Default: "0 s";
    /// "exponential(30 s)" for mail.
    pub pause: Option<RandomLength>,
    /// request-response, web: bytes of a request; may be random for request-response. Default: "200
    /// B"; "400 B" for web.
    pub request: Option<RandomSize>,
    /// request-response: bytes of a response; may be random.
    pub response: Option<RandomSize>,
    /// request-response, web: processing time of the server for each request. Default: "0 s".
    pub think: Option<Length>,
    /// request-response, ping: number of requests. Default: until the scenario ends.
    pub requests: Option<u64>,
    /// web: HTTP/1.1 on up to six connections, or HTTP/2 on one. Default: "2".
    pub http: Option<HttpName>,
    /// web: version of TLS. Default: "1.3".
    pub tls: Option<TlsName>,
    /// web: the first connection resumes a TLS session of an earlier visit. Default: false.
    pub resumption: Option<bool>,
    /// web: content of pages. Default: "web-almanac".
    pub page: Option<PageName>,
    /// web, page = "fixed": bytes of the document. Default: "30 kB".
    pub document: Option<Size>,
    /// web, page = "fixed": number of objects besides the document. Default: 20.
    pub objects: Option<u32>,
    /// web, page = "fixed": bytes of each object. Default: "30 kB".
    pub object_size: Option<Size>,
    /// web: levels of discovery. The browser finds objects of the first level in the document,
    /// objects of the second level in those of the first (such as a font in a style sheet), and so
    /// on. Default: 2.
    pub levels: Option<u32>,
    /// web: reading time from the end of a page to the next navigation; may be random. Default:
    /// "exponential(30 s)".
    pub reading: Option<RandomLength>,
    /// web: number of pages. Default: until the scenario ends.
    pub pages: Option<u64>,
    /// packets: "udp" sends each packet as a datagram, "tcp" writes it to a connection at its time.
    /// Default: "udp".
    pub transport: Option<TransportName>,
    /// Interval. packets: from one packet to the next; may be random, as in "exponential(20 ms)".
    /// carousel: from the start of a file to the start of the next; default: each follows the
    /// previous one at once. ping: from one request to the next. Default: "1 s".
    pub interval: Option<RandomLength>,
    /// packets: duration of the periods in which the source is on, alternating with `off`; may be
    /// random. Default: always on.
    pub on: Option<RandomLength>,
    /// packets: duration of the periods in which the source is off, alternating with `on`; may be
    /// random.
    pub off: Option<RandomLength>,
    /// Duration. packets: of the source. video: of the video. voice, video-call: of a call; may be
    /// random. Default: until the scenario ends.
    pub lasts: Option<RandomLength>,
    /// ftp: whether the client ("passive") or the server ("active") opens the data connections.
    /// Default: "passive".
    pub mode: Option<FtpModeName>,
    /// ftp, carousel: number of files. Default: until the scenario ends.
    pub files: Option<u64>,
    /// carousel: rate of the content of a file while it is sent, in bit/s without headers.
    pub rate: Option<Rate>,
    /// carousel: number of times that each file is sent, in immediate succession, so that a
    /// receiver can get what it missed. Default: 1.
    pub turns: Option<u64>,
    /// carousel: bytes of a file in a datagram. Default: "1400 B". video-call: most bytes of a
    /// datagram, with its RTP header. Default: "1200 B".
    pub datagram: Option<Size>,
    /// mail: number of messages. Default: until the scenario ends.
    pub mails: Option<u64>,
    /// mail: send MAIL, RCPT and DATA together (RFC 2920). Default: false.
    pub pipelining: Option<bool>,
    /// voice: speech codec. Default: "g711".
    pub codec: Option<CodecName>,
    /// voice: duration of the speech in a packet. Default: "20 ms".
    pub packet: Option<Length>,
    /// voice: time for which the first packet of a call is held back, so that later packets arrive
    /// in time; or "adaptive": it follows the delays so far (Ramjee et al., INFOCOM 1994, algorithm
    /// 4). Default: "60 ms".
    pub jitter_buffer: Option<JitterBuffer>,
    /// voice, video-call: number of calls, in sequence. Default: 1.
    pub calls: Option<u64>,
    /// video-call: lowest rate of the video in each direction, with RTP headers. It is also the
    /// initial rate. Default: "150 kbit/s".
    pub min_rate: Option<Rate>,
    /// video-call: highest rate of the video in each direction. Default: "1.5 Mbit/s".
    pub max_rate: Option<Rate>,
    /// video-call: frames per second. Default: 30.
    pub frame_rate: Option<u32>,
    /// video: duration of a segment. Default: "4 s".
    pub segment: Option<Length>,
    /// video: available rates in ascending order. Default: 0.4, 0.8, 1.5, 3, 6 and 12 Mbit/s.
    pub ladder: Option<Vec<Rate>>,
    /// video: most playing time that is buffered. Default: "30 s".
    pub buffer: Option<Length>,
    /// video: playing time that is buffered before playback starts, at first and after a stall.
    /// Default: one segment.
    pub start_up: Option<Length>,
    /// ping: protocol of the requests. Default: "icmp".
    pub protocol: Option<EchoName>,
}

words! {
    /// An application.
    AppKind {
        /// Sends as fast as TCP allows, then closes.
        Bulk = "bulk",
        /// Sends a request, waits for the response, pauses, and repeats, on one connection.
        RequestResponse = "request-response",
        /// Loads web pages. The host `from` is the browser, `to` the server.
        Web = "web",
        /// Sends packets of random sizes at random times.
        Packets = "packets",
        /// Sends files in datagrams to all members of a group, each file a number of times, and
        /// repeats. Results have the share that each receiver got, and the time that whole files
        /// took.
        Carousel = "carousel",
        /// Transfers files by FTP, with a connection for commands and one for each file.
        Ftp = "ftp",
        /// Sends mail by SMTP, step by step.
        Mail = "mail",
        /// Voice calls over IP, in both directions. Results have their quality.
        Voice = "voice",
        /// Plays a video in segments, each at the highest rate that the path sustains.
        Video = "video",
        /// Video calls in both directions, at a rate that adapts to the path (NADA, RFC 8698).
        /// Results have the quality at each end.
        VideoCall = "video-call",
        /// Sends echo requests. Results have the times until the replies.
        Ping = "ping",
    }
}

words! {
    /// The end that opens FTP's data connections.
    FtpModeName {
        /// The client (PASV).
        Passive = "passive",
        /// The server (PORT).
        Active = "active",
    }
}

words! {
    /// A speech codec.
    CodecName {
        /// 64 kbit/s; lost packets are concealed.
        G711 = "g711",
        /// 8 kbit/s (annexes A and B).
        G729 = "g729",
    }
}

words! {
    /// Protocol of echo requests.
    EchoName {
        /// ICMP: every host answers.
        Icmp = "icmp",
        /// UDP, port 7.
        Udp = "udp",
    }
}

words! {
    /// Direction of a bulk transfer, seen from the host that opens the connection.
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
    /// Version of HTTP.
    HttpName {
        /// HTTP/1.1: one request at a time on each of up to six connections.
        One = "1.1",
        /// HTTP/2: all requests at once on one connection.
        Two = "2",
    }
}

words! {
    /// Version of TLS.
    TlsName {
        /// TLS 1.3 (RFC 8446): one round trip.
        V13 = "1.3",
        /// TLS 1.2 (RFC 5246): two round trips, or one if a session is resumed.
        V12 = "1.2",
        /// No TLS (http:).
        Off = "off",
    }
}

words! {
    /// Content of web pages.
    PageName {
        /// Current desktop pages, by the HTTP Archive's Web Almanac: 2.4 MB and 71 requests at the
        /// median.
        WebAlmanac = "web-almanac",
        /// 3GPP's pages of about 2003 (TR 25.892): on average a document of 10.7 kB and 3.95
        /// objects of 7.8 kB.
        ThreeGpp = "3gpp",
        /// All alike: `document`, `objects`, `object_size`.
        Fixed = "fixed",
    }
}

words! {
    /// Transport of packets.
    TransportName {
        /// Each packet is a datagram.
        Udp = "udp",
        /// Each packet is written to one connection.
        Tcp = "tcp",
    }
}

impl AppKind {
    /// Returns the keys that apply to this kind.
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

    /// Returns the keys of this kind, for the message about a key of another kind.
    fn has(self) -> String {
        format!(
            "a {:?} application has {}",
            self.name(),
            self.keys().join(", ")
        )
    }

    /// Returns the message about a key of another kind.
    pub(crate) fn has_no(self) -> String {
        format!("has no effect: {}", self.has())
    }

    /// Returns the message for a key that this kind does not have, whatever its value.
    pub(crate) fn refuses(self, key: &str) -> Option<String> {
        if key == "kind" || self.keys().contains(&key) {
            return None;
        }
        let is_for_another = Self::ALL.iter().any(|kind| kind.keys().contains(&key));
        Some(match suggest(key, self.keys().iter().copied()) {
            _ if is_for_another => self.has_no(),
            Some(near) => hints::unknown_key_near(near),
            None => format!("unknown key; {}", self.has()),
        })
    }
}

impl AppFile {
    /// Creates an application of this kind with defaults only.
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

    /// Returns the keys that the file gives, except `kind`.
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

/// Returns the message about a key that this kind of table does not have, whatever its value.
pub(crate) fn foreign_key(table: &str, kind: &str, key: &str) -> Option<String> {
    let mut kinds = AppKind::ALL.iter().filter(|_| table == "app");
    kinds.find(|each| each.name() == kind)?.refuses(key)
}
