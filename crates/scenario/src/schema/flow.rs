//! `[flows.NAME]`.

use bentpipe_types::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::words;
use crate::quantity::{Length, RandomLength, RandomSize, Size};

/// A flow: an application at each of two hosts, and the connections between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The host that begins: it opens connections, and sends, where only one does.
    pub from: String,
    /// The host that it speaks to.
    pub to: String,
    /// When it begins. Default: "0 s".
    #[serde(default = "at_once")]
    pub start: Length,
    /// Where `count` makes several of this flow: how long after one the next starts. Default: "0 s",
    /// all at once.
    #[serde(default = "at_once")]
    pub spacing: Length,
    /// What it does.
    pub app: AppFile,
}

fn at_once() -> Length {
    Length(Span::ZERO)
}

/// What a flow does. Which keys it has, its kind says.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// The application.
    pub kind: AppKind,
    /// bulk: bytes to transfer, headers not counted; default: until the scenario ends. packets: bytes of a
    /// packet, headers not counted; may be random, as in "exponential(1000 B)".
    pub size: Option<RandomSize>,
    /// bulk: which way the bytes go, seen from the host that opens the connection. Default: "upload".
    pub direction: Option<DirectionName>,
    /// bulk: transfers, one after another on the connection. Default: 1.
    pub transfers: Option<u64>,
    /// bulk: from when all of a transfer is acknowledged to the next. request-response: from an answer to
    /// the next request; may be random. Default: "0 s".
    pub pause: Option<RandomLength>,
    /// request-response, web: bytes of a request; random where it is one of request-response. Default:
    /// "200 B", and "400 B" for web.
    pub request: Option<RandomSize>,
    /// request-response: bytes of an answer; may be random.
    pub response: Option<RandomSize>,
    /// request-response, web: how long the server thinks about a request. Default: "0 s".
    pub think: Option<Length>,
    /// request-response: requests in all. Default: until the scenario ends.
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
    /// packets: from one to the next; may be random, as in "exponential(20 ms)".
    pub interval: Option<RandomLength>,
    /// packets: how long the source is on, by turns with `off`; may be random. Default: all the time.
    pub on: Option<RandomLength>,
    /// packets: how long the source is off, by turns with `on`; may be random.
    pub off: Option<RandomLength>,
    /// packets: how long the source goes on in all. Default: until the scenario ends.
    pub lasts: Option<Length>,
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
        }
    }
}

impl AppFile {
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
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}
