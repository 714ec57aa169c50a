//! A server that reads requests, waits for the think time, and responds.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_tcp::Events;
use bentpipe_types::Time;

use super::orders::{Order, Orders};
use crate::{Application, ApplicationProgress, SocketApi, SocketBackend, SocketId};

/// Responds to the requests of each connection in order, each after its think time; think times
/// overlap.
#[derive(Debug)]
pub(super) struct Responder {
    orders: Orders,
    conversations: BTreeMap<SocketId, Conversation>,
}

#[derive(Debug)]
struct Conversation {
    port: u16,
    /// The request being read, and its missing bytes.
    reading: Option<(Order, u64)>,
    /// Times at which responses are ready, and their bytes.
    answers: VecDeque<(Time, u64)>,
    peer_closed: bool,
}

impl Responder {
    pub(super) fn new(orders: Orders) -> Self {
        Self {
            orders,
            conversations: BTreeMap::new(),
        }
    }
}

impl Conversation {
    /// Handles protocols in which the server speaks first: an order without a request.
    fn greet(&mut self, orders: &Orders, now: Time) {
        if let Some(order) = orders.take_greeting(self.port) {
            self.answers.push_back((now + order.think, order.response));
        }
    }

    /// Handles received bytes.
    fn take(&mut self, mut bytes: u64, orders: &Orders, now: Time) {
        while bytes > 0 {
            let Some((order, missing)) = self.reading.or_else(|| {
                let order = orders.take(self.port)?;
                Some((order, order.request))
            }) else {
                // After its client has lost a connection, for example by a gateway's reset, the
                // rest of a request may still arrive.
                debug_assert!(!orders.is_expecting(self.port), "bytes that nobody ordered");
                return;
            };
            let part = bytes.min(missing);
            bytes -= part;
            self.reading = (missing > part).then_some((order, missing - part));
            if self.reading.is_none() {
                let ready = self.answers.back().map_or(Time::ZERO, |(at, _)| *at);
                self.answers
                    .push_back((ready.max(now + order.think), order.response));
            }
        }
    }
}

/// Writes responses that are ready, and closes when all are written and no more can come.
fn serve<D: SocketApi>(socket: SocketId, talk: &mut Conversation, api: &mut D) {
    let now = api.now();
    while let Some((at, bytes)) = talk.answers.front().copied()
        && at <= now
    {
        talk.answers.pop_front();
        api.feed(socket, bytes, false);
    }
    if talk.peer_closed && talk.answers.is_empty() {
        api.feed(socket, 0, true);
    }
}

impl<P: SocketBackend> Application<P> for Responder {
    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        let Some(remote) = api.remote(socket) else {
            return;
        };
        let conversation = Conversation {
            port: remote.port,
            reading: None,
            answers: VecDeque::new(),
            peer_closed: false,
        };
        api.no_delay(socket);
        self.conversations.insert(socket, conversation);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        let Some(talk) = self.conversations.get_mut(&socket) else {
            return;
        };
        if events.has(Events::ESTABLISHED) {
            talk.greet(&self.orders, api.now());
            serve(socket, talk, api);
        }
        let read = api.read(socket, u64::MAX);
        talk.take(read, &self.orders, api.now());
        let closes = events.has(Events::PEER_CLOSED) && !talk.peer_closed;
        talk.peer_closed |= closes;
        if read > 0 || closes {
            serve(socket, talk, api);
        }
        if events.has(Events::CLOSED) {
            self.conversations.remove(&socket);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        for (socket, talk) in &mut self.conversations {
            if talk.answers.front().is_some_and(|(at, _)| *at <= now) {
                serve(*socket, talk, api);
            }
        }
    }

    fn progress(&self) -> ApplicationProgress {
        let talks = self.conversations.values();
        ApplicationProgress {
            next: talks.filter_map(|talk| Some(talk.answers.front()?.0)).min(),
            ..ApplicationProgress::default()
        }
    }
}
