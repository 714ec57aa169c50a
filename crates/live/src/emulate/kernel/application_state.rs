//! State of one application at the kernel's sockets, and the lookup of applications by peer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bentpipe_host::{Member, Ports, Report, SocketId};
use bentpipe_tcp::Statistics;
use bentpipe_types::{Address, Endpoint, Span, Time};

/// Minimum distance between points of a delivery curve, which bounds its memory.
const CURVE_INTERVAL: Span = Span::from_millis(1);

/// Results of an application.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationResult {
    /// Sum of its connections' counters, as far as the kernel provides them; `None` without a
    /// connection.
    pub(crate) statistics: Option<Statistics>,
    pub(crate) report: Report,
    pub(crate) datagram_bytes: u64,
    /// Points in time, and bytes delivered to it until then.
    pub(crate) curve: Vec<(Time, u64)>,
    /// Stream offset at which received bytes first differed from those sent.
    pub(crate) mismatch: Option<u64>,
    /// Number of datagrams that were lengthened to hold their label.
    pub(crate) lengthened: u64,
}

/// State of one application.
#[derive(Debug)]
pub(super) struct ApplicationState {
    pub(super) host: usize,
    pub(super) control: String,
    pub(super) no_delay: bool,
    /// Whether its first write travels in the SYN (TCP Fast Open).
    pub(super) fast_open: bool,
    pub(super) member: Member,
    pub(super) peers: (Address, Ports),
    pub(super) sockets: Vec<SocketId>,
    pub(super) result: ApplicationResult,
    /// Bytes delivered to it. Other threads read this.
    delivered: Arc<AtomicU64>,
}

impl ApplicationState {
    /// Creates the state of an application in `host` with these peers.
    pub(super) fn new(
        host: usize,
        control: String,
        no_delay: bool,
        fast_open: bool,
        member: Member,
        peers: (Address, Ports),
        delivered: Arc<AtomicU64>,
    ) -> Self {
        Self {
            host,
            control,
            no_delay,
            fast_open,
            member,
            peers,
            sockets: Vec::new(),
            result: ApplicationResult::default(),
            delivered,
        }
    }

    /// Adds received bytes to the delivery curve and the statistics.
    pub(super) fn add_delivered(&mut self, now: Time, bytes: u64) {
        let delivered = self.delivered.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let curve = &mut self.result.curve;
        match curve.last_mut() {
            Some((last, value)) if now.since(*last) < CURVE_INTERVAL => *value = delivered,
            _ => curve.push((now, delivered)),
        }
        let statistics = self.result.statistics.get_or_insert_default();
        statistics.bytes_delivered += bytes;
        statistics.last_delivery_at = Some(now);
    }
}

/// Applications by the peer's node and the first port of its range, with the last port of the
/// range.
#[derive(Debug, Default)]
pub(super) struct PeerOwners(BTreeMap<(Address, u16), (u16, usize)>);

impl PeerOwners {
    pub(super) fn add(&mut self, (from, ports): (Address, Ports), owner: usize) {
        let (first, last) = ports.bounds();
        self.0.insert((from, first), (last, owner));
    }

    pub(super) fn owner(&self, from: Endpoint) -> Option<usize> {
        let end = (from.address, from.port);
        let (first, (last, owner)) = self.0.range(..=end).next_back()?;
        (first.0 == end.0 && end.1 <= *last).then_some(*owner)
    }
}
