//! How long packets may be: path MTU discovery by what routers say (RFC 1191, RFC 8201), and by what
//! arrives (RFC 4821), which finds black holes: links that drop what is too long and say nothing.
//!
//! The search is Linux's (tcp_mtu_probing): between a size that surely passes and the largest that both
//! ends agreed on, a segment of twice what the middle asks for is sent now and then, of data that waits
//! anyway. That it is lost says nothing of congestion.

use bentpipe_types::{Ctx, IpVersion, Span, Time};
use serde::{Deserialize, Serialize};

use super::timers::Purpose;
use super::{Connection, Sender, State};
use crate::config::PathMtuDiscovery;
use crate::options::TIMESTAMPS_LENGTH;
use crate::rate_sample::RecoveryPhase;
use crate::recovery::{Again, LossRecovery, Retransmission};

/// RFC 1191 section 7: lengths that links have, for routers that do not say theirs.
const PLATEAUS: [u32; 11] = [
    68, 296, 508, 1006, 1492, 2002, 4352, 8166, 17_914, 32_000, 65_535,
];

/// No path is taken to be narrower than this (RFC 1191 section 3, RFC 8201 section 4).
const LEAST_V4: u32 = 68;
const LEAST_V6: u32 = 1280;

/// RFC 9293 section 3.1: its length is in a field of four bits, in words.
const MOST_TCP_HEADER: u32 = 60;

/// Linux's tcp_mtu_probe_floor: no black hole makes segments smaller.
const FLOOR: u32 = 48;
/// Linux's tcp_probe_threshold: the search is over when it is about less than so many bytes.
const NEAR_ENOUGH: u32 = 8;
/// Linux's tcp_probe_interval, and RFC 1191 section 6.3: what the path takes may be more by now.
const STALE: Span = Span::from_secs(600);
/// Segments that the congestion window has to have for a probe (Linux's tcp_mtu_probe): that one is lost
/// must show.
const LEAST_WINDOW: u64 = 11;
/// RFC 1122 section 4.2.3.5's R1, three retransmissions, in smallest timeouts: 1 + 2 + 4 + 8.
const PATIENCE: u64 = 15;

/// What a router has said of a path, which others between the same two hosts go, too: a host remembers it
/// (RFC 8201 section 5.2, RFC 1191 section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimit {
    /// The longest IP packet that passes, in bytes,
    pub mtu: u32,
    /// until then: after that the path may take more.
    pub until: Time,
}

impl PathLimit {
    /// What a router's word is worth, that it takes packets of `mtu` bytes (0: an old one, which doesn't say), about a
    /// path that packets of `known` bytes were believed to pass: nothing, where it takes as long ones.
    #[must_use]
    pub fn of_router(mtu: u32, known: u32, version: IpVersion, now: Time) -> Option<Self> {
        let least = match version {
            IpVersion::V4 => LEAST_V4,
            IpVersion::V6 => LEAST_V6,
        };
        let mtu = if mtu == 0 {
            let below = PLATEAUS.iter().rev().find(|&&plateau| plateau < known);
            below.copied().unwrap_or(least)
        } else {
            mtu
        };
        let mtu = mtu.max(least);
        // RFC 5927 section 7.2: it is no reason to send longer packets, and old news otherwise.
        (mtu < known).then(|| Self {
            mtu,
            until: now + STALE,
        })
    }

    /// How much text has room on a SYN, besides all the options that there may be.
    #[must_use]
    pub fn room_on_syn(self, version: IpVersion) -> u16 {
        let headers = u32::from(version.header_length()) + MOST_TCP_HEADER;
        u16::try_from(self.mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }
}

/// What is known of the path's MTU. Lengths are of IP packets, in bytes.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct PathMtu {
    /// Where one is under way, which few connections need.
    search: Option<Box<Search>>,
    /// When that may be so no longer.
    stale_at: Time,
    /// The longest that passes, as far as routers have said.
    mtu: u32,
    /// Payload of a full segment, as both ends agreed on it.
    agreed: u16,
    /// Another connection was told so: what was outstanding then may be too long.
    told: bool,
}

