//! Applications, one file each, and the two ends of a flow.

mod adaptive_playout;
mod bulk;
mod call_end;
mod carousel;
mod ftp;
mod mail;
mod mix;
mod orders;
mod packets;
mod pages;
mod ping;
mod request_response;
mod responder;
mod sink;
mod video;
mod video_call;
mod voice;
mod web;

pub use bulk::{BulkSettings, Direction};
pub use carousel::CarouselSettings;
pub use ftp::{FtpMode, FtpSettings};
pub use mail::MailSettings;
pub use mix::{MixSettings, Share};
pub use packets::{PacketsSettings, Transport};
pub use pages::PageModel;
pub use ping::{EchoBy, PingSettings};
pub use request_response::RequestResponseSettings;
pub use sink::Sink;
pub use video::VideoSettings;
pub use video_call::VideoCallSettings;
pub use voice::{Codec, JitterBuffer, VoiceSettings};
pub use web::{Http, Tls, WebSettings};

use bentpipe_types::{Endpoint, Span};

use crate::{Application, SocketBackend};
use bulk::Bulk;
use ftp::{Ftp, FtpServer};
use mail::Mail;
use mix::Make;
use orders::Orders;
use ping::{EchoServer, Ping};
use request_response::RequestResponse;
use responder::Responder;
use video::Video;
use web::Web;

/// The application of a flow, at both ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// Bulk transfers.
    Bulk(BulkSettings),
    /// Request, response, pause, repeated.
    RequestResponse(RequestResponseSettings),
    /// Web pages.
    Web(WebSettings),
    /// Packets of random sizes at random times.
    Packets(PacketsSettings),
    /// Files sent to all listeners.
    Carousel(CarouselSettings),
    /// FTP.
    Ftp(FtpSettings),
    /// SMTP.
    Mail(MailSettings),
    /// Calls.
    Voice(VoiceSettings),
    /// Video.
    Video(VideoSettings),
    /// Video calls.
    VideoCall(VideoCallSettings),
    /// Echoes.
    Ping(PingSettings),
    /// A user with activities in sequence.
    Mix(MixSettings),
}

/// One of the two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that opens connections.
    Opener,
    /// The end that accepts them.
    Server,
    /// Both ends equally.
    Both,
}

/// The two ends of a flow. They may have different socket implementations: the kernel's and ours.
#[derive(Debug)]
pub struct Ends<P: SocketBackend, Q: SocketBackend = P> {
    /// The end that opens connections.
    pub opener: Box<dyn Application<P>>,
    /// The end that accepts them.
    pub server: Box<dyn Application<Q>>,
}

/// A server, and a factory of its openers.
struct Pair<P: SocketBackend, Q: SocketBackend> {
    make: Make<P>,
    server: Box<dyn Application<Q>>,
}

/// Listening port of receivers (commplex-link, known from iperf).
const COMMPLEX_LINK: u16 = 5001;
/// Listening port for requests.
const RFE: u16 = 5002;
/// RFC 863: data are read and discarded.
const DISCARD: u16 = 9;
/// IANA port of multicast file transfer (mcftp).
const MCAST_FILE: u16 = 6622;
/// RFC 862: data are returned.
const ECHO: u16 = 7;
/// RFC 5321.
const SMTP: u16 = 25;
/// RFC 3551: default port of RTP.
const RTP: u16 = 5004;
/// The next pair of RTP ports, since a user may have calls of both kinds.
const VIDEO_RTP: u16 = 5006;

impl Traffic {
    /// Creates a transfer of `size` bytes, or an endless one.
    #[must_use]
    pub fn bulk(size: Option<u64>) -> Self {
        Self::Bulk(BulkSettings {
            size,
            direction: Direction::Upload,
            transfers: 1,
            pause: Span::ZERO,
        })
    }

