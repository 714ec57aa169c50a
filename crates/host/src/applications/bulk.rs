//! A bulk transfer.

use bentpipe_tcp::{Events, Source};
use bentpipe_types::Endpoint;

use crate::{Application, Desk, Realm, SocketId};

/// Keeps the send buffer full until the file is written, then closes.
#[derive(Clone, Debug)]
pub struct Bulk {
    server: Endpoint,
    size: Option<u64>,
    written: u64,
}

impl Bulk {
    pub(super) fn new(server: Endpoint, size: Option<u64>) -> Self {
        Self {
            server,
            size,
            written: 0,
        }
    }
}

impl<P: Realm> Application<P> for Bulk {
    fn start(&mut self, desk: &mut Desk<'_, '_, P>) {
        // Where no connection can be opened, the flow never begins, and its result says so.
        let _ = desk.connect(self.server);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut Desk<'_, '_, P>) {
        if !(events.has(Events::ESTABLISHED) || events.has(Events::WRITABLE)) {
            return;
        }
        let left = self.size.map_or(u64::MAX, |size| size - self.written);
        if left > 0 {
            // What the send buffer doesn't take makes the connection say when it has room again.
            self.written += desk.write(socket, Source::Filler(left));
        }
        if self.size == Some(self.written) {
            desk.close(socket);
        }
    }
}