impl PathMtu {
    /// Are full segments, which are of so many bytes now, shorter than both ends agreed on?
    pub(super) fn is_lowered(&self, segment: u32) -> bool {
        segment < u32::from(self.agreed)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Search {
    /// Surely passes.
    low: u32,
    /// The longest that may.
    high: u32,
    /// When it last began from the beginning.
    since: Time,
    probe: Option<Probe>,
}

/// A longer segment is under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Probe {
    start: u64,
    end: u64,
    length: u32,
}

impl PathMtu {
    pub(super) fn new(mtu: Option<u32>) -> Self {
        Self {
            mtu: mtu.unwrap_or(u32::MAX),
            stale_at: Time::NEVER,
            agreed: 0,
            told: false,
            search: None,
        }
    }

    /// Is there anything to do when something is sent?
    #[inline]
    pub(super) fn is_looked_after(&self, now: Time) -> bool {
        self.search.is_some() || self.stale_at <= now
    }

    /// What surely passes, where it is searched for.
    fn low(&self) -> Option<u32> {
        self.search.as_deref().map(|search| search.low)
    }

    fn agreed(&self) -> u32 {
        self.agreed.into()
    }

    #[inline]
    fn probe(&self) -> Option<Probe> {
        self.search.as_deref()?.probe
    }
}

impl Sender {
    /// The longest IP packet that the path is known to take, in bytes: that of a full segment.
    fn known_mtu(&self) -> u32 {
        self.mtu_of(self.negotiated.segment)
    }

    /// Headers of a segment with data.
    fn overhead(&self) -> u32 {
        let options = if self.negotiated.timestamps {
            u32::from(TIMESTAMPS_LENGTH)
        } else {
            0
        };
        u32::from(self.config.ip_version.header_length()) + 20 + options
    }

    fn mtu_of(&self, segment: u32) -> u32 {
        segment + self.overhead()
    }

    /// The payload of a packet of this length.
    fn segment_of(&self, mtu: u32) -> u32 {
        let options = self.overhead() - 20 - u32::from(self.config.ip_version.header_length());
        // No smaller ones than a peer may ask for.
        mtu.saturating_sub(self.overhead()).max(FLOOR - options)
    }

    /// Both SYNs are known.
    pub(super) fn agree_on_path_mtu(&mut self, passive: bool, now: Time) {
        let agreed = self.negotiated.segment;
        self.path_mtu.agreed = u16::try_from(agreed).unwrap_or(u16::MAX);
        let known = self.segment_of(self.path_mtu.mtu);
        self.negotiated.segment = agreed.min(known);
        if self.config.path_mtu_discovery == PathMtuDiscovery::Probe {
            self.begin_search(now);
            // Linux asks the path first where it is a server, RFC 4821 section 7.3 always.
            if !(passive && self.config.habits.trusts_path_as_server) {
                let base = u32::from(self.config.base_mss.max(1));
                self.negotiated.segment = self.negotiated.segment.min(base);
            }
        }
        self.send.sequence.segment = self.negotiated.segment;
        self.count_segments();
    }

    fn begin_search(&mut self, now: Time) {
        let base = u32::from(self.config.base_mss.max(1)).min(self.path_mtu.agreed());
        let mut high = self.mtu_of(self.path_mtu.agreed());
        // A router's word holds for a while; a route's MTU is what Linux looks beyond.
        if self.path_mtu.stale_at > now && self.path_mtu.stale_at < Time::NEVER {
            high = high.min(self.path_mtu.mtu);
        }
        self.path_mtu.search = Some(Box::new(Search {
            low: self.mtu_of(base).min(high),
            high,
            since: now,
            probe: None,
        }));
    }

