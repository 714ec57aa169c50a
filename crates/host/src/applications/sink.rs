//! The receiving end of a bulk transfer.

use bentpipe_tcp::Events;

use crate::{Application, SocketApi, SocketBackend, SocketId};

/// Reads everything, and closes after the other side.
#[derive(Clone, Copy, Debug)]
pub struct Sink;

impl<P: SocketBackend> Application<P> for Sink {
    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        api.sink(socket);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
    }
}
