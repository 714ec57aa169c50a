//! Connections that are split without a trunk, as multiplexing sees them.
//!
//! If the peer does not answer, connections are split without a trunk. The peer may be up all the
//! same. Then one gateway has a connection as a stream, and the other has it as two legs of its
//! own. While such a connection opens, the stream wins: no data goes over the other leg before its
//! SYN is answered, and a gateway that has the stream drops that SYN.

use bentpipe_tcp::{Connection, Payload, State};
use bentpipe_types::{Ctx, FlowKey, PacketRef, Port, Seq};
use rustc_hash::FxHashMap;

use super::connection_table::ConnectionTable;
use super::split_connection::{OPENER, RESPONDER, SplitConnection};

/// State of a connection without a trunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnmultiplexedState {
    /// No such connection exists.
    Unknown,
    /// The host on this side has opened it, and nothing has arrived over the link.
    Opening,
    /// It is open.
    Open,
    /// Only TIME-WAIT is left, and the new SYN is acceptable.
    Ended,
}

/// Operations on connections without a trunk that multiplexing needs, by the key of packets from
/// the host on this side.
pub(super) trait UnmultiplexedConnections {
    /// Returns a connection's state, with respect to a SYN with this sequence number from the host
    /// beyond the link. A SYN with an older number than the ended connection's is an old one: it
    /// was delayed on a silent trunk, and its host has given up.
    fn state(&mut self, key: &FlowKey, sequence: Seq) -> UnmultiplexedState;

    /// Removes a connection that is opening. Returns its SYN and the port that leads to its host.
    fn withdraw(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) -> Option<(PacketRef, Port)>;

    /// Removes a connection that has ended.
    fn forget(&mut self, key: &FlowKey);

    /// Probes the other gateway over the leg, as it no longer has this connection, or does not have
    /// it yet.
    fn probe(&mut self, key: &FlowKey, cx: &mut Ctx<'_>);
}

/// All connections without a trunk.
pub(super) struct UnmultiplexedTable<'a, P> {
    pub(super) pairs: &'a mut ConnectionTable<P>,
    pub(super) flows: &'a FxHashMap<FlowKey, (u32, usize)>,
    /// Connections to remove afterwards.
    pub(super) removed: Vec<u32>,
}

impl<P: Payload> UnmultiplexedTable<'_, P> {
    /// Returns a connection, and the side at which the host's packets arrive.
    fn find(&mut self, key: &FlowKey) -> Option<(u32, usize, &mut SplitConnection<P>)> {
        let (index, side) = *self.flows.get(key)?;
        let pair = self.pairs.get_mut(index)?;
        Some((index, side, pair))
    }
}

impl<P: Payload> UnmultiplexedConnections for UnmultiplexedTable<'_, P> {
    fn state(&mut self, key: &FlowKey, sequence: Seq) -> UnmultiplexedState {
        let Some((_, side, pair)) = self.find(key) else {
            return UnmultiplexedState::Unknown;
        };
        let awaits_syn_answer = |pair: &SplitConnection<P>| {
            (pair.legs[RESPONDER].as_ref()).is_some_and(|leg| leg.state() == State::SynSent)
        };
        if pair.only_time_wait_left() && pair.is_replaced_by(1 - side, sequence) {
            UnmultiplexedState::Ended
        } else if side == OPENER && pair.syn.is_some() && awaits_syn_answer(pair) {
            UnmultiplexedState::Opening
        } else {
            UnmultiplexedState::Open
        }
    }

    fn withdraw(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) -> Option<(PacketRef, Port)> {
        let (index, _, pair) = self.find(key)?;
        let (syn, port) = (pair.syn.take()?, pair.ports[OPENER]);
        // An unanswered SYN needs no RST: it is simply not retransmitted.
        pair.abort(cx);
        self.removed.push(index);
        Some((syn, port))
    }

    fn forget(&mut self, key: &FlowKey) {
        if let Some((index, ..)) = self.find(key) {
            self.removed.push(index);
        }
    }

    fn probe(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) {
        if let Some((_, side, pair)) = self.find(key)
            && let Some(leg) = &mut pair.legs[1 - side]
        {
            leg.act(cx, Connection::send_keep_alive_probe_if_idle);
        }
    }
}
