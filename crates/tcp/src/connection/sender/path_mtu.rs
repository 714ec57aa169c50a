//! Path MTU discovery from ICMP errors (RFC 1191, RFC 8201; required with PAWS by
//! RFC 7323 section 5.7), and packetization layer path MTU discovery (RFC 4821). The latter detects
//! black holes: links that drop long packets without an ICMP error.
//!
//! The search is Linux's (tcp_mtu_probing). It keeps a size known to pass and the largest
//! negotiated size. Now and then it sends a longer segment of a size in the middle, made of data
//! that is to be sent anyway. Its loss is no sign of congestion.

use bentpipe_types::{Ctx, IpVersion, Span, Time};
use serde::{Deserialize, Serialize};

use crate::config::PathMtuDiscovery;
use crate::connection::timers::Purpose;
use crate::connection::{Connection, Sender, State};
use crate::options::TIMESTAMPS_LENGTH;
use crate::rate_sample::RecoveryPhase;
use crate::recovery::{LossRecovery, Retransmission, RetransmitScope};

/// RFC 1191 section 7: common link MTUs, for routers that do not report theirs.
const PLATEAUS: [u32; 11] = [
    68, 296, 508, 1006, 1492, 2002, 4352, 8166, 17_914, 32_000, 65_535,
];

/// Minimum path MTU (RFC 1191 section 3, RFC 8201 section 4).
const MINIMUM_MTU_V4: u32 = 68;
const MINIMUM_MTU_V6: u32 = 1280;

/// RFC 9293 section 3.1: the header length is a field of four bits, in words of 32 bits.
const MAXIMUM_TCP_HEADER: u32 = 60;

/// Linux's tcp_mtu_probe_floor: minimum segment size after black hole detection.
const MINIMUM_SEGMENT: u32 = 48;
/// Linux's tcp_probe_threshold: the search ends when its range is smaller than this many bytes.
const SEARCH_PRECISION: u32 = 8;
/// Linux's tcp_probe_interval, and RFC 1191 section 6.3: age after which a larger MTU is tried
/// again.
const EXPIRY: Span = Span::from_secs(600);
/// Minimum congestion window for a probe, in segments, so that its loss is detected (Linux's
/// tcp_mtu_probe).
const MINIMUM_PROBE_WINDOW: u64 = 11;
/// RFC 1122 section 4.2.3.5: R1, three retransmissions, in minimum timeouts: 1 + 2 + 4 + 8.
const BLACK_HOLE_TIMEOUTS: u64 = 15;

/// A path MTU reported by a router. A host caches it for its other connections to the same
/// destination (RFC 8201 section 5.2, RFC 1191 section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimit {
    /// The longest IP packet that passes, in bytes.
    pub mtu: u32,
    /// Expiry: afterwards the path MTU may be larger.
    pub until: Time,
}

impl PathLimit {
    /// Evaluates a "packet too big" error for a link of this `mtu`, on a path with a presumed MTU
    /// of `known`. An `mtu` of 0 is from an old router, which does not report it. `None`
    /// if the error does not reduce the path MTU.
    #[must_use]
    pub fn of_router(mtu: u32, known: u32, version: IpVersion, now: Time) -> Option<Self> {
        let least = match version {
            IpVersion::V4 => MINIMUM_MTU_V4,
            IpVersion::V6 => MINIMUM_MTU_V6,
        };
        let mtu = if mtu == 0 {
            let below = PLATEAUS.iter().rev().find(|&&plateau| plateau < known);
            below.copied().unwrap_or(least)
        } else {
            mtu
        };
        let mtu = mtu.max(least);
        // RFC 5927 section 7.2: an error with a larger MTU is ignored.
        (mtu < known).then(|| Self {
            mtu,
            until: now + EXPIRY,
        })
    }

    /// Payload that fits on a SYN with the maximum of options.
    #[must_use]
    pub fn room_on_syn(self, version: IpVersion) -> u16 {
        let headers = u32::from(version.header_length()) + MAXIMUM_TCP_HEADER;
        u16::try_from(self.mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }
}

/// Path MTU state. Lengths are of IP packets, in bytes.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(in crate::connection) struct PathMtu {
    /// A search in progress, which few connections have.
    search: Option<Box<Search>>,
    /// Expiry of `mtu`.
    stale_at: Time,
    /// The path MTU according to routers.
    mtu: u32,
    /// Negotiated payload of a full segment.
    agreed: u16,
    /// The limit came from another connection: data outstanding at that time may be too long.
    limit_shared: bool,
}

