//! Path MTU towards the host, where it is smaller than the server's segments.
//!
//! The gateway has acknowledged these segments, so the server does not send them again. The gateway
//! has to divide them itself (RFC 1191, RFC 8201).
//!
//! A router's "packet too big" error carries the server's address, and the gateway intercepts it.
//! When the server next sends a segment that is too long and not acknowledged yet, the gateway
//! sends it such an error, in the host's name. From then on the server's segments are short enough.
//!
//! A path that drops long packets silently is a black hole, and is detected by the missing ACKs
//! (RFC 4821 section 7.7). Segments that stay unanswered for long are sent in short parts. If these
//! are acknowledged, the path MTU may be small, or the path may have been down. So a whole segment
//! is sent next. If that one stays unanswered as long again, the path MTU is small.

use bentpipe_tcp::{PathLimit, TIMESTAMPS_LENGTH};
use bentpipe_types::{
    Flags, IcmpError, IpVersion, Packet, PacketRef, PacketStore, Seq, Span, Time,
};

use super::Relay;
use crate::hybrid::context::HybridContext;
use crate::hybrid::segment_store::HeldSegment;
use crate::hybrid::side::Side;

/// Shortest interval between two errors to a server that goes on sending long segments.
/// RFC 1812 section 4.3.2.8: the rate of ICMP errors should be limited.
const MIN_ERROR_INTERVAL: Span = Span::from_secs(1);
/// Fewest bytes of data per packet, however small the path MTU. RFC 791 section 3.2: every link can
/// carry that much.
const MIN_PART: u64 = 8;
/// Conditions for the suspicion of a black hole: expiries of the timer of the first outstanding
/// segment, and time without progress. The first is R1 of RFC 1122 section 4.2.3.5, the second is
/// several round trips by satellite.
const MIN_EXPIRIES: u8 = 3;
const MIN_SILENCE: Span = Span::from_secs(3);
/// Path MTUs to try, in bytes: Linux's tcp_base_mss with all headers, the size that every host
/// accepts (RFC 791 section 3.1), and a telephone line (RFC 1191 section 7). Over IPv6 the minimum
/// is 1280 (RFC 8200 section 5).
const PROBED_MTUS_V4: [u32; 3] = [1076, 576, 296];
const PROBED_MTUS_V6: [u32; 1] = [1280];
/// Lifetime of a detected path MTU: Linux's tcp_probe_interval, and RFC 1191 section 6.3.
const PATH_MTU_LIFETIME: Span = Span::from_secs(600);
/// Time after an acknowledged short packet during which the path counts as up.
const PATH_UP_TIME: Span = Span::from_secs(2);

/// A known path MTU towards the host.
#[derive(Clone, Copy, Debug)]
pub(in crate::hybrid) struct HostPathMtu {
    limit: PathLimit,
    /// No further error is sent to the server before this time.
    next_error_at: Time,
}

/// Detection of a black hole towards the host. Lengths are those of IP packets, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::hybrid) struct BlackHoleDetection {
    /// Timer expiries since the last progress, or since another length was tried.
    expiries: u8,
    stage: BlackHoleStage,
}

#[derive(Clone, Copy, Debug, Default)]
enum BlackHoleStage {
    #[default]
    Idle,
    /// Packets of length `long` were not acknowledged. Packets of at most `mtu` are sent, to see
    /// whether they are.
    ProbingShort { long: u32, mtu: u32, since: Time },
    /// Short packets were acknowledged, the last at `last_seen`. Whole packets are sent again.
    /// `first_whole` is the end of the first one that was closer to `long` than to `mtu`, if it was
    /// sent while the path was up.
    ShortArrived {
        long: u32,
        mtu: u32,
        last_seen: Time,
        first_whole: Option<u64>,
    },
}

impl BlackHoleDetection {
    /// Returns true while only short packets are sent.
    pub(in crate::hybrid) fn is_probing_short(&self) -> bool {
        matches!(self.stage, BlackHoleStage::ProbingShort { .. })
    }

    /// Notes that a packet of this length was sent, with data before position `end`.
    pub(in crate::hybrid) fn note_sent(&mut self, length: u64, end: u64, now: Time) {
        if let BlackHoleStage::ShortArrived {
            long,
            mtu,
            last_seen,
            first_whole,
        } = &mut self.stage
            && 2 * length > u64::from(*long + *mtu)
            && first_whole.is_none()
        {
            if now.since(*last_seen) < PATH_UP_TIME {
                *first_whole = Some(end);
            } else {
                self.stage = BlackHoleStage::Idle;
            }
        }
    }
}

/// Positions of a part of a stored segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::hybrid) struct Part {
    pub(in crate::hybrid) start: u64,
    pub(in crate::hybrid) end: u64,
}

