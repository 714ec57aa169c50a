//! Application datagrams over the kernel's sockets: UDP and ICMP echoes.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use bentpipe_host::{Arrival, Datagram, Ports};
use bentpipe_types::{Address, ECHO_HEADER, Endpoint, filler};
use socket2::{Domain, Protocol, Socket, Type};

use super::SocketTable;
use crate::emulate::ip;
use crate::emulate::kernel::application_state::PeerOwners;
use crate::emulate::kernel::tag::Tag;

/// Receive buffer, in bytes: the datagrams of many users may arrive at once.
const BUFFER: usize = 4 << 20;

/// Types of ICMP echo requests (RFC 792, RFC 4443 section 4.1).
const REQUEST_V4: u8 = 8;
const REQUEST_V6: u8 = 128;

/// Hop limit of multicast packets. Linux's default of one does not leave the link.
const GROUP_HOPS: u32 = 64;

/// Longest datagram, in bytes.
const LONGEST: usize = 1 << 16;

/// A socket for datagrams.
#[derive(Debug)]
struct DatagramSocket {
    udp: UdpSocket,
    port: u16,
    echoes: bool,
    /// Applications by sender, and the application that receives all other datagrams.
    owners: PeerOwners,
    owner: Option<usize>,
}

/// Purpose of a datagram socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Purpose {
    Datagrams,
    Echoes,
    /// Receives the datagrams of this channel only.
    Channel(Address),
}

/// The datagram sockets of a table.
#[derive(Debug, Default)]
pub(in crate::emulate::kernel) struct Datagrams {
    sockets: Vec<DatagramSocket>,
    /// Sockets by host, port and purpose.
    by_port: BTreeMap<(usize, u16, Purpose), usize>,
    buffer: Vec<u8>,
}

