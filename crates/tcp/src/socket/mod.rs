//! A connection with the bytes that it carries.

mod buffer;
mod calls;
mod payload;

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_types::{Ctx, IcmpError, PacketRef, Seq, StreamCheck, Time};
use serde::{Deserialize, Serialize};

use crate::{
    ActiveFastOpen, Config, Connection, Events, Opening, PassiveFastOpen, PathLimit, State,
};

pub use buffer::{ReceiveBuffer, SendBuffer};
pub use calls::{CALL, Calls};
pub use payload::{Payload, Ranges, Rings, Source};

/// A [`Connection`], and its payload wherever that lives.
///
/// With [`Ranges`] it is the connection alone, at no cost; with [`Rings`] it keeps what was written
/// until it is acknowledged, and what has arrived until it is read, and every packet that it emits
/// has its payload, and its real addresses, beside its record in the store. What is written against
/// it runs on both clocks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Socket<P> {
    connection: Connection,
    payload: P,
}

/// Bytes to be written as the send buffer takes them. The socket's, and in its connection, where it is beside
/// what else each segment needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Feed {
    pub(crate) left: u64,
    calls: Calls,
    closes: bool,
}

impl<P: Payload> Socket<P> {
    /// Opens a connection actively, with a SYN. `ip`: the real addresses, ours first, where there are
    /// any.
    pub fn connect(opening: &Opening<'_>, ip: Option<(IpAddr, IpAddr)>, cx: &mut Ctx<'_>) -> Self {
        let nothing = ActiveFastOpen::default();
        Self::connect_fast(opening, ip, nothing, Source::Filler(0), cx).0
    }

    /// Like [`connect`](Self::connect), with Fast Open and `data` for the SYN. Returns how many bytes
    /// of it the send buffer took with the SYN; `fast.bytes` is of no account.
    pub fn connect_fast(
        opening: &Opening<'_>,
        ip: Option<(IpAddr, IpAddr)>,
        fast: ActiveFastOpen,
        data: Source<'_>,
        cx: &mut Ctx<'_>,
    ) -> (Self, u64) {
        let mut payload = P::new(opening.config.most_kept());
        if let Some(ip) = ip {
            payload.set_ip(ip);
        }
        let bytes = data.length();
        // No more than can be on a SYN is written, and then taken back.
        let on_syn = match data {
            Source::Filler(length) => Source::Filler(length.min(fast.room.into())),
            Source::Bytes(data) => Source::Bytes(&data[..data.len().min(fast.room.into())]),
        };
        payload.write(0, 0, on_syn);
        let before = cx.outbox.len();
        let fast = ActiveFastOpen { bytes, ..fast };
        let (connection, taken) = Connection::connect_fast(opening, fast, cx);
        payload.truncate(taken);
        let socket = Self {
            connection,
            payload,
        };
        socket.attach(before, cx);
        (socket, taken)
    }

    /// A connection whose SYN has not been sent. See [`Connection::prepare`].
    pub fn prepare(opening: &Opening<'_>, ip: Option<(IpAddr, IpAddr)>) -> Self {
        let mut payload = P::new(opening.config.most_kept());
        if let Some(ip) = ip {
            payload.set_ip(ip);
        }
        Self {
            connection: Connection::prepare(opening),
            payload,
        }
    }

    /// See [`Connection::launch`].
    pub fn launch(&mut self, fast: ActiveFastOpen, cx: &mut Ctx<'_>) {
        self.act(cx, |connection, cx| connection.launch(fast, cx));
    }

