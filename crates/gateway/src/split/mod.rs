//! The split gateway: a TCP performance-enhancing proxy that splits connections (karir1999,
//! RFC 3135 section 2.4).
//!
//! The gateway terminates every TCP connection that it sees open, and opens another one on each
//! side, with the addresses, ports and initial sequence numbers of the hosts. Hosts cannot detect
//! it. Each of these two connections is called a leg. Only the leg over the satellite link (the
//! facing link) needs settings for that link. One gateway is enough. With one at each end of the
//! link, each splits what the other has already split.
//!
//! | file | contents |
//! |---|---|
//! | `rate_limits` | queues of classes of traffic with a limited rate |
//! | `packet_dispatch` | which connection or leg a packet belongs to |
//! | `lifecycle` | from a SYN to the removal of a connection |
//! | `agent` | the interface to the driver |
//! | `split_connection` | the two legs of one connection, and the data between them |
//! | `connection_table` | all split connections, active or suspended |
//! | `admission` | limits of half-open connections, and of each source's |
//! | `memory_budget` | how much memory each connection may use |
//! | `host_secret` | sequence numbers and timestamps that hosts cannot predict |
//! | `leg_settings` | TCP settings of the legs, shared where they are equal |
//! | `path_memory` | congestion state that new connections take over from earlier ones |
//! | `unmultiplexed` | connections outside the trunks, as multiplexing sees them |
//! | `multiplex` | connections of many hosts over a few persistent ones between two gateways |
//! | `ended_connections` | connections in TIME-WAIT, which make room when memory is short |
//! | `management` | the interface for the operator of a running gateway |
//! | `counters` | counters and gauges for results and probes |
//!
//! **Back-pressure.** Bytes that arrive in order at one leg are at once the next bytes to send at
//! the other. The window that the gateway advertises to a sender is the buffer space left. So a
//! slow receiver slows its sender down, and nothing is dropped for want of space.
//!
//! **Acknowledgments.** A byte is acknowledged as soon as the gateway has received it. A FIN is
//! acknowledged only when the other host has acknowledged it, and with it every byte before it. So
//! a sender whose FIN is acknowledged knows as much as it would without the gateway.

mod admission;
mod agent;
mod connection_table;
mod counters;
mod ended_connections;
mod host_secret;
mod leg_settings;
mod leg_totals;
mod lifecycle;
mod management;
mod memory_budget;
mod multiplex;
mod packet_dispatch;
mod path_memory;
mod rate_limits;
mod report;
mod settings;
mod split_connection;
#[cfg(test)]
mod tests;
mod unmultiplexed;

use bentpipe_tcp::{Payload, Ranges};
use bentpipe_types::{ConnectionChange, FlowKey, Processor, Routes, Seq};
use rustc_hash::FxHashMap;

use crate::deadlines::Deadlines;
use crate::refusal_notice::RefusalNotice;
use admission::Admission;
use connection_table::ConnectionTable;
use counters::Counters;
use ended_connections::EndedConnections;
use leg_settings::LegSettingsCache;
use memory_budget::{MemoryBudget, SPLIT_STATE};
use multiplex::Multiplex;
use path_memory::PathMemory;
use rate_limits::RateLimits;
use split_connection::SplitConnection;

pub use bentpipe_types::Processing;
pub use host_secret::HostSecret;
pub use rate_limits::RateLimit;
pub use report::GAUGES;
pub use settings::{Confirmation, Multiplexing, RealAddresses, SUSPEND_AFTER, Settings};

/// A gateway that splits connections. `P` is the storage of its streams' bytes.
#[derive(Debug)]
pub struct Split<P = Ranges> {
    settings: Settings,
    routes: Routes,
    pairs: ConnectionTable<P>,
    /// Connection and leg, by the key of arriving packets.
    flows: FxHashMap<FlowKey, (u32, usize)>,
    /// Result of the last lookup. With one flow, or in a burst, the next packet has the same key.
    last: Option<(FlowKey, u32, usize)>,
    /// Sequence numbers of SYNs that were forwarded. Such a SYN may be retransmitted.
    forwarded_syns: FxHashMap<FlowKey, Seq>,
    deadlines: Deadlines,
    ended: EndedConnections,
    admission: Admission,
    budget: MemoryBudget,
    refusal_notice: RefusalNotice,
    processor: Option<Processor>,
    rate_limits: RateLimits,
    paths: PathMemory,
    leg_settings: LegSettingsCache,
    /// Number of legs over the facing link that have not ended.
    facing_legs: usize,
    multiplex: Option<Box<Multiplex<P>>>,
    counters: Counters,
    /// Whether new connections are forwarded, because the gateway is about to end.
    is_draining: bool,
    /// Connections split or removed since the driver asked; `None` without real hosts.
    changes: Option<Vec<ConnectionChange>>,
}

impl<P: Payload> Split<P> {
    /// Returns a gateway without connections.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        for tcp in [&mut settings.facing_tcp, &mut settings.host_tcp] {
            // The promised window is all that memory is reserved for, so the gateway does not
            // accept segments beyond it as Linux does.
            tcp.linux_quirks.acceptance.accepts_beyond_window = false;
        }
        Self {
            admission: Admission::new(settings.memory, SPLIT_STATE as u64),
            budget: MemoryBudget::new(settings.memory, settings.secret.is_some()),
            refusal_notice: RefusalNotice::default(),
            processor: settings.processing.map(Processor::new),
            rate_limits: RateLimits::new(settings.rate_limits.clone()),
            multiplex: (settings.multiplex).map(|with| Box::new(Multiplex::new(with, &settings))),
            ended: EndedConnections::new([&settings.facing_tcp, &settings.host_tcp]),
            pairs: ConnectionTable::new(settings.facing, settings.suspend_after),
            changes: settings.secret.map(|_| Vec::new()),
            settings,
            routes: Routes::default(),
            flows: FxHashMap::default(),
            last: None,
            forwarded_syns: FxHashMap::default(),
            deadlines: Deadlines::default(),
            paths: PathMemory::default(),
            leg_settings: LegSettingsCache::default(),
            facing_legs: 0,
            counters: Counters::default(),
            is_draining: false,
        }
    }

    /// Returns true if no connection is left, not even one in TIME-WAIT. Trunks to another gateway
    /// do not count.
    #[must_use]
    pub fn has_no_connections(&self) -> bool {
        self.pairs.len() == 0
            && self
                .multiplex
                .as_ref()
                .is_none_or(|all| all.has_no_connections())
    }

    /// Bytes of memory charged for a connection, its streams' bytes excluded.
    #[must_use]
    pub const fn state_bytes() -> usize {
        const {
            // Both keys' entries in the table, and the timer's.
            assert!(
                size_of::<SplitConnection<P>>() + 2 * (size_of::<FlowKey>() + 16) + 48
                    <= SPLIT_STATE
            );
        }
        SPLIT_STATE
    }

    fn find(&mut self, key: &FlowKey) -> Option<(u32, usize)> {
        if let Some((last, index, side)) = &self.last
            && last == key
        {
            return Some((*index, *side));
        }
        let (index, side) = *self.flows.get(key)?;
        self.last = Some((*key, index, side));
        Some((index, side))
    }

    /// Number of packets that wait for the processor or for a rate limit.
    fn waiting(&self) -> u64 {
        self.processing() + self.rate_limits.packets()
    }

    /// Number of packets in the processor's queue.
    fn processing(&self) -> u64 {
        self.processor.as_ref().map_or(0, Processor::packets)
    }
}
