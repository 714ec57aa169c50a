//! A gateway that splits connections (karir1999, RFC 3135 section 2.1.1).
//!
//! It ends every TCP connection that it sees begin, and makes another one on each side, with the
//! addresses, the ports and the initial sequence numbers of the hosts: neither of them can tell. Only
//! the part over the link that the gateway is there for needs that link's settings. One gateway is
//! enough; of two, one at each end of the link, each splits what the other has split already.
//!
//! | file | what |
//! |---|---|
//! | `arriving` | whose a packet is that comes |
//! | `lifetime` | from a SYN to when a connection is forgotten |
//! | `agent` | what the driver tells the gateway, and asks |
//! | `pair` | a connection's two legs, and what goes from one to the other |
//! | `pairs` | all of them: those at which something happens, and those at rest |
//! | `budget` | memory: what may be promised, and to whom |
//! | `legs` | the legs' TCP: most have the same |
//! | `paths` | what a connection learns from earlier ones |
//! | `apart` | those that have parts of their own, where others have none |
//! | `multiplex` | all connections of two gateways over few persistent ones |
//! | `counters` | what a result and a probe see |
//!
//! **What a stream's bytes pass.** They come in order at one leg, and are at once the next bytes that
//! the other leg has to send. The window that the gateway offers a sender is the room that is left: if
//! the other side is slow, the sender is, and nothing is ever dropped for want of room.
//!
//! **What is confirmed, and when.** A byte is acknowledged when the gateway has it. The end of a stream
//! is acknowledged when the other side has acknowledged it, and with it every byte before it; so that a
//! sender that closes and sees its close confirmed knows what it knows without a gateway.

mod agent;
mod apart;
mod arriving;
mod budget;
mod counters;
mod ended;
mod legs;
mod lifetime;
mod multiplex;
mod pair;
mod pairs;
mod paths;
mod settings;
#[cfg(test)]
mod tests;

use bentpipe_tcp::{Payload, Ranges};
use bentpipe_types::{FlowKey, Processor, Routes};
use rustc_hash::FxHashMap;

use crate::deadlines::Deadlines;
use crate::room::Room;
use budget::{Budget, SPLIT_STATE};
use counters::Counters;
use ended::Ended;
use legs::LegSettings;
use multiplex::Multiplex;
use pair::Pair;
use pairs::Pairs;
use paths::PathMemory;

pub use bentpipe_types::Processing;
pub use counters::GAUGES;
pub use settings::{Answer, Multiplexing, REST_AFTER, RealSide, Settings};

/// A gateway that splits connections. `P`: where the bytes of its streams are.
#[derive(Debug)]
pub struct Split<P = Ranges> {
    settings: Settings,
    routes: Routes,
    pairs: Pairs<P>,
    /// By the key of arriving packets: the pair, and at which of its legs they arrive.
    flows: FxHashMap<FlowKey, (u32, usize)>,
    /// The last packet's: with one flow, or in a burst, the next one's too.
    last: Option<(FlowKey, u32, usize)>,
    /// Connections that were let pass though they might have been split: their SYN may come again.
    passed: FxHashMap<FlowKey, ()>,
    deadlines: Deadlines,
    ended: Ended,
    budget: Budget,
    room: Room,
    processor: Option<Processor>,
    paths: PathMemory,
    leg_settings: LegSettings,
    /// Legs that go out at the facing link and aren't over.
    facing_legs: usize,
    multiplex: Option<Box<Multiplex<P>>>,
    counters: Counters,
}

impl<P: Payload> Split<P> {
    /// A gateway that has seen nothing yet.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        for tcp in [&mut settings.facing_tcp, &mut settings.host_tcp] {
            // What has been promised is all that there is room for, whatever else Linux would take.
            tcp.linux_quirks.accepts_beyond_window = false;
        }
        Self {
            budget: Budget::new(settings.memory),
            room: Room::default(),
            processor: settings.processing.map(Processor::new),
            multiplex: (settings.multiplex).map(|with| Box::new(Multiplex::new(with, &settings))),
            ended: Ended::new([&settings.facing_tcp, &settings.host_tcp]),
            pairs: Pairs::new(settings.facing, settings.rest_after),
            settings,
            routes: Routes::default(),
            flows: FxHashMap::default(),
            last: None,
            passed: FxHashMap::default(),
            deadlines: Deadlines::default(),
            paths: PathMemory::default(),
            leg_settings: LegSettings::default(),
            facing_legs: 0,
            counters: Counters::default(),
        }
    }

    /// Is there nothing left of all that it has split, not even TIME-WAIT? (Persistent connections to
    /// another gateway are not the hosts'.)
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.pairs.len() == 0 && self.multiplex.as_ref().is_none_or(|all| all.is_forgotten())
    }

    /// Bytes that a connection counts besides its streams.
    #[must_use]
    pub const fn state_bytes() -> usize {
        const {
            // Both keys' entries in the table, and the deadline.
            assert!(size_of::<Pair<P>>() + 2 * (size_of::<FlowKey>() + 16) + 48 <= SPLIT_STATE);
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

    /// Packets that the processor has not done with.
    fn processing(&self) -> u64 {
        self.processor.as_ref().map_or(0, Processor::packets)
    }
}
