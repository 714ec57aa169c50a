//! The socket interface that a host provides to its applications.

use bentpipe_tcp::{Connection, Source, relay};
use bentpipe_types::{Address, Ctx, Echo, Ecn, Endpoint, Packet, PacketRef, RandomStream, Time};

use crate::connect::{Connect, ConnectError, Remote};
use crate::datagram::UDP;
use crate::table::Sockets;
use crate::{ApplicationId, ConnectionKeys, Datagram, SocketId};

/// Everything an application may access during a call. The host creates one per call.
#[derive(Debug)]
pub struct SocketContext<'a, 'c, P: ConnectionKeys> {
    pub(crate) sockets: &'a mut Sockets<P>,
    pub(crate) me: ApplicationId,
    /// The connection whose events are being reported; the host checks it after the call.
    pub(crate) current: u32,
    pub(crate) cx: &'a mut Ctx<'c>,
}

/// No connection.
pub(crate) const NONE: u32 = u32::MAX;

impl<P: ConnectionKeys> SocketContext<'_, '_, P> {
    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.cx.now
    }

    /// Returns the host's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.sockets.routes.here()
    }

    /// Returns the application's random stream.
    pub fn random(&mut self) -> &mut RandomStream {
        &mut self.sockets.accounts[self.me.0 as usize].member.random
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error if there is no route or local port, or if the connection table is full.
    pub fn connect(&mut self, remote: impl Into<Remote>) -> Result<SocketId, ConnectError> {
        self.connect_with(&Connect::to(remote.into()))
            .map(|(socket, _)| socket)
    }

    /// Opens a connection with explicit parameters. Also returns how many bytes its SYN carries.
    ///
    /// # Errors
    /// Returns an error if there is no route or local port, or if the connection table is full.
    pub fn connect_with(&mut self, connect: &Connect<'_>) -> Result<(SocketId, u64), ConnectError> {
        self.sockets.connect(self.me, connect, self.cx)
    }

    /// Writes as much as the send buffer accepts and returns the number of bytes. If not all were
    /// accepted, [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) signals when more will be. A
    /// closed connection accepts nothing.
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

    /// Writes `bytes` bytes of filler as the send buffer accepts them, and then closes if `closes`:
    /// see [`Socket::feed`](bentpipe_tcp::Socket::feed).
    pub fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool) {
        let cx = &mut *self.cx;
        if let Some(slot) = self.sockets.named_mut(socket) {
            slot.socket.feed(bytes, closes, cx);
            self.touch(socket);
        }
    }

    /// Returns the application's first and last port.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        self.sockets.accounts[self.me.0 as usize]
            .member
            .ports
            .bounds()
    }

    /// Returns the number of the application's connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sockets.accounts[self.me.0 as usize].sockets.len()
    }

    /// Returns a connection in the order in which they began.
    #[must_use]
    pub fn nth_connection(&self, index: usize) -> Option<SocketId> {
        let account = &self.sockets.accounts[self.me.0 as usize];
        let place = account.sockets.get(index)?;
        Some(self.sockets.id_of(*place))
    }

    /// Sends an ICMP echo request, whose answer arrives as a datagram. Returns false without a
    /// route.
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

    /// Sends a datagram from the first of the application's ports. Returns false without a route.
    pub fn send(&mut self, remote: impl Into<Remote>, datagram: Datagram) -> bool {
        let member = &self.sockets.accounts[self.me.0 as usize].member;
        let port = member.datagram_port.unwrap_or(member.ports.bounds().0);
        self.send_from(port, remote, datagram)
    }

    /// Sends a datagram from this port. Returns false without a route.
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

    /// Sends a UDP datagram with these bytes. Returns false without a route.
    pub fn send_payload(&mut self, port: u16, remote: Endpoint, ecn: Ecn, payload: &[u8]) -> bool {
        let Some(egress) = self.sockets.routes.port_towards(remote.address) else {
            return false;
        };
        let source = Endpoint {
            address: self.address(),
            port,
        };
        let member = &self.sockets.accounts[self.me.0 as usize].member;
        let version = member.config.ip_version;
        let mut record = Packet::datagram(source, remote, version, UDP);
        record.payload_length = payload.len() as u16;
        record.set_ecn(ecn);
        let packets = &mut *self.cx.packets;
        let packet = packets.insert(record);
        packets.set_payload(packet, |bytes| bytes.copy_from_slice(payload));
        self.cx.emit(egress, packet);
        true
    }

    /// Returns the payload of a packet that the application receives, if it has bytes.
    #[must_use]
    pub fn payload(&self, packet: PacketRef) -> Option<&[u8]> {
        self.cx.packets.payload(packet)
    }

    /// Returns the ECN field of a packet that the application receives.
    #[must_use]
    pub fn ecn(&self, packet: PacketRef) -> Ecn {
        self.cx.packets.get(packet).ecn()
    }

    /// Reads and discards up to `maximum` bytes. Returns the number.
    pub fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        let cx = &mut *self.cx;
        let Some(slot) = self.sockets.named_mut(socket) else {
            return 0;
        };
        let read = slot.socket.read(maximum, cx);
        self.touch(socket);
        read
    }

    /// Reads data that arrived in order into `out`. Returns the number of bytes.
    pub fn read_bytes(&mut self, socket: SocketId, out: &mut [u8]) -> usize {
        let cx = &mut *self.cx;
        let Some(slot) = self.sockets.named_mut(socket) else {
            return 0;
        };
        let read = slot.socket.read_bytes(out, cx);
        self.touch(socket);
        read
    }

    /// Returns the bytes that arrived in order and were not read.
    #[must_use]
    pub fn readable(&self, socket: SocketId) -> u64 {
        (self.sockets.named(socket)).map_or(0, |slot| slot.socket.readable())
    }

    /// Moves up to `maximum` received bytes from one connection to another. Returns the number.
    pub fn relay(&mut self, from: SocketId, to: SocketId, maximum: u64) -> u64 {
        let Some([from_slot, to_slot]) = self.sockets.named_pair(from, to) else {
            return 0;
        };
        let moved = relay(&mut from_slot.socket, &mut to_slot.socket, maximum, self.cx);
        self.touch(from);
        self.touch(to);
        moved
    }

    /// Enables immediate discarding of everything that arrives in order, data on the SYN included.
    /// Must be called before other data arrive.
    pub fn sink(&mut self, socket: SocketId) {
        if self.readable(socket) > 0 {
            self.read(socket, u64::MAX);
        }
        if let Some(slot) = self.sockets.named_mut(socket) {
            slot.socket.set_sink();
        }
    }

    /// Disables Nagle's algorithm (TCP_NODELAY), as browsers, servers and terminals do.
    pub fn no_delay(&mut self, socket: SocketId) {
        self.act(socket, |connection, cx| connection.set_nagle(false, cx));
    }

    /// Closes the sending direction. Data from the peer can still be read.
    pub fn close(&mut self, socket: SocketId) {
        self.act(socket, Connection::close);
    }

    /// Resets the connection.
    pub fn abort(&mut self, socket: SocketId) {
        self.act(socket, Connection::abort);
    }

    /// Calls a function with a connection, for example to set an option; it must not read or write.
    /// Returns `None` if the connection is closed.
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

    /// Returns a connection of this application, or `None` if it is closed.
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