    /// Returns the server's main port.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Bulk(_) => COMMPLEX_LINK,
            Self::RequestResponse(_) => RFE,
            Self::Web(web) if web.tls == Tls::Off && web.http != Http::Three => 80,
            Self::Web(_) => 443,
            Self::Packets(_) => DISCARD,
            Self::Carousel(_) => MCAST_FILE,
            Self::Ftp(_) => ftp::CONTROL,
            Self::Mail(_) => SMTP,
            Self::Voice(_) => RTP,
            Self::VideoCall(_) => VIDEO_RTP,
            Self::Video(_) => 80,
            Self::Ping(_) => ECHO,
            Self::Mix(mix) => mix.shares.first().map_or(0, |share| share.traffic.port()),
        }
    }

    /// Returns all listening ports of the server.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let mut ports = match self {
            Self::Mix(mix) => {
                let shares = mix.shares.iter();
                shares.flat_map(|share| share.traffic.ports()).collect()
            }
            Self::Ftp(_) => vec![ftp::CONTROL, ftp::PASSIVE_DATA],
            _ => vec![self.port()],
        };
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns the source port of connections that the server opens to the opener, if it does.
    #[must_use]
    pub fn calls_back_from(&self) -> Option<u16> {
        match self {
            Self::Ftp(ftp) if ftp.mode == FtpMode::Active => Some(ftp::ACTIVE_DATA),
            Self::Mix(mix) => {
                let mut shares = mix.shares.iter();
                shares.find_map(|share| share.traffic.calls_back_from())
            }
            _ => None,
        }
    }

    /// Whether it uses datagrams, alone or besides connections.
    #[must_use]
    pub fn has_datagrams(&self) -> bool {
        match self {
            Self::Packets(packets) => packets.transport == Transport::Udp,
            Self::Carousel(_) | Self::Voice(_) | Self::VideoCall(_) | Self::Ping(_) => true,
            Self::Mix(mix) => mix.shares.iter().any(|share| share.traffic.has_datagrams()),
            _ => false,
        }
    }

    /// Whether it consists of datagrams from the opener alone, so that it can be multicast.
    #[must_use]
    pub fn is_one_way(&self) -> bool {
        match self {
            Self::Packets(packets) => packets.transport == Transport::Udp,
            Self::Carousel(_) => true,
            _ => false,
        }
    }

    /// Whether one of its ends uses state of the other that has not arrived with a packet. The
    /// [content of a request](orders) is used only once the request has arrived, unless the opener
    /// removes it.
    #[must_use]
    pub fn shares_state(&self) -> bool {
        match self {
            Self::Bulk(_)
            | Self::Carousel(_)
            | Self::Ping(_)
            | Self::RequestResponse(_)
            | Self::Video(_) => false,
            Self::Web(_)
            | Self::Packets(_)
            | Self::Ftp(_)
            | Self::Mail(_)
            | Self::Voice(_)
            | Self::VideoCall(_)
            | Self::Mix(_) => true,
        }
    }

    /// Whether it ends by itself.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        match self {
            Self::Bulk(bulk) => bulk.size.is_some(),
            Self::RequestResponse(ask) => ask.count.is_some(),
            Self::Web(web) => web.count.is_some(),
            Self::Packets(packets) => packets.lasts.is_some(),
            Self::Carousel(carousel) => carousel.count.is_some(),
            Self::Ftp(ftp) => ftp.count.is_some(),
            Self::Mail(mail) => mail.count.is_some(),
            Self::Voice(voice) => voice.count.is_some() && voice.lasts.is_some(),
            Self::Video(video) => video.lasts.is_some(),
            Self::VideoCall(call) => call.count.is_some() && call.lasts.is_some(),
            Self::Ping(ping) => ping.count.is_some(),
            Self::Mix(_) => false,
        }
    }

    /// Returns the end that sends most, whose congestion window a probe of the flow records.
    #[must_use]
    pub fn sender(&self) -> Side {
        let of = |direction| match direction {
            Direction::Upload => Side::Opener,
            Direction::Download => Side::Server,
            Direction::Both => Side::Both,
        };
        match self {
            Self::Bulk(bulk) => of(bulk.direction),
            Self::Ftp(ftp) => of(ftp.direction),
            Self::Packets(_) | Self::Carousel(_) | Self::Mail(_) => Side::Opener,
            Self::RequestResponse(_) | Self::Web(_) | Self::Video(_) => Side::Server,
            Self::Voice(_) | Self::VideoCall(_) | Self::Ping(_) | Self::Mix(_) => Side::Both,
        }
    }

    /// Returns the end that measures times.
    #[must_use]
    pub fn measured_at(&self) -> Side {
        match self {
            Self::Packets(_) | Self::Carousel(_) => Side::Server,
            _ => Side::Opener,
        }
    }

    /// Returns the number of local ports that the opener may need.
    #[must_use]
    pub fn ports_needed(&self) -> u16 {
        match self {
            Self::Bulk(_)
            | Self::RequestResponse(_)
            | Self::Packets(_)
            | Self::Carousel(_)
            | Self::Voice(_)
            | Self::Video(_)
            | Self::VideoCall(_)
            | Self::Ping(_) => 1,
            // Six connections, and as many again while earlier ones are in TIME-WAIT; or one
            // connection after another.
            Self::Web(_) | Self::Mail(_) | Self::Ftp(_) => 32,
            Self::Mix(_) => 256,
        }
    }

    /// Returns the number of ports that suffice, if its host has many flows; for a user, that of
    /// the most demanding activity.
    #[must_use]
    pub fn least_ports(&self) -> u16 {
        match self {
            Self::Mix(mix) => {
                let shares = mix.shares.iter().map(|share| share.traffic.least_ports());
                shares.max().unwrap_or(1)
            }
            _ => self.ports_needed(),
        }
    }

    /// Creates the applications at both ends; the server is at `server`.
    #[must_use]
    pub fn ends<P: SocketBackend, Q: SocketBackend>(&self, server: Endpoint) -> Ends<P, Q> {
        if let Self::Mix(settings) = self {
            let (user, servers) = mix::ends(server, settings);
            return Ends {
                opener: Box::new(user),
                server: Box::new(servers),
            };
        }
        let Pair { make, server } = self.pair(server);
        Ends {
            opener: make(),
            server,
        }
    }

    /// Creates the server, and a factory of its openers.
    fn pair<P: SocketBackend, Q: SocketBackend>(&self, to: Endpoint) -> Pair<P, Q> {
        let orders = Orders::default();
        let responder = || Box::new(Responder::new(orders.clone()));
        let (make, server): (Make<P>, Box<dyn Application<Q>>) = match self.clone() {
            Self::Bulk(settings) => (
                Box::new(move || Box::new(Bulk::opener(to, settings))),
                Box::new(Bulk::server(settings)),
            ),
            Self::RequestResponse(settings) => {
                let server = responder();
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(RequestResponse::new(to, settings, orders.clone()))
                };
                (Box::new(make), server)
            }
            Self::Web(settings) => {
                let server = responder();
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(Web::new(to, settings, orders.clone()))
                };
                (Box::new(make), server)
            }
            Self::Mail(settings) => {
                let server = responder();
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(Mail::new(to, settings, orders.clone()))
                };
                (Box::new(make), server)
            }
            Self::Video(settings) => {
                let server = responder();
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(Video::new(to, settings.clone(), orders.clone()))
                };
                (Box::new(make), server)
            }
            Self::Packets(settings) => {
                let written = packets::Written::default();
                let server = packets::Receiver::new(written.clone());
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(packets::Source::new(to, settings, written.clone()))
                };
                (Box::new(make), Box::new(server))
            }
            Self::Carousel(settings) => (
                Box::new(move || Box::new(carousel::Station::new(to, settings))),
                Box::new(carousel::Listener::new(settings)),
            ),
            Self::Ftp(settings) => {
                let commands = ftp::Commands::default();
                let server = FtpServer::new(commands.clone());
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(Ftp::new(to, settings, commands.clone()))
                };
                (Box::new(make), Box::new(server))
            }
            Self::Voice(settings) => {
                let set_up = voice::SetUp::default();
                let server = voice::Voice::called(settings, set_up.clone());
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(voice::Voice::caller(to, settings, set_up.clone()))
                };
                (Box::new(make), Box::new(server))
            }
            Self::VideoCall(settings) => {
                let set_up = video_call::SetUp::default();
                let server = video_call::VideoCallEnd::called(settings, set_up.clone());
                let make = move || -> Box<dyn Application<P>> {
                    let set_up = set_up.clone();
                    Box::new(video_call::VideoCallEnd::caller(to, settings, set_up))
                };
                (Box::new(make), Box::new(server))
            }
            Self::Ping(settings) => (
                Box::new(move || Box::new(Ping::new(to, settings))),
                Box::new(EchoServer),
            ),
            Self::Mix(settings) => {
                let (_, servers) = mix::ends::<P, Q>(to, &settings);
                let make = move || -> Box<dyn Application<P>> {
                    Box::new(mix::ends::<P, Q>(to, &settings).0)
                };
                debug_assert!(false, "a mix of mixes");
                (Box::new(make), Box::new(servers))
            }
        };
        Pair { make, server }
    }

    /// Returns the bytes that a whole transfer delivers in both directions, or `None` for other
    /// applications.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Bulk(bulk) => {
                let ways = if bulk.direction == Direction::Both {
                    2
                } else {
                    1
                };
                Some(
                    bulk.size?
                        .saturating_mul(bulk.transfers)
                        .saturating_mul(ways),
                )
            }
            _ => None,
        }
    }
}
