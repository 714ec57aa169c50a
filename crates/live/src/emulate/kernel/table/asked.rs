//! Queries of the kernel for the state of its connections.

use std::net::SocketAddr;

use bentpipe_host::SocketId;
use bentpipe_tcp::Statistics;

use super::Table;
use crate::emulate::kernel::{BETWEEN_QUESTIONS, QUESTION};
use crate::netlink::Netlink;

impl Table<'_> {
    /// Queries what has been acknowledged, for the connections whose application waits for that.
    pub(in crate::emulate::kernel) fn ask_drained(&mut self) {
        self.asks_at = None;
        for place in self.asked.clone() {
            let slot = self.places[place as usize].slot.as_deref();
            let Some(id) = slot.filter(|slot| slot.is_asked()).map(|slot| slot.id) else {
                self.asked.remove(&place);
                continue;
            };
            let asked = self.ask(id);
            let Some(slot) = self.named_mut(id) else {
                continue;
            };
            let waiting = asked.map(|(counted, waiting)| {
                slot.counted = Some(counted);
                waiting
            });
            // For a connection that no longer exists, all data was acknowledged.
            if waiting.unwrap_or(0) <= u64::from(slot.shut) {
                slot.is_drained();
                self.asked.remove(&place);
                self.note_failure(id);
                self.looked_at(place);
            }
        }
        if !self.asked.is_empty() {
            // Limits the share of time spent on queries, however many connections there are.
            let many = QUESTION * self.asked.len() as u64;
            self.asks_at = Some(self.now + BETWEEN_QUESTIONS.max(many));
        }
    }

    /// Adds the kernel's counters of a connection to its application's.
    pub(super) fn count(&mut self, id: SocketId) {
        let counted = self.ask(id).map(|(counted, _)| counted);
        let Some(slot) = self.named_mut(id) else {
            return;
        };
        let (owner, counted) = (slot.owner, counted.or(slot.counted.take()));
        if let Some(counted) = counted {
            let statistics = &mut self.accounts[owner].played.statistics;
            statistics.get_or_insert_default().add(&counted);
        }
    }

    /// Queries a connection: its counters, and the bytes not acknowledged, with a FIN counted as
    /// one. `None` if it no longer exists.
    fn ask(&mut self, id: SocketId) -> Option<(Statistics, u64)> {
        let slot = self.named(id)?;
        let (owner, local, remote) = (slot.owner, slot.local, slot.remote);
        let host = self.accounts[owner].host;
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
