//! What runs on top of connections, one file each, and which two ends a flow has.

mod adaptive_playout;
mod bulk;
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

use crate::{Application, World};
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

/// What a flow is: the applications at its two ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// Bulk transfers.
    Bulk(BulkSettings),
    /// A request, its answer, a pause, and again.
    RequestResponse(RequestResponseSettings),
    /// Web pages.
    Web(WebSettings),
    /// Packets of random sizes at random times.
    Packets(PacketsSettings),
    /// Files sent to whoever listens.
    Carousel(CarouselSettings),
    /// Files.
    Ftp(FtpSettings),
    /// Mails.
    Mail(MailSettings),
    /// Calls.
    Voice(VoiceSettings),
    /// Video.
    Video(VideoSettings),
    /// Video calls.
    VideoCall(VideoCallSettings),
    /// Echoes.
    Ping(PingSettings),
    /// A user, who does one thing after another.
    Mix(MixSettings),
}

/// One of the two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one that opens.
    Opener,
    /// The one that is spoken to.
    Server,
    /// Either as much as the other.
    Both,
}

/// The two ends of a flow. They may be in different worlds: the kernel's, and ours.
#[derive(Debug)]
pub struct Ends<P: World, Q: World = P> {
    /// The one that opens.
    pub opener: Box<dyn Application<P>>,
    /// The one that is spoken to.
    pub server: Box<dyn Application<Q>>,
}

/// A server, and what makes an opener for it, once or again and again.
struct Pair<P: World, Q: World> {
    make: Make<P>,
    server: Box<dyn Application<Q>>,
}

/// The port on which receivers listen (commplex-link, the one that iperf made known).
const COMMPLEX_LINK: u16 = 5001;
/// Its neighbour, for requests.
const RFE: u16 = 5002;
/// RFC 863: whatever is sent there is read, and no more.
const DISCARD: u16 = 9;
/// What IANA has for files by multicast (mcftp).
const MCAST_FILE: u16 = 6622;
/// RFC 862: whatever is sent there comes back.
const ECHO: u16 = 7;
/// RFC 5321.
const SMTP: u16 = 25;
/// RFC 3551: what RTP is sent to, where nothing else was agreed.
const RTP: u16 = 5004;
/// The next pair of RTP ports: a user may have calls of both kinds.
const VIDEO_RTP: u16 = 5006;

impl Traffic {
    /// Sends `size` bytes and closes; without a size, sends until the end of the run.
    #[must_use]
    pub fn bulk(size: Option<u64>) -> Self {
        Self::Bulk(BulkSettings {
            size,
            direction: Direction::Upload,
            transfers: 1,
            pause: Span::ZERO,
        })
    }

    /// The port that the server end is spoken to at.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Bulk(_) => COMMPLEX_LINK,
            Self::RequestResponse(_) => RFE,
            Self::Web(web) if web.tls == Tls::Off => 80,
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

    /// All ports that the server end listens on, each once.
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

    /// The server's port from which it opens connections to the opener's, if it does.
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

    /// Does all of it, or some, go in datagrams?
    #[must_use]
    pub fn has_datagrams(&self) -> bool {
        match self {
            Self::Packets(packets) => packets.transport == Transport::Udp,
            Self::Carousel(_) | Self::Voice(_) | Self::VideoCall(_) | Self::Ping(_) => true,
            Self::Mix(mix) => mix.shares.iter().any(|share| share.traffic.has_datagrams()),
            _ => false,
        }
    }

    /// Are there only datagrams, of the one who opens, to which nobody answers? Then many may get them.
    #[must_use]
    pub fn is_one_way(&self) -> bool {
        match self {
            Self::Packets(packets) => packets.transport == Transport::Udp,
            Self::Carousel(_) => true,
            _ => false,
        }
    }

    /// Does it come to an end by itself?
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

    /// Which end sends most: the one whose congestion window a probe of the flow shows.
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

    /// Which end measures how long things take.
    #[must_use]
    pub fn measured_at(&self) -> Side {
        match self {
            Self::Packets(_) | Self::Carousel(_) => Side::Server,
            _ => Side::Opener,
        }
    }

    /// The local ports that the opener may need.
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
            // Six connections, and as many again and again while those before them are in TIME-WAIT; one
            // connection after another.
            Self::Web(_) | Self::Mail(_) | Self::Ftp(_) => 32,
            Self::Mix(_) => 256,
        }
    }

    /// With how many of them it can do, where its host has many flows: of a user who does one thing after
    /// another, what the one of them takes that takes most.
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

    /// The applications at both ends, the server's at `server`.
    #[must_use]
    pub fn ends<P: World, Q: World>(&self, server: Endpoint) -> Ends<P, Q> {
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

    /// The server, and what makes openers for it.
    fn pair<P: World, Q: World>(&self, to: Endpoint) -> Pair<P, Q> {
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

    /// The bytes that a whole transfer delivers, both ways together; `None` of what ends otherwise, or
    /// not at all.
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
