//! What runs on top of connections, one file each, and which two ends a flow has.

mod bulk;
mod orders;
mod packets;
mod pages;
mod request_response;
mod responder;
mod sink;
mod web;

pub use bulk::{BulkSettings, Direction};
pub use packets::{PacketsSettings, Transport};
pub use pages::PageModel;
pub use request_response::RequestResponseSettings;
pub use sink::Sink;
pub use web::{Http, Tls, WebSettings};

use bentpipe_types::{Endpoint, Span};

use crate::{Application, Realm};
use bulk::Bulk;
use orders::Orders;
use request_response::RequestResponse;
use responder::Responder;
use web::Web;

/// What a flow is: the applications at its two ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Bulk transfers.
    Bulk(BulkSettings),
    /// A request, its answer, a pause, and again.
    RequestResponse(RequestResponseSettings),
    /// Web pages.
    Web(WebSettings),
    /// Packets of random sizes at random times.
    Packets(PacketsSettings),
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

/// The two ends of a flow.
#[derive(Debug)]
pub struct Ends<P: Realm> {
    /// The one that opens.
    pub opener: Box<dyn Application<P>>,
    /// The one that is spoken to.
    pub server: Box<dyn Application<P>>,
}

/// The port on which receivers listen (commplex-link, the one that iperf made known).
const COMMPLEX_LINK: u16 = 5001;
/// Its neighbour, for requests.
const RFE: u16 = 5002;
/// RFC 863: whatever is sent there is read, and no more.
const DISCARD: u16 = 9;

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

    /// The port that the server end listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Bulk(_) => COMMPLEX_LINK,
            Self::RequestResponse(_) => RFE,
            Self::Web(web) if web.tls == Tls::Off => 80,
            Self::Web(_) => 443,
            Self::Packets(_) => DISCARD,
        }
    }

    /// Which end sends most: the one whose congestion window a probe of the flow shows.
    #[must_use]
    pub fn sender(&self) -> Side {
        match self {
            Self::Bulk(bulk) => match bulk.direction {
                Direction::Upload => Side::Opener,
                Direction::Download => Side::Server,
                Direction::Both => Side::Both,
            },
            Self::Packets(_) => Side::Opener,
            Self::RequestResponse(_) | Self::Web(_) => Side::Server,
        }
    }

    /// The local ports that the opener may need.
    #[must_use]
    pub fn ports_needed(&self) -> u16 {
        match self {
            Self::Bulk(_) | Self::RequestResponse(_) | Self::Packets(_) => 1,
            // Six connections, and as many again and again while those before them are in TIME-WAIT.
            Self::Web(_) => 32,
        }
    }

    /// The applications at both ends, the server's at `server`.
    #[must_use]
    pub fn ends<P: Realm>(&self, server: Endpoint) -> Ends<P> {
        let orders = Orders::default();
        match *self {
            Self::Bulk(settings) => Ends {
                opener: Box::new(Bulk::opener(server, settings)),
                server: Box::new(Bulk::server(settings)),
            },
            Self::RequestResponse(settings) => Ends {
                opener: Box::new(RequestResponse::new(server, settings, orders.clone())),
                server: Box::new(Responder::new(orders)),
            },
            Self::Web(settings) => Ends {
                opener: Box::new(Web::new(server, settings, orders.clone())),
                server: Box::new(Responder::new(orders)),
            },
            Self::Packets(settings) => {
                let written = packets::Written::default();
                let source = packets::Source::new(server, settings, written.clone());
                Ends {
                    opener: Box::new(source),
                    server: Box::new(packets::Receiver::new(written)),
                }
            }
        }
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
