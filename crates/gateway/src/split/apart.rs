//! Connections that have parts of their own, as they are seen from persistent connections.
//!
//! Where the other gateway doesn't answer, connections go on with parts of their own; and it may have been there after
//! all. A connection is then known to one gateway as a stream and to the other by its parts. While it opens, the stream
//! wins: nothing is said over a part before its SYN is answered, and a gateway that has a stream drops that SYN.

use bentpipe_tcp::{Connection, Payload, State};
use bentpipe_types::{Ctx, FlowKey, PacketRef, Port, Seq};
use rustc_hash::FxHashMap;

use super::pair::{OPENER, Pair, RESPONDER};
use super::pairs::Pairs;

/// How far a connection with parts of its own is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Apart {
    /// There is none.
    Unknown,
    /// The host on this side has opened it, and nothing has come from beyond the link.
    Opens,
    /// It goes on.
    Goes,
    /// Nothing more will come of it but what TIME-WAIT is for, and what is opened follows it.
    Over,
}

/// What persistent connections may ask of those with parts of their own, by the key of what the host on this side
/// sends.
pub(super) trait Parts {
    /// `sequence`: of the SYN with which the host beyond the link opens another one between the same ends. (One that is older
    /// than what is over has been on its way for long: it was said over a persistent connection that was silent, and its host
    /// has done without the answer.)
    fn state(&mut self, key: &FlowKey, sequence: Seq) -> Apart;

    /// Takes one back that opens: its SYN, and where that came from.
    fn withdraw(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) -> Option<(PacketRef, Port)>;

    /// Forgets one that is over.
    fn forget(&mut self, key: &FlowKey);

    /// The other gateway doesn't know of this one any more, or not yet: it is asked over the part itself.
    fn ask(&mut self, key: &FlowKey, cx: &mut Ctx<'_>);
}

/// All of them.
pub(super) struct OwnParts<'a, P> {
    pub(super) pairs: &'a mut Pairs<P>,
    pub(super) flows: &'a FxHashMap<FlowKey, (u32, usize)>,
    /// Those that are to be removed.
    pub(super) gone: Vec<u32>,
}

impl<P: Payload> OwnParts<'_, P> {
    /// A connection, and at which of its legs the host's packets arrive.
    fn find(&mut self, key: &FlowKey) -> Option<(u32, usize, &mut Pair<P>)> {
        let (index, side) = *self.flows.get(key)?;
        let pair = self.pairs.get_mut(index)?;
        Some((index, side, pair))
    }
}

impl<P: Payload> Parts for OwnParts<'_, P> {
    fn state(&mut self, key: &FlowKey, sequence: Seq) -> Apart {
        let Some((_, side, pair)) = self.find(key) else {
            return Apart::Unknown;
        };
        let asks = |pair: &Pair<P>| {
            (pair.legs[RESPONDER].as_ref()).is_some_and(|leg| leg.state() == State::SynSent)
        };
        if pair.is_over() && pair.is_followed_by(1 - side, sequence) {
            Apart::Over
        } else if side == OPENER && pair.syn.is_some() && asks(pair) {
            Apart::Opens
        } else {
            Apart::Goes
        }
    }

    fn withdraw(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) -> Option<(PacketRef, Port)> {
        let (index, _, pair) = self.find(key)?;
        let (syn, port) = (pair.syn.take()?, pair.ports[OPENER]);
        // A SYN that was not answered is taken back by saying nothing more.
        pair.abort(cx);
        self.gone.push(index);
        Some((syn, port))
    }

    fn forget(&mut self, key: &FlowKey) {
        if let Some((index, ..)) = self.find(key) {
            self.gone.push(index);
        }
    }

    fn ask(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) {
        if let Some((_, side, pair)) = self.find(key)
            && let Some(leg) = &mut pair.legs[1 - side]
        {
            leg.act(cx, Connection::ask);
        }
    }
}
