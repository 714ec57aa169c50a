//! A connection with its payload.

mod buffer;
mod payload;
mod spare_buffers;

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_types::{Ctx, IcmpError, IpFields, PacketRef, Seq, StreamCheck, Time};
use serde::{Deserialize, Serialize};

use crate::write_calls::Feed;
use crate::{
    ActiveFastOpen, Config, Connection, Events, Opening, PassiveFastOpen, PathLimit, State,
};

pub use buffer::{ReceiveBuffer, SendBuffer};
pub use payload::{Payload, Ranges, RealHeader, Rings, Source};
pub use spare_buffers::free_spare_buffers;

/// A [`Connection`] together with its payload.
///
/// With [`Ranges`] it is the connection alone, at no cost. With [`Rings`] it keeps written data
/// until it is acknowledged, and received data until it is read; each emitted packet has its
/// payload and real addresses in the packet store. Code written against it runs on both clocks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Socket<P> {
    connection: Connection,
    payload: P,
}

impl<P: Payload> Socket<P> {
    /// Opens a connection actively, with a SYN. `ip`: the real addresses, ours first, if any.
    pub fn connect(opening: &Opening<'_>, ip: Option<(IpAddr, IpAddr)>, cx: &mut Ctx<'_>) -> Self {
        let nothing = ActiveFastOpen::default();
        Self::connect_fast(opening, ip, nothing, Source::Filler(0), cx).0
    }

    /// Like [`connect`](Self::connect), with Fast Open and `data` for the SYN. Also returns how
    /// many bytes the send buffer took with the SYN. `fast.bytes` is ignored.
    pub fn connect_fast(
        opening: &Opening<'_>,
        ip: Option<(IpAddr, IpAddr)>,
        fast: ActiveFastOpen,
        data: Source<'_>,
        cx: &mut Ctx<'_>,
    ) -> (Self, u64) {
        let header = RealHeader {
            ip,
            ..RealHeader::default()
        };
        Self::connect_as(opening, header, fast, data, cx)
    }

    /// Like [`connect_fast`](Self::connect_fast), with this header in real networks.
    pub fn connect_as(
        opening: &Opening<'_>,
        header: RealHeader,
        fast: ActiveFastOpen,
        data: Source<'_>,
        cx: &mut Ctx<'_>,
    ) -> (Self, u64) {
        let mut payload = P::new(opening.config.maximum_stored());
        payload.set_header(header);
        let bytes = data.length();
        // At most what fits on a SYN is written; the rest is removed afterwards.
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

    /// Creates a connection without sending its SYN. See [`Connection::prepare`].
    pub fn prepare(opening: &Opening<'_>, ip: Option<(IpAddr, IpAddr)>) -> Self {
        let mut payload = P::new(opening.config.maximum_stored());
        payload.set_header(RealHeader {
            ip,
            ..RealHeader::default()
        });
        Self {
            connection: Connection::prepare(opening),
            payload,
        }
    }

    /// See [`Connection::launch`].
    pub fn launch(&mut self, fast: ActiveFastOpen, cx: &mut Ctx<'_>) {
        self.act(cx, |connection, cx| connection.launch(fast, cx));
    }

    /// Opens a connection passively, on `syn`, with Fast Open as the listening host decided. Sends
    /// a SYN+ACK, between the real addresses of `syn`, if any. Consumes `syn`. See
    /// [`Connection::accept_fast`].
    pub fn accept(
        opening: &Opening<'_>,
        syn: PacketRef,
        fast_open: PassiveFastOpen,
        cx: &mut Ctx<'_>,
    ) -> Self {
        Self::accept_as(opening, RealHeader::default(), syn, fast_open, cx)
    }

    /// Like [`accept`](Self::accept), with this header in real networks, except for the addresses.
    pub fn accept_as(
        opening: &Opening<'_>,
        header: RealHeader,
        syn: PacketRef,
        fast_open: PassiveFastOpen,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let mut payload = P::new(opening.config.maximum_stored());
        if !P::KEEPS_BYTES {
            let connection = Connection::accept_fast(opening, syn, fast_open, cx);
            return Self {
                connection,
                payload,
            };
        }
        let ip = cx.packets.ip(syn);
        payload.set_header(RealHeader {
            ip: ip.map(|(source, destination)| (destination, source)),
            ..header
        });
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

    /// Processes a packet for this connection, and consumes it.
    // Inlined into the host that calls it for each packet, with all that is called once per packet.
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
            self.continue_feed(cx);
        }
    }

    /// Writes `bytes` bytes of the stream's filler as the send buffer accepts them, and then closes
    /// if `closes`. If not, the application receives [`Events::WRITABLE`] when everything is
    /// written. The counterpart of [`set_sink`](Self::set_sink).
    pub fn feed(&mut self, bytes: u64, closes: bool, cx: &mut Ctx<'_>) {
        let before = self.connection.feed;
        self.connection.feed = Some(Feed {
            left: before.map_or(0, |feed| feed.left).saturating_add(bytes),
            calls: before.map(|feed| feed.calls).unwrap_or_default(),
            closes,
        });
        self.continue_feed(cx);
    }

    /// Continues to write the feed when the send buffer has room.
    #[inline(always)]
    fn continue_feed(&mut self, cx: &mut Ctx<'_>) {
        let Some(feed) = self.connection.feed else {
            return;
        };
        // If a part is not accepted, the connection raises WRITABLE once it has room.
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

    /// Writes the feed call by call, until one is cut short.
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
            // A packet on the wire has no stream offset, only a sequence number. Data on the peer's
            // SYN is the first of the stream.
            let sequence = cx.packets.get(packet).sequence;
            let offset = match self.connection.state() {
                State::SynSent => 0,
                _ => self.connection.offset_of(sequence),
            };
            cx.packets.get_mut(packet).payload_offset = offset;
        }
        self.payload.restore_echo(packet, cx.packets);
        let before = cx.outbox.len();
        // The payload must remain available after the connection has processed the packet.
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

