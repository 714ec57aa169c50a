//! Netlink requests: interfaces, routes, and TCP connections.

pub(crate) mod forwarding;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};

/// Multicast group for changes of interfaces (RTNLGRP_LINK of linux/rtnetlink.h).
const RTNLGRP_LINK: u32 = 1;

/// Longest message from the kernel.
const BUFFER: usize = 1 << 16;

/// A netlink socket in the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Netlink {
    fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER],
        })
    }

    /// Opens a socket for interfaces and routes.
    pub(crate) fn routes() -> io::Result<Self> {
        Self::open(NETLINK_ROUTE)
    }

    /// Opens a socket for connections.
    pub(crate) fn connections() -> io::Result<Self> {
        Self::open(NETLINK_SOCK_DIAG)
    }

    /// Sends a request and calls `each` with every answer.
    fn ask<M>(&mut self, flags: u16, message: M, mut each: impl FnMut(M)) -> io::Result<()>
    where
        M: NetlinkSerializable + NetlinkDeserializable + std::fmt::Debug,
        NetlinkPayload<M>: From<M>,
        <M as NetlinkDeserializable>::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let length = self.socket.recv(&mut &mut self.buffer[..], 0)?;
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
                // Messages are aligned to four bytes.
                let taken = (answer.header.length as usize).next_multiple_of(4).max(16);
                rest = rest.get(taken..).unwrap_or_default();
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(()),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    NetlinkPayload::InnerMessage(message) => each(message),
                    _ => {}
                }
            }
        }
    }

    /// Brings the loopback interface up, without which a host cannot reach itself.
    pub(crate) fn loopback_up(&mut self) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = 1; // in every namespace
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(NLM_F_ACK, RouteNetlinkMessage::SetLink(message), |_| {})
    }

    /// Sets the queue length of an interface, in packets.
    pub(crate) fn queue_length(&mut self, interface: u32, packets: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        let length = LinkAttribute::TxQueueLen(packets);
        message.attributes.push(length);
        self.ask(NLM_F_ACK, RouteNetlinkMessage::SetLink(message), |_| {})
    }

    /// Routes a prefix through an interface.
    pub(crate) fn route(
        &mut self,
        (prefix, length): (IpAddr, u8),
        interface: u32,
        source: IpAddr,
        metrics: Vec<RouteMetric>,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = match prefix {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.destination_prefix_length = length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        if length > 0 {
            let to = RouteAttribute::Destination(prefix.into());
            message.attributes.push(to);
        }
        message.attributes.push(RouteAttribute::Oif(interface));
        let source = RouteAttribute::PrefSource(source.into());
        message.attributes.push(source);
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(flags, RouteNetlinkMessage::NewRoute(message), |_| {})
    }

    /// Calls `each` with both ends and the TCP_INFO of every TCP connection of the namespace.
    pub(crate) fn each_connection(
        &mut self,
        is_v6: bool,
        mut each: impl FnMut(SocketAddr, SocketAddr, &TcpInfo),
    ) -> io::Result<()> {
        let request = SockDiagMessage::InetRequest(InetRequest {
            family: if is_v6 { AF_INET6 } else { AF_INET },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: if is_v6 {
                SocketId::new_v6()
            } else {
                SocketId::new_v4()
            },
        });
        self.ask(NLM_F_DUMP, request, |answer| {
            let SockDiagMessage::InetResponse(response) = answer else {
                return;
            };
            let id = &response.header.socket_id;
            for nla in &response.nlas {
                if let Nla::TcpInfo(info) = nla {
                    let local = SocketAddr::new(id.source_address, id.source_port);
                    let remote = SocketAddr::new(id.destination_address, id.destination_port);
                    each(local, remote, info);
                }
            }
        })
    }

    /// Returns the TCP_INFO of a connection and its bytes not acknowledged, with a FIN counted as
    /// one; `None` if it does not exist.
    pub(crate) fn connection(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Option<(TcpInfo, u32)>> {
        let mut id = if local.is_ipv6() {
            SocketId::new_v6()
        } else {
            SocketId::new_v4()
        };
        id.source_address = local.ip();
        id.source_port = local.port();
        id.destination_address = remote.ip();
        id.destination_port = remote.port();
        // INET_DIAG_NOCOOKIE: any socket with these addresses.
        id.cookie = [0xff; 8];
        let request = SockDiagMessage::InetRequest(InetRequest {
            family: if local.is_ipv6() { AF_INET6 } else { AF_INET },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: id,
        });
        let mut found = None;
        let asked = self.ask(NLM_F_ACK, request, |answer| {
            if let SockDiagMessage::InetResponse(response) = answer {
                let waiting = response.header.send_queue;
                found = response.nlas.into_iter().find_map(|nla| match nla {
                    Nla::TcpInfo(info) => Some((info, waiting)),
                    _ => None,
                });
            }
        });
        match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(found),
        }
    }

    /// Opens a socket for changes of interfaces, which [`came_up`](Self::came_up) or
    /// [`any_notification`](Self::any_news) reads.
    pub(crate) fn link_notifications() -> io::Result<Self> {
        let netlink = Self::open(NETLINK_ROUTE)?;
        netlink.socket.add_membership(RTNLGRP_LINK)?;
        netlink.socket.set_non_blocking(true)?;
        Ok(netlink)
    }

    /// Returns the descriptor to poll for changes.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads and discards all notifications. Returns true if there were any, or if some were lost.
    pub(crate) fn any_notification(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Ok(_) => any = true,
                // The kernel reports a receive buffer overflow once and then continues
                // (netlink(7)).
                Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32) => {
                    any = true;
                }
                Err(_) => return any,
            }
        }
    }

    /// Reads the notifications. Returns true if this interface was down, by `is_up`, and is up now.
    pub(crate) fn came_up(&mut self, interface: u32, is_up: &mut bool) -> bool {
        let mut came = false;
        // After a receive buffer overflow, later notifications follow.
        while let Ok(length) = self.socket.recv(&mut &mut self.buffer[..], 0) {
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while let Ok(notification) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) {
                let taken = (notification.header.length as usize)
                    .next_multiple_of(4)
                    .max(16);
                rest = rest.get(taken..).unwrap_or_default();
                if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) =
                    notification.payload
                    && link.header.index == interface
                {
                    let up = link.header.flags.contains(LinkFlags::Up);
                    came |= up && !*is_up;
                    *is_up = up;
                }
            }
        }
        came
    }
}
