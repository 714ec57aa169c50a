//! The receiving end of a bulk transfer.

use bentpipe_tcp::Events;

use crate::{Application, SocketId, Workplace, World};

/// Reads everything, and closes after the other side.
#[derive(Clone, Copy, Debug)]
pub struct Sink;

impl<P: World> Application<P> for Sink {
    fn on_accept(&mut self, socket: SocketId, desk: &mut P::Desk<'_, '_>) {
        desk.sink(socket);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
    }
}