impl PathMtu {
    /// Whether `segment`, the current full segment size, is smaller than negotiated.
    pub(in crate::connection) fn is_lowered(&self, segment: u32) -> bool {
        segment < u32::from(self.agreed)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Search {
    /// A length that passes.
    low: u32,
    /// The longest length that may pass.
    high: u32,
    /// Time at which the search last started.
    started_at: Time,
    probe: Option<Probe>,
}

/// A probe in flight: a segment longer than a full one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Probe {
    start: u64,
    end: u64,
    length: u32,
}

impl PathMtu {
    pub(in crate::connection) fn new(mtu: Option<u32>) -> Self {
        Self {
            mtu: mtu.unwrap_or(u32::MAX),
            stale_at: Time::NEVER,
            agreed: 0,
            limit_shared: false,
            search: None,
        }
    }

    /// Whether path MTU discovery has to run before the next transmission.
    #[inline]
    pub(in crate::connection) fn is_active(&self, now: Time) -> bool {
        self.search.is_some() || self.stale_at <= now
    }

    /// The length known to pass, during a search.
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
    /// The longest IP packet known to pass, in bytes: that of a full segment.
    fn known_mtu(&self) -> u32 {
        self.mtu_of(self.negotiated.segment)
    }

    /// Header bytes of a segment with data.
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
        // A peer may not ask for smaller segments than this.
        mtu.saturating_sub(self.overhead())
            .max(MINIMUM_SEGMENT - options)
    }

