//! A way to the host that takes shorter packets than the server has sent: what the gateway has acknowledged it
//! has to cut itself (RFC 1191, RFC 8201), for the server will send it no more.
//!
//! A router's complaint has the server's address, and the gateway is the one to hear it. The server is told when
//! it next sends what is too long, and that is outstanding there: in the host's name, as all that the gateway says
//! to it. From then on its segments are short enough, and go on as they are.
//!
//! Where nobody says it, a black hole, silence does (RFC 4821 section 7.7): what goes unanswered for long goes in
//! short parts. If these arrive, the way may be narrow, or may have been away: so a whole segment goes next. If that
//! goes unanswered as long again, the way is narrow.

use bentpipe_tcp::{PathLimit, TIMESTAMPS_LENGTH};
use bentpipe_types::{
    Flags, IcmpError, IpVersion, Packet, PacketRef, PacketStore, Seq, Span, Time,
};

use super::relay::Relay;
use super::store::Held;
use super::tracked::{Hall, Side};

/// A server that goes on with what is too long is told again, no sooner than so (RFC 1812 section 4.3.2.8 wants a
/// bound).
const BETWEEN_WORDS: Span = Span::from_secs(1);
/// So much of a segment goes with each header, however little the path takes: every link takes that (RFC 791 section
/// 3.2).
const LEAST: u64 = 8;
/// So often the timer of the first segment outstanding expires, and for so long nothing arrives, before its length is
/// suspected: RFC 1122 section 4.2.3.5's R1, and a satellite's round trip several times.
const EXPIRIES: u8 = 3;
const PATIENCE: Span = Span::from_secs(3);
/// What the way may take then, in bytes of packet: Linux's tcp_base_mss with all headers; what every host takes (RFC
/// 791); a telephone line (RFC 1191 section 7). Over IPv6 there is no less than 1280 (RFC 8200 section 5).
const SHORT_V4: [u32; 3] = [1076, 576, 296];
const SHORT_V6: [u32; 1] = [1280];
/// Linux's tcp_probe_interval, RFC 1191 section 6.3: what the way takes may be more by then.
const STALE: Span = Span::from_secs(600);
/// That short ones have arrived says so long that the way is there.
const FRESH: Span = Span::from_secs(2);

/// What is known of a way that is narrower than the server's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    limit: PathLimit,
    /// Before that the server is told no more.
    silent_until: Time,
}

/// What silence has told of the way to the host. Lengths are of IP packets, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    /// Timeouts since anything has arrived, or other lengths were tried.
    expiries: u8,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    None,
    /// What had this length went unanswered. What goes has that length at most, to see whether it arrives.
    Tries { long: u32, mtu: u32, since: Time },
    /// That it does was seen, last then. What goes has gone whole since: the first that was nearer to `long` than to
    /// `mtu`, while the way was there, ends at `whole`.
    Arrived {
        long: u32,
        mtu: u32,
        seen: Time,
        whole: Option<u64>,
    },
}

impl Doubt {
    /// Does what goes have to be short for now?
    pub(super) fn tries_short(&self) -> bool {
        matches!(self.stage, Stage::Tries { .. })
    }

    /// A packet of this length goes, whose last position is before `end`.
    pub(super) fn goes(&mut self, length: u64, end: u64, now: Time) {
        if let Stage::Arrived {
            long,
            mtu,
            seen,
            whole,
        } = &mut self.stage
            && 2 * length > u64::from(*long + *mtu)
            && whole.is_none()
        {
            if now.since(*seen) < FRESH {
                *whole = Some(end);
            } else {
                self.stage = Stage::None;
            }
        }
    }
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

    /// The longest packet that the way to the host takes, where that is known, or suspected, to be less than what the
    /// server sends.
    fn path_limit(&self, now: Time) -> Option<u32> {
        let narrow = self.narrow.as_ref().map(|narrow| narrow.limit);
        // RFC 1191 section 6.3: by then it may take more.
        let known = narrow
            .filter(|limit| now < limit.until)
            .map(|limit| limit.mtu);
        match self.doubt.stage {
            Stage::Tries { mtu, .. } => Some(known.map_or(mtu, |known| known.min(mtu))),
            Stage::None | Stage::Arrived { .. } => known,
        }
    }

