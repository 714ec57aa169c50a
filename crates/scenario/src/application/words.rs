//! Words that are values of keys of applications.

use bentpipe_types::words;

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
        /// HTTP/3: a stream of one QUIC connection for each request.
        Three = "3",
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
    /// Transport of an application.
    TransportName {
        /// packets: each packet is a datagram.
        Udp = "udp",
        /// TCP connections. packets: each packet is written to one connection.
        Tcp = "tcp",
        /// bulk, request-response, web: streams of QUIC connections.
        Quic = "quic",
    }
}