    /// Initialises path MTU discovery after the option negotiation.
    pub(in crate::connection) fn init_path_mtu(&mut self, passive: bool, now: Time) {
        let agreed = self.negotiated.segment;
        self.path_mtu.agreed = u16::try_from(agreed).unwrap_or(u16::MAX);
        let known = self.segment_of(self.path_mtu.mtu);
        self.negotiated.segment = agreed.min(known);
        if self.config.path_mtu_discovery == PathMtuDiscovery::Probe {
            self.begin_search(now);
            // Linux's server starts with the negotiated size, RFC 4821 section 7.3 with the base
            // size.
            if !(passive && self.quirks().handshake.server_starts_at_negotiated_mss) {
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
        // A router's limit holds until it expires. Linux searches beyond the MTU of the route.
        if self.path_mtu.stale_at > now && self.path_mtu.stale_at < Time::NEVER {
            high = high.min(self.path_mtu.mtu);
        }
        self.path_mtu.search = Some(Box::new(Search {
            low: self.mtu_of(base).min(high),
            high,
            started_at: now,
            probe: None,
        }));
    }

    /// Processes a router's report that it forwards packets of up to `mtu` bytes. Returns the new
    /// path MTU, if it is a reduction.
    fn apply_router_limit(&mut self, mtu: u32, agreed: bool, now: Time) -> Option<PathLimit> {
        if self.config.path_mtu_discovery == PathMtuDiscovery::Off {
            return None;
        }
        let known = self.known_mtu().min(self.path_mtu.mtu);
        let limit = PathLimit::of_router(mtu, known, self.config.ip_version, now)?;
        self.statistics.path_mtu_reductions += 1;
        let segment = self.apply_limit(limit);
        if agreed {
            self.set_segment(segment);
        }
        Some(limit)
    }

    /// Applies a path MTU limit. Returns the payload of a full segment.
    fn apply_limit(&mut self, limit: PathLimit) -> u32 {
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

    /// Applies a limit that another connection received. Returns whether segments become shorter.
    /// (If outstanding data is too long, a router reports it to this connection as well.)
    fn apply_shared_limit(&mut self, limit: PathLimit, agreed: bool) -> bool {
        let off = self.config.path_mtu_discovery == PathMtuDiscovery::Off;
        if off || limit.mtu > self.path_mtu.mtu {
            return false;
        }
        let segment = self.apply_limit(limit);
        let shorter = agreed && segment < self.negotiated.segment;
        if shorter {
            self.set_segment(segment);
            self.path_mtu.limit_shared = true;
        }
        shorter
    }

    /// Whether a router reports for a segment of ours what another connection was told before.
    fn confirms_shared_limit(&self, mtu: u32) -> bool {
        let PathMtu {
            limit_shared,
            agreed,
            ..
        } = self.path_mtu;
        limit_shared && mtu < self.mtu_of(agreed.into())
    }

    /// Sets the payload of full segments. A smaller segment keeps the congestion window in
    /// segments, a larger one in bytes.
    fn set_segment(&mut self, segment: u32) {
        self.negotiated.segment = segment;
        self.send.sequence.segment = segment;
        self.congestion.set_segment(segment);
        self.count_segments();
    }

    /// Reduces the segment size because longer segments do not arrive, and retransmits the longer
    /// outstanding ones. The owner sends no longer ones from now on.
    pub fn shorten(&mut self, segment: u32, now: Time) {
        self.set_segment(segment.max(1));
        self.resend_shorter(now);
    }

    /// Reduces the segment size of new segments and retransmissions. Outstanding data may have
    /// arrived and is not retransmitted early.
    pub fn divide(&mut self, segment: u32) {
        let segment = segment.max(1);
        self.set_segment(segment);
        if self.recovery.tracks_segments() {
            self.scoreboard.shorten(segment, self.send.end);
        }
    }

    /// Retransmits outstanding segments longer than a full one, which were certainly dropped, in
    /// shorter segments. This is no sign of congestion (RFC 1191 section 6.4,
    /// RFC 8201 section 5.4).
    fn resend_shorter(&mut self, now: Time) {
        if self.send.is_idle() {
            return;
        }
        let segment = self.negotiated.segment;
        if !self.scoreboard.has_longer(segment, self.send.end) {
            return;
        }
        if self.recovery.tracks_segments() {
            self.scoreboard.shorten(segment, self.send.end);
        }
        let sequence = &mut self.send.sequence;
        match self.recovery.on_shortened(sequence) {
            RetransmitScope::Marked => self.timers.request_restart(),
            RetransmitScope::All => {
                self.send.timed_out_below = sequence.highest;
                // With Fast Open, our SYN may be outstanding still. It is not too long.
                sequence.next = sequence.unacknowledged.max(1);
            }
        }
        self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
    }

    /// Splits a segment to be retransmitted that is longer than a full one (it was a probe).
    /// Returns whether it was split; its parts are then retransmitted.
    #[inline]
    pub(in crate::connection) fn split_if_too_long(&mut self, again: &Retransmission) -> bool {
        let segment = self.negotiated.segment;
        let longer = again.length.is_some_and(|length| {
            // A FIN takes a position but no room.
            let end = (again.position + u64::from(length)).min(self.send.end);
            end > again.position + u64::from(segment)
        });
        if longer {
            self.scoreboard.shorten(segment, self.send.end);
        }
        longer
    }

    /// Black hole detection, on a repeated timeout: packets of this length may be dropped
    /// (RFC 4821 section 7.7, Linux's tcp_mtu_probing). Halves the segment size each time.
    pub(in crate::connection) fn suspect_black_hole(&mut self, now: Time) {
        use PathMtuDiscovery::{BlackHole, Probe};
        if let Some(search) = &mut self.path_mtu.search {
            search.probe = None; // A timeout gives no information about the probe.
        }
        let waited = now.since(self.send.attempts_since);
        if !matches!(self.config.path_mtu_discovery, BlackHole | Probe)
            || self.send.attempts == 0
            || waited < self.config.minimum_rto * BLACK_HOLE_TIMEOUTS
        {
            return;
        }
        match self.path_mtu.low() {
            None => self.begin_search(now),
            Some(low) => {
                let half = self.segment_of(low) / 2;
                let base = u32::from(self.config.base_mss.max(1));
                let low = self.mtu_of(half.min(base).max(MINIMUM_SEGMENT));
                if let Some(search) = &mut self.path_mtu.search {
                    search.low = low;
                    search.started_at = now;
                }
            }
        }
        let low = self.path_mtu.low().unwrap_or(u32::MAX);
        let segment = self.segment_of(low);
        if segment < self.negotiated.segment {
            self.statistics.path_mtu_reductions += 1;
            self.set_segment(segment);
            if self.recovery.tracks_segments() {
                self.scoreboard.shorten(segment, self.send.end);
            }
        }
    }

    /// Raises the path MTU again after its expiry, before data is sent.
    pub(in crate::connection) fn update_path_mtu(&mut self, now: Time) {
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
            && search.high < search.low + SEARCH_PRECISION
            && now.since(search.started_at) >= EXPIRY
        {
            search.high = most;
            search.low = known;
            search.started_at = now;
        }
    }

    /// Payload of a path MTU probe, if one is due and the congestion window has `room` bytes.
    /// There must be data for it and for later segments, whose acknowledgments reveal its loss.
    fn path_mtu_probe(&self, room: u64) -> Option<u32> {
        let search = self.path_mtu.search.as_deref()?;
        let segment = u64::from(self.negotiated.segment);
        let length = self.segment_of((search.low + search.high) / 2);
        let needed = u64::from(length) + 4 * segment;
        let sequence = &self.send.sequence;
        let window = self.congestion.window().congestion_window;
        let may = search.probe.is_none()
            && search.high >= search.low + SEARCH_PRECISION
            && length > self.negotiated.segment
            && self.recovery.phase() == RecoveryPhase::Open
            && self.scoreboard.lost() + self.scoreboard.sacked() == 0
            && sequence.next == sequence.highest
            && window >= MINIMUM_PROBE_WINDOW * segment
            && room >= (2 * segment).max(u64::from(length))
            && self.send.records.is_empty()
            && self.send.unsent() >= needed
            && sequence.next + needed <= sequence.unacknowledged + self.send.window;
        may.then_some(length)
    }

    /// Records the transmission of a probe from `start` on.
    pub(in crate::connection) fn on_path_mtu_probe(&mut self, start: u64, payload: u32) {
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

    /// Ends the probe successfully if it is acknowledged.
    #[inline]
    pub(in crate::connection) fn path_mtu_probe_arrived(&mut self) {
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

    /// Whether the lost segment was a probe. RFC 4821 section 7.6.2: its loss is no sign of
    /// congestion.
    pub(in crate::connection) fn path_mtu_probe_lost(&mut self, now: Time) -> bool {
        let first = self.send.sequence.unacknowledged;
        let Some(probe) = self.path_mtu.probe().filter(|p| p.start == first) else {
            return false;
        };
        if let Some(search) = &mut self.path_mtu.search {
            search.high = (probe.length - 1).max(search.low);
            search.probe = None;
        }
        // Without SACK, fast recovery retransmits it in as many segments as needed.
        if self.recovery.tracks_segments() {
            self.resend_shorter(now);
        }
        true
    }
}

impl Connection {
    /// The longest IP packet known to pass, in bytes: that of a full segment.
    #[must_use]
    pub fn path_mtu(&self) -> u32 {
        self.sender.known_mtu()
    }

    /// Applies a path MTU limit that another connection to the same host received. No effect if a
    /// lower limit is known.
    pub fn limit_path(&mut self, limit: PathLimit) {
        let agreed = self.state != State::SynSent;
        let shorter = self.sender.apply_shared_limit(limit, agreed);
        let begins = matches!(self.state, State::SynSent | State::SynReceived);
        self.sender.statistics.path_mtu_reductions += u64::from(shorter && !begins);
        self.invalidate_fast_path();
    }

    /// Processes an ICMP "packet too big" error for a link with this `mtu`. Returns the new path
    /// MTU, if it is a reduction.
    pub(in crate::connection) fn too_big(
        &mut self,
        mtu: u32,
        cx: &mut Ctx<'_>,
    ) -> Option<PathLimit> {
        // Before the peer's SYN arrives, nothing is negotiated. (With Fast Open, data is sent
        // before the handshake is complete.)
        let agreed = self.state != State::SynSent;
        let limit = self.sender.apply_router_limit(mtu, agreed, cx.now);
        if agreed {
            // A limit that another connection received first is not new, but what is too long must
            // be retransmitted all the same.
            if limit.is_some() || self.sender.confirms_shared_limit(mtu) {
                self.sender.path_mtu.limit_shared = false;
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

    /// Retransmits our SYN at once without data, because it was too long.
    fn resend_syn(&mut self, mtu: u32, cx: &mut Ctx<'_>) {
        let most = self.sender.config.ip_version.mss_within(mtu);
        let announced = self.offered.maximum_segment_size;
        self.offered.maximum_segment_size = announced.map(|mss| mss.min(most));
        let at = cx.now + self.sender.rtt.rto();
        self.sender.timers.set(Purpose::Retransmit, at);
        self.send_syn(cx);
    }

    /// Payload of a path MTU probe, if one is due and `room` bytes may be sent.
    pub(in crate::connection) fn path_mtu_probe(&self, room: u64) -> Option<u32> {
        // SACK blocks would make the packet longer.
        (!self.receive.has_blocks())
            .then(|| self.sender.path_mtu_probe(room))
            .flatten()
    }
}
