//! The table of applications. The code that reads, describes, resolves, reports or lists
//! applications, and what `predict` and `advise` know of them, follow from this table.

/// Passes the table to the macro `$then`. `keys` are the keys of all applications, with the
/// descriptions that are the reference. Each entry of `kinds` is an application: its name in a
/// scenario file, its description, which is the reference, its settings, and the names of its keys.
/// The settings implement [`ApplicationSettings`](super::settings::ApplicationSettings); the entry,
/// the file and the engine's `Traffic` have one name.
macro_rules! applications {
    ($then:ident) => {
        $then! {
            keys {
                /// bulk: bytes to transfer, without headers; default: until the scenario ends.
                /// packets: bytes of a packet, without headers. ftp, mail: bytes of a file
                /// (default: "1 MB") or of a message (default: "exponential(75 kB)"). For these
                /// three it may be random, as in "exponential(1000 B)". carousel: bytes of a file.
                /// ping: bytes of data. Default: "56 B".
                size: RandomSize,
                /// bulk, ftp: direction of the data, seen from the host that opens the connection.
                /// Default: "upload"; "download" for ftp.
                direction: DirectionName,
                /// bulk: number of transfers, in sequence on one connection. Default: 1.
                transfers: u64,
                /// Pause. bulk: from the acknowledgment of a whole transfer to the next.
                /// request-response: from a response to the next request. ftp, mail, voice,
                /// video-call: from the end of a file, a message or a call to the next. It may be
                /// random, except for bulk. Default: "0 s"; "exponential(30 s)" for mail.
                pause: RandomLength,
                /// request-response, web: bytes of a request; may be random for request-response.
                /// Default: "200 B"; "400 B" for web.
                request: RandomSize,
                /// request-response: bytes of a response; may be random.
                response: RandomSize,
                /// request-response, web: processing time of the server for each request. Default:
                /// "0 s".
                think: Length,
                /// request-response, ping: number of requests. Default: until the scenario ends.
                requests: u64,
                /// web: HTTP/1.1 on up to six connections, or HTTP/2 on one. Default: "2"; "3" with
                /// `transport = "quic"`, which requires it.
                http: HttpName,
                /// web: version of TLS. Default: "1.3".
                tls: TlsName,
                /// web: the first connection resumes a TLS session of an earlier visit. Default:
                /// false.
                resumption: bool,
                /// web: content of pages. Default: "web-almanac".
                page: PageName,
                /// web, page = "fixed": bytes of the document. Default: "30 kB".
                document: Size,
                /// web, page = "fixed": number of objects besides the document. Default: 20.
                objects: u32,
                /// web, page = "fixed": bytes of each object. Default: "30 kB".
                object_size: Size,
                /// web: levels of discovery. The browser finds objects of the first level in the
                /// document, objects of the second level in those of the first (such as a font in a
                /// style sheet), and so on. Default: 2.
                levels: u32,
                /// web: reading time from the end of a page to the next navigation; may be random.
                /// Default: "exponential(30 s)".
                reading: RandomLength,
                /// web: number of pages. Default: until the scenario ends.
                pages: u64,
                /// packets: "udp" sends each packet as a datagram, "tcp" writes it to a connection
                /// at its time; default: "udp". bulk, request-response, web: "tcp" or "quic"
                /// (`[hosts.NAME.quic]`); default: "tcp". With "quic", web is HTTP/3.
                transport: TransportName,
                /// Interval. packets: from one packet to the next; may be random, as in
                /// "exponential(20 ms)". carousel: from the start of a file to the start of the
                /// next; default: each follows the previous one at once. ping: from one request to
                /// the next. Default: "1 s".
                interval: RandomLength,
                /// packets: duration of the periods in which the source is on, alternating with
                /// `off`; may be random. Default: always on.
                on: RandomLength,
                /// packets: duration of the periods in which the source is off, alternating with
                /// `on`; may be random.
                off: RandomLength,
                /// Duration. packets: of the source. video: of the video. voice, video-call: of a
                /// call; may be random. Default: until the scenario ends.
                lasts: RandomLength,
                /// ftp: whether the client ("passive") or the server ("active") opens the data
                /// connections. Default: "passive".
                mode: FtpModeName,
                /// ftp, carousel: number of files. Default: until the scenario ends.
                files: u64,
                /// carousel: rate of the content of a file while it is sent, in bit/s without
                /// headers.
                rate: Rate,
                /// carousel: number of times that each file is sent, in immediate succession, so
                /// that a receiver can get what it missed. Default: 1.
                turns: u64,
                /// carousel: bytes of a file in a datagram. Default: "1400 B". video-call: most
                /// bytes of a datagram, with its RTP header. Default: "1200 B".
                datagram: Size,
                /// mail: number of messages. Default: until the scenario ends.
                mails: u64,
                /// mail: send MAIL, RCPT and DATA together (RFC 2920). Default: false.
                pipelining: bool,
                /// voice: speech codec. Default: "g711".
                codec: CodecName,
                /// voice: duration of the speech in a packet. Default: "20 ms".
                packet: Length,
                /// voice: time for which the first packet of a call is held back, so that later
                /// packets arrive in time; or "adaptive": it follows the delays so far (Ramjee et
                /// al., INFOCOM 1994, algorithm 4). Default: "60 ms".
                jitter_buffer: JitterBuffer,
                /// voice, video-call: number of calls, in sequence. Default: 1.
                calls: u64,
                /// video-call: lowest rate of the video in each direction, with RTP headers. It is
                /// also the initial rate. Default: "150 kbit/s".
                min_rate: Rate,
                /// video-call: highest rate of the video in each direction. Default: "1.5 Mbit/s".
                max_rate: Rate,
                /// video-call: frames per second. Default: 30.
                frame_rate: u32,
                /// video: duration of a segment. Default: "4 s".
                segment: Length,
                /// video: available rates in ascending order. Default: 0.4, 0.8, 1.5, 3, 6 and 12
                /// Mbit/s.
                ladder: Vec<Rate>,
                /// video: most playing time that is buffered. Default: "30 s".
                buffer: Length,
                /// video: playing time that is buffered before playback starts, at first and after
                /// a stall. Default: one segment.
                start_up: Length,
                /// ping: protocol of the requests. Default: "icmp".
                protocol: EchoName,
            }
            kinds {
                /// Sends as fast as TCP allows, then closes.
                Bulk = "bulk": BulkSettings, keys [size direction transfers pause transport];

                /// Sends a request, waits for the response, pauses, and repeats, on one connection.
                RequestResponse = "request-response": RequestResponseSettings, keys [
                    request response think pause requests transport
                ];

                /// Loads web pages. The host `from` is the browser, `to` the server.
                Web = "web": WebSettings, keys [
                    http tls resumption page document objects object_size levels request think
                    reading pages transport
                ];

                /// Sends packets of random sizes at random times.
                Packets = "packets": PacketsSettings, keys [transport size interval on off lasts];

                /// Sends files in datagrams to all members of a group, each file a number of times,
                /// and repeats. Results have the share that each receiver got, and the time that
                /// whole files took.
                Carousel = "carousel": CarouselSettings, keys [
                    size datagram rate turns interval files
                ];

                /// Transfers files by FTP, with a connection for commands and one for each file.
                Ftp = "ftp": FtpSettings, keys [mode direction size pause files];

                /// Sends mail by SMTP, step by step.
                Mail = "mail": MailSettings, keys [size pause mails pipelining];

                /// Voice calls over IP, in both directions. Results have their quality.
                Voice = "voice": VoiceSettings, keys [codec packet jitter_buffer lasts pause calls];

                /// Plays a video in segments, each at the highest rate that the path sustains.
                Video = "video": VideoSettings, keys [segment ladder buffer start_up lasts];

                /// Video calls in both directions, at a rate that adapts to the path (NADA, RFC
                /// 8698). Results have the quality at each end.
                VideoCall = "video-call": VideoCallSettings, keys [
                    min_rate max_rate frame_rate datagram lasts pause calls
                ];

                /// Sends echo requests. Results have the times until the replies.
                Ping = "ping": PingSettings, keys [protocol size interval requests];
            }
        }
    };
}
pub(crate) use applications;
