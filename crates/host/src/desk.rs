//! Where an application works: what it can do to its sockets, and what it can know.

use bentpipe_tcp::{Connection, Source, relay};
use bentpipe_types::{Address, Ctx, Echo, Endpoint, RandomStream, Time};

use crate::connect::{Connect, ConnectError, Remote};
use crate::table::Sockets;
use crate::{ApplicationId, Datagram, Realm, SocketId};

/// All that an application may touch while it runs. Its host makes one per call.
#[derive(Debug)]
pub struct Desk<'a, 'c, P: Realm> {
    pub(crate) sockets: &'a mut Sockets<P>,
    pub(crate) me: ApplicationId,
    /// The connection whose news this is about: the host looks at it afterwards anyway.
    pub(crate) current: u32,
    pub(crate) cx: &'a mut Ctx<'c>,
}

/// No connection.
pub(crate) const NONE: u32 = u32::MAX;

impl<P: Realm> Desk<'_, '_, P> {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.cx.now
    }

    /// The host's own address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.sockets.routes.here()
    }

    /// The application's own luck.
    pub fn random(&mut self) -> &mut RandomStream {
        &mut self.sockets.accounts[self.me.0 as usize].member.random
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When there is no way, no port or no room for it.
    pub fn connect(&mut self, remote: impl Into<Remote>) -> Result<SocketId, ConnectError> {
        self.connect_with(&Connect::to(remote.into()))
            .map(|(socket, _)| socket)
    }

    /// Opens a connection in an unusual way. Also returns how many bytes went with its SYN.
    ///
    /// # Errors
    /// When there is no way, no port or no room for it.
    pub fn connect_with(&mut self, connect: &Connect<'_>) -> Result<(SocketId, u64), ConnectError> {
        self.sockets.connect(self.me, connect, self.cx)
    }

    /// Writes as much as the send buffer takes. Returns how many bytes; if not all,
    /// [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) says when it takes more. Nothing is taken
    /// by a connection that is gone.
    #[inline]
    pub fn write(&mut self, socket: SocketId, source: Source<'_>) -> u64 {
        let cx = &mut *self.cx;
        let Some(slot) = self.sockets.named_mut(socket) else {
            return 0;
        };
        let written = slot.socket.write(source, cx);
        self.touch(socket);
        written
    }

    /// Writes `bytes` bytes of the stream's filler as the send buffer takes them, and then closes, if
    /// it is to: see [`Socket::feed`](bentpipe_tcp::Socket::feed).
    pub fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool) {
        let cx = &mut *self.cx;
        if let Some(slot) = self.sockets.named_mut(socket) {
            slot.socket.feed(bytes, closes, cx);
            self.touch(socket);
        }
    }

    /// The application's ports: the first and the last.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        self.sockets.accounts[self.me.0 as usize]
            .member
            .ports
            .bounds()
    }

    /// Connections of the application.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sockets.accounts[self.me.0 as usize].sockets.len()
    }

    /// One of them, in the order in which they began; the last one is the latest.
    #[must_use]
    pub fn nth_connection(&self, index: usize) -> Option<SocketId> {
        let account = &self.sockets.accounts[self.me.0 as usize];
        let place = account.sockets.get(index)?;
        Some(self.sockets.id_of(*place))
    }

    /// Sends an ICMP echo request: whoever gets it answers, and the answer comes as a datagram. False
    /// where no way leads there.
    pub fn ping(&mut self, remote: Endpoint, datagram: Datagram) -> bool {
        let Some(egress) = self.sockets.routes.port_towards(remote.address) else {
            return false;
        };
        let member = &self.sockets.accounts[self.me.0 as usize].member;
        let source = Endpoint {
            address: self.address(),
            port: member.ports.bounds().0,
        };
        let remote = Endpoint { port: 0, ..remote };
        let version = member.config.ip_version;
        let packets = &mut *self.cx.packets;
        let packet = datagram.insert_echo(Echo::Request, source, remote, version, packets);
        self.cx.emit(egress, packet);
        true
    }

    /// Sends a datagram, from the first of the application's ports. False where no way leads there.
    pub fn send(&mut self, remote: impl Into<Remote>, datagram: Datagram) -> bool {
        let member = &self.sockets.accounts[self.me.0 as usize].member;
        let port = member.datagram_port.unwrap_or(member.ports.bounds().0);
        self.send_from(port, remote, datagram)
    }

    /// Sends a datagram from this port. False where no way leads there.
    pub fn send_from(&mut self, port: u16, remote: impl Into<Remote>, datagram: Datagram) -> bool {
        let Remote { endpoint, ip } = remote.into();
        let Some(egress) = self.sockets.routes.port_towards(endpoint.address) else {
            return false;
        };
        let member = &self.sockets.accounts[self.me.0 as usize].member;
        let source = Endpoint {
            address: self.address(),
            port,
        };
        let version = member.config.ip_version;
        let packets = &mut *self.cx.packets;
        let packet = datagram.insert(source, endpoint, version, P::KEEPS_BYTES, packets);
        if let Some(ip) = ip {
            packets.set_ip(packet, ip);
        }
        self.cx.emit(egress, packet);
        true
    }

    /// Reads up to `maximum` bytes and throws them away. Returns how many.
    pub fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        let cx = &mut *self.cx;
        let Some(slot) = self.sockets.named_mut(socket) else {
            return 0;
        };
        let read = slot.socket.read(maximum, cx);
        self.touch(socket);
        read
    }

    /// Reads what has arrived in order, as much as `out` has room for. Returns how many bytes.
    pub fn read_bytes(&mut self, socket: SocketId, out: &mut [u8]) -> usize {
        let cx = &mut *self.cx;
        let Some(slot) = self.sockets.named_mut(socket) else {
            return 0;
        };
        let read = slot.socket.read_bytes(out, cx);
        self.touch(socket);
        read
    }

    /// Bytes that have arrived in order and were not read.
    #[must_use]
    pub fn readable(&self, socket: SocketId) -> u64 {
        (self.sockets.named(socket)).map_or(0, |slot| slot.socket.readable())
    }

    /// Moves up to `maximum` bytes that have come over one connection on to the other, and returns
    /// how many.
    pub fn relay(&mut self, from: SocketId, to: SocketId, maximum: u64) -> u64 {
        let Some([from_slot, to_slot]) = self.sockets.named_pair(from, to) else {
            return 0;
        };
        let moved = relay(&mut from_slot.socket, &mut to_slot.socket, maximum, self.cx);
        self.touch(from);
        self.touch(to);
        moved
    }

    /// Whatever arrives from now on is read the moment it is in order, by nobody; so is what came with the SYN. Before
    /// anything else has arrived.
    pub fn sink(&mut self, socket: SocketId) {
        if self.readable(socket) > 0 {
            self.read(socket, u64::MAX);
        }
        if let Some(slot) = self.sockets.named_mut(socket) {
            slot.socket.set_sink();
        }
    }

    /// Small segments go out at once (TCP_NODELAY): what browsers, servers and terminals ask for.
    pub fn no_delay(&mut self, socket: SocketId) {
        self.act(socket, |connection, cx| connection.set_nagle(false, cx));
    }

    /// Nothing more will be written. What the peer sends can still be read.
    pub fn close(&mut self, socket: SocketId) {
        self.act(socket, Connection::close);
    }

    /// Ends the connection at once, with a RST.
    pub fn abort(&mut self, socket: SocketId) {
        self.act(socket, Connection::abort);
    }

    /// Does anything to a connection that writes and reads nothing: sets an option, say. `None` of one
    /// that is gone.
    pub fn act<R>(
        &mut self,
        socket: SocketId,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> R,
    ) -> Option<R> {
        let cx = &mut *self.cx;
        let result = self.sockets.named_mut(socket)?.socket.act(cx, act);
        self.touch(socket);
        Some(result)
    }

    /// A connection of this application; `None` when it is gone.
    #[must_use]
    pub fn connection(&self, socket: SocketId) -> Option<&Connection> {
        let slot = self.sockets.named(socket)?;
        Some(slot.socket.connection())
    }

    #[inline]
    fn touch(&mut self, socket: SocketId) {
        if socket.place != self.current {
            self.sockets.touched.push(socket.place);
        }
    }
}
