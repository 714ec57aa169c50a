//! Listening sockets, and accepting connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use bentpipe_host::SocketId;
use bentpipe_tcp::Events;
use bentpipe_types::Endpoint;
use socket2::{Domain, SockRef, Socket, Type};

use super::SocketTable;
use crate::emulate::kernel::application_state::PeerOwners;
use crate::emulate::kernel::tag::Tag;

/// Backlog: connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

pub(super) struct Listener {
    host: usize,
    port: u16,
    socket: TcpListener,
    owners: PeerOwners,
    /// Whether it accepts one connection only.
    accepts_once: bool,
}

impl SocketTable<'_> {
    pub(super) fn listen(&mut self, me: usize, port: u16, accepts_once: bool) -> io::Result<()> {
        let application = &self.applications[me];
        let (host, peers) = (application.host, application.peers);
        if let Some(known) = self.listening.get(&(host, port)) {
            if let Some(listening) = &mut self.listeners[*known] {
                listening.owners.add(peers, me);
            }
            return Ok(());
        }
        let control = application.control.clone();
        self.enter(host)?;
        let local = SocketAddr::new(self.hosts[host].address, port);
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
        // Accepted connections inherit the congestion control. The error is ignored, since a
        // receiver may have one that the kernel lacks: it sends no data.
        let _ = socket.set_tcp_congestion(control.as_bytes());
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let index = self.listeners.len();
        let tag = Tag::Listener(index as u32).number();
        self.poller.add_read(&socket, tag)?;
        let mut owners = PeerOwners::default();
        owners.add(peers, me);
        self.listening.insert((host, port), index);
        self.listeners.push(Some(Listener {
            host,
            port,
            socket: socket.into(),
            owners,
            accepts_once,
        }));
        Ok(())
    }

    /// Listens for one connection on a port of an application's own. If that fails, the peer's SYN
    /// is refused.
    pub(in crate::emulate::kernel) fn listen_once(&mut self, me: usize, port: u16) {
        let _ = self.listen(me, port, true);
    }

    /// Accepts a connection. Returns its application and its identifier.
    pub(in crate::emulate::kernel) fn accept(&mut self, index: u32) -> Option<(usize, SocketId)> {
        loop {
            let listening = self.listeners[index as usize].as_ref()?;
            let (stream, from) = listening.socket.accept().ok()?;
            let (host, port) = (listening.host, listening.port);
            let remote = Endpoint {
                address: self.nodes.get(&from.ip()).copied().unwrap_or_default(),
                port: from.port(),
            };
            let owner = listening.owners.owner(remote);
            let accepts_once = listening.accepts_once;
            let Some(owner) = owner.filter(|_| stream.set_nonblocking(true).is_ok()) else {
                // No application expects this peer: reset, as a simulated host does.
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                continue;
            };
            let local = Endpoint {
                address: self.nodes[&self.hosts[host].address],
                port,
            };
            if self.applications[owner].no_delay {
                let _ = stream.set_nodelay(true);
            }
            let id = self.insert(owner, stream, local, remote);
            if let Some(connection) = self.connection_mut(id) {
                connection.events |= Events::ESTABLISHED;
            }
            self.update(id.parts().0);
            if accepts_once {
                self.listening.remove(&(host, port));
                if let Some(listening) = self.listeners[index as usize].take() {
                    let _ = self.poller.remove(&listening.socket);
                }
            }
            return Some((owner, id));
        }
    }
}
