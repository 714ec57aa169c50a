//! A way to the host that takes shorter packets than the server has sent: what the gateway has acknowledged it
//! has to cut itself (RFC 1191, RFC 8201), for the server will send it no more.
//!
//! A router's complaint has the server's address, and the gateway is the one to hear it. The server is told when
//! it next sends what is too long, and that is outstanding there: in the host's name, as all that the gateway says
//! to it. From then on its segments are short enough, and go on as they are.

use bentpipe_tcp::PathLimit;
use bentpipe_types::{Flags, IcmpError, Packet, PacketRef, PacketStore, Seq, Span, Time};

use super::relay::{Relay, TIMESTAMPS_LENGTH};
use super::store::Held;
use super::tracked::{Hall, Side};

/// A server that goes on with what is too long is told again, no sooner than so (RFC 1812 section 4.3.2.8 wants a
/// bound).
const BETWEEN_WORDS: Span = Span::from_secs(1);
/// So much of a segment goes with each header, however little the path takes: every link takes that (RFC 791 section
/// 3.2).
const LEAST: u64 = 8;

/// What is known of a way that is narrower than the server's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    limit: PathLimit,
    /// Before that the server is told no more.
    silent_until: Time,
}

/// A part of a segment that is held, by its positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Relay {
    /// Somebody on the way to the host takes no longer packets than of `mtu` bytes, and says so of a segment with this
    /// sequence number. False: of none that the gateway answers for.
    pub(super) fn too_big(&mut self, mtu: u32, sequence: Seq, hall: &mut Hall) -> bool {
        let Some(position) = self.complained_of(sequence, hall.cx.packets) else {
            return false;
        };
        hall.totals.icmp_errors += 1;
        let (now, held) = (hall.cx.now, self.store.at(position));
        let Some(held) = held else {
            return true;
        };
        let length = hall.cx.packets.get(held.packet).length().get();
        let known = self.path_limit(now).unwrap_or(u32::MAX);
        let known = known.min(u32::try_from(length).unwrap_or(u32::MAX));
        if let Some(limit) = PathLimit::of_router(mtu, known, self.version, now) {
            let narrow = Narrow {
                limit,
                silent_until: Time::ZERO,
            };
            self.narrow = Some(Box::new(narrow));
            let segment = self.segment();
            if let Some(sender) = &mut self.sender {
                sender.shorten(segment, now);
            }
            self.send(hall);
        }
        true
    }

    /// Which position a complaint is about. Whoever isn't on the path has to guess a number that is outstanding
    /// (RFC 5927 section 4.1). The first packet may begin with what the host has already.
    fn complained_of(&self, sequence: Seq, packets: &PacketStore) -> Option<u64> {
        let first = self.wire(self.acknowledged);
        let distance = i64::from(sequence.distance_from(first));
        let begins = self.store.at(self.acknowledged).map_or(0, |held| {
            i64::from(packets.get(held.packet).sequence.distance_from(first))
        });
        let outstanding = (self.unsent() - self.acknowledged) as i64;
        (begins..=outstanding)
            .contains(&distance)
            .then(|| self.acknowledged.saturating_add_signed(distance.max(0)))
    }

    /// The longest packet that the way to the host takes, where that is known to be less than what the server sends.
    fn path_limit(&self, now: Time) -> Option<u32> {
        let limit = self.narrow.as_ref()?.limit;
        // RFC 1191 section 6.3: by then it may take more.
        (now < limit.until).then_some(limit.mtu)
    }

    /// The payload of a full segment that goes to the host.
    pub(super) fn segment(&self) -> u32 {
        let options = if self.agreed.timestamps {
            u16::from(TIMESTAMPS_LENGTH)
        } else {
            0
        };
        let most = self
            .narrow
            .as_ref()
            .map_or(u16::MAX, |narrow| self.version.mss_within(narrow.limit.mtu));
        let most = u32::from(most.saturating_sub(options).max(1));
        self.agreed.segment.min(most)
    }

    /// How much of a packet's text goes to the host at once. (What routers may cut they do; the parts that they make
    /// have their own numbers.)
    pub(super) fn room_on_path(&self, reference: PacketRef, hall: &Hall) -> u64 {
        let packets = &*hall.cx.packets;
        let cut_by_routers =
            packets.bytes(reference).is_some() && packets.may_be_divided(reference);
        match self.path_limit(hall.cx.now).filter(|_| !cut_by_routers) {
            None => u64::MAX,
            Some(mtu) => {
                let headers = u64::from(packets.get(reference).header_length);
                u64::from(mtu).saturating_sub(headers).max(LEAST)
            }
        }
    }

    /// A segment of the server's is longer than what goes to the host: the server is told, as by whoever else doesn't
    /// take it (RFC 1191 section 4, RFC 8201 section 4), before it is acknowledged.
    pub(super) fn complain(&mut self, reference: PacketRef, packet: &Packet, hall: &mut Hall) {
        let now = hall.cx.now;
        if self.narrow.is_none()
            || u64::from(packet.payload_length) <= self.room_on_path(reference, hall)
        {
            return;
        }
        let Some(narrow) = self.narrow.as_deref_mut() else {
            return;
        };
        if now < narrow.silent_until {
            return;
        }
        narrow.silent_until = now + BETWEEN_WORDS;
        let mtu = narrow.limit.mtu;
        let host = packet.destination.address;
        if let Some(word) = Packet::icmp_error(host, packet, IcmpError::TooBig { mtu }) {
            hall.totals.emit(word, self.ip, Side::Server, hall.cx);
        }
    }
}

/// A copy of what is held, or of a part of it.
pub(super) fn copy(held: Held, part: Option<Part>, packets: &mut PacketStore) -> PacketRef {
    let copy = packets.duplicate(held.packet);
    let Some(Part { start, end }) = part else {
        return copy;
    };
    let record = *packets.get(copy);
    let begins = held.end - u64::from(record.sequence_length());
    let text = u64::from(record.payload_length);
    let behind = start - begins;
    // A FIN, behind all text, takes a position and no room.
    let length = (end - begins).min(text).saturating_sub(behind);
    packets.cut(copy, behind as u16, length as u16);
    let record = packets.get_mut(copy);
    if end < held.end {
        record.flags = Flags(record.flags.0 & !(Flags::FIN.0 | Flags::PSH.0));
    }
    if behind > 0 {
        // RFC 3168 section 6.1.2: once said is enough.
        record.flags = Flags(record.flags.0 & !Flags::CWR.0);
    }
    copy
}