    /// The timer of the first segment outstanding has expired. Is it for its length that nothing arrives?
    pub(super) fn suspect_black_hole(&mut self, hall: &mut Hall) {
        let now = hall.cx.now;
        self.doubt.expiries = self.doubt.expiries.saturating_add(1);
        let (since, expiries) = match self.doubt.stage {
            // The first try has been waited for long enough.
            Stage::Tries { since, .. } => (since, 1),
            Stage::None | Stage::Arrived { .. } => (self.progress_at, EXPIRIES),
        };
        if self.doubt.expiries < expiries || now.since(since) < PATIENCE {
            return;
        }
        let Some(held) = self.store.at(self.acknowledged).copied() else {
            return;
        };
        let packet = hall.cx.packets.get(held.packet);
        let mut text = u64::from(packet.payload_length);
        if self.minds_length() {
            // What the host has of it doesn't go again.
            text = text.min(held.end - self.acknowledged);
            text = text.min(self.room_on_path(held.packet, hall));
        }
        let length = u32::from(packet.header_length) + text as u32;
        if let Stage::Arrived {
            mtu,
            whole: Some(_),
            ..
        } = self.doubt.stage
            && length > mtu
        {
            self.find_black_hole(mtu, hall);
            return;
        }
        let short: &[u32] = match self.version {
            IpVersion::V4 => &SHORT_V4,
            IpVersion::V6 => &SHORT_V6,
        };
        if let Some(&mtu) = short.iter().find(|&&mtu| mtu < length) {
            let long = match self.doubt.stage {
                Stage::Tries { long, .. } => long,
                Stage::None | Stage::Arrived { .. } => length,
            };
            self.doubt.expiries = 0;
            self.doubt.stage = Stage::Tries {
                long,
                mtu,
                since: now,
            };
            let segment = self.segment();
            if let Some(sender) = &mut self.sender {
                sender.divide(segment);
            }
        }
    }

    /// Short ones arrive, and long ones don't: it is as if somebody had said it.
    fn find_black_hole(&mut self, mtu: u32, hall: &mut Hall) {
        let now = hall.cx.now;
        let limit = PathLimit {
            mtu,
            until: now + STALE,
        };
        self.doubt = Doubt::default();
        self.narrow = Some(Box::new(Narrow {
            limit,
            silent_until: Time::ZERO,
        }));
        let segment = self.segment();
        if let Some(sender) = &mut self.sender {
            sender.shorten(segment, now);
        }
    }

    /// The host has what lies before `position` from now on: what does that say of lengths?
    pub(super) fn arrives(&mut self, position: u64, hall: &Hall) {
        self.doubt.expiries = 0;
        match self.doubt.stage {
            Stage::None => {}
            Stage::Tries { long, mtu, .. } => {
                self.doubt.stage = Stage::Arrived {
                    long,
                    mtu,
                    seen: hall.cx.now,
                    whole: None,
                };
                let segment = self.segment();
                if let Some(sender) = &mut self.sender {
                    sender.divide(segment);
                }
                // What was sent meanwhile is not there, whichever it was.
                let unsent = self.unsent();
                self.again = (unsent > position).then_some((position, unsent));
            }
            Stage::Arrived {
                whole: Some(end), ..
            } if end <= position => self.doubt.stage = Stage::None,
            Stage::Arrived { ref mut seen, .. } => *seen = hall.cx.now,
        }
    }

    /// The payload of a full segment that goes to the host.
    pub(super) fn segment(&self) -> u32 {
        let options = if self.agreed.timestamps {
            u16::from(TIMESTAMPS_LENGTH)
        } else {
            0
        };
        let told = self.narrow.as_ref().map(|narrow| narrow.limit.mtu);
        let tried = match self.doubt.stage {
            Stage::Tries { mtu, .. } => Some(mtu),
            Stage::None | Stage::Arrived { .. } => None,
        };
        let most = told.into_iter().chain(tried).min();
        let most = most.map_or(u16::MAX, |mtu| self.version.mss_within(mtu));
        let most = u32::from(most.saturating_sub(options).max(1));
        self.agreed.segment.min(most)
    }

    /// Is it known or suspected that not every length arrives?
    pub(super) fn minds_length(&self) -> bool {
        self.narrow.is_some() || !matches!(self.doubt.stage, Stage::None)
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
