//! Interactive traffic: request, response, pause, repeated over one connection.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use crate::report::Responses;
use crate::{
    Application, ApplicationProgress, Distribution, Report, SocketApi, SocketBackend, SocketId,
};

/// Settings of requests and responses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestResponseSettings {
    /// Bytes of a request.
    pub request: Distribution,
    /// Bytes of a response.
    pub response: Distribution,
    /// Think time of the server.
    pub think: Span,
    /// Seconds from a response to the next request.
    pub pause: Distribution,
    /// Number of requests, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// The requesting end.
#[derive(Debug)]
pub(super) struct RequestResponse {
    server: Endpoint,
    settings: RequestResponseSettings,
    orders: Orders,
    socket: Option<(SocketId, u16)>,
    /// Time of the outstanding request, and missing bytes of its response.
    waiting: Option<(Time, u64)>,
    progress: ApplicationProgress,
    responses: Responses,
}

impl RequestResponse {
    pub(super) fn new(server: Endpoint, settings: RequestResponseSettings, orders: Orders) -> Self {
        Self {
            server,
            settings,
            orders,
            socket: None,
            waiting: None,
            progress: ApplicationProgress::default(),
            responses: Responses::default(),
        }
    }

    fn ask<D: SocketApi>(&mut self, api: &mut D) {
        let Some((socket, port)) = self.socket else {
            return;
        };
        let order = Order {
            request: self.settings.request.bytes(api.random()),
            response: self.settings.response.bytes(api.random()),
            think: self.settings.think,
        };
        self.orders.place(port, order);
        self.waiting = Some((api.now(), order.response));
        self.responses.asked += 1;
        api.feed(socket, order.request, false);
    }

    fn answered<D: SocketApi>(&mut self, asked: Time, api: &mut D) {
        self.waiting = None;
        let time = api.now().since(asked);
        self.progress.latest = Some(time);
        self.responses.times.push(time);
        if self.settings.count == Some(self.responses.times.len() as u64) {
            self.progress.finished = Some(api.now());
            if let Some((socket, _)) = self.socket {
                api.close(socket);
            }
            return;
        }
        let pause = self.settings.pause.span(api.random());
        if pause == Span::ZERO {
            self.ask(api);
        } else {
            self.progress.next = Some(api.now() + pause);
        }
    }
}

impl<P: SocketBackend> Application<P> for RequestResponse {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        if let Ok(socket) = api.connect(self.server) {
            api.no_delay(socket);
            let port = api.local(socket).map(|end| end.port);
            self.socket = port.map(|port| (socket, port));
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            self.ask(api);
        }
        let read = api.read(socket, u64::MAX);
        if let Some((asked, missing)) = self.waiting
            && read > 0
        {
            debug_assert!(read <= missing, "more than was asked for");
            self.waiting = Some((asked, missing - read.min(missing)));
            if read >= missing {
                self.answered(asked, api);
            }
        }
        if events.has(Events::CLOSED) {
            // If the peer closed the connection, the flow's outcome states it.
            self.progress.next = None;
            self.socket = None;
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if self.progress.takes_turn(api.now()) {
            self.ask(api);
        }
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.progress.finished;
        report.responses = Some(self.responses.clone());
    }
}
