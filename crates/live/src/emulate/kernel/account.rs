//! What one application has at the kernel, and which connections are whose.

use std::collections::BTreeMap;

use bentpipe_host::{Member, Ports, SocketId};
use bentpipe_types::{Address, Endpoint, Span, Time};

use super::Played;

/// Points of a curve are at least this far apart: a bound on memory.
const BETWEEN_POINTS: Span = Span::from_millis(1);

/// The books of one application.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) host: usize,
    pub(super) control: String,
    pub(super) no_delay: bool,
    /// Its first text goes with the SYN.
    pub(super) fast_open: bool,
    pub(super) member: Member,
    pub(super) peers: (Address, Ports),
    pub(super) sockets: Vec<SocketId>,
    pub(super) played: Played,
    delivered: u64,
}

impl Account {
    /// Those of one in this host whose peers these are, with nothing in them yet.
    pub(super) fn new(
        host: usize,
        control: String,
        no_delay: bool,
        fast_open: bool,
        member: Member,
        peers: (Address, Ports),
    ) -> Self {
        Self {
            host,
            control,
            no_delay,
            fast_open,
            member,
            peers,
            sockets: Vec::new(),
            played: Played::default(),
            delivered: 0,
        }
    }

    /// So many bytes have come.
    pub(super) fn note(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        let curve = &mut self.played.curve;
        match curve.last_mut() {
            Some((last, value)) if now.since(*last) < BETWEEN_POINTS => *value = self.delivered,
            _ => curve.push((now, self.delivered)),
        }
        let statistics = self.played.statistics.get_or_insert_default();
        statistics.bytes_delivered += bytes;
        statistics.last_delivery_at = Some(now);
    }
}

/// Whose a connection or a datagram is, by where it comes from: a node and the first of its ports, the last
/// of them, and the application.
#[derive(Debug, Default)]
pub(super) struct Taker(BTreeMap<(Address, u16), (u16, usize)>);

impl Taker {
    pub(super) fn expect(&mut self, (from, ports): (Address, Ports), owner: usize) {
        let (first, last) = ports.bounds();
        self.0.insert((from, first), (last, owner));
    }

    pub(super) fn owner(&self, from: Endpoint) -> Option<usize> {
        let end = (from.address, from.port);
        let (first, (last, owner)) = self.0.range(..=end).next_back()?;
        (first.0 == end.0 && end.1 <= *last).then_some(*owner)
    }
}