    /// Opens a connection passively, on `syn`; Fast Open as the listening host has decided. Sends a
    /// SYN+ACK, between the addresses of `syn` where it has real ones. Consumes `syn`. See
    /// [`Connection::accept_fast`].
    pub fn accept(
        opening: &Opening<'_>,
        syn: PacketRef,
        fast_open: PassiveFastOpen,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let mut payload = P::new(opening.config.most_kept());
        if !P::KEEPS_BYTES {
            let connection = Connection::accept_fast(opening, syn, fast_open, cx);
            return Self {
                connection,
                payload,
            };
        }
        if let Some((source, destination)) = cx.packets.ip(syn) {
            payload.set_ip((destination, source));
        }
        let before = cx.outbox.len();
        cx.packets.retain(syn);
        let connection = Connection::accept_fast(opening, syn, fast_open, cx);
        let mut socket = Self {
            connection,
            payload,
        };
        let length = socket.connection.received_offset() as u32;
        if length > 0 {
            let accepted = crate::Accepted {
                offset: 0,
                length,
                skip: 0,
            };
            socket.store(syn, accepted, cx);
        }
        cx.packets.release(syn);
        socket.attach(before, cx);
        socket
    }

    /// A packet for this connection has arrived. Consumes it.
    // Compiled into the host that calls it for each packet, with all that is called once per packet.
    #[inline(always)]
    pub fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        if P::KEEPS_BYTES {
            self.on_packet_with_bytes(packet, cx);
        } else {
            self.connection.on_packet(packet, cx);
        }
        if self.connection.has_events()
            && self.connection.feed.is_some()
            && self.connection.take_event(Events::WRITABLE)
        {
            self.feed_on(cx);
        }
    }

    /// Writes `bytes` bytes of the stream's filler as the send buffer takes them, and then closes, if
    /// it is to. The application hears nothing of it, until all is written and not closed: then there
    /// is [`Events::WRITABLE`]. The counterpart of [`set_sink`](Self::set_sink).
    pub fn feed(&mut self, bytes: u64, closes: bool, cx: &mut Ctx<'_>) {
        let before = self.connection.feed;
        self.connection.feed = Some(Feed {
            left: before.map_or(0, |feed| feed.left).saturating_add(bytes),
            calls: before.map(|feed| feed.calls).unwrap_or_default(),
            closes,
        });
        self.feed_on(cx);
    }

    /// The send buffer has room again.
    #[inline(always)]
    fn feed_on(&mut self, cx: &mut Ctx<'_>) {
        let Some(feed) = self.connection.feed else {
            return;
        };
        // What the send buffer doesn't take makes the connection say when it has room again.
        let feed = if self.connection.counts_memory() {
            self.feed_by_calls(feed, cx)
        } else {
            let left = feed.left - self.write(Source::Filler(feed.left), cx);
            Feed { left, ..feed }
        };
        self.connection.feed = (feed.left > 0).then_some(feed);
        if feed.left == 0 && feed.closes {
            self.close(cx);
        } else if feed.left == 0 {
            self.connection.announce(Events::WRITABLE);
        }
    }

    /// Call by call, until one is cut short.
    #[inline(never)]
    fn feed_by_calls(&mut self, mut feed: Feed, cx: &mut Ctx<'_>) -> Feed {
        while feed.left > 0 {
            let call = feed.calls.next(feed.left);
            let taken = self.write(Source::Filler(call), cx);
            feed.left -= taken;
            if !feed.calls.wrote(call, taken) {
                break;
            }
        }
        feed
    }

    fn on_packet_with_bytes(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        if cx.packets.bytes(packet).is_some() {
            // On the wire a payload doesn't say where in the stream it belongs; only its sequence
            // number does. Text that comes with the peer's SYN is its first.
            let sequence = cx.packets.get(packet).sequence;
            let offset = match self.connection.state() {
                State::SynSent => 0,
                _ => self.connection.offset_of(sequence),
            };
            cx.packets.get_mut(packet).payload_offset = offset;
        }
        let before = cx.outbox.len();
        // The payload has to outlive the connection's look at the packet.
        cx.packets.retain(packet);
        if let Some(accepted) = self.connection.on_packet_accepting(packet, cx) {
            self.store(packet, accepted, cx);
        }
        cx.packets.release(packet);
        self.attach(before, cx);
    }

    fn store(&mut self, packet: PacketRef, accepted: crate::Accepted, cx: &mut Ctx<'_>) {
        if !self.payload.store(packet, accepted, cx.packets) {
            debug_assert!(false, "accepted payload that doesn't fit the window");
            self.connection.abort(cx);
        }
    }

    /// [`next_deadline`](Self::next_deadline) has come. Too early, or too late, does no harm.
    #[inline]
    pub fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::on_deadline);
    }

    /// An ICMP error has come about a segment of this connection.
    pub fn on_icmp(
        &mut self,
        error: IcmpError,
        sequence: Seq,
        cx: &mut Ctx<'_>,
    ) -> Option<PathLimit> {
        self.act(cx, |connection, cx| connection.on_icmp(error, sequence, cx))
    }

    /// See [`Connection::limit_path`].
    pub fn limit_path(&mut self, limit: PathLimit) {
        self.connection.limit_path(limit);
    }

    /// When this connection next wants to run without a packet.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.connection.next_deadline()
    }

    /// Has it nothing to do of itself ([`Connection::has_no_work`])?
    #[must_use]
    pub fn has_no_work(&self) -> bool {
        self.connection.has_no_work()
    }

    /// The same, if it is before this time.
    #[must_use]
    #[inline]
    pub fn next_deadline_before(&self, time: Time) -> Option<Time> {
        self.connection.next_deadline_before(time)
    }

    /// What has happened since this was last asked.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        self.connection.take_events()
    }

    /// Has anything happened since [`take_events`](Self::take_events)?
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        self.connection.has_events()
    }

    /// Is one of these among what has happened?
    #[must_use]
    pub fn has_event(&self, events: Events) -> bool {
        self.connection.has_event(events)
    }

    /// Gives back what memory its streams don't need for now.
    pub fn shrink(&mut self) {
        self.payload.shrink(self.connection.acknowledged_offset());
    }

    /// See [`Connection::put_settings`].
    pub fn put_settings(&mut self, settings: Arc<Config>) {
        self.connection.put_settings(settings);
    }

    /// The connection alone: whatever its payload still held is let go.
    #[must_use]
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Writes as much as the send buffer takes. Returns how many bytes; if not all,
    /// [`Events::WRITABLE`] says when it takes more.
    #[inline(always)]
    pub fn write(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.keep(source, cx.now);
        let before = cx.outbox.len();
        let written = self.connection.write(source.length(), cx);
        self.attach(before, cx);
        written
    }

    /// Like [`write`](Self::write), with more to come at once: see [`Connection::write_more`].
    pub fn write_more(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.keep(source, cx.now);
        self.act(cx, |connection, cx| {
            connection.write_more(source.length(), cx)
        })
    }

    /// Like [`write`](Self::write), and what comes after does not go into the same segment: see
    /// [`Connection::write_record`].
    pub fn write_record(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.keep(source, cx.now);
        self.act(cx, |connection, cx| {
            connection.write_record(source.length(), cx)
        })
    }

    /// First the bytes: the connection sends them at once.
    #[inline]
    fn keep(&mut self, source: Source<'_>, now: Time) {
        if !P::KEEPS_BYTES {
            return;
        }
        let room = self.connection.writable_at(now);
        let source = match source {
            Source::Filler(length) => Source::Filler(length.min(room)),
            Source::Bytes(bytes) => {
                Source::Bytes(&bytes[..(bytes.len() as u64).min(room) as usize])
            }
        };
        let acknowledged = self.connection.acknowledged_offset();
        let at = self.connection.written_offset();
        self.payload.write(acknowledged, at, source);
    }

    /// See [`Connection::writable`].
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.connection.writable()
    }

    /// Reads what has arrived in order, as much as `out` has room for. Returns how many bytes. That
    /// may open the window.
    pub fn read_bytes(&mut self, out: &mut [u8], cx: &mut Ctx<'_>) -> usize {
        let length = (out.len() as u64).min(self.connection.readable()) as usize;
        let at = self.connection.delivered_offset();
        self.payload.read(at, &mut out[..length]);
        self.act(cx, |connection, cx| connection.read(length as u64, cx)) as usize
    }

    /// Reads up to `maximum` bytes and throws them away. Returns how many.
    pub fn read(&mut self, maximum: u64, cx: &mut Ctx<'_>) -> u64 {
        let length = maximum.min(self.connection.readable());
        self.payload.skip(length);
        self.act(cx, |connection, cx| connection.read(length, cx))
    }

    /// Bytes that have arrived in order and were not read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.connection.readable()
    }

    /// From now on whatever arrives is read the moment it is in order, by nobody. For good, and before
    /// anything has arrived.
    pub fn set_sink(&mut self) {
        self.payload.set_sink();
        self.connection.set_sink(true);
    }

    /// Nothing more will be written. What the peer sends can still be read.
    pub fn close(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::close);
    }

    /// The application is gone: see [`Connection::abandon`].
    pub fn abandon(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::abandon);
    }

    /// Ends the connection at once, with a RST.
    pub fn abort(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::abort);
    }

    /// Does anything to the connection that writes and reads nothing: sets an option, say.
    #[inline]
    pub fn act<R>(
        &mut self,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> R,
    ) -> R {
        let before = cx.outbox.len();
        let result = act(&mut self.connection, cx);
        self.attach(before, cx);
        result
    }

    /// The connection: its state, counters and windows.
    #[must_use]
    #[inline]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The state.
    #[must_use]
    #[inline]
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// Bytes that it holds for its streams: written and not acknowledged, arrived and not read, in or
    /// out of order.
    #[must_use]
    pub fn buffered(&self) -> u64 {
        let connection = &self.connection;
        let sent = connection.written_offset() - connection.acknowledged_offset();
        sent + connection.readable() + connection.out_of_order()
    }

    /// What has become of the peer's stream.
    #[must_use]
    pub fn stream_check(&self) -> StreamCheck {
        let statistics = self.connection.statistics();
        StreamCheck {
            ranges: statistics.ranges_checked,
            mismatches: statistics.payload_mismatches,
        }
    }

    /// Bytes of memory that its payload takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.payload.memory()
    }

    /// What the connection has emitted since the outbox had `before` packets.
    #[inline]
    fn attach(&self, before: usize, cx: &mut Ctx<'_>) {
        if !P::KEEPS_BYTES {
            return;
        }
        for index in before..cx.outbox.len() {
            let (_, packet) = cx.outbox[index];
            self.payload.attach(packet, cx);
        }
    }
}

