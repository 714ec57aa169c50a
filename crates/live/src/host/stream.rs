//! What an application sees of its connection.

use bentpipe_tcp::{Connection, Events, ReceiveBuffer, SendBuffer};
use bentpipe_types::{Ctx, Time};

/// An application at this host's end of a connection. It is told what is new, and never waits.
pub trait Application {
    /// The connection has news. What is not read or written now, no event announces again: data
    /// stays readable, and an event comes when more arrives.
    fn on_events(&mut self, events: Events, stream: &mut Stream<'_, '_>);

    /// [`next_deadline`](Self::next_deadline) has come.
    fn on_deadline(&mut self, stream: &mut Stream<'_, '_>) {
        let _ = stream;
    }

    /// When the application next wants to run without news. Asked after every call.
    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// A connection with the bytes that it carries.
#[derive(Debug)]
pub struct Stream<'a, 'c> {
    pub(super) connection: &'a mut Connection,
    pub(super) send: &'a mut SendBuffer,
    pub(super) receive: &'a mut ReceiveBuffer,
    pub(super) cx: &'a mut Ctx<'c>,
}

impl Stream<'_, '_> {
    /// Reads what has arrived in order, as much as `out` has room for. Returns how many bytes.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let length = (out.len() as u64).min(self.connection.readable()) as usize;
        self.receive.take(&mut out[..length]);
        let read = self.connection.read(length as u64, self.cx);
        debug_assert_eq!(read, length as u64);
        length
    }

    /// Writes as many of the bytes as the send buffer takes. Returns how many; if not all,
    /// [`Events::WRITABLE`] says when it takes more.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let length = (bytes.len() as u64).min(self.connection.writable()) as usize;
        // First the bytes: the connection sends them at once.
        let acknowledged = self.connection.acknowledged_offset();
        self.send.write(acknowledged, &bytes[..length]);
        let written = self.connection.write(bytes.len() as u64, self.cx);
        debug_assert_eq!(written, length as u64);
        length
    }

    /// Nothing more will be written. What the peer sends can still be read.
    pub fn close(&mut self) {
        self.connection.close(self.cx);
    }

    /// Ends the connection at once, with a RST.
    pub fn abort(&mut self) {
        self.connection.abort(self.cx);
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.cx.now
    }

    /// The connection: its state, counters and windows.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.connection
    }
}