impl Relay {
    /// Processes a "packet too big" error about the segment with this sequence number. Returns
    /// false if the gateway has no such segment outstanding.
    pub(in crate::hybrid) fn on_too_big(
        &mut self,
        mtu: u32,
        sequence: Seq,
        context: &mut HybridContext,
    ) -> bool {
        let Some(position) = self.reported_position(sequence, context.cx.packets) else {
            return false;
        };
        context.totals.icmp_errors += 1;
        let (now, held) = (context.cx.now, self.store.at(position));
        let Some(held) = held else {
            return true;
        };
        let length = context.cx.packets.get(held.packet).length().get();
        let known = self.path_limit(now).unwrap_or(u32::MAX);
        let known = known.min(u32::try_from(length).unwrap_or(u32::MAX));
        if let Some(limit) = PathLimit::of_router(mtu, known, self.version, now) {
            let narrow = HostPathMtu {
                limit,
                next_error_at: Time::ZERO,
            };
            self.path_mtu = Some(Box::new(narrow));
            let segment = self.segment();
            if let Some(sender) = &mut self.sender {
                sender.shorten(segment, now);
            }
            self.send(context);
        }
        true
    }

    /// Returns the position that an error is about. RFC 5927 section 4.1: the sequence number must
    /// be outstanding, so an attacker off the path has to guess it. The first packet may begin with
    /// data that the host has acknowledged.
    fn reported_position(&self, sequence: Seq, packets: &PacketStore) -> Option<u64> {
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

    /// Returns the path MTU towards the host, if it is known or suspected to be smaller than the
    /// server's segments.
    fn path_limit(&self, now: Time) -> Option<u32> {
        let narrow = self.path_mtu.as_ref().map(|path| path.limit);
        // RFC 1191 section 6.3: the path MTU may have increased by then.
        let known = narrow
            .filter(|limit| now < limit.until)
            .map(|limit| limit.mtu);
        match self.black_hole.stage {
            BlackHoleStage::ProbingShort { mtu, .. } => {
                Some(known.map_or(mtu, |known| known.min(mtu)))
            }
            BlackHoleStage::Idle | BlackHoleStage::ShortArrived { .. } => known,
        }
    }

    /// Called when the timer of the first outstanding segment expires: checks for a black hole.
    pub(in crate::hybrid) fn check_for_black_hole(&mut self, context: &mut HybridContext) {
        let now = context.cx.now;
        self.black_hole.expiries = self.black_hole.expiries.saturating_add(1);
        let (since, expiries) = match self.black_hole.stage {
            // The short packets were not acknowledged in time either.
            BlackHoleStage::ProbingShort { since, .. } => (since, 1),
            BlackHoleStage::Idle | BlackHoleStage::ShortArrived { .. } => {
                (self.progress_at, MIN_EXPIRIES)
            }
        };
        if self.black_hole.expiries < expiries || now.since(since) < MIN_SILENCE {
            return;
        }
        let Some(held) = self.store.at(self.acknowledged).copied() else {
            return;
        };
        let packet = context.cx.packets.get(held.packet);
        let mut text = u64::from(packet.payload_length);
        if self.is_length_limited() {
            // Data that the host has acknowledged is not sent again.
            text = text.min(held.end - self.acknowledged);
            text = text.min(self.path_space(held.packet, context));
        }
        let length = u32::from(packet.header_length) + text as u32;
        if let BlackHoleStage::ShortArrived {
            mtu,
            first_whole: Some(_),
            ..
        } = self.black_hole.stage
            && length > mtu
        {
            self.confirm_black_hole(mtu, context);
            return;
        }
        let short: &[u32] = match self.version {
            IpVersion::V4 => &PROBED_MTUS_V4,
            IpVersion::V6 => &PROBED_MTUS_V6,
        };
        if let Some(&mtu) = short.iter().find(|&&mtu| mtu < length) {
            let long = match self.black_hole.stage {
                BlackHoleStage::ProbingShort { long, .. } => long,
                BlackHoleStage::Idle | BlackHoleStage::ShortArrived { .. } => length,
            };
            self.black_hole.expiries = 0;
            self.black_hole.stage = BlackHoleStage::ProbingShort {
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

    /// Short packets arrive and long ones do not: sets the path MTU as if a router had reported it.
    fn confirm_black_hole(&mut self, mtu: u32, context: &mut HybridContext) {
        let now = context.cx.now;
        let limit = PathLimit {
            mtu,
            until: now + PATH_MTU_LIFETIME,
        };
        self.black_hole = BlackHoleDetection::default();
        self.path_mtu = Some(Box::new(HostPathMtu {
            limit,
            next_error_at: Time::ZERO,
        }));
        let segment = self.segment();
        if let Some(sender) = &mut self.sender {
            sender.shorten(segment, now);
        }
    }

    /// Called when the host's acknowledgment advances to `position`: updates the detection.
    pub(in crate::hybrid) fn note_acknowledged(&mut self, position: u64, context: &HybridContext) {
        self.black_hole.expiries = 0;
        match self.black_hole.stage {
            BlackHoleStage::Idle => {}
            BlackHoleStage::ProbingShort { long, mtu, .. } => {
                self.black_hole.stage = BlackHoleStage::ShortArrived {
                    long,
                    mtu,
                    last_seen: context.cx.now,
                    first_whole: None,
                };
                let segment = self.segment();
                if let Some(sender) = &mut self.sender {
                    sender.divide(segment);
                }
                // All packets sent meanwhile count as lost.
                let unsent = self.unsent();
                self.resend_positions = (unsent > position).then_some((position, unsent));
            }
            BlackHoleStage::ShortArrived {
                first_whole: Some(end),
                ..
            } if end <= position => self.black_hole.stage = BlackHoleStage::Idle,
            BlackHoleStage::ShortArrived {
                ref mut last_seen, ..
            } => *last_seen = context.cx.now,
        }
    }

    /// Returns the payload of a full segment to the host.
    pub(in crate::hybrid) fn segment(&self) -> u32 {
        let options = if self.negotiated.timestamps {
            u16::from(TIMESTAMPS_LENGTH)
        } else {
            0
        };
        let reported = self.path_mtu.as_ref().map(|path| path.limit.mtu);
        let tried = match self.black_hole.stage {
            BlackHoleStage::ProbingShort { mtu, .. } => Some(mtu),
            BlackHoleStage::Idle | BlackHoleStage::ShortArrived { .. } => None,
        };
        let most = reported.into_iter().chain(tried).min();
        let most = most.map_or(u16::MAX, |mtu| self.version.mss_within(mtu));
        let most = u32::from(most.saturating_sub(options).max(1));
        self.negotiated.segment.min(most)
    }

    /// Returns true if long packets are known or suspected to be lost.
    pub(in crate::hybrid) fn is_length_limited(&self) -> bool {
        self.path_mtu.is_some() || !matches!(self.black_hole.stage, BlackHoleStage::Idle)
    }

    /// Returns how much of a packet's data can be sent to the host in one packet. If routers may
    /// fragment it, there is no limit.
    pub(in crate::hybrid) fn path_space(
        &self,
        reference: PacketRef,
        context: &HybridContext,
    ) -> u64 {
        let packets = &*context.cx.packets;
        let cut_by_routers =
            packets.bytes(reference).is_some() && packets.may_be_divided(reference);
        match self.path_limit(context.cx.now).filter(|_| !cut_by_routers) {
            None => u64::MAX,
            Some(mtu) => {
                let headers = u64::from(packets.get(reference).header_length);
                u64::from(mtu).saturating_sub(headers).max(MIN_PART)
            }
        }
    }

    /// Sends the server a "packet too big" error, if its segment is longer than the path MTU to the
    /// host (RFC 1191 section 4, RFC 8201 section 4). This is done before the segment is
    /// acknowledged.
    pub(in crate::hybrid) fn send_too_big(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) {
        let now = context.cx.now;
        if self.path_mtu.is_none()
            || u64::from(packet.payload_length) <= self.path_space(reference, context)
        {
            return;
        }
        let Some(narrow) = self.path_mtu.as_deref_mut() else {
            return;
        };
        if now < narrow.next_error_at {
            return;
        }
        narrow.next_error_at = now + MIN_ERROR_INTERVAL;
        let mtu = narrow.limit.mtu;
        let host = packet.destination.address;
        if let Some(error) = Packet::icmp_error(host, packet, IcmpError::TooBig { mtu }) {
            context
                .totals
                .emit(error, self.ip, Side::Server, context.cx);
        }
    }
}

/// Returns a copy of a stored segment, or of a part of it.
pub(in crate::hybrid) fn copy(
    held: HeldSegment,
    part: Option<Part>,
    packets: &mut PacketStore,
) -> PacketRef {
    let copy = packets.duplicate(held.packet);
    let Some(Part { start, end }) = part else {
        return copy;
    };
    let record = *packets.get(copy);
    let begins = held.end - u64::from(record.sequence_length());
    let text = u64::from(record.payload_length);
    let behind = start - begins;
    // A FIN follows all data. It takes one sequence number and no byte.
    let length = (end - begins).min(text).saturating_sub(behind);
    packets.cut(copy, behind as u16, length as u16);
    let record = packets.get_mut(copy);
    if end < held.end {
        record.flags = Flags(record.flags.0 & !(Flags::FIN.0 | Flags::PSH.0));
    }
    if behind > 0 {
        // RFC 3168 section 6.1.2: CWR is set only once, on the first new data.
        record.flags = Flags(record.flags.0 & !Flags::CWR.0);
    }
    copy
}
