//! The socket interface of applications, independent of its implementation.

use std::fmt::Debug;

use bentpipe_types::{Endpoint, RandomStream, Time};

use crate::{ConnectError, ConnectionKeys, Datagram, SocketContext, SocketId};

/// Sockets, time and random numbers for an application of a flow, implemented by our host
/// ([`SocketContext`]) and by kernel sockets.
pub trait SocketApi {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Returns the application's random stream.
    fn random(&mut self) -> &mut RandomStream;

    /// Opens a connection from the application's next port.
    ///
    /// # Errors
    /// Returns an error if there is no route, port or room.
    fn connect(&mut self, remote: Endpoint) -> Result<SocketId, ConnectError>;

    /// Opens a connection from this port.
    ///
    /// # Errors
    /// Returns an error if there is no route or room, or the port is in use towards that end.
    fn connect_from(&mut self, local_port: u16, remote: Endpoint)
    -> Result<SocketId, ConnectError>;

    /// Announces that connections to this port of its own will arrive. Our host accepts expected
    /// connections anyway; the kernel must listen.
    fn listen(&mut self, port: u16) {
        let _ = port;
    }

    /// Writes `bytes` bytes of filler as the send buffer accepts them, and then closes if `closes`.
    fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool);

    /// Reads and discards up to `maximum` bytes. Returns the number.
    fn read(&mut self, socket: SocketId, maximum: u64) -> u64;

    /// Enables immediate discarding of everything that arrives in order.
    fn sink(&mut self, socket: SocketId);

    /// Disables Nagle's algorithm (TCP_NODELAY).
    fn no_delay(&mut self, socket: SocketId);

    /// Requests [`Events::DRAINED`](bentpipe_tcp::Events::DRAINED) for this connection. Our host
    /// always reports it; the kernel must be polled.
    fn watch_drained(&mut self, socket: SocketId) {
        let _ = socket;
    }

    /// Closes the sending direction. Data from the peer can still be read.
    fn close(&mut self, socket: SocketId);

    /// Resets the connection.
    fn abort(&mut self, socket: SocketId);

    /// Returns this end of a connection, or `None` if it is closed.
    fn local(&self, socket: SocketId) -> Option<Endpoint>;

    /// Returns the other end of a connection, or `None` if it is closed.
    fn remote(&self, socket: SocketId) -> Option<Endpoint>;

    /// Whether everything written was acknowledged; false for a closed connection.
    fn is_drained(&self, socket: SocketId) -> bool;

    /// Returns the bytes delivered in order, or 0 if the connection is closed.
    fn delivered(&self, socket: SocketId) -> u64;

    /// Returns the application's first and last port.
    fn ports(&self) -> (u16, u16);

    /// Returns the number of the application's connections.
    fn connections(&self) -> usize;

    /// Returns a connection in the order in which they began.
    fn nth_connection(&self, index: usize) -> Option<SocketId>;

    /// Sends a datagram from the first of the application's ports. Returns false without a route.
    fn send(&mut self, remote: Endpoint, datagram: Datagram) -> bool;

    /// Sends a datagram from this port. Returns false without a route.
    fn send_from(&mut self, port: u16, remote: Endpoint, datagram: Datagram) -> bool;

    /// Sends an ICMP echo request, whose answer arrives as a datagram. Returns false without a
    /// route.
    fn ping(&mut self, remote: Endpoint, datagram: Datagram) -> bool;
}

/// An implementation of the socket interface.
pub trait SocketBackend: Debug + Send + 'static {
    /// Context of an application's calls.
    type Api<'a, 'c>: SocketApi
    where
        'c: 'a;
}

impl<P: ConnectionKeys> SocketBackend for P {
    type Api<'a, 'c>
        = SocketContext<'a, 'c, P>
    where
        'c: 'a;
}

// Inherent methods of the same names.
impl<P: ConnectionKeys> SocketApi for SocketContext<'_, '_, P> {
    fn now(&self) -> Time {
        self.now()
    }

    fn random(&mut self) -> &mut RandomStream {
        self.random()
    }

    fn connect(&mut self, remote: Endpoint) -> Result<SocketId, ConnectError> {
        self.connect(remote)
    }

    fn connect_from(
        &mut self,
        local_port: u16,
        remote: Endpoint,
    ) -> Result<SocketId, ConnectError> {
        let connect = crate::Connect {
            local_port: Some(local_port),
            ..crate::Connect::to(remote.into())
        };
        self.connect_with(&connect).map(|(socket, _)| socket)
    }

    fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool) {
        self.feed(socket, bytes, closes);
    }

    fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        self.read(socket, maximum)
    }

    fn sink(&mut self, socket: SocketId) {
        self.sink(socket);
    }

    fn no_delay(&mut self, socket: SocketId) {
        self.no_delay(socket);
    }

    fn close(&mut self, socket: SocketId) {
        self.close(socket);
    }

    fn abort(&mut self, socket: SocketId) {
        self.abort(socket);
    }

    fn local(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.connection(socket)?.local())
    }

    fn remote(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.connection(socket)?.remote())
    }

    fn is_drained(&self, socket: SocketId) -> bool {
        let connection = self.connection(socket);
        connection.is_some_and(|c| c.acknowledged_offset() == c.written_offset())
    }

    fn delivered(&self, socket: SocketId) -> u64 {
        let connection = self.connection(socket);
        connection.map_or(0, |connection| connection.statistics().bytes_delivered)
    }

    fn ports(&self) -> (u16, u16) {
        self.ports()
    }

    fn connections(&self) -> usize {
        self.connections()
    }

    fn nth_connection(&self, index: usize) -> Option<SocketId> {
        self.nth_connection(index)
    }

    fn send(&mut self, remote: Endpoint, datagram: Datagram) -> bool {
        self.send(remote, datagram)
    }

    fn send_from(&mut self, port: u16, remote: Endpoint, datagram: Datagram) -> bool {
        self.send_from(port, remote, datagram)
    }

    fn ping(&mut self, remote: Endpoint, datagram: Datagram) -> bool {
        self.ping(remote, datagram)
    }
}
