//! The receiving end of a bulk transfer.

use bentpipe_tcp::Events;

use crate::{Application, Desk, Realm, SocketId};

/// Reads everything, and closes when the other side has.
#[derive(Clone, Copy, Debug)]
pub struct Sink;

impl<P: Realm> Application<P> for Sink {
    fn on_accept(&mut self, socket: SocketId, desk: &mut Desk<'_, '_, P>) {
        desk.sink(socket);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut Desk<'_, '_, P>) {
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
    }
}