    /// A router takes packets of `mtu` bytes. Returns what the path takes now, if that is less than
    /// before.
    fn narrowed(&mut self, mtu: u32, agreed: bool, now: Time) -> Option<PathLimit> {
        if self.config.path_mtu_discovery == PathMtuDiscovery::Off {
            return None;
        }
        let known = self.known_mtu().min(self.path_mtu.mtu);
        let limit = PathLimit::of_router(mtu, known, self.config.ip_version, now)?;
        self.statistics.path_mtu_reductions += 1;
        let segment = self.take_limit(limit);
        if agreed {
            self.set_segment(segment);
        }
        Some(limit)
    }

    /// So long may packets be now: returns the payload of a full segment.
    fn take_limit(&mut self, limit: PathLimit) -> u32 {
        self.path_mtu.mtu = limit.mtu;
        self.path_mtu.stale_at = limit.until;
        let segment = self.segment_of(limit.mtu);
        let length = self.mtu_of(segment);
        if let Some(search) = &mut self.path_mtu.search {
            search.high = search.high.min(limit.mtu);
            search.low = search.low.min(length);
            search.probe = None;
        }
        segment
    }

    /// Another connection has been told of the path: segments are no longer from now on. Returns whether they
    /// were. (What is outstanding may be too long. If so, a router says it to this connection as well.)
    fn told_by_another(&mut self, limit: PathLimit, agreed: bool) -> bool {
        let off = self.config.path_mtu_discovery == PathMtuDiscovery::Off;
        if off || limit.mtu > self.path_mtu.mtu {
            return false;
        }
        let segment = self.take_limit(limit);
        let shorter = agreed && segment < self.negotiated.segment;
        if shorter {
            self.set_segment(segment);
            self.path_mtu.told = true;
        }
        shorter
    }

    /// Does a router say of a segment of ours what another connection was told before?
    fn is_told_again(&self, mtu: u32) -> bool {
        let PathMtu { told, agreed, .. } = self.path_mtu;
        told && mtu < self.mtu_of(agreed.into())
    }

    /// Full segments have this payload from now on. (Segments that the congestion window takes stay as
    /// many where they get smaller; bytes that it takes, where they get larger.)
    fn set_segment(&mut self, segment: u32) {
        self.negotiated.segment = segment;
        self.send.sequence.segment = segment;
        self.congestion.set_segment(segment);
        self.count_segments();
    }

    /// Segments of more than so many bytes do not arrive: what is outstanding and longer is to go again, in shorter
    /// ones, and the owner sends no longer ones from now on.
    pub fn shorten(&mut self, segment: u32, now: Time) {
        self.set_segment(segment.max(1));
        self.resend_shorter(now);
    }

    /// Segments are of no more than so many bytes from now on, those that go again, too. What is outstanding may have
    /// arrived, and is waited for.
    pub fn divide(&mut self, segment: u32) {
        let segment = segment.max(1);
        self.set_segment(segment);
        if self.recovery.knows_segments() {
            self.scoreboard.shorten(segment, self.send.end);
        }
    }

    /// What is outstanding and longer than a full segment is known not to have arrived: it goes again at
    /// once, in shorter ones, and is no sign of congestion (RFC 1191 section 6.4, RFC 8201 section 5.4).
    fn resend_shorter(&mut self, now: Time) {
        if self.send.is_idle() {
            return;
        }
        let segment = self.negotiated.segment;
        if !self.scoreboard.has_longer(segment, self.send.end) {
            return;
        }
        if self.recovery.knows_segments() {
            self.scoreboard.shorten(segment, self.send.end);
        }
        let sequence = &mut self.send.sequence;
        match self.recovery.on_shortened(sequence) {
            Again::Marked => self.timers.review(),
            Again::All => {
                self.send.timed_out_below = sequence.highest;
                // (With Fast Open, our SYN may be outstanding still. It is none too long.)
                sequence.next = sequence.unacknowledged.max(1);
            }
        }
        self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
    }

