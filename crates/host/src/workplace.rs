//! Where an application works, whoever's its sockets are.

use std::fmt::Debug;

use bentpipe_types::{Endpoint, RandomStream, Time};

use crate::{ConnectError, Datagram, Desk, Realm, SocketId};

/// What an application of a flow can do to its sockets, and what it can know. It stands between an
/// application and the TCP below it, which is ours ([`Desk`]), or the kernel's.
pub trait Workplace {
    /// The time.
    fn now(&self) -> Time;

    /// The application's own luck.
    fn random(&mut self) -> &mut RandomStream;

    /// Opens a connection from the application's next port.
    ///
    /// # Errors
    /// When there is no way, no port or no room for it.
    fn connect(&mut self, remote: Endpoint) -> Result<SocketId, ConnectError>;

    /// Opens a connection from this port.
    ///
    /// # Errors
    /// When there is no way, no room for it, or the port is in use towards that end.
    fn connect_from(&mut self, local_port: u16, remote: Endpoint)
    -> Result<SocketId, ConnectError>;

    /// Connections to this port of its own will come. Ours takes those of whom a flow expects, anyway; the
    /// kernel listens only where it is told to.
    fn listen(&mut self, port: u16) {
        let _ = port;
    }

    /// Writes `bytes` bytes more of the stream's filler as the send buffer takes them, and then closes, if
    /// it is to.
    fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool);

    /// Reads up to `maximum` bytes and throws them away. Returns how many.
    fn read(&mut self, socket: SocketId, maximum: u64) -> u64;

    /// Whatever arrives from now on is read the moment it is in order, by nobody.
    fn sink(&mut self, socket: SocketId);

    /// Small segments go out at once (TCP_NODELAY).
    fn no_delay(&mut self, socket: SocketId);

    /// [`Events::DRAINED`](bentpipe_tcp::Events::DRAINED) is wanted of this connection. Ours tells it
    /// anyway; the kernel has to be asked, again and again.
    fn watch_drained(&mut self, socket: SocketId) {
        let _ = socket;
    }

    /// Nothing more will be written. What the peer sends can still be read.
    fn close(&mut self, socket: SocketId);

    /// Ends the connection at once, with a RST.
    fn abort(&mut self, socket: SocketId);

    /// This end of a connection; `None` when it is gone.
    fn local(&self, socket: SocketId) -> Option<Endpoint>;

    /// The other end of a connection; `None` when it is gone.
    fn remote(&self, socket: SocketId) -> Option<Endpoint>;

    /// Has everything that was written been acknowledged? Not of a connection that is gone.
    fn is_drained(&self, socket: SocketId) -> bool;

    /// Bytes that a connection has delivered, in order; 0 when it is gone.
    fn delivered(&self, socket: SocketId) -> u64;

    /// The application's ports: the first and the last.
    fn ports(&self) -> (u16, u16);

    /// Connections of the application.
    fn connections(&self) -> usize;

    /// One of them, in the order in which they began; the last one is the latest.
    fn nth_connection(&self, index: usize) -> Option<SocketId>;

    /// Sends a datagram, from the first of the application's ports. False where no way leads there.
    fn send(&mut self, remote: Endpoint, datagram: Datagram) -> bool;

    /// Sends a datagram from this port. False where no way leads there.
    fn send_from(&mut self, port: u16, remote: Endpoint, datagram: Datagram) -> bool;

    /// Sends an ICMP echo request: whoever gets it answers, and the answer comes as a datagram. False
    /// where no way leads there.
    fn ping(&mut self, remote: Endpoint, datagram: Datagram) -> bool;
}

/// Whose sockets applications work with.
pub trait World: Debug + Send + 'static {
    /// Where they do.
    type Desk<'a, 'c>: Workplace
    where
        'c: 'a;
}

impl<P: Realm> World for P {
    type Desk<'a, 'c>
        = Desk<'a, 'c, P>
    where
        'c: 'a;
}

// By the methods of the same names.
impl<P: Realm> Workplace for Desk<'_, '_, P> {
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
