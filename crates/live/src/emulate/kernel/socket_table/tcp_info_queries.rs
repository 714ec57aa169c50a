//! Queries of the kernel for the state of its connections.

use std::net::SocketAddr;

use bentpipe_host::SocketId;
use bentpipe_tcp::Statistics;
use bentpipe_types::Span;

use super::SocketTable;
use crate::netlink::Netlink;

/// Minimum interval of queries for acknowledged data, if an application waits for that.
pub(super) const QUERY_INTERVAL: Span = Span::from_millis(1);

/// Minimum time per queried connection, of which the query itself takes a fifth.
const QUERY_TIME: Span = Span::from_micros(100);

impl SocketTable<'_> {
    /// Queries what has been acknowledged, for the connections whose application waits for that.
    pub(in crate::emulate::kernel) fn query_acknowledged(&mut self) {
        self.next_query_at = None;
        for place in self.queried.clone() {
            let connection = self.places[place as usize].connection.as_deref();
            let Some(id) = connection
                .filter(|connection| connection.awaits_acknowledgment())
                .map(|connection| connection.id)
            else {
                self.queried.remove(&place);
                continue;
            };
            let queried = self.query(id);
            let Some(connection) = self.connection_mut(id) else {
                continue;
            };
            let waiting = queried.map(|(last_counters, waiting)| {
                connection.last_counters = Some(last_counters);
                waiting
            });
            // For a connection that no longer exists, all data was acknowledged.
            if waiting.unwrap_or(0) <= u64::from(connection.closed) {
                connection.set_acknowledged();
                self.queried.remove(&place);
                self.note_failure(id);
                self.update(place);
            }
        }
        if !self.queried.is_empty() {
            // Limits the share of time spent on queries, however many connections there are.
            let many = QUERY_TIME * self.queried.len() as u64;
            self.next_query_at = Some(self.now + QUERY_INTERVAL.max(many));
        }
    }

    /// Adds the kernel's counters of a connection to its application's.
    pub(super) fn add_counters(&mut self, id: SocketId) {
        let last_counters = self.query(id).map(|(last_counters, _)| last_counters);
        let Some(connection) = self.connection_mut(id) else {
            return;
        };
        let (owner, last_counters) = (
            connection.owner,
            last_counters.or(connection.last_counters.take()),
        );
        if let Some(last_counters) = last_counters {
            let statistics = &mut self.applications[owner].result.statistics;
            statistics.get_or_insert_default().add(&last_counters);
        }
    }

    /// Queries a connection: its counters, and the bytes not acknowledged, with a FIN counted as
    /// one. `None` if it no longer exists.
    fn query(&mut self, id: SocketId) -> Option<(Statistics, u64)> {
        let connection = self.connection(id)?;
        let (owner, local, remote) = (connection.owner, connection.local, connection.remote);
        let host = self.applications[owner].host;
        if !self.netlinks.contains_key(&host) {
            self.enter(host).ok()?;
            self.netlinks.insert(host, Netlink::connections().ok()?);
        }
        let local = SocketAddr::new(self.hosts[host].address, local.port);
        let remote = SocketAddr::new(self.ip_of(remote.address)?, remote.port);
        let netlink = self.netlinks.get_mut(&host)?;
        let (info, waiting) = netlink.connection(local, remote).ok()??;
        let statistics = Statistics {
            segments_sent: u64::from(info.data_segs_out),
            segments_retransmitted: u64::from(info.total_retrans),
            bytes_acknowledged: info.bytes_acked,
            ..Statistics::default()
        };
        Some((statistics, u64::from(waiting)))
    }
}