    /// A segment that is to go again is longer than they are now (it was a probe): then it is split, and
    /// its parts go.
    #[inline]
    pub(super) fn is_split(&mut self, again: &Retransmission) -> bool {
        let segment = self.negotiated.segment;
        let longer = again.length.is_some_and(|length| {
            // A FIN takes a position, and no room.
            let end = (again.position + u64::from(length)).min(self.send.end);
            end > again.position + u64::from(segment)
        });
        if longer {
            self.scoreboard.shorten(segment, self.send.end);
        }
        longer
    }

    /// The retransmission timer has expired again: perhaps nothing of this length arrives (RFC 4821
    /// section 7.7, Linux's tcp_mtu_probing). Segments become smaller, by half each time from then on.
    pub(super) fn suspect_black_hole(&mut self, now: Time) {
        use PathMtuDiscovery::{BlackHole, Probe};
        if let Some(search) = &mut self.path_mtu.search {
            search.probe = None; // a timeout says nothing about it
        }
        let waited = now.since(self.send.attempts_since);
        if !matches!(self.config.path_mtu_discovery, BlackHole | Probe)
            || self.send.attempts == 0
            || waited < self.config.minimum_rto * PATIENCE
        {
            return;
        }
        match self.path_mtu.low() {
            None => self.begin_search(now),
            Some(low) => {
                let half = self.segment_of(low) / 2;
                let base = u32::from(self.config.base_mss.max(1));
                let low = self.mtu_of(half.min(base).max(FLOOR));
                if let Some(search) = &mut self.path_mtu.search {
                    search.low = low;
                    search.since = now;
                }
            }
        }
        let low = self.path_mtu.low().unwrap_or(u32::MAX);
        let segment = self.segment_of(low);
        if segment < self.negotiated.segment {
            self.statistics.path_mtu_reductions += 1;
            self.set_segment(segment);
            if self.recovery.knows_segments() {
                self.scoreboard.shorten(segment, self.send.end);
            }
        }
    }

    /// Something is about to be sent: may the path take more than it did?
    pub(super) fn look_after_path_mtu(&mut self, now: Time) {
        if self.path_mtu.stale_at <= now {
            self.path_mtu.stale_at = Time::NEVER;
            self.path_mtu.mtu = self.mtu_of(self.path_mtu.agreed());
            if self.path_mtu.search.is_none() {
                self.set_segment(self.path_mtu.agreed());
            }
        }
        let most = self.mtu_of(self.path_mtu.agreed()).min(self.path_mtu.mtu);
        let known = self.known_mtu();
        if let Some(search) = &mut self.path_mtu.search
            && search.high < search.low + NEAR_ENOUGH
            && now.since(search.since) >= STALE
        {
            search.high = most;
            search.low = known;
            search.since = now;
        }
    }

    /// Is it time to send a longer segment? Its payload, where the congestion window has `room` and there
    /// is data for it and for what shows its loss.
    fn path_mtu_probe(&self, room: u64) -> Option<u32> {
        let search = self.path_mtu.search.as_deref()?;
        let segment = u64::from(self.negotiated.segment);
        let length = self.segment_of((search.low + search.high) / 2);
        let needed = u64::from(length) + 4 * segment;
        let sequence = &self.send.sequence;
        let window = self.congestion.window().congestion_window;
        let may = search.probe.is_none()
            && search.high >= search.low + NEAR_ENOUGH
            && length > self.negotiated.segment
            && self.recovery.phase() == RecoveryPhase::Open
            && self.scoreboard.lost() + self.scoreboard.sacked() == 0
            && sequence.next == sequence.highest
            && window >= LEAST_WINDOW * segment
            && room >= (2 * segment).max(u64::from(length))
            && self.send.records.is_empty()
            && self.send.unsent() >= needed
            && sequence.next + needed <= sequence.unacknowledged + self.send.window;
        may.then_some(length)
    }

