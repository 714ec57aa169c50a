//! Application interface to the kernel's sockets.

use bentpipe_host::{ConnectError, Datagram, SocketApi, SocketId};
use bentpipe_types::{Endpoint, RandomStream, Time};

use super::socket_table::SocketTable;

/// The sockets of one application, while one of its callbacks runs.
#[derive(Debug)]
pub(crate) struct KernelSocketContext<'a, 'h> {
    table: &'a mut SocketTable<'h>,
    me: usize,
}

impl<'a, 'h> KernelSocketContext<'a, 'h> {
    pub(super) fn new(table: &'a mut SocketTable<'h>, me: usize) -> Self {
        Self { table, me }
    }
}

impl SocketApi for KernelSocketContext<'_, '_> {
    fn now(&self) -> Time {
        self.table.now
    }

    fn random(&mut self) -> &mut RandomStream {
        &mut self.table.application_mut(self.me).member.random
    }

    fn connect(&mut self, remote: Endpoint) -> Result<SocketId, ConnectError> {
        self.table.connect(self.me, None, remote)
    }

    fn connect_from(
        &mut self,
        local_port: u16,
        remote: Endpoint,
    ) -> Result<SocketId, ConnectError> {
        self.table.connect(self.me, Some(local_port), remote)
    }

    fn listen(&mut self, port: u16) {
        self.table.listen_once(self.me, port);
    }

    fn feed(&mut self, socket: SocketId, bytes: u64, close_requested: bool) {
        self.table.feed(socket, bytes, close_requested);
    }

    fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        self.table
            .with(socket, |connection| connection.read(maximum))
    }

    fn sink(&mut self, socket: SocketId) {
        self.table
            .with(socket, |connection| connection.discards = true);
    }

    fn no_delay(&mut self, socket: SocketId) {
        self.table.with(socket, |connection| {
            let _ = connection.stream.set_nodelay(true);
        });
    }

    fn watch_drained(&mut self, socket: SocketId) {
        self.table.with(socket, |connection| {
            connection.watches_acknowledgment = true
        });
    }

    fn close(&mut self, socket: SocketId) {
        self.table.feed(socket, 0, true);
    }

    fn abort(&mut self, socket: SocketId) {
        self.table.abort(socket);
    }

    fn local(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.table.connection(socket)?.local)
    }

    fn remote(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.table.connection(socket)?.remote)
    }

    fn is_drained(&self, socket: SocketId) -> bool {
        let connection = self.table.connection(socket);
        connection.is_some_and(|connection| {
            connection.acknowledged == connection.written && connection.to_write == 0
        })
    }

    fn delivered(&self, socket: SocketId) -> u64 {
        self.table
            .connection(socket)
            .map_or(0, |connection| connection.received)
    }

    fn ports(&self) -> (u16, u16) {
        self.table.application(self.me).member.ports.bounds()
    }

    fn connections(&self) -> usize {
        self.table.application(self.me).sockets.len()
    }

    fn nth_connection(&self, index: usize) -> Option<SocketId> {
        self.table.application(self.me).sockets.get(index).copied()
    }

    fn send(&mut self, remote: Endpoint, datagram: Datagram) -> bool {
        let member = &self.table.application(self.me).member;
        let port = member.datagram_port.unwrap_or(member.ports.bounds().0);
        self.table.send(self.me, port, remote, datagram)
    }

    fn send_from(&mut self, port: u16, remote: Endpoint, datagram: Datagram) -> bool {
        self.table.send(self.me, port, remote, datagram)
    }

    fn ping(&mut self, remote: Endpoint, datagram: Datagram) -> bool {
        self.table.ping(self.me, remote, datagram)
    }
}