/// Moves up to `maximum` bytes that have arrived in order at one socket into the other's send buffer,
/// and returns how many: what a gateway does that splits connections. If it had been more, were there
/// room, [`Events::WRITABLE`] of `to` says when there is.
pub fn relay<P: Payload>(
    from: &mut Socket<P>,
    to: &mut Socket<P>,
    maximum: u64,
    cx: &mut Ctx<'_>,
) -> u64 {
    relay_with(from, to, maximum, Connection::write, cx)
}

/// Like [`relay`], with more to come: see [`Connection::write_more`].
pub fn relay_more<P: Payload>(
    from: &mut Socket<P>,
    to: &mut Socket<P>,
    maximum: u64,
    cx: &mut Ctx<'_>,
) -> u64 {
    relay_with(from, to, maximum, Connection::write_more, cx)
}

#[inline]
fn relay_with<P: Payload>(
    from: &mut Socket<P>,
    to: &mut Socket<P>,
    maximum: u64,
    write: fn(&mut Connection, u64, &mut Ctx<'_>) -> u64,
    cx: &mut Ctx<'_>,
) -> u64 {
    let wanted = maximum.min(from.readable());
    let length = wanted.min(to.connection.writable_at(cx.now));
    let acknowledged = to.connection.acknowledged_offset();
    let at = to.connection.written_offset();
    from.payload
        .relay(&mut to.payload, acknowledged, at, length);
    let moved = to.act(cx, |connection, cx| write(connection, wanted, cx));
    debug_assert_eq!(moved, length);
    from.act(cx, |connection, cx| connection.read(moved, cx));
    moved
}

#[cfg(test)]
mod tests;
