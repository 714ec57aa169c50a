//! Does the other gateway live?
//!
//! What a gateway has said on a persistent connection, the retransmission timer says again, more and more seldom, for a
//! quarter of an hour (RFC 9293 section 3.8.3); and where nothing was said, nobody misses an answer. So the other gateway is
//! asked beside that, by keep-alive's probes (RFC 1122 section 4.2.3.6), which whoever knows nothing of the connection
//! answers with a RST. What follows from silence, in two steps, since the two mistakes cost differently:
//!
//! * **It is doubted** when something has waited for an answer for [`PATIENCE`]. Nothing new goes over a connection that is
//!   doubted, and all of the other gateway's are, until something comes: then whatever is outstanding goes again at once. A
//!   mistake costs nobody his connection.
//! * **It is lost** when so many questions had no answer as `keep_alive` says: what it carries is reset. An outage that
//!   the hosts' own TCP would have outlived must not do that, so it takes a minute.
//!
//! A router that says that a segment did not get there (ICMP) has it doubted at once.
//!
//! A connection that was reset says of the other gateway that it began anew, or ended: the rest are asked at once. And who begins
//! anew doesn't wait to be asked.

use std::mem::take;

use bentpipe_tcp::{Connection, KeepAlive, Payload, Rings, Socket};
use bentpipe_types::{Ctx, IcmpError, Span, Time};

use super::trunk::Trunk;
use super::{Around, Multiplex, Remark};
use crate::icmp::Complaint;

/// Where `tcp` says nothing of keep-alive. A question and its answer take 52 bytes each way, with timestamps: 9.4 kB an hour, 0.2%
/// of 9.6 kbit/s. An outage of a minute breaks nothing.
pub(super) const KEEP_ALIVE: KeepAlive = KeepAlive {
    idle: Span::from_secs(20),
    interval: Span::from_secs(5),
    probes: 12,
};
/// So long an answer is waited for, whatever it is to; and two retransmission timeouts at least, since a queue in front of a slow
/// link may take longer.
pub(super) const PATIENCE: Span = Span::from_secs(3);

/// What is known of the other end of one persistent connection.
#[derive(Debug)]
pub(super) struct Vigil {
    /// When something last came that could be accepted, as it was last looked up,
    heard_at: Time,
    /// and when anything did. Who asks lives; whether he hears, only an answer tells.
    came_at: Time,
    /// Since then something waits for an answer: what was said, or a question.
    waits_since: Option<Time>,
    /// Questions since something last came,
    asked: u32,
    /// and when the last was.
    asked_at: Time,
    /// Nothing new goes over it until something comes.
    doubted: bool,
    /// It has itself waited for too long.
    despairs: bool,
}

impl Vigil {
    pub(super) fn new(now: Time) -> Self {
        Self {
            heard_at: now,
            came_at: now,
            waits_since: None,
            asked: 0,
            asked_at: now,
            doubted: false,
            despairs: false,
        }
    }

    /// Something has come, whatever it was.
    pub(super) fn comes(&mut self, now: Time) {
        self.came_at = now;
    }

    /// See [`Vigil::doubted`](Self#structfield.doubted).
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// Is a question not answered yet?
    pub(super) fn asks(&self) -> bool {
        self.asked > 0
    }

    /// Notes what has come, and what waits. True: it was doubted, and no longer is.
    pub(super) fn note(&mut self, tcp: &Connection, now: Time) -> bool {
        let mut back = false;
        if tcp.heard_at() > self.heard_at {
            back = self.doubted;
            *self = Self {
                heard_at: tcp.heard_at(),
                ..Self::new(now)
            };
        }
        if !tcp.is_idle() {
            self.waits_since.get_or_insert(now);
        } else if self.asked == 0 {
            self.waits_since = None;
        }
        back
    }

    fn ask(&mut self, socket: &mut Socket<Rings>, cx: &mut Ctx<'_>) {
        self.asked = self.asked.saturating_add(1);
        self.asked_at = cx.now;
        self.waits_since.get_or_insert(cx.now);
        socket.act(cx, Connection::ask_beside);
    }

