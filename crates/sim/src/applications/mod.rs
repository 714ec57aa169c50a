//! What runs on top of a connection.

mod bulk;

pub use bulk::Bulk;

use bentpipe_types::Ctx;

use bentpipe_tcp::{Connection, Events};

/// An application at one end of a connection.
#[derive(Clone, Debug)]
pub enum Application {
    /// Sends a file, or without end.
    Bulk(Bulk),
    /// Reads everything, and closes when the other side has.
    Sink,
}

impl Application {
    /// Sends `size` bytes and closes; without a size, sends until the end of the run.
    #[must_use]
    pub fn bulk(size: Option<u64>) -> Self {
        Self::Bulk(Bulk::new(size))
    }

    /// The application on the receiving side of this one.
    #[must_use]
    pub(crate) fn counterpart(&self) -> Self {
        match self {
            Self::Bulk(_) | Self::Sink => Self::Sink,
        }
    }

    /// The connection has been made.
    pub(crate) fn on_open(&mut self, connection: &mut Connection) {
        if matches!(self, Self::Sink) {
            connection.set_sink(true);
        }
    }

    /// The connection has news.
    pub(crate) fn on_events(
        &mut self,
        events: Events,
        connection: &mut Connection,
        cx: &mut Ctx<'_>,
    ) {
        match self {
            Self::Bulk(bulk) => bulk.on_events(events, connection, cx),
            Self::Sink => {
                if events.has(Events::PEER_CLOSED) {
                    connection.close(cx);
                }
            }
        }
    }

    /// The bytes that a whole transfer delivers; `None` if it has no end.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Bulk(bulk) => bulk.size(),
            Self::Sink => None,
        }
    }
}
