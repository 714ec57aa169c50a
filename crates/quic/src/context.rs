//! The socket interface of applications over QUIC.

use bentpipe_host::{ConnectError, Datagram, SocketApi, SocketBackend, SocketId};
use bentpipe_types::{Address, Endpoint, RandomStream, Time};

use crate::engine::Engine;

/// QUIC streams as the sockets of applications.
#[derive(Clone, Copy, Debug)]
pub struct Quic;

impl SocketBackend for Quic {
    type Api<'a, 'c>
        = QuicContext<'a>
    where
        'c: 'a;
}

/// Everything an application over QUIC may access during a call.
#[derive(Debug)]
pub struct QuicContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) now: Time,
    pub(crate) random: &'a mut RandomStream,
    pub(crate) ports: (u16, u16),
    pub(crate) address: Address,
    /// Number of connections opened so far, which determines their ports.
    pub(crate) opened: &'a mut u16,
}

impl SocketApi for QuicContext<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn random(&mut self) -> &mut RandomStream {
        self.random
    }

    fn connect(&mut self, remote: Endpoint) -> Result<SocketId, ConnectError> {
        let (first, last) = self.ports;
        let count = last.saturating_sub(first).saturating_add(1);
        let port = first + *self.opened % count;
        self.connect_from(port, remote)
    }

    fn connect_from(
        &mut self,
        local_port: u16,
        remote: Endpoint,
    ) -> Result<SocketId, ConnectError> {
        let local = Endpoint {
            address: self.address,
            port: local_port,
        };
        self.engine.open(local, remote, self.now)
    }

    fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool) {
        self.engine.feed(socket, bytes, closes);
    }

    fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        self.engine.read(socket, maximum)
    }

    fn sink(&mut self, socket: SocketId) {
        self.engine.sink(socket);
    }

    fn no_delay(&mut self, _socket: SocketId) {}

    fn close(&mut self, socket: SocketId) {
        self.engine.feed(socket, 0, true);
    }

    fn abort(&mut self, socket: SocketId) {
        self.engine.abort(socket);
    }

    fn local(&self, socket: SocketId) -> Option<Endpoint> {
        self.engine.local(socket)
    }

    fn remote(&self, socket: SocketId) -> Option<Endpoint> {
        self.engine.remote(socket)
    }

    fn is_drained(&self, socket: SocketId) -> bool {
        self.engine.is_drained(socket)
    }

    fn delivered(&self, socket: SocketId) -> u64 {
        self.engine.delivered(socket)
    }

    fn ports(&self) -> (u16, u16) {
        self.ports
    }

    fn connections(&self) -> usize {
        self.engine.sockets().count()
    }

    fn nth_connection(&self, index: usize) -> Option<SocketId> {
        self.engine.sockets().nth(index)
    }

    fn send(&mut self, _remote: Endpoint, _datagram: Datagram) -> bool {
        false
    }

    fn send_from(&mut self, _port: u16, _remote: Endpoint, _datagram: Datagram) -> bool {
        false
    }

    fn ping(&mut self, _remote: Endpoint, _datagram: Datagram) -> bool {
        false
    }
}