    /// When it has waited for too long, if it does.
    fn patience_ends(&self, tcp: &Connection) -> Option<Time> {
        let patience = PATIENCE.max(tcp.first_rto() * 2);
        (!self.despairs).then_some(self.waits_since? + patience)
    }

    /// When it is to be asked again.
    fn asks_again(&self, tcp: &Connection, every: Span) -> Option<Time> {
        (self.asked > 0).then(|| self.asked_at + every.max(tcp.first_rto()))
    }
}

/// Is there one, and is it open? (One that opens is the handshake's to see to.)
fn open(trunk: &Option<Trunk>) -> Option<&Trunk> {
    trunk.as_ref().filter(|trunk| trunk.is_open())
}

/// Does an error say that a segment did not get there, whatever its length and its options are?
const fn is_of_reach(error: IcmpError) -> bool {
    match error {
        IcmpError::TooBig { .. } | IcmpError::ParameterProblem => false,
        IcmpError::NetworkUnreachable
        | IcmpError::HostUnreachable
        | IcmpError::ProtocolUnreachable
        | IcmpError::PortUnreachable
        | IcmpError::Prohibited
        | IcmpError::TimeExceeded => true,
    }
}

impl Trunk {
    /// May something new go over it?
    pub(super) fn is_trusted(&self) -> bool {
        self.is_open() && !self.vigil.is_doubted()
    }

    fn doubt(&mut self, cx: &mut Ctx<'_>) {
        self.vigil.doubted = true;
        if !self.vigil.asks() {
            self.vigil.ask(&mut self.socket, cx);
        }
    }
}

impl<P: Payload> Multiplex<P> {
    /// Is there a persistent connection over which something new may go?
    pub(super) fn has_trusted(&self) -> bool {
        self.trunks.iter().flatten().any(Trunk::is_trusted)
    }

    /// Are there persistent connections, all of which are doubted?
    pub(super) fn is_doubted(&self) -> bool {
        !self.has_trusted() && self.trunks.iter().any(|trunk| open(trunk).is_some())
    }

    /// Of the persistent connections on which nothing is waited for: the one that is to be asked next, and when. Where all are silent, the
    /// other gateway is asked on one of them, which is enough, and the next time on the next; where others are not, one may
    /// be silent for as long as if it were its turn. So it costs the same, however many there are. One of the two gateways asks,
    /// and the other only if it is not asked itself.
    fn idle_until(&self) -> Option<(Time, usize)> {
        // (Who asks first goes by what he has accepted alone: anybody may send what is not.)
        let silent = |trunk: &Trunk| {
            let Vigil {
                heard_at, came_at, ..
            } = trunk.vigil;
            if trunk.asks_first {
                heard_at
            } else {
                heard_at.max(came_at)
            }
        };
        let open = || {
            let trunks = self.trunks.iter().enumerate();
            trunks.filter_map(|(slot, trunk)| Some((slot, open(trunk)?)))
        };
        let asked = |(_, trunk): &(usize, &Trunk)| trunk.vigil.waits_since.is_none();
        let (slot, next) = (open().filter(asked)).min_by_key(|(_, trunk)| silent(trunk))?;
        let idle = self.keep_alive.idle;
        let wait = if next.asks_first {
            idle
        } else {
            idle + idle / 2
        };
        let turn = silent(next) + wait * open().count() as u64;
        let latest = open().map(|(_, trunk)| silent(trunk)).max()?;
        let all = open().all(|each| asked(&each));
        Some((if all { turn.min(latest + wait) } else { turn }, slot))
    }

    /// When it next wants to run without a packet.
    pub(super) fn next_look(&self) -> Option<Time> {
        let trunks = self.trunks.iter().filter_map(open);
        let each = trunks.flat_map(|trunk| {
            let (vigil, tcp) = (&trunk.vigil, trunk.socket.connection());
            [
                vigil.patience_ends(tcp),
                vigil.asks_again(tcp, self.keep_alive.interval),
            ]
        });
        let idle = self.idle_until().map(|(at, _)| at);
        let begins = self.begins_anew.then_some(Time::ZERO);
        each.flatten().chain(idle).chain(begins).min()
    }

    /// This gateway may not be the first of its name: the other one may have persistent connections left to one that died.
    pub(in super::super) fn begins_anew(&mut self) {
        self.begins_anew = true;
    }