    /// A probe was sent, from `start` on.
    pub(super) fn on_path_mtu_probe(&mut self, start: u64, payload: u32) {
        let length = self.mtu_of(payload);
        self.statistics.path_mtu_probes += 1;
        if let Some(search) = &mut self.path_mtu.search {
            search.probe = Some(Probe {
                start,
                end: start + u64::from(payload),
                length,
            });
        }
    }

    /// New data is acknowledged: is a probe?
    #[inline]
    pub(super) fn path_mtu_probe_arrived(&mut self) {
        if let Some(probe) = self.path_mtu.probe()
            && self.send.sequence.unacknowledged >= probe.end
        {
            if let Some(search) = &mut self.path_mtu.search {
                search.low = probe.length;
                search.probe = None;
            }
            self.set_segment(self.segment_of(probe.length).min(self.path_mtu.agreed()));
        }
    }

    /// Something is lost: was it a probe? Then that is no congestion (RFC 4821 section 7.6.2).
    pub(super) fn path_mtu_probe_lost(&mut self, now: Time) -> bool {
        let first = self.send.sequence.unacknowledged;
        let Some(probe) = self.path_mtu.probe().filter(|p| p.start == first) else {
            return false;
        };
        if let Some(search) = &mut self.path_mtu.search {
            search.high = (probe.length - 1).max(search.low);
            search.probe = None;
        }
        // Without SACK, fast recovery sends it again, in as many segments as it takes.
        if self.recovery.knows_segments() {
            self.resend_shorter(now);
        }
        true
    }
}

impl Connection {
    /// The longest IP packet that the path is known to take, in bytes: that of a full segment.
    #[must_use]
    pub fn path_mtu(&self) -> u32 {
        self.sender.known_mtu()
    }

    /// Another connection to the same host, perhaps an earlier one, was told this of the path: segments are no
    /// longer from now on. Where more is known, nothing changes.
    pub fn limit_path(&mut self, limit: PathLimit) {
        let agreed = self.state != State::SynSent;
        let shorter = self.sender.told_by_another(limit, agreed);
        let begins = matches!(self.state, State::SynSent | State::SynReceived);
        self.sender.statistics.path_mtu_reductions += u64::from(shorter && !begins);
        self.changed();
    }

    /// A router says that a packet of ours is too long for a link that takes `mtu` bytes. Returns what is news of
    /// the path.
    pub(super) fn too_big(&mut self, mtu: u32, cx: &mut Ctx<'_>) -> Option<PathLimit> {
        // Before the peer's SYN has come, nothing is agreed on yet. (With Fast Open, data goes before the
        // handshake is over.)
        let agreed = self.state != State::SynSent;
        let limit = self.sender.narrowed(mtu, agreed, cx.now);
        if agreed {
            // What another connection was told first is no news, and what is too long is to go again all the
            // same.
            if limit.is_some() || self.sender.is_told_again(mtu) {
                self.sender.path_mtu.told = false;
                self.sender.resend_shorter(cx.now);
                self.output(cx);
            }
        } else if let Some(limit) = limit
            && self.fast_open.on_syn > 0
        {
            self.resend_syn(limit.mtu, cx);
        }
        limit
    }

    /// Our SYN was too long: the text on it was. It goes again at once, without.
    fn resend_syn(&mut self, mtu: u32, cx: &mut Ctx<'_>) {
        let most = self.sender.config.ip_version.mss_within(mtu);
        let announced = self.offered.maximum_segment_size;
        self.offered.maximum_segment_size = announced.map(|mss| mss.min(most));
        let at = cx.now + self.sender.rtt.rto();
        self.sender.timers.set(Purpose::Retransmit, at);
        self.send_syn(cx);
    }

    /// A longer segment than usual, if it is time to see whether one arrives: its payload, where `room`
    /// bytes may leave now.
    pub(super) fn path_mtu_probe(&self, room: u64) -> Option<u32> {
        // Blocks would make the packet longer still.
        (!self.receive.has_blocks())
            .then(|| self.sender.path_mtu_probe(room))
            .flatten()
    }
}
