//! Packets that belong to no connection: SYNs, datagrams, ICMP errors, and others.

use std::sync::Arc;

use bentpipe_tcp::{Opening, Socket, reset_reply};
use bentpipe_types::{Ctx, DropReason, Echo, Endpoint, Flags, IcmpError, PacketRef, Port, Seq};

use super::{Host, ROUNDS};
use crate::datagram::UDP;
use crate::socket_context::{NONE, SocketContext};
use crate::{Arrival, ConnectionKeys, Datagram, Member, Remote, Taker};

impl<P: ConnectionKeys> Host<P> {
    /// Handles a SYN without a connection. Returns the place of the new connection.
    pub(super) fn accept(&mut self, syn: PacketRef, cx: &mut Ctx<'_>) -> Option<u32> {
        let record = *cx.packets.get(syn);
        let ip = cx.packets.ip(syn).map(|(theirs, ours)| (ours, theirs));
        let remote = Remote {
            endpoint: record.source,
            ip,
        };
        let port = record.destination.port;
        let known = self.listeners.get(&port)?.taker.known(remote);
        if known.is_none() && !matches!(self.listeners.get(&port)?.taker, Taker::Each(..)) {
            return None;
        }
        let refused = if self.sockets.half_open >= self.limits.half_open {
            Some(&mut self.counters.half_open_full)
        } else if self.sockets.is_full() {
            Some(&mut self.counters.table_full)
        } else {
            None
        };
        if let Some(counter) = refused {
            *counter += 1;
            cx.discard(syn, DropReason::TableFull);
            return Some(NONE);
        }
        let egress = self.sockets.routes.port_towards(record.source.address)?;
        let owner = match known {
            Some(owner) => owner,
            None => {
                let Taker::Each(config, make) = &mut self.listeners.get_mut(&port)?.taker else {
                    return None;
                };
                let (config, application) = (Arc::clone(config), make(remote));
                self.insert(Member::new(config), application, true)
            }
        };
        let option = cx.packets.syn_options(syn).fast_open;
        let fast_open = match &mut self.listeners.get_mut(&port)?.fast_open {
            Some(policy) => policy(record.payload_length, option),
            None => self.sockets.fast_open(owner, remote, option),
        };
        let local = Endpoint {
            address: self.sockets.routes.here(),
            port,
        };
        let sockets = &mut self.sockets;
        let member = &mut sockets.accounts[owner.0 as usize].member;
        let mut config = std::borrow::Cow::Borrowed(&member.config);
        if config.ip_version != record.ip_version() {
            Arc::make_mut(config.to_mut()).ip_version = record.ip_version();
        }
        let ends = [local, record.source];
        let initial_sequence = sockets
            .sequences
            .next(&mut member.sequences, ends, ip, cx.now);
        let opening = Opening {
            config: &config,
            local,
            remote: record.source,
            egress,
            initial_sequence,
        };
        let mut socket = Socket::accept(&opening, syn, fast_open, cx);
        let there = P::destination(record.source.address, ip);
        if let Some(limit) = sockets.paths.to(there, record.ip_version(), cx.now) {
            socket.limit_path(limit);
        }
        let key = P::key_of(port, record.source, ip);
        let id = sockets.add(socket, key, owner);
        let mut api = SocketContext {
            sockets,
            me: owner,
            current: NONE,
            cx,
        };
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            application.on_accept(id, &mut api);
        }
        self.arm_application(owner);
        Some(id.place)
    }

    /// Handles a packet that is not a segment; a UDP datagram may be for an application.
    #[inline(never)]
    pub(super) fn on_datagram(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(packet);
        if record.is_corrupt() {
            cx.discard(packet, DropReason::Checksum);
            return;
        }
        if let Some(quote) = record.icmp_quote() {
            cx.packets.release(packet);
            let remote = Remote::from(quote.destination);
            self.on_icmp(quote.source.port, remote, quote.error, quote.sequence, cx);
            return;
        }
        let echo = record.echo_kind();
        if echo == Some(Echo::Request) {
            self.answer(packet, cx);
            return;
        }
        let remote = Remote::from(record.source);
        let port = record.destination.port;
        let listening = self.listeners.get(&port);
        let listening = listening.filter(|_| echo.is_none());
        let opener = || {
            let (_, (last, owner)) = self.openers.range(..=port).next_back()?;
            (port <= *last).then_some(*owner)
        };
        let owner = listening
            .and_then(|listener| listener.taker.known(remote))
            .or_else(opener)
            .filter(|_| record.protocol() == UDP || echo.is_some());
        let Some(owner) = owner else {
            cx.discard(packet, DropReason::NoConnection);
            return;
        };
        let arrival = Arrival {
            from: record.source,
            to: port,
            datagram: Datagram::read(packet, cx.packets),
            packet: Some(packet),
        };
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            let mut api = SocketContext {
                sockets: &mut self.sockets,
                me: owner,
                current: NONE,
                cx,
            };
            application.on_datagram(arrival, &mut api);
            self.arm_application(owner);
        }
        cx.packets.release(packet);
        self.look_at_touched(ROUNDS, cx);
    }

    /// Answers an echo request. RFC 1122 section 3.2.2.6: every host does.
    pub(super) fn answer(&mut self, request: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(request);
        let datagram = Datagram::read(request, cx.packets);
        cx.packets.release(request);
        let (source, destination) = (record.destination, record.source);
        if let Some(egress) = self.sockets.routes.port_towards(destination.address) {
            let version = record.ip_version();
            let packets = &mut *cx.packets;
            let reply = datagram.insert_echo(Echo::Reply, source, destination, version, packets);
            cx.emit(egress, reply);
        }
    }

    /// Handles an ICMP error about a segment from `local_port` to `remote`. For real packets the
    /// caller parses the error.
    pub fn on_icmp(
        &mut self,
        local_port: u16,
        remote: Remote,
        error: IcmpError,
        sequence: Seq,
        cx: &mut Ctx<'_>,
    ) {
        let key = P::key_of(local_port, remote.endpoint, remote.ip);
        if let Some(place) = self.sockets.find(key)
            && let Some(slot) = self.sockets.at_mut(place)
        {
            let version = slot.socket.connection().ip_version();
            if let Some(limit) = slot.socket.on_icmp(error, sequence, cx) {
                self.sockets.limit_path(remote, version, limit, cx.now);
            }
            self.settle(place, cx);
        }
    }

    /// Handles a segment without a connection.
    #[inline(never)]
    pub(super) fn on_stranger(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let flags = cx.packets.get(packet).flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST));
        match opens.then(|| self.accept(packet, cx)).flatten() {
            Some(place) => {
                self.settle(place, cx);
                self.look_at_touched(ROUNDS, cx);
            }
            None => self.refuse(from, packet, cx),
        }
    }

    /// Handles a packet that no open connection accepts: RFC 9293 section 3.10.7.1.
    pub(super) fn refuse(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.counters.no_connection += 1;
        cx.discards.count(DropReason::NoConnection);
        reset_reply(packet, from, cx);
    }
}