impl SocketTable<'_> {
    /// Returns the socket of a host's port, opening it if necessary.
    fn datagram_socket(&mut self, host: usize, port: u16, purpose: Purpose) -> io::Result<usize> {
        if let Some(known) = self.datagrams.by_port.get(&(host, port, purpose)) {
            return Ok(*known);
        }
        self.enter(host)?;
        let own = self.hosts[host].address;
        let echoes = purpose == Purpose::Echoes;
        let group = match purpose {
            Purpose::Channel(channel) => Some(ip(own.is_ipv6(), channel)),
            Purpose::Datagrams | Purpose::Echoes => None,
        };
        let local = SocketAddr::new(group.unwrap_or(own), port);
        let domain = Domain::for_address(local);
        let protocol = match (echoes, local.is_ipv6()) {
            (false, _) => Protocol::UDP,
            // A ping socket: the port is the echo identifier.
            (true, false) => Protocol::ICMPV4,
            (true, true) => Protocol::ICMPV6,
        };
        let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
        socket.bind(&local.into())?;
        match (group, own) {
            (Some(IpAddr::V4(group)), IpAddr::V4(own)) => {
                socket.join_multicast_v4(&group, &own)?;
            }
            (Some(IpAddr::V6(group)), _) => {
                socket.join_multicast_v6(&group, self.hosts[host].interface)?;
            }
            // Groups are reached through routers; senders do not receive their own packets.
            (None, IpAddr::V4(_)) => {
                socket.set_multicast_ttl_v4(GROUP_HOPS)?;
                socket.set_multicast_loop_v4(false)?;
            }
            (None, IpAddr::V6(_)) if !echoes => {
                socket.set_multicast_hops_v6(GROUP_HOPS)?;
                socket.set_multicast_loop_v6(false)?;
            }
            _ => {}
        }
        socket.set_nonblocking(true)?;
        let _ = socket.set_recv_buffer_size(BUFFER);
        let index = self.datagrams.sockets.len();
        let tag = Tag::Datagrams(index as u32).number();
        self.poller.add_read(&socket, tag)?;
        self.datagrams.sockets.push(DatagramSocket {
            udp: socket.into(),
            port,
            echoes,
            owners: PeerOwners::default(),
            owner: None,
        });
        self.datagrams.by_port.insert((host, port, purpose), index);
        Ok(index)
    }

    /// Opens a datagram socket for a server or one end of a conversation.
    pub(in crate::emulate::kernel) fn open_datagrams(
        &mut self,
        host: usize,
        port: u16,
        expects: Option<((Address, Ports), usize)>,
    ) -> io::Result<()> {
        let index = self.datagram_socket(host, port, Purpose::Datagrams)?;
        if let Some((peers, owner)) = expects {
            self.datagrams.sockets[index].owners.add(peers, owner);
        }
        Ok(())
    }

    /// Joins a channel for an application that receives the datagrams of `source`.
    pub(in crate::emulate::kernel) fn join_channel(
        &mut self,
        host: usize,
        channel: Address,
        port: u16,
        (source, owner): ((Address, Ports), usize),
    ) -> io::Result<()> {
        let index = self.datagram_socket(host, port, Purpose::Channel(channel))?;
        self.datagrams.sockets[index].owners.add(source, owner);
        Ok(())
    }

    /// Sends a datagram. If the kernel has no room, it is lost, as on any host.
    pub(in crate::emulate::kernel) fn send(
        &mut self,
        me: usize,
        port: u16,
        remote: Endpoint,
        datagram: Datagram,
    ) -> bool {
        let host = self.applications[me].host;
        let Ok(index) = self.datagram_socket(host, port, Purpose::Datagrams) else {
            return false;
        };
        self.transmit(me, index, remote, 0, datagram)
    }

    /// Sends an ICMP echo request.
    pub(in crate::emulate::kernel) fn ping(
        &mut self,
        me: usize,
        remote: Endpoint,
        datagram: Datagram,
    ) -> bool {
        let application = &self.applications[me];
        let (host, port) = (application.host, application.member.ports.bounds().0);
        let Ok(index) = self.datagram_socket(host, port, Purpose::Echoes) else {
            return false;
        };
        let remote = Endpoint { port: 0, ..remote };
        self.transmit(me, index, remote, usize::from(ECHO_HEADER), datagram)
    }

    fn transmit(
        &mut self,
        me: usize,
        index: usize,
        remote: Endpoint,
        header: usize,
        datagram: Datagram,
    ) -> bool {
        let Some(ip) = self.ip_of(remote.address) else {
            return false;
        };
        let Datagrams {
            sockets, buffer, ..
        } = &mut self.datagrams;
        let socket = &mut sockets[index];
        if socket.owners.owner(remote).is_none() {
            socket.owner.get_or_insert(me);
        }
        // The label in the payload needs a minimum length.
        let length = usize::from(datagram.length.max(Datagram::LEAST));
        if length > usize::from(datagram.length) {
            self.applications[me].result.lengthened += 1;
        }
        if buffer.len() < LONGEST {
            *buffer = vec![0; LONGEST];
        }
        let message = &mut buffer[..header + length];
        let (head, payload) = message.split_at_mut(header);
        if let Some(kind) = head.first_mut() {
            *kind = if ip.is_ipv6() { REQUEST_V6 } else { REQUEST_V4 };
            head[1..6].fill(0);
            // The kernel fills in identifier and checksum.
            head[6..8].copy_from_slice(&(datagram.number as u16).to_be_bytes());
        }
        filler::fill(0, payload);
        datagram.label(payload);
        let to = SocketAddr::new(ip, remote.port);
        let _ = socket.udp.send_to(message, to);
        true
    }

    /// Receives a datagram and finds its application. `None`: nothing to read; `Some(None)`: a
    /// datagram for no application.
    #[expect(
        clippy::option_option,
        reason = "whether there was any, and whether it is anybody's"
    )]
    pub(in crate::emulate::kernel) fn receive(
        &mut self,
        index: u32,
    ) -> Option<Option<(usize, Arrival)>> {
        let Datagrams {
            sockets, buffer, ..
        } = &mut self.datagrams;
        let socket = sockets.get_mut(index as usize)?;
        if buffer.len() < LONGEST {
            *buffer = vec![0; LONGEST];
        }
        let (length, from) = match socket.udp.recv_from(buffer) {
            Ok(received) => received,
            // An ICMP error about an earlier datagram; the next read may succeed.
            Err(error) if !crate::emulate::kernel::kernel_connection::would_block(&error) => {
                return Some(None);
            }
            Err(_) => return None,
        };
        let header = if socket.echoes {
            usize::from(ECHO_HEADER)
        } else {
            0
        };
        let payload = buffer.get(header..length).unwrap_or_default();
        let remote = Endpoint {
            address: self.nodes.get(&from.ip()).copied().unwrap_or_default(),
            port: from.port(),
        };
        let owner = socket.owners.owner(remote).or(socket.owner);
        Some(owner.and_then(|owner| {
            let arrival = Arrival {
                from: remote,
                to: socket.port,
                datagram: Datagram::of_payload(payload)?,
                packet: None,
            };
            Some((owner, arrival))
        }))
    }
}