    /// Runs expired timers. To be called when [`next_deadline`](Self::next_deadline) has come; an
    /// early or late call is harmless.
    #[inline]
    pub fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::on_deadline);
    }

    /// Processes an ICMP error about a segment of this connection.
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

    /// Time at which this connection next needs to run without a packet.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.connection.next_deadline()
    }

    /// See [`Connection::has_no_work`].
    #[must_use]
    pub fn has_no_work(&self) -> bool {
        self.connection.has_no_work()
    }

    /// The next deadline, if it is before `time`.
    #[must_use]
    #[inline]
    pub fn next_deadline_before(&self, time: Time) -> Option<Time> {
        self.connection.next_deadline_before(time)
    }

    /// Returns and clears the events since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        self.connection.take_events()
    }

    /// Whether any event is pending.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        self.connection.has_events()
    }

    /// Whether one of these events is pending.
    #[must_use]
    pub fn has_event(&self, events: Events) -> bool {
        self.connection.has_event(events)
    }

    /// Sets the IP header fields of the packets to be sent in real networks, except the hop limit.
    #[inline]
    pub fn set_traffic_class(&mut self, fields: IpFields) {
        self.payload.set_traffic_class(fields);
    }

    /// Frees memory that the streams do not need at present.
    pub fn shrink(&mut self) {
        self.payload.shrink(self.connection.acknowledged_offset());
    }

    /// See [`Connection::restore_settings`].
    pub fn restore_settings(&mut self, settings: Arc<Config>) {
        self.connection.restore_settings(settings);
    }

    /// The connection without its payload, which is dropped.
    #[must_use]
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Writes as much as the send buffer accepts. Returns the number of bytes. If not all was
    /// written, [`Events::WRITABLE`] is raised once there is room.
    #[inline(always)]
    pub fn write(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.store_written(source, cx.now);
        let before = cx.outbox.len();
        let written = self.connection.write(source.length(), cx);
        self.attach(before, cx);
        written
    }

    /// Like [`write`](Self::write), with more data to follow at once: see
    /// [`Connection::write_more`].
    pub fn write_more(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.store_written(source, cx.now);
        self.act(cx, |connection, cx| {
            connection.write_more(source.length(), cx)
        })
    }

    /// Like [`write`](Self::write), and ends a record: see [`Connection::write_record`].
    pub fn write_record(&mut self, source: Source<'_>, cx: &mut Ctx<'_>) -> u64 {
        self.store_written(source, cx.now);
        self.act(cx, |connection, cx| {
            connection.write_record(source.length(), cx)
        })
    }

    /// Stores the bytes, before the connection sends them.
    #[inline]
    fn store_written(&mut self, source: Source<'_>, now: Time) {
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

    /// Reads data that has arrived in order, up to the length of `out`. Returns the number of
    /// bytes. May open the receive window.
    pub fn read_bytes(&mut self, out: &mut [u8], cx: &mut Ctx<'_>) -> usize {
        let length = (out.len() as u64).min(self.connection.readable()) as usize;
        let at = self.connection.delivered_offset();
        self.payload.read(at, &mut out[..length]);
        self.act(cx, |connection, cx| connection.read(length as u64, cx)) as usize
    }

    /// Reads and discards up to `maximum` bytes. Returns the number of bytes.
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

    /// Reads and discards all data as soon as it is in order. Permanent; to be called before any
    /// data arrives.
    pub fn set_sink(&mut self) {
        self.payload.set_sink();
        self.connection.set_sink(true);
    }

    /// Closes the sending direction. Data from the peer can still be read.
    pub fn close(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::close);
    }

    /// Closes because the application has ended: see [`Connection::abandon`].
    pub fn abandon(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::abandon);
    }

    /// Ends the connection at once, with a RST.
    pub fn abort(&mut self, cx: &mut Ctx<'_>) {
        self.act(cx, Connection::abort);
    }

    /// Calls `act` on the connection for an operation that neither writes nor reads data, for
    /// example setting an option.
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

    /// The connection's state.
    #[must_use]
    #[inline]
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// Bytes held for both streams: written and not acknowledged, and received and not read, in or
    /// out of order.
    #[must_use]
    pub fn buffered(&self) -> u64 {
        let connection = &self.connection;
        let sent = connection.written_offset() - connection.acknowledged_offset();
        sent + connection.readable() + connection.out_of_order()
    }

    /// Result of checking the peer's stream for corruption.
    #[must_use]
    pub fn stream_check(&self) -> StreamCheck {
        let statistics = self.connection.statistics();
        StreamCheck {
            ranges: statistics.ranges_checked,
            mismatches: statistics.payload_mismatches,
        }
    }

    /// Memory of the payload in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.payload.memory()
    }

    /// Attaches payload to the packets emitted since the outbox had `before` packets.
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

/// Moves up to `maximum` bytes from the received data of one socket to the send buffer of another,
/// as a gateway that splits connections does. Returns the number of bytes. If `to` has no room for
/// all, it raises [`Events::WRITABLE`] once it has.
pub fn relay<P: Payload>(
    from: &mut Socket<P>,
    to: &mut Socket<P>,
    maximum: u64,
    cx: &mut Ctx<'_>,
) -> u64 {
    relay_with(from, to, maximum, Connection::write, cx)
}

/// Like [`relay`], with more data to follow: see [`Connection::write_more`].
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