    /// Asks who has been silent for long enough, and gives up who didn't answer.
    pub(super) fn keep_vigil(&mut self, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        if take(&mut self.begins_anew) && self.trunks.iter().all(Option::is_none) {
            // Its SYN is the quickest way to be asked whether it is the same (RFC 9293 section 3.5.1): what the other gateway
            // has left is answered for by a RST, a round trip later.
            self.connect(0, around, cx);
        }
        for slot in 0..self.trunks.len() {
            let Some(trunk) = self.trunks[slot].as_mut().filter(|trunk| trunk.is_open()) else {
                continue;
            };
            let due = |at: Option<Time>| at.is_some_and(|at| at <= cx.now);
            let tcp = trunk.socket.connection();
            let (despairs, asks) = (
                due(trunk.vigil.patience_ends(tcp)),
                due(trunk.vigil.asks_again(tcp, self.keep_alive.interval)),
            );
            if asks && trunk.vigil.asked >= self.keep_alive.probes {
                self.lose(slot, around, cx);
                continue;
            }
            if asks {
                trunk.vigil.ask(&mut trunk.socket, cx);
            }
            if despairs {
                trunk.vigil.despairs = true;
                self.doubt(cx);
                self.open_beside(slot, cx);
            }
        }
        if let Some((_, slot)) = self.idle_until().filter(|(at, _)| *at <= cx.now)
            && let Some(trunk) = &mut self.trunks[slot]
        {
            trunk.vigil.ask(&mut trunk.socket, cx);
        }
    }

    /// Something is said of a segment of a persistent connection. That it did not get there is the quickest sign that the other
    /// gateway is out of reach. Who says so may err, or lie, or mean this moment only: so it is one of doubt, and ends nothing.
    pub(super) fn on_trunk_icmp(
        &mut self,
        slot: usize,
        said: &Complaint,
        around: &mut Around<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        let believed = trunk.socket.connection().may_have_sent(said.sequence);
        let unreachable = believed && is_of_reach(said.error);
        if !trunk.is_open() && unreachable {
            // (The handshake goes on: the other gateway may have heard of it all the same, and its answer be late.)
            self.wait_no_longer(slot, around, cx);
            return;
        }
        trunk.socket.on_icmp(said.error, said.sequence, cx);
        if unreachable && !trunk.vigil.despairs {
            trunk.vigil.despairs = true;
            self.doubt(cx);
            self.open_beside(slot, cx);
        }
        self.look(slot, around, cx);
    }

    /// The other gateway may be gone: nothing new goes over what it has not answered on since.
    pub(super) fn doubt(&mut self, cx: &mut Ctx<'_>) {
        let had = self.has_trusted();
        for trunk in self.trunks.iter_mut().flatten() {
            if trunk.is_open() {
                trunk.doubt(cx);
            }
        }
        if had {
            self.remark = Some(Remark::Silent);
        }
    }

    /// One more persistent connection is asked for: if it is not answered, it is to be known by then whether any would be.
    pub(super) fn ask_the_silent(&mut self, cx: &mut Ctx<'_>) {
        for trunk in self.trunks.iter_mut().flatten() {
            if trunk.is_open() && trunk.vigil.waits_since.is_none() {
                trunk.vigil.ask(&mut trunk.socket, cx);
            }
        }
    }

    /// Something was heard on a persistent connection on which nothing new could go.
    pub(super) fn trust(&mut self, slot: usize, cx: &mut Ctx<'_>) {
        self.absent = false;
        self.remark = Some(Remark::Back);
        if let Some(trunk) = &mut self.trunks[slot] {
            (trunk.socket).act(cx, |tcp, cx| tcp.path_is_back(cx.now));
        }
    }

    /// No question was answered: it is no more.
    fn lose(&mut self, slot: usize, around: &mut Around<'_>, cx: &mut Ctx<'_>) {
        let Some(trunk) = &mut self.trunks[slot] else {
            return;
        };
        trunk.socket.abort(cx);
        around.counters.trunks_silent += 1;
        self.fail(slot, around, cx);
        self.lost[slot] = true;
        self.absent = !self.has_trusted();
        self.remark = Some(Remark::Lost);
    }
}
